/* narrow.h - plain loops on values stored in 16 bits.
 *
 *   buffers in T ──▶ floats in scratch ──▶ the operation ──▶ rounded back to T
 *
 * Only what is stored is rounded; sums and intermediate values are not. Slow: the reference for
 * back ends that compute in 16 bits. */
#ifndef STK_TRAINER_BACKEND_REF_NARROW_H
#define STK_TRAINER_BACKEND_REF_NARROW_H

#include "trainer/backend/ref/operations.h"

/* Bytes of scratch for any operation of a plan; 0 if T is float32. */
uint64_t stk_narrow_scratch_bytes(const struct stk_plan *plan);

/* Run one operation of a plan with a 16-bit T. scratch: stk_narrow_scratch_bytes(). */
void stk_narrow_run(const struct stk_plan *plan, const struct stk_op *op,
                    const struct stk_arenas *arenas, const struct stk_pass *pass, void *scratch,
                    struct stk_loss *loss);

#endif
