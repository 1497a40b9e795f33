/* loading.h - a loader that reads records repeatedly, timed one window at a time. */
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

/* Opens a loader with two workers and no cache that delivers rows as stored. material must outlive it.
 * On failure it is closed. */
int bench_loading_open(struct bench_loading *loading, const struct bench_material *material,
                       enum bench_check check);

/* The same with rows as float32, all in memory when this returns: decoded ones are cached. */
int bench_loading_open_held(struct bench_loading *loading, const char *spec, uint32_t batch_size);

void bench_loading_close(struct bench_loading *loading); /* all zero is allowed */

enum { BENCH_LOADING_SIDES = 3, BENCH_LOADING_TURNS = 101 };

/* stk_now_ns, or bench_cpu_ns: the time of all threads, which other processes disturb less. */
typedef uint64_t bench_loading_clock(void);

/* Nanoseconds per sample of each side in each turn. */
struct bench_loading_times {
    double ns[BENCH_LOADING_SIDES][BENCH_LOADING_TURNS];
};

/* Lets up to BENCH_LOADING_SIDES loaders take turns under the same conditions; each starts equally many
 * rounds. A turn is 20 ms, after 20 ms untimed, since the ring filled up while the loader rested. */
int bench_loading_take_turns(struct bench_loading *const *sides, uint32_t count,
                             bench_loading_clock *clock, struct bench_loading_times *out);

/* The median over the turns of the time of `side`, or of its ratio to that of `than`. */
double bench_loading_ns(const struct bench_loading_times *times, uint32_t side);
struct bench_statistics bench_loading_ratio(const struct bench_loading_times *times, uint32_t side,
                                            uint32_t than);

#endif
