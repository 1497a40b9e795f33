/* spin.c - see spin.h. */
#include "bench/loaderbench/device/spin.h"
#include "kernels/fatbin.h"
#include "loader/base/clock.h"

void bench_spin_on_host(const struct bench_spin *spin)
{
    const uint64_t begin_ns = stk_now_ns();
    *spin->sum += (uint64_t)(spin->images[0] + spin->images[spin->image_bytes / 2] +
                             spin->images[spin->image_bytes - 1]);
    while (stk_now_ns() - begin_ns < spin->spin_ns)
        continue;
}

#ifdef BENCH_SPIN_FATBIN
STK_EMBED_FATBIN(bench_spin_fatbin, BENCH_SPIN_FATBIN)
#else
STK_NO_FATBIN(bench_spin_fatbin)
#endif
