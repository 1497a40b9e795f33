/* threads.h - peers that are threads of one process: they read each other's memory, so nothing
 * is sent.
 *
 *   group    what the caller creates: world_size ranks, whose threads create and destroy trainers
 *   circle   the ranks of one trainer: the n-th that each rank creates. The first to come makes it,
 *            the last to go frees it
 *
 *   come ─▶ wait ─▶ all are here ─▶ work on each other's memory ─▶ wait until all have done so      sums, broadcasts
 *                       └─▶ read what each has written down                                          gathers
 *
 * Each rank adds one part of an array, in the order of ranks, and writes the sum into
 * everybody's: the cores share the work, and the bits do not depend on which rank comes first. */
#ifndef STK_TRAINER_PEERS_THREADS_H
#define STK_TRAINER_PEERS_THREADS_H

#include <pthread.h>
#include <stdatomic.h>

#include "trainer/peers/peers.h"

enum { STK_GROUP_RANKS_MAX = 256, STK_SUMS_MAX = 16 };

/* What a rank comes for. All must come for the same, with as many bytes. */
enum stk_thread_call { STK_THREAD_GATHER, STK_THREAD_SUM, STK_THREAD_BROADCAST };

struct stk_thread_array {
    float *floats;
    uint64_t count;
};

/* One rank in a circle; guarded by the circle's lock. What it has come with is read without it
 * by ranks that work: it does not change before all of them have done so. */
struct stk_thread_rank {
    bool joined, left;
    bool here;    /* waits for the others */
    bool missing; /* was not here when the time was up */
    enum stk_thread_call call;
    uint64_t bytes;
    void *memory; /* SUM: struct stk_thread_array[]; BROADCAST: rank 0's bytes */
};

struct stk_circle {
    struct stk_circle *next; /* guarded by the group's lock */
    uint64_t number;         /* trainers that each rank has created before; constant */
    uint32_t world_size;     /* constant */
    size_t row_bytes;        /* most bytes of a gather by one rank; constant */
    /* Gathers take turns; rank r writes row r before it comes, and all read after. */
    uint8_t *rows[2];

    pthread_mutex_t lock;   /* guards all below */
    pthread_cond_t changed; /* sync points, working or broken has changed */
    /* That have ended; a thread that spins reads it without the lock. */
    _Atomic uint64_t sync_points;
    _Atomic bool broken; /* the same: no more sync points, */
    bool timed_out;      /* since time was up; else since a rank failed, with the text */
    uint32_t from;       /* the rank that has found it */
    uint32_t timeout_ms; /* its time-out */
    char text[STK_WORD_TEXT_BYTES];
    uint32_t here;    /* ranks that wait */
    uint32_t working; /* ranks that use others' memory */
    struct stk_thread_rank rank[];
};

struct stoker_peer_group {
    uint32_t world_size;        /* constant */
    pthread_mutex_t lock;       /* guards all below */
    struct stk_circle *circles; /* whose ranks have not all gone */
    uint64_t joins[];           /* circles that each rank has joined */
};

/* thread_group.c */

/* Rank's next circle. STOKER_ENOMEM; STOKER_EINVAL: another thread has this rank. */
int stk_group_join(struct stoker_peer_group *group, uint32_t rank, struct stk_circle **out,
                   stoker_error *error);
void stk_group_leave(struct stoker_peer_group *group, struct stk_circle *circle, uint32_t rank);
/* This rank cannot join its next circle; the others need not wait for it. */
void stk_group_decline(struct stoker_peer_group *group, uint32_t rank, const char *text);

/* Ends all sync points, unless somebody has done so before. The lock is held. */
void stk_circle_break(struct stk_circle *circle, uint32_t from, const char *text);

/* threads.c */

/* Joins the next trainer of options->group; does not wait. Sums are in the order of ranks,
 * deterministic or not. As stk_group_join(). */
int stk_threads_join(struct stk_peers **out, const struct stk_peers_options *options,
                     stoker_error *error);

#endif
