/* spin.h - the kernel that plays a training step on a GPU: it reads a little of the batch, then
 * spins until its time is over. One block of one warp, so that it takes no copy engine and no memory
 * bandwidth from the loader.
 *
 * Compiled by the C compiler and by nvcc alike.
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
    uint64_t *sum;        /* what was read is added here, for nobody to leave it out */
    uint64_t spin_ns;
};

#ifndef __CUDACC__
/* The kernel as a fat binary; NULL in a build without nvcc. */
const void *bench_spin_fatbin(void);
/* Its host version in plain C, with pointers of the host: what tests run in its place. */
void bench_spin_on_host(const struct bench_spin *spin);
#endif

#endif
