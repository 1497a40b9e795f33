/* machine.h - describes this machine, and measures the memory of this process. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include "bench/loaderbench/result.h"

#include <stdbool.h>
#include <stdint.h>
#include <stoker/stoker.h>

/* CPUs in the affinity mask of this process, at least 1. */
uint32_t bench_cpus(void);

/* Fills in everything but the data set. argv is joined into args. */
void bench_machine_describe(struct bench_machine *out, int argc, char *const *argv);

enum { BENCH_MOMENT_BYTES = 512 };

/* "2026-11-22T13:00:00Z on HOST, load 0.50, commit 25c2442fd80a, gcc 12.2.0" */
void bench_machine_moment(const struct bench_machine *machine, char out[BENCH_MOMENT_BYTES]);

/* Fills in the data set's part. path: its file, or "" if there is none. */
void bench_machine_describe_dataset(struct bench_machine *out, const stoker_dataset *dataset,
                                    const char *spec, const char *path);

/* Processor time of this process and of all on its CPUs, since `begun`. */
struct bench_cpu_use {
    uint64_t at_ns, own_ns;
    uint64_t all_ticks; /* 0 = unknown */
};

struct bench_cpu_use bench_cpu_use_now(void);

/* CPUs that other programs (and the host of a virtual machine) kept busy since then, on average, of
 * those that this process may use. NaN = unknown. */
double bench_others_cpus(const struct bench_cpu_use *begun);

/* Bytes of memory this process holds now, and the most it held since the last reset.
 * 0 = unknown. */
uint64_t bench_rss_bytes(void);
uint64_t bench_rss_peak_bytes(void);

/* Restarts the peak. False: not allowed here, and the peak is that of the whole run. */
bool bench_rss_peak_reset(void);

/* The commit of the source tree, "25c2442fd80a" or "25c2442fd80a-dirty"; "unknown" outside git. */
const char *bench_build_commit(void);

/* "gcc 12.2.0", "clang 14.0.6" */
const char *bench_build_compiler(void);

#endif
