/* ring.h - opens an io_uring ring, verifies it, and registers its files and buffers.
 *
 *   setup ──▶ verified ──▶ table of files ──▶ buffers ──▶ open ──▶ closed
 *                │              │                │
 *             refused      descriptors      plain reads      (both registrations are optional)
 *
 * The table of files holds the data set's files, by their number there, then empty slots for whole
 * files while they are read (chain.h).
 *
 * Only the thread that opened a ring may use it, unless setup.any_thread is set: then one thread at
 * a time. Without liburing nothing of this is built.
 */
#ifndef STK_READER_RING_H
#define STK_READER_RING_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/reader.h>
#include <sys/uio.h>

enum { STK_RING_BUFFERS_MAX = 2 }; /* registered buffers: scratch and slots */

struct stk_ring {
    struct io_uring io;
    bool files_fixed;    /* reads name files by index, not by descriptor */
    uint32_t first_slot; /* in the table of files */
    uint32_t slot_count; /* usable slots; 0 = read whole files by system calls */
    struct iovec buffers[STK_RING_BUFFERS_MAX]; /* registered: scratch, slots */
    uint32_t buffer_count;
};

/* Open a ring for up to `setup->depth` reads at a time; its completions cannot overflow.
 *
 * Returns 0, STOKER_EREADER if the kernel or a sandbox refuses a ring (the error has os_errno, and
 * names the likely cause if it is known) or STOKER_ENOMEM. After an error there is nothing to
 * close. */
int stk_ring_open(struct stk_ring *ring, const stoker_reader_setup *setup, stoker_error *error);

/* No request may be in flight. */
void stk_ring_close(struct stk_ring *ring);

#endif
