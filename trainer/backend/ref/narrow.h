/* narrow.h - plain loops on values that are stored in 16 bits.
 *
 *   buffers in T ──▶ floats in scratch ──▶ the operation ──▶ rounded back to T
 *
 * What is rounded is what is stored, and nothing else: sums and what lies between are as wide as the
 * loops make them. Slow, and the oracle of a back end that computes in 16 bits. */
#ifndef STK_TRAINER_BACKEND_REF_NARROW_H
#define STK_TRAINER_BACKEND_REF_NARROW_H

#include "trainer/backend/ref/operations.h"

/* Bytes of scratch that the operations of a plan need, each in its turn; 0 where T is float32. */
uint64_t stk_narrow_scratch_bytes(const struct stk_plan *plan);

/* Run one operation of a plan whose T is narrow. scratch: stk_narrow_scratch_bytes(). */
void stk_narrow_run(const struct stk_plan *plan, const struct stk_op *op,
                    const struct stk_arenas *arenas, const struct stk_pass *pass, void *scratch,
                    struct stk_loss *loss);

#endif
