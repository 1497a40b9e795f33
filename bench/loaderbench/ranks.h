/* ranks.h - several processes that measure together, started by mpirun or srun.
 *
 *   join ─▶ { reach a sync point ... } ─▶ leave
 *
 * Every rank measures the same cells in the same order. Before and after whatever is timed all
 * ranks reach a sync point: each sends a word to all others. So they begin together, and each can
 * add up what all of them did. A rank that is at another sync point, or comes to none, ends the
 * measuring on all ranks, and is named. */
#ifndef BENCH_RANKS_H
#define BENCH_RANKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/ranks.h>

#include "trainer/peers/peers.h"

enum { BENCH_WORD_NUMBERS = 24, BENCH_WORD_TEXT_BYTES = 160, BENCH_RANKS_WHY_BYTES = 512 };

enum bench_sync_point {
    BENCH_SYNC_READY,    /* the data set is open */
    BENCH_SYNC_BEGUN,    /* a cell has begun, or failed */
    BENCH_SYNC_VERIFIED, /* an epoch has been checked */
    BENCH_SYNC_START,    /* a window begins */
    BENCH_SYNC_WINDOW,   /* it has ended */
    BENCH_SYNC_CEILING,  /* a ceiling begins */
    BENCH_SYNC_RATE,     /* it has been measured */
    BENCH_SYNC_END       /* nothing else will be measured */
};

struct bench_word {
    uint32_t sync_point; /* an enum bench_sync_point */
    int32_t code;        /* what this rank ended with so far; 0 = all is well */
    uint64_t turn;       /* sync points before this one */
    uint64_t number[BENCH_WORD_NUMBERS];
    double rate;
    char text[BENCH_WORD_TEXT_BYTES]; /* about the code */
};

struct bench_ranks {
    struct stk_peers *peers; /* NULL = one process */
    stoker_ranks place;
    uint64_t turn;
    bool ended;                      /* no more sync points */
    char why[BENCH_RANKS_WHY_BYTES]; /* the rank that ended the measuring; "" = none did */
};

/* Read the launcher's variables and wait for the other ranks, if there are any. False: *why is
 * set. */
bool bench_ranks_join(struct bench_ranks *ranks, uint32_t timeout_s);

/* CPUs that this rank may use: those that the launcher has bound it to, or its share of all of the
 * node's. */
uint32_t bench_ranks_cpus(void);

/* Number of ranks, >= 1. */
static inline uint32_t bench_ranks_count(const struct bench_ranks *ranks)
{
    return ranks->place.world_size;
}

static inline bool bench_ranks_several(const struct bench_ranks *ranks)
{
    return ranks->place.world_size > 1;
}

/* Send `mine`, whose turn is filled in, and get the words of all ranks, valid until the next
 * sync point. With one process nothing is sent. Returns STOKER_OK; BENCH_INTERRUPTED if a rank was
 * interrupted; STOKER_EPEER, with *why, if a rank is elsewhere or does not come. After both, this
 * process is interrupted as by Ctrl-C, and reaches no more sync points. */
int bench_ranks_reach(struct bench_ranks *ranks, struct bench_word *mine,
                      const struct bench_word **all);

/* The words of a sync point have one code. Else: as after a failed sync point; *why names the
 * first rank that failed. */
int bench_ranks_agree(struct bench_ranks *ranks, const struct bench_word *mine,
                      const struct bench_word *all);

/* End the measuring here as after a failed sync point; *why is set. Returns STOKER_EPEER. */
int bench_ranks_stop(struct bench_ranks *ranks);

/* The others learn that this rank will measure no more: code 0, BENCH_INTERRUPTED or an error with
 * its text. */
void bench_ranks_end(struct bench_ranks *ranks, int code, const char *text);

/* Wait for the others and leave. */
void bench_ranks_leave(struct bench_ranks *ranks);

#endif
