/* spin.c - see spin.h. */
#include "bench/loaderbench/device/spin.h"
#include "kernels/fatbin.h"

#ifdef BENCH_SPIN_FATBIN
STK_EMBED_FATBIN(bench_spin_fatbin, BENCH_SPIN_FATBIN)
#else
STK_NO_FATBIN(bench_spin_fatbin)
#endif
