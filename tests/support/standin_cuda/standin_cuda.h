/* standin_cuda.h - a CUDA runtime without a GPU, for tests: what a test may ask of it and do to it.
 *
 *   stream   a thread that takes one operation after the other, each after a random delay
 *   event    its latest mark; a stream that waits, waits for the mark that was the latest then
 *   memory   of the device: the program's address is mapped PROT_NONE, so the host faults on it;
 *            only the stand-in's own mapping of the same pages, the view, can be read and written
 *   copies   from page-locked memory are truly late: the bytes are read when the operation runs;
 *            from pageable memory they are taken at the call, unless the GPU reads that by itself. The
 *            wrong direction is an error
 *   capture  what a stream, and others that events tie to it, would do becomes a graph. What CUDA
 *            forbids meanwhile fails here, too, and ends the capture; where CUDA's manual leaves it
 *            open, it is forbidden. In a launched graph each captured stream is a thread again
 *
 * It takes libcudart's place by its soname: a program that links it has it loaded already when the
 * loader asks for the runtime. All of it is compiled like the program, so that ThreadSanitizer sees a
 * slot that is written while its copy reads it.
 *
 * Controls are for the test's main thread, while no loader runs.
 */
#ifndef STK_TESTS_STANDIN_CUDA_H
#define STK_TESTS_STANDIN_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No faults, no lies, counts at zero, and `devices` GPUs (0 = cudaErrorNoDevice). */
void standin_cuda_reset(int devices);

/* The driver itself is missing or of that error: what cudaGetDeviceCount answers; 0 = fine. */
void standin_cuda_no_driver(int code);

/* The nth call (1, 2, ...) from now on fails with `code`. Once; or, if the device is lost with it,
 * every later call, too, and what was on the streams is dropped. */
void standin_cuda_fail(uint64_t nth, int code, bool lost);
bool standin_cuda_failed(void); /* whether that call was reached */

/* Calls of this thread are the test's own: they neither count nor fail, until it says false. */
void standin_cuda_own_calls(bool own);

/* Longest random delay before an operation, microseconds; default 200. */
void standin_cuda_delay(uint32_t most_us);

/* What a runtime must never do, to see that it would be noticed. */
enum standin_cuda_lie {
    STANDIN_CUDA_HONEST,
    STANDIN_CUDA_SAYS_DONE,    /* an event's query says done at once */
    STANDIN_CUDA_FORGETS_WAITS /* streams made from now on do not wait for events */
};
void standin_cuda_lie(enum standin_cuda_lie lie);

/* Allows or forbids stream capture; a reset allows it. */
void standin_cuda_can_capture(bool can);

/* True if the GPUs read pageable memory directly, and report it: then copies from and to it are as late as
 * with page-locked memory. A reset says no. */
void standin_cuda_reads_pageable(bool can);

/* Bytes of each GPU's memory; default 2^34. More than are free cannot be allocated. */
void standin_cuda_memory(uint64_t bytes);

/* What the calling thread did that holds up a host or a whole device. Not those of its own calls. */
struct standin_cuda_host {
    uint64_t waits;  /* for a stream, an event or a device, whether or not there was any need */
    uint64_t copies; /* and fills that the host waits for */
    uint64_t allocations; /* of device memory and page-locked memory, and what gives it back */
};
struct standin_cuda_host standin_cuda_host(void); /* since the reset, or the thread's beginning */

uint64_t standin_cuda_calls(void);
uint64_t standin_cuda_copies_after_failure(void);
uint64_t standin_cuda_staged(void);     /* copies begun from pageable memory */
uint64_t standin_cuda_violations(void); /* memory given back or unlocked while a copy uses it */
int standin_cuda_pinned_with(
    const void *memory); /* the device that was current; -1 = not page-locked */
uint64_t standin_cuda_strays(
    void); /* memory given back or unlocked while another device was current */
int64_t standin_cuda_live(void); /* streams, events, graphs, allocations, page-locked ranges */

/* The kernels that every library holds, by name: what runs in their place, with a copy of their one
 * argument, the struct. Ends with one whose name is NULL. NULL = there are none. */
struct standin_cuda_kernel {
    const char *name;
    size_t argument_bytes;
    void (*run)(const struct standin_cuda_kernel *kernel, void *argument);
};
void standin_cuda_kernels(const struct standin_cuda_kernel *kernels);
uint64_t standin_cuda_launches(void);       /* of kernels; those of a graph when it is launched */
uint64_t standin_cuda_graph_launches(void); /* of whole graphs */

/* Where a kernel finds device memory; NULL if it is none. For functions on a stream
 * (cudaLaunchHostFunc), which stand in for kernels, and for nobody else. */
void *standin_cuda_view(const void *device_memory);

#endif
