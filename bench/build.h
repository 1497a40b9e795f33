/* build.h - what this program was built from, and by what. */
#ifndef BENCH_BUILD_H
#define BENCH_BUILD_H

/* The commit of the source tree, "25c2442fd80a" or "25c2442fd80a-dirty"; "unknown" outside git. */
const char *bench_build_commit(void);

/* "gcc 12.2.0", "clang 14.0.6" */
const char *bench_build_compiler(void);

#endif
