/* spin.c - see spin.h. */
#include "bench/device/spin.h"
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
__asm__(".pushsection .rodata\n"
        ".hidden bench_spin_begin\n"
        ".globl bench_spin_begin\n"
        ".balign 64\n"
        "bench_spin_begin:\n"
        ".incbin \"" BENCH_SPIN_FATBIN "\"\n"
        ".popsection\n");

extern const unsigned char bench_spin_begin[];

const void *bench_spin_fatbin(void)
{
    return bench_spin_begin;
}
#else
const void *bench_spin_fatbin(void)
{
    return NULL;
}
#endif
