/* onednn.h - what the cpu back end needs of oneDNN, without its types.
 *
 * Single-threaded: each thread of the back end calls for itself. */
#ifndef STK_TRAINER_BACKEND_CPU_ONEDNN_ONEDNN_H
#define STK_TRAINER_BACKEND_CPU_ONEDNN_ONEDNN_H

#include "trainer/backend/common/operands.h"

#ifdef STOKER_HAVE_DNNL

struct stk_onednn_conv;

/* A convolution or one of its gradients, for up to `samples` samples at a time on each of `threads` threads.
 * STOKER_ENOMEM; STOKER_ENOTSUP: oneDNN does not support it. */
int stk_onednn_conv_create(struct stk_onednn_conv **out, const struct stk_layer *layer,
                           enum stk_op_kind kind, uint32_t samples, uint32_t threads);
void stk_onednn_conv_destroy(struct stk_onednn_conv *conv);                 /* NULL-safe */
uint64_t stk_onednn_conv_scratch_bytes(const struct stk_onednn_conv *conv); /* per thread */
uint64_t stk_onednn_conv_own_bytes(
    const struct stk_onednn_conv *conv); /* allocated by stk_calloc */
/* Run it on the samples of the operands. STOKER_EDEVICE. */
int stk_onednn_conv_run(const struct stk_onednn_conv *conv, const struct stk_operands *o,
                        uint32_t thread, void *scratch);

/* Row-major c = a b + beta c; a_transposed: a is [k][m]; b_transposed: b is [n][k]. */
struct stk_onednn_product {
    int64_t m, n, k;
    const float *a, *b;
    float *c;
    bool a_transposed, b_transposed;
    int64_t a_row, b_row, c_row; /* row strides in memory, in floats */
    float beta;
};
void stk_onednn_multiply(const struct stk_onednn_product *product);

/* If oneDNN uses OpenMP, limit it to one thread for calls from this one. Returns the old limit, for leave. */
int stk_onednn_enter_thread(void);
void stk_onednn_leave_thread(int before);

#endif
#endif
