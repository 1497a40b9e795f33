/* cuda_threads.h - runs the source of CUDA kernels on the CPU, one fiber per CUDA thread, and
 * watches their memory.
 *
 *   kernels/.../x.cu ──▶ kernels.cpp ──▶ a module: a table of kernels, and their shared memory
 *                        the host's C++ compiler, -fsanitize=thread without its runtime: each
 *                        access becomes a call
 *
 *   cuda_threads_run() ──▶ launch.c   blocks one after the other, threads in a random order, interrupted at random accesses
 *                          meet.c     barriers, shuffles
 *                          access.c   each access: may it be used, and does it race
 *                          shadow.c   per byte: the latest write and reads
 *                          order.c    what happened before what, between blocks
 *
 * Found by what must happen before what, not by luck of the schedule:
 *
 *   race          two threads of a block use a byte with no barrier between them, and one writes;
 *                 or two blocks of a launch, unless ordered by fences and atomics (order.c)
 *   memory        an access outside the memory of the launch, a write to memory that is const, a
 *                 read of shared or scratch memory that nobody has written
 *   barrier       not all threads of a block meet at the same barrier
 *   shuffle       a lane that its own mask or the source's mask leaves out
 *   deadlock      threads wait, and no barrier or shuffle can be completed
 *
 * What would destroy the program's memory ends the launch; all else is reported, and the launch
 * continues. Warps have 32 lanes, and no thread of a warp may rely on another's progress.
 */
#ifndef STK_TEST_CUDA_THREADS_H
#define STK_TEST_CUDA_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hooks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One kernel: `call` passes a copy of the struct to the kernel, in the running thread. */
struct cuda_threads_kernel {
    const char *name; /* NULL ends the table */
    size_t arguments_bytes;
    void (*call)(const void *arguments);
};

/* What a module exports, as `cuda_threads_module`. */
struct cuda_threads_module {
    const struct cuda_threads_kernel *kernels;
    char *shared, *shared_end;     /* shared memory of all its kernels */
    const char *image, *image_end; /* its constants */
};

/* Memory that a launch may use. */
struct cuda_threads_memory {
    void *at;
    size_t bytes;
    const char *name;
    bool writable;
    bool scratch; /* what lies there before the launch must not be read */
};

enum cuda_threads_kind {
    CUDA_THREADS_RACE_IN_BLOCK,
    CUDA_THREADS_RACE_BETWEEN_BLOCKS,
    CUDA_THREADS_OUTSIDE,    /* ends the launch */
    CUDA_THREADS_MISALIGNED, /* ends the launch: a GPU would end with cudaErrorMisalignedAddress */
    CUDA_THREADS_CONSTANT,   /* ends the launch */
    CUDA_THREADS_UNWRITTEN,
    CUDA_THREADS_BARRIER,  /* ends the launch, unless only some threads had left the kernel */
    CUDA_THREADS_SHUFFLE,  /* ends the launch */
    CUDA_THREADS_DEADLOCK, /* ends the launch */
    CUDA_THREADS_KINDS
};

enum { CUDA_THREADS_FINDINGS_MAX = 16, CUDA_THREADS_SITES_MAX = 64, CUDA_THREADS_TEXT_BYTES = 256 };

struct cuda_threads_finding {
    enum cuda_threads_kind kind;
    char text[CUDA_THREADS_TEXT_BYTES];
};

/* What a launch did. The same kind at the same place of the code is one finding. */
struct cuda_threads_report {
    uint32_t count; /* findings; those beyond the array are counted only */
    struct cuda_threads_finding findings[CUDA_THREADS_FINDINGS_MAX];
    uint64_t accesses; /* to global and shared memory */
    uint64_t switches; /* from the scheduler to a fiber */
    uint32_t site_count;
    /* Sites that were reached, in the order of the first time. */
    const struct cuda_site *sites[CUDA_THREADS_SITES_MAX];
};

/* Breaks the kernel at one site, to see that a test notices. */
struct cuda_threads_mutation {
    const struct cuda_site *site; /* NULL = none */
    enum {
        CUDA_THREADS_DROPPED,   /* a barrier or fence that nobody executes */
        CUDA_THREADS_DIVERGENT, /* a barrier that the upper half of the block does not reach */
        CUDA_THREADS_NARROWED,  /* the mask of a shuffle lacks lane 31 */
        CUDA_THREADS_WIDENED    /* a bound that is included; in the module with mutants of bounds */
    } how;
};

struct cuda_threads_launch {
    const char *kernel;
    const void *arguments; /* the kernel's one argument */
    size_t arguments_bytes;
    uint32_t grid_x, grid_y;
    uint32_t first_x, first_y; /* blocks before these do not run */
    uint32_t threads;          /* threads per block, 1..1024 */
    const struct cuda_threads_memory *memory;
    size_t memory_count;
    /* Looks up memory that is not listed. Returns false if there is none. NULL = all is listed, or,
     * if the list is empty, no access is watched. */
    bool (*find)(const void *address, struct cuda_threads_memory *out);
    uint64_t seed; /* 0 = blocks and threads in order */
    /* A thread is interrupted at one access in N, at random; 0 = never. */
    uint32_t interrupt_every;
    /* Two blocks may write the same value to the same byte, with nothing between them. */
    bool equal_writes;
    struct cuda_threads_mutation mutation;
};

/* Returns the module in the shared library at `path`, loaded if necessary; NULL: see dlerror(). */
const struct cuda_threads_module *cuda_threads_open(const char *path);

/* Returns true if the module has a kernel of that name. */
bool cuda_threads_has(const struct cuda_threads_module *module, const char *kernel);

/* Runs a launch and returns the number of findings. The module has the kernel. One launch runs at a
 * time: further threads wait. */
uint32_t cuda_threads_run(const struct cuda_threads_module *module,
                          const struct cuda_threads_launch *launch,
                          struct cuda_threads_report *report);

/* Sets the number that slices (machine.h) count on from, for the harness's own tests. No launch
 * runs. */
void cuda_threads_count_from(uint32_t slice);

#ifdef __cplusplus
}
#endif

#endif
