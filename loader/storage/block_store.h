/* block_store.h - the unpacked blocks of a loader, which all its rings share.
 *
 *   EMPTY ──begin: one ring, if there is memory──▶ LOADING ──end──▶ READY ──▶ reads copy from it
 *     ▲                                              │                │
 *     ├────────── failed, or its ring closed ────────┘                │
 *     └────── all its bytes were served, or its memory is needed ─────┘   never while reads wait
 *
 *   memory   │ slot 0     │ slot 1     │ slot 2     │ ...     slots as long as the longest block
 *              block 7      block 9 as   block 9,
 *              READY        stored       unpacked: LOADING     two slots while it loads; one if it
 *                                                              is stored as it is
 *
 * Every read that waits for a block is one of its users, from join to leave. If no slot is free, a
 * ring that loads nothing takes those of the READY block without users that was loaded first; one
 * that loads a block waits, since what it would read ahead must not cost what others need next.
 *
 * Nothing can wait forever. A ring waits for (a) a block that another ring is loading, or (b)
 * memory. A worker with reads in flight reaps again and again (worker.c), and each reap first
 * serves READY blocks, then finishes loads, without waiting for any other ring. So (a) every load
 * ends, also if its ring fails or is closed: the block then is EMPTY, and a waiting ring loads it.
 * And (b) READY blocks lose their users, LOADING ones become READY, so memory becomes free: there
 * are slots for at least one load, which takes both its slots or none. Without workers there is one
 * ring, whose loads advance in next(), and nobody else waits while it is not called.
 *
 * A read that never ends keeps its two slots: the kernel may still write to them.
 */
#ifndef STK_STORAGE_BLOCK_STORE_H
#define STK_STORAGE_BLOCK_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/reader.h>

struct stk_block_store;

struct stk_block_counts {
    uint64_t loads;        /* blocks that were read and unpacked */
    uint64_t again;        /* of them, those whose memory was taken before all was served */
    uint64_t stored_bytes; /* as stored, read for them */
    uint64_t memory_bytes; /* of all slots */
};

/* A read that waits for a block. */
struct stk_block_wait {
    stoker_read *read;
    uint32_t block;       /* its number in the loader */
    uint32_t failures;    /* of the block, when the read joined */
    const uint8_t *bytes; /* set by look: the block is READY */
    bool failed;          /* set by look: a load has failed since the read joined */
};

/* A block that a ring loads. */
struct stk_block_load {
    stoker_read read; /* the next of its stored bytes; first member */
    const stoker_file *file;
    uint64_t number;         /* in its file */
    uint32_t block;          /* in the loader */
    uint8_t *stored, *bytes; /* the same if it is stored as it is */
    uint32_t done_bytes;     /* of the stored ones */
    bool active;
};

/* Make the memory for the blocks of `files`, which must outlive the store: at most bytes_max.
 * `strict`: that is an option, to be refused if it is too little for `workers` workers; else they
 * get what they need at least. Returns 0, STOKER_EINVAL, STOKER_ELIMIT or STOKER_ENOMEM. */
int stk_block_store_make(struct stk_block_store **out, const stoker_file *files,
                         uint32_t file_count, uint64_t bytes_max, bool strict, uint32_t workers,
                         stoker_error *error);
void stk_block_store_free(struct stk_block_store **pointer); /* no ring may be open */

/* Any thread. */
struct stk_block_counts stk_block_store_counts(const struct stk_block_store *store);

/* Returns the number of the block that holds the first byte of a read. */
uint32_t stk_block_store_find(const struct stk_block_store *store, const stoker_read *read);

/* Add and remove users; both may make blocks EMPTY. served: each read got `result` bytes. */
void stk_block_store_join(struct stk_block_store *store, struct stk_block_wait *waits,
                          uint32_t count);
void stk_block_store_leave(struct stk_block_store *store, const struct stk_block_wait *waits,
                           uint32_t count, bool served);

/* Set bytes or failed of each read that need not wait any more. */
void stk_block_store_look(struct stk_block_store *store, struct stk_block_wait *waits,
                          uint32_t count);

/* Begin to load the block of a read that waits, if it is EMPTY and there is memory, evicted if that
 * is allowed: fills *out. Returns false if not; *foreign is true if the read then waits for another
 * ring or for memory. */
bool stk_block_store_begin(struct stk_block_store *store, const void *ring, bool may_evict,
                           const struct stk_block_wait *wait, struct stk_block_load *out,
                           bool *foreign);

/* A load has ended: os_errno 0 = the block is unpacked; else `why` says what failed, and all reads
 * that wait fail. ECANCELED with why NULL = hand it back; `stuck` = its read never ends. */
void stk_block_store_end(struct stk_block_store *store, struct stk_block_load *load, int os_errno,
                         const char *why, bool stuck);

/* Returns the errno of the latest failed load of a block, and copies why. */
int stk_block_store_why(struct stk_block_store *store, uint32_t block, char *why, size_t why_bytes);

/* Returns a number that changes whenever a block was loaded, or memory became free. */
uint32_t stk_block_store_changes(const struct stk_block_store *store);
void stk_block_store_wait(struct stk_block_store *store, uint32_t changes, int64_t wait_ns);

#endif
