/* standin_cuda.h - a CUDA runtime without a GPU, for tests: its controls and counts.
 *
 *   stream   a thread that runs one operation at a time, each after a random delay
 *   event    its latest mark; a stream waits for the mark that was the latest at the time of the
 *            call
 *   memory   nothing is mapped at the program's address of device memory, so that the host faults
 *            on it; its pages lie elsewhere, at the view
 *   copies   from page-locked memory read the bytes when the operation runs; from pageable memory
 *            at the call, unless the GPU reads that itself. The wrong direction is an error
 *   capture  the operations of a stream, and of others that events tie to it, become a graph. What
 *            CUDA forbids meanwhile fails and ends the capture, also if CUDA's manual leaves it
 *            open. In a launched graph each captured stream is a thread again
 *
 *   kernels  the source of the kernels, on fibers (cuda_threads/cuda_threads.h), or a test's own
 *            functions by name. With STOKER_TEST_KERNEL_SOURCE=MODULE the module watches each
 *            access, and a finding is printed and ends the program
 *
 * It replaces libcudart by having its soname: in a program that links it, it is already loaded when
 * the loader asks for the runtime. It is compiled like the program, so that ThreadSanitizer sees a
 * write to a slot that a copy reads.
 *
 * The controls are for the test's main thread, while no loader runs.
 */
#ifndef STK_TESTS_STANDIN_CUDA_H
#define STK_TESTS_STANDIN_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reset: no faults, no lies, counts at zero, and `devices` GPUs (0 = cudaErrorNoDevice). */
void standin_cuda_reset(int devices);

/* GPU n is at "0cda:NN:00.0" with NN = n + 1, a domain that no machine has. */
enum { STANDIN_PCI_DOMAIN = 0x0cda };

/* The result of cudaGetDeviceCount if the driver is missing or fails; 0 = it works. */
void standin_cuda_no_driver(int code);

/* The latest CUDA that the driver knows, 13090 after a reset. If it is of an earlier major version
 * than the runtime, cudaGetDeviceCount refuses it. */
enum { STANDIN_DRIVER = 13090 };
void standin_cuda_driver(int version);

/* Make the nth call (1, 2, ...) from now on fail with `code`: once, or, if the device is lost, with
 * every later call, and drop what is on the streams. */
void standin_cuda_fail(uint64_t nth, int code, bool lost);
bool standin_cuda_failed(void); /* true if that call was reached */

/* true: calls of this thread are the test's own, and neither count nor fail. */
void standin_cuda_own_calls(bool own);

/* Returns true if a call since the reset, not of the test's own, has initialized the device. */
bool standin_cuda_initialized(int device);
/* Contexts on this thread's stack: 0 between calls of a library that restores what it found. */
int standin_cuda_pushed(void);
/* true: the runtime finds none of the driver's functions about contexts. A reset finds them. */
void standin_cuda_no_contexts(bool none);

/* Longest random delay before an operation, microseconds; default 200. */
void standin_cuda_delay(uint32_t most_us);

/* Errors of a runtime, to check that a test notices them. */
enum standin_cuda_lie {
    STANDIN_CUDA_HONEST,
    STANDIN_CUDA_SAYS_DONE,          /* queries of events return success at once */
    STANDIN_CUDA_FORGETS_WAITS,      /* new streams do not wait for events */
    STANDIN_CUDA_LATER_FORGET_WAITS, /* those made after the first one */
    STANDIN_CUDA_URGENT_FORGET_WAITS /* those with a priority */
};
void standin_cuda_lie(enum standin_cuda_lie lie);

/* true: stream capture is forbidden. A reset allows it. */
void standin_cuda_no_capture(bool none);

/* true: the GPUs read pageable memory directly, and report it, so that copies from and to it run as
 * late as those of page-locked memory. Default after a reset: false. */
void standin_cuda_reads_pageable(bool can);

/* Compute capability of each GPU; default 9.0. */
void standin_cuda_capability(int major, int minor);

/* Lets GPUs access each other's memory, or forbids it, and disables what was enabled. A reset
 * allows it. */
void standin_cuda_peers(bool can);
/* Copies between GPUs: where the target's GPU had enabled access to the source's, and where it had
 * not. */
struct standin_cuda_peer_copies {
    uint64_t direct, through_host;
};
struct standin_cuda_peer_copies standin_cuda_peer_copies(void);

/* Memory of each GPU, bytes; default 2^34. */
void standin_cuda_memory(uint64_t bytes);

/* Calls of this thread that block the host or a whole device, without the test's own. */
struct standin_cuda_host {
    uint64_t waits;  /* for a stream, an event or a device, even if idle */
    uint64_t spins;  /* those of them in which CUDA takes a core: all but for events that block */
    uint64_t looks;  /* queries whose answer was: not yet */
    uint64_t copies; /* copies and fills that the host waits for */
    uint64_t allocations; /* allocating and freeing device and page-locked memory */
};
struct standin_cuda_host standin_cuda_host(void); /* since the reset or the start of the thread */

uint64_t standin_cuda_calls(void);
uint64_t standin_cuda_copies_after_failure(void);
uint64_t standin_cuda_staged(void);     /* copies from pageable memory */
uint64_t standin_cuda_violations(void); /* memory freed or unlocked while a copy uses it */
int standin_cuda_pinned_with(
    const void *memory);            /* the device that was current; -1 = not page-locked */
uint64_t standin_cuda_strays(void); /* memory freed or unlocked while another device was current */
int64_t standin_cuda_live(
    void); /* streams, events, graphs, allocations and page-locked ranges that exist */

/* The kernels of every library, by name. `run` gets a copy of the kernel's one argument, a struct;
 * NULL = the kernel's source runs. The list ends with a NULL name. NULL = no kernels. */
struct standin_cuda_kernel {
    const char *name;
    size_t argument_bytes;
    void (*run)(const struct standin_cuda_kernel *kernel, void *argument);
};
void standin_cuda_kernels(const struct standin_cuda_kernel *kernels);
/* All kernels of the module that STOKER_TEST_KERNEL_SOURCE names, or else of the one that was built
 * with the stand-in. */
void standin_cuda_use_kernels(void);
/* In a function of the table: runs the source of the launched kernel. */
void standin_cuda_run_source(void);
/* Adds one to them. */
void standin_cuda_add_kernel(const struct standin_cuda_kernel *kernel);
enum { STANDIN_PRIORITY_GREATEST = -5 };
int standin_cuda_launch_priority(void); /* the priority of the latest stream that got a kernel */
uint64_t standin_cuda_launches(void);   /* kernels; those of a graph when it is launched */
uint64_t standin_cuda_graph_launches(void); /* graphs */
uint64_t standin_cuda_copies(void);         /* copies queued on streams, without those of graphs */

/* The nodes of the graph that was launched last: a name and a count each, in the order of their
 * first use, as in "fill 1, conv 6, stk_train_relu_f32 2". Returns their number; 0 = no graph since
 * the reset. */
uint32_t standin_cuda_last_graph(char *text, size_t bytes);

/* Set a function to count calls of cudaLaunchHostFunc in graphs: by = 1 when one is captured, -1
 * when its last graph is gone, as the destructor of cudaGraphRetainUserObject. */
void standin_cuda_count_captured(void (*count)(void (*function)(void *), void *argument, int by));

/* The accessible address of device memory; NULL if it is not device memory. Only for functions on a
 * stream that replace kernels (cudaLaunchHostFunc). */
void *standin_cuda_view(const void *device_memory);
/* The same of a range; NULL also if not all of it is one allocation's. */
void *standin_cuda_view_range(const void *device_memory, size_t bytes);
/* For stand-ins of libraries: queue a function of theirs as a kernel, in one block of one thread,
 * with its argument. False: the call failed. */
bool standin_cuda_queue(const struct standin_cuda_kernel *kernel, void *argument, void *stream);

#endif
