/* peers.h - the other ranks of a data-parallel run: sums of gradients, and what must be agreed.
 *
 *   create ─▶ join ─▶ broadcast weights ─▶ { agree, all_reduce ... finish, agree } ... ─▶ leave
 *
 * Every rank makes the same calls in the same order. Each call of agree() names its sync point, so
 * a rank that does something else is found, not waited for. A call that fails, or a rank that
 * does not come within the time-out, ends the run on every rank that is alive: all later calls
 * return that first error.
 *
 *   none      this process alone
 *   mpi       host memory, by MPI: mpi.h
 *   threads   threads of this process: threads.h
 *   nccl      words alone, between GPUs: backend/cuda/ranks/words.h */
#ifndef STK_TRAINER_PEERS_PEERS_H
#define STK_TRAINER_PEERS_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

/* The sync points of the ranks. */
enum stk_sync_point {
    STK_SYNC_CREATE,
    STK_SYNC_COMPARE,
    STK_SYNC_PASS,
    STK_SYNC_UPDATE,
    STK_SYNC_REPORT,
    STK_SYNC_EVALUATE,
    STK_SYNC_SAVE,
    STK_SYNC_LOAD,
    STK_SYNC_SHARE,
    STK_SYNC_ANY,
    STK_SYNC_READ,
    STK_SYNC_CAPTURE,
    STK_SYNC_LEAVE,
    STK_SYNC_POINTS
};

/* What a rank says at a sync point. All ranks are of one kind of machine: it is sent as it lies in
 * memory. */
enum { STK_WORD_NUMBERS = 4, STK_WORD_TEXT_BYTES = 200 };
struct stk_word {
    uint32_t sync_point; /* an stk_sync_point */
    int32_t code;        /* 0, or a stoker_err: this rank cannot continue */
    uint64_t number[STK_WORD_NUMBERS];
    double sum;
    char text[STK_WORD_TEXT_BYTES]; /* the error's message */
};

struct stk_peers;

struct stk_peers_ops {
    const char *name;
    /* Frees everything. If nothing has failed, it first waits for the others; a time-out is not
     * reported. */
    void (*leave)(struct stk_peers *peers);

    /* Gathers `bytes` (1..gather_bytes_max) of each rank: *all has world_size pieces, in the
     * order of ranks, in memory of peers, until the next call. */
    int (*gather)(struct stk_peers *peers, const void *mine, size_t bytes, const void **all,
                  stoker_error *error);
    /* Begins the sum of an array over all ranks, in place. The array belongs to peers until
     * finish() succeeds: see holds_arrays. If deterministic, each element is added in the order
     * of ranks. NULL: GPUs sum by themselves. */
    int (*all_reduce)(struct stk_peers *peers, float *floats, uint64_t count, stoker_error *error);
    /* True if all_reduce() would begin without waiting for an earlier one; NULL: it always does. */
    bool (*has_room)(const struct stk_peers *peers);
    /* Moves on what was begun, without waiting. */
    int (*poll)(struct stk_peers *peers, stoker_error *error);
    /* Waits for all that was begun. */
    int (*finish)(struct stk_peers *peers, stoker_error *error);
    /* Copies rank 0's bytes to all. */
    int (*broadcast)(struct stk_peers *peers, void *memory, size_t bytes, stoker_error *error);
    /* Reports to the others, without waiting, that this rank cannot continue. Their call under
     * way then returns STOKER_EPEER with the text. Once; later calls here return STOKER_EPEER
     * too. */
    void (*failed)(struct stk_peers *peers, int code, const char *text);
};

/* The head of each kind. */
struct stk_peers {
    const struct stk_peers_ops *ops;
    uint32_t rank, world_size;
    size_t gather_bytes_max;
    bool threads; /* the ranks are threads of this process */
    /* After a failure: arrays of all_reduce() may be read and written for as long as the process
     * lives, so they must never be freed. */
    bool holds_arrays;
};

enum { STK_PARTS_RANKS_MAX = 8 };

struct stk_peers_options {
    bool deterministic;  /* sums in the order of ranks */
    uint32_t timeout_ms; /* for a rank that does not come, > 0 */
    uint64_t floats_max; /* most floats of an all_reduce: sizes its memory */
    /* mpi: most ranks that exchange parts of an array and add them, as all do if deterministic.
     * More use MPI's own sum, with fewer messages. STK_PARTS_RANKS_MAX. */
    uint32_t parts_ranks_max;
    /* STOKER_PEERS_THREADS: borrowed, until the rank has left. */
    struct stoker_peer_group *group;
    uint32_t group_rank;
};

/* A run of one process. STOKER_ENOMEM. */
int stk_peers_alone(struct stk_peers **out, stoker_error *error);

/* One word of each rank; *all as gather(). Unless every word has this sync point and code 0: an
 * error that names the first rank that differs, on every rank alike. The rank whose code it was
 * keeps its own error. STOKER_EPEER. */
int stk_peers_agree(struct stk_peers *peers, const struct stk_word *mine,
                    const struct stk_word **all, stoker_error *error);

/* The word of a rank that has come with this result; error: its message, if rc is not 0. */
struct stk_word stk_peers_word(enum stk_sync_point sync_point, int rc, const stoker_error *error);

/* Adds doubles over all ranks, in the order of ranks. STOKER_EPEER. */
int stk_peers_sum(struct stk_peers *peers, double *values, uint32_t count, stoker_error *error);

static inline void stk_peers_leave(struct stk_peers **peers) /* NULL is allowed */
{
    if (*peers != NULL)
        (*peers)->ops->leave(*peers);
    *peers = NULL;
}

#endif
