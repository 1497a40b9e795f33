/* product.h - matrix products by cuBLASLt, as far as training needs them.
 *
 *   open ──▶ product: shapes, types, epilogue ──▶ workspace bytes, run on a stream
 *
 * The library is loaded at run time, so a program also runs without it. All matrices are dense and
 * row-major.
 *
 * Errors   STOKER_EDEVICE with the library's message; STOKER_ENOTSUP if it has no algorithm.
 * Threads  One thread at a time for one handle. */
#ifndef STK_TRAINER_BACKEND_CUDA_CUBLASLT_PRODUCT_H
#define STK_TRAINER_BACKEND_CUDA_CUBLASLT_PRODUCT_H

#include "trainer/backend/cuda/engine/choice.h"
#include <stdbool.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/tensor.h>

struct stk_cublaslt;
struct stk_product;

/* Load the library for the current CUDA device. library: file or path; NULL = $STOKER_CUBLASLT,
 * else libcublasLt.so.13 or .12: first the one of the headers' version, then the other one. On
 * success *out is the caller's. */
int stk_cublaslt_open(struct stk_cublaslt **out, const char *library, stoker_error *error);
void stk_cublaslt_close(struct stk_cublaslt **cublaslt); /* NULL-safe; destroy products first */

/* What happens to the sum a b before it is stored in d. Sums are float32. */
enum stk_product_epilogue {
    STK_PRODUCT_WRITE,
    STK_PRODUCT_ADD,  /* d += a b, or d = a b: stk_product_add() */
    STK_PRODUCT_RELU, /* max(., 0) */
    STK_PRODUCT_BIAS, /* + bias [columns], of d's type */
    STK_PRODUCT_BIAS_RELU
};

struct stk_product_shape {
    uint64_t rows, columns, depth; /* d: [rows][columns]; each 1..2^31 - 1 */
    bool a_transposed;             /* a is [depth][rows], else [rows][depth] */
    bool b_transposed;             /* b is [columns][depth], else [depth][columns] */
    stoker_dtype in, out;          /* a and b; d: in, or float32 */
    enum stk_product_epilogue epilogue;
};

/* Create descriptors, and ask for the algorithms that meet the rules, best first. */
int stk_product_create(struct stk_product **out, struct stk_cublaslt *cublaslt,
                       const struct stk_product_shape *shape, const struct stk_engine_rules *rules,
                       stoker_error *error);
void stk_product_destroy(struct stk_product **product); /* NULL-safe */

/* The number of algorithms, >= 1; choose the one to run (0 at first). */
uint32_t stk_product_algorithms(const struct stk_product *product);
void stk_product_choose(struct stk_product *product, uint32_t algorithm);
uint32_t stk_product_chosen(const struct stk_product *product);
/* Workspace of the chosen algorithm. */
uint64_t stk_product_workspace_bytes(const struct stk_product *product);

/* Of a product made with STK_PRODUCT_ADD: true (at first), runs add to d; false, they overwrite
 * it. */
void stk_product_add(struct stk_product *product, bool add);

/* Enqueue on a stream (a cudaStream_t). All in device memory, 16-byte aligned, the workspace 256.
 * bias: NULL without one. */
int stk_product_run(struct stk_product *product, const void *a, const void *b, const void *bias,
                    void *d, void *workspace, void *stream, stoker_error *error);

#endif
