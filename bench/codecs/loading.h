/* loading.h - a loader that reads records again and again, timed a window at a time. */
#ifndef BENCH_LOADING_H
#define BENCH_LOADING_H

#include "bench/codecs/checking.h"
#include "bench/material/material.h"
#include "bench/statistics.h"

struct bench_loading {
    struct bench_checking set;
    stoker_dataset *dataset;
    stoker_loader *loader;
};

/* Two workers; on failure, closed.
 *
 * Rows as stored, nothing kept. material must outlive it. */
int bench_loading_open(struct bench_loading *loading, const struct bench_material *material,
                       enum bench_check check);

/* Rows as float32, held in memory by the time this returns: decoded ones are cached. */
int bench_loading_open_held(struct bench_loading *loading, const char *spec, uint32_t batch_size);

void bench_loading_close(struct bench_loading *loading); /* all zero is allowed */

enum { BENCH_LOADING_SIDES = 3, BENCH_LOADING_TURNS = 101 };

/* stk_now_ns, or bench_cpu_ns: what all threads take, to which neighbours add less. */
typedef uint64_t bench_loading_clock(void);

/* What each side took in each turn: nanoseconds a sample. */
struct bench_loading_times {
    double ns[BENCH_LOADING_SIDES][BENCH_LOADING_TURNS];
};

/* Let up to BENCH_LOADING_SIDES loaders take turns, so that all see the same neighbours; each begins
 * as many rounds as any other. A turn is 20 ms, after as long again: its ring was full while it
 * rested. */
int bench_loading_take_turns(struct bench_loading *const *sides, uint32_t count,
                             bench_loading_clock *clock, struct bench_loading_times *out);

/* The median over the turns of what `side` took, or of how many times as long as `than`. */
double bench_loading_ns(const struct bench_loading_times *times, uint32_t side);
struct bench_statistics bench_loading_ratio(const struct bench_loading_times *times, uint32_t side,
                                            uint32_t than);

#endif
