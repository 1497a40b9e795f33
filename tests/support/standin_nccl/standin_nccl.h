/* standin_nccl.h - NCCL without a GPU, for tests: ranks that are threads with a stand-in GPU each,
 * or processes.
 *
 *   ncclUniqueId    the name of a segment of shared memory, where the ranks meet
 *   communicator    does not block: its start, and some of its calls, are in progress for a while
 *   operation       a host function on the stream, so that graphs record it; sums are in the order
 *                   of ranks
 *
 * It replaces libnccl by having its soname. Operations of ranks that differ (kind, size, one
 * captured and the other not) and two operations of a rank at one time are errors. A rank that does
 * not come keeps the others waiting until they abort, as kernels do.
 *
 * The controls are for the test's main thread, while no rank runs. Calls are counted for each rank:
 * all but ncclGetVersion, the texts of errors and ncclCommGetAsyncError. */
#ifndef STK_TESTS_STANDIN_NCCL_H
#define STK_TESTS_STANDIN_NCCL_H

#include <stdbool.h>
#include <stdint.h>

/* Reset: no faults, counts at zero, and what aborted communicators have left is freed. Streams are
 * idle. */
void standin_nccl_reset(void);

void standin_nccl_version(int version); /* the library's; a reset makes it 22800 */
/* The nth call (1, 2, ...) of the rank returns `code`, once. */
void standin_nccl_fail(uint32_t rank, uint64_t nth, int code);
/* The nth operation of the rank does nothing, and its communicator has `code`. */
void standin_nccl_fail_operation(uint32_t rank, uint64_t nth, int code);
bool standin_nccl_failed(void); /* true if that call or operation was reached */
/* Each operation of the rank begins this much later, microseconds. */
void standin_nccl_delay(uint32_t rank, uint32_t us);
/* What the rank queues while it captures fails. */
void standin_nccl_refuse_capture(uint32_t rank);

uint64_t standin_nccl_calls(uint32_t rank);
uint64_t standin_nccl_operations(uint32_t rank); /* that ran; those of a graph in each launch */
uint64_t standin_nccl_violations(void);          /* two operations of a rank at one time */
int64_t standin_nccl_live(void);                 /* communicators */

#endif
