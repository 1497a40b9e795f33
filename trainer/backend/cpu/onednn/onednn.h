/* onednn.h - what the cpu back end needs of oneDNN, without its types.
 *
 * Single-threaded: each thread of the back end calls for itself. */
#ifndef STK_TRAINER_BACKEND_CPU_ONEDNN_ONEDNN_H
#define STK_TRAINER_BACKEND_CPU_ONEDNN_ONEDNN_H

#include "trainer/backend/common/operands.h"

#ifdef STOKER_HAVE_DNNL

struct stk_onednn;

/* Prepare a convolution, a linear layer or one of their gradients with values in `storage`, for up
 * to `samples` samples at a time on each of `threads` threads. STOKER_ENOMEM; STOKER_ENOTSUP:
 * oneDNN has no fast code for it. */
int stk_onednn_create(struct stk_onednn **out, const struct stk_layer *layer, enum stk_op_kind kind,
                      stoker_dtype storage, uint32_t samples, uint32_t threads);
void stk_onednn_destroy(struct stk_onednn *op);                 /* NULL-safe */
uint64_t stk_onednn_scratch_bytes(const struct stk_onednn *op); /* per thread */
uint64_t stk_onednn_own_bytes(const struct stk_onednn *op);     /* allocated by stk_calloc */
/* Run it on the samples of the operands; the gradient of a linear layer's weights, for this
 * thread's share of the outputs. No ReLU, and no gradient of a linear layer's bias. STOKER_EDEVICE.
 * */
int stk_onednn_run(const struct stk_onednn *op, const struct stk_operands *o, uint32_t thread,
                   void *scratch);

/* If oneDNN uses OpenMP, limit it to one thread for calls from this one. Returns the old limit, for
 * leave. */
int stk_onednn_enter_thread(void);
void stk_onednn_leave_thread(int before);

#endif
#endif
