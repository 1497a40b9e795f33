/* product.h - matrix products by cuBLASLt, as many of its ways as training takes.
 *
 *   open ──▶ product: shapes, types, what happens to the sum ──▶ workspace bytes, run on a stream
 *
 * The library is loaded at run time: a program that has this file runs where it is missing. All
 * matrices are dense, rows one after the other.
 *
 * Errors   STOKER_EDEVICE with the library's own words; STOKER_ENOTSUP where it knows no algorithm.
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

/* Load the library and make ready for the current CUDA device. library: file or path; NULL =
 * $STOKER_CUBLASLT, else libcublasLt.so.13, else .12. On success *out is the caller's. */
int stk_cublaslt_open(struct stk_cublaslt **out, const char *library, stoker_error *error);
void stk_cublaslt_close(struct stk_cublaslt **cublaslt); /* NULL-safe; products go first */

/* d = a b, then + d's old values, or + bias, or + bias and max(., 0). Sums are float32. */
enum stk_product_epilogue {
    STK_PRODUCT_WRITE,
    STK_PRODUCT_ADD, /* d += a b */
    STK_PRODUCT_RELU,
    STK_PRODUCT_BIAS, /* bias [columns], of d's type */
    STK_PRODUCT_BIAS_RELU
};

struct stk_product_shape {
    uint64_t rows, columns, depth; /* d: [rows][columns]; each 1..2^31 - 1 */
    bool a_transposed;             /* a is [depth][rows], else [rows][depth] */
    bool b_transposed;             /* b is [columns][depth], else [depth][columns] */
    stoker_dtype in, out;          /* a and b; d: in, or float32 */
    enum stk_product_epilogue epilogue;
};

/* Descriptors, and the algorithms that the library thinks best within the rules, best first. */
int stk_product_create(struct stk_product **out, struct stk_cublaslt *cublaslt,
                       const struct stk_product_shape *shape, const struct stk_engine_rules *rules,
                       stoker_error *error);
void stk_product_destroy(struct stk_product **product); /* NULL-safe */

/* Algorithms there are, >= 1; which of them is run (0 at first). */
uint32_t stk_product_algorithms(const struct stk_product *product);
void stk_product_choose(struct stk_product *product, uint32_t algorithm);
/* The chosen one's. */
uint64_t stk_product_workspace_bytes(const struct stk_product *product);

/* Enqueue on a stream (a cudaStream_t). Device memory, at multiples of 16 bytes; bias NULL where
 * there is none; workspace at a multiple of 256. */
int stk_product_run(struct stk_product *product, const void *a, const void *b, const void *bias,
                    void *d, void *workspace, void *stream, stoker_error *error);

#endif
