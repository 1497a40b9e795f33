/* ranks.c - see ranks.h. */
#include "bench/loaderbench/ranks.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "bench/loaderbench/machine.h"
#include "bench/loaderbench/result.h"
#include "loader/cli/interrupt.h"
#include "trainer/peers/choose.h"

static const char *const places[] = { "open the data set",    "begin a cell", "check an epoch",
                                      "start a window",       "end a window", "start a ceiling",
                                      "end a ceiling's loop", "end" };

static_assert(sizeof(places) / sizeof(places[0]) == BENCH_SYNC_END + 1,
              "a text for each sync point");

uint32_t bench_ranks_cpus(void)
{
    stoker_ranks place = STOKER_RANKS_INIT;
    const uint32_t mine = bench_cpus();
    if (stoker_ranks_from_environment(&place, NULL) != STOKER_OK || place.local_world_size < 2 ||
        mine < (uint32_t)get_nprocs())
        return mine;
    return mine > place.local_world_size ? mine / place.local_world_size : 1;
}

bool bench_ranks_join(struct bench_ranks *ranks, uint32_t timeout_s)
{
    stoker_error error = { .message = "" };
    const struct stk_peers_options options = { .timeout_ms = timeout_s * 1000, .floats_max = 1 };
    *ranks = (struct bench_ranks){ .place = STOKER_RANKS_INIT };
    int rc = stoker_ranks_from_environment(&ranks->place, &error);
    if (rc == STOKER_OK && bench_ranks_several(ranks))
        rc = stk_peers_join(&ranks->peers, &ranks->place, STOKER_PEERS_AUTO, &options, &error);
    if (rc == STOKER_OK && bench_ranks_several(ranks) && ranks->peers == NULL) {
        snprintf(error.message, sizeof(error.message),
                 "loaderbench's ranks meet by MPI, which torchrun does not start: use mpirun, or "
                 "srun --mpi=pmix");
        rc = STOKER_ENOTSUP;
    } else if (rc == STOKER_OK && ranks->peers != NULL &&
               ranks->peers->gather_bytes_max < sizeof(struct bench_word)) {
        snprintf(error.message, sizeof(error.message), "too many ranks: %u",
                 bench_ranks_count(ranks));
        rc = STOKER_ELIMIT;
    }
    if (bench_ranks_several(ranks))
        cli_interrupt_watch(SIGINT); /* before the first stop() */
    if (rc != STOKER_OK)
        snprintf(ranks->why, sizeof(ranks->why), "%s", error.message);
    return rc == STOKER_OK;
}

/* Unwinds this rank's measuring as Ctrl-C does, which every loop looks out for. */
static int stop(struct bench_ranks *ranks, int code)
{
    ranks->ended = true;
    if (!cli_interrupted())
        (void)raise(SIGINT);
    return code;
}

int bench_ranks_stop(struct bench_ranks *ranks)
{
    return stop(ranks, STOKER_EPEER);
}

/* Returns false if a rank is at another sync point, or has failed. */
static bool is_here(struct bench_ranks *ranks, uint32_t rank, const struct bench_word *word,
                    const struct bench_word *mine)
{
    if (word->sync_point == mine->sync_point && word->turn == mine->turn)
        return true;
    if (mine->code != 0) { /* the cause is here */
        snprintf(ranks->why, sizeof(ranks->why), "%s", mine->text);
        return false;
    }
    const char *const place = word->sync_point <= BENCH_SYNC_END ? places[word->sync_point] : "?";
    if (word->code != 0)
        snprintf(ranks->why, sizeof(ranks->why), "rank %u failed: %.*s", rank,
                 BENCH_WORD_TEXT_BYTES - 1, word->text);
    else
        snprintf(ranks->why, sizeof(ranks->why),
                 "rank %u wants to %s, and rank %u to %s: the ranks measure different cells", rank,
                 place, ranks->place.rank, places[mine->sync_point]);
    return false;
}

static int judge(struct bench_ranks *ranks, const struct bench_word *mine,
                 const struct bench_word *all)
{
    for (uint32_t rank = 0; rank < bench_ranks_count(ranks); rank++)
        if (all[rank].sync_point == BENCH_SYNC_END && all[rank].code == BENCH_INTERRUPTED)
            return mine->sync_point == BENCH_SYNC_END ? STOKER_OK : stop(ranks, BENCH_INTERRUPTED);
    for (uint32_t rank = 0; rank < bench_ranks_count(ranks); rank++)
        if (!is_here(ranks, rank, &all[rank], mine))
            return stop(ranks, STOKER_EPEER);
    return STOKER_OK;
}

int bench_ranks_reach(struct bench_ranks *ranks, struct bench_word *mine,
                      const struct bench_word **all)
{
    stoker_error error = { .message = "" };
    const void *gathered = mine;
    mine->turn = ranks->turn++;
    if (ranks->ended)
        return ranks->why[0] != '\0' ? STOKER_EPEER : BENCH_INTERRUPTED;
    if (ranks->peers != NULL && ranks->peers->ops->gather(ranks->peers, mine, sizeof(*mine),
                                                          &gathered, &error) != STOKER_OK) {
        snprintf(ranks->why, sizeof(ranks->why), "%s", error.message);
        return stop(ranks, STOKER_EPEER);
    }
    *all = gathered;
    return judge(ranks, mine, gathered);
}

int bench_ranks_agree(struct bench_ranks *ranks, const struct bench_word *mine,
                      const struct bench_word *all)
{
    bool same = true;
    for (uint32_t rank = 0; rank < bench_ranks_count(ranks); rank++)
        same = same && all[rank].code == mine->code;
    if (same)
        return STOKER_OK;
    uint32_t failed = 0;
    while (all[failed].code == 0)
        failed++;
    snprintf(ranks->why, sizeof(ranks->why), "rank %u failed: %.*s", failed,
             BENCH_WORD_TEXT_BYTES - 1, all[failed].text);
    return stop(ranks, STOKER_EPEER);
}

void bench_ranks_end(struct bench_ranks *ranks, int code, const char *text)
{
    struct bench_word word = { .sync_point = BENCH_SYNC_END, .code = code };
    const struct bench_word *all = NULL;
    snprintf(word.text, sizeof(word.text), "%s", text);
    if (bench_ranks_several(ranks) && !ranks->ended)
        (void)bench_ranks_reach(ranks, &word, &all);
    ranks->ended = true;
}

void bench_ranks_leave(struct bench_ranks *ranks)
{
    stk_peers_leave(&ranks->peers);
}
