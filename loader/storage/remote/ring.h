/* ring.h - the reader of remote names: many ranged requests in flight, by one multi handle of
 * libcurl per ring.
 *
 *   submit ──▶ job: adjacent reads of one object ──▶ WAITING ──▶ ACTIVE ──▶ its reads are done
 *                                                       ▲           │
 *                                                       └── LATER ◀─┘ a failure that may pass
 *
 * Bytes arrive in the reads' own buffers. Nothing moves outside of submit and reap, so time that a
 * worker spends elsewhere is not held against a server.
 *
 * Hedge: if a job takes longer than 95 in 100 recent ones, a second request for what is missing
 * goes out on another connection, into memory of its own. The first complete one counts, the other
 * is canceled.
 */
#ifndef STK_REMOTE_RING_H
#define STK_REMOTE_RING_H

struct stk_remote;

/* Make remote->reader. */
void stk_remote_reader_init(struct stk_remote *remote);

#endif
