/* gather.h - the ceiling of a data set in GPU memory: a kernel that takes rows of bytes by number and writes them as elements of
 * 1, 2 or 4 bytes, with no frame, no crop and no layout. It shares nothing with the library's kernels.
 *
 * A warp works on one row, or one part of a long row. Each lane writes 16 bytes at a time, the lanes of a warp side by side, and
 * reads what these are made of: 16, 8 or 4 bytes.
 *
 *   grid.x   rows / 8: eight warps in a block, a row each
 *   grid.y   parts of BENCH_GATHER_PART_BYTES of output
 *
 * Compiled by the C compiler and by nvcc.
 */
#ifndef BENCH_DEVICE_GATHER_H
#define BENCH_DEVICE_GATHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BENCH_GATHER_THREADS = 256,
    BENCH_GATHER_LANES = 32,
    BENCH_GATHER_STORE_BYTES = 16,
    BENCH_GATHER_STORES = 8, /* per lane */
    BENCH_GATHER_PART_BYTES = BENCH_GATHER_STORES * BENCH_GATHER_LANES * BENCH_GATHER_STORE_BYTES
};

/* `rows` and `out` are aligned to 16 bytes, and so is the size of a row as it is written. */
struct bench_gather {
    const uint8_t *rows;
    const uint64_t *numbers; /* [count] */
    uint8_t *out;            /* [count][row_bytes * bytes of an element] */
    uint64_t row_bytes;      /* as stored; >= 1 */
    uint32_t count;          /* >= 1 */
    float factor, bias;      /* element = fmaf(byte, factor, bias); of one byte: the byte itself */
};

#ifndef __CUDACC__
/* The kernel for elements of that many bytes: 4 float32, 2 bfloat16, 1 the byte itself. NULL: there is none. */
const char *bench_gather_name(size_t element_bytes);
/* Returns true if such rows can be gathered. */
bool bench_gather_fits(uint64_t row_bytes, size_t element_bytes);
/* The kernels as a fat binary of *bytes bytes; NULL in a build without nvcc. */
const void *bench_gather_fatbin(size_t *bytes);
/* The same in plain C with host pointers: what the kernel must have written, and what tests run in its place. */
void bench_gather_on_host(const struct bench_gather *gather, size_t element_bytes);
#endif

#endif
