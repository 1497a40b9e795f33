/* spin.h - the kernel that stands in for a training step on a GPU: it reads a little of the batch,
 * then spins until its time is over. One block of one warp, so that it takes neither copy engine
 * nor memory bandwidth from the loader.
 *
 * Compiled by the C compiler and by nvcc.
 */
#ifndef BENCH_DEVICE_SPIN_H
#define BENCH_DEVICE_SPIN_H

#include <stddef.h>
#include <stdint.h>

#define BENCH_SPIN_NAME "bench_spin"
enum { BENCH_SPIN_THREADS = 32 };

struct bench_spin {
    const uint8_t *images;
    uint64_t image_bytes; /* >= 1 */
    uint64_t *sum;        /* sum of what was read, so that the compiler keeps the reads */
    uint64_t spin_ns;
};

#ifndef __CUDACC__
/* The kernel as a fat binary of *bytes bytes; NULL in a build without nvcc. */
const void *bench_spin_fatbin(size_t *bytes);
#endif

#endif
