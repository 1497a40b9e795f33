/* ring.h - a ring of io_uring: made, proved, and with its tables of files and of buffers.
 *
 *   setup ──▶ proved ──▶ table of files ──▶ buffers ──▶ open ──▶ closed
 *               │            │                 │
 *            refused     descriptors       plain reads      (a table is a gain, not a need)
 *
 * The table of files: first those of the data set, by their number there, then empty slots in
 * which whole files lie while they are read (chain.h).
 *
 * A ring belongs to the thread that opened it, unless setup.any_thread let it go from one to the
 * next. Where liburing was not found, nothing of this exists.
 */
#ifndef STK_READER_RING_H
#define STK_READER_RING_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/reader.h>
#include <sys/uio.h>

enum { STK_RING_BUFFERS_MAX = 2 }; /* that a ring registers: scratch and slots */

struct stk_ring {
    struct io_uring io;
    bool files_fixed;    /* reads name files by index, not by descriptor */
    uint32_t first_slot; /* in the table of files */
    uint32_t slot_count; /* that can be used; 0 = whole files by system calls */
    struct iovec buffers[STK_RING_BUFFERS_MAX]; /* registered: scratch, slots */
    uint32_t buffer_count;
};

/* Make a ring for `setup->depth` reads at a time; its completions cannot overflow.
 *
 * Returns 0; STOKER_EREADER where the kernel, or whoever guards it, has no ring to give (the error
 * tells which of the two where it can be known, with os_errno); STOKER_ENOMEM. After an error there
 * is nothing to close. */
int stk_ring_open(struct stk_ring *ring, const stoker_reader_setup *setup, stoker_error *error);

/* No request may be with the kernel any more. */
void stk_ring_close(struct stk_ring *ring);

#endif
