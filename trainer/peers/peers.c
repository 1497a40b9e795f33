/* peers.c - what every kind of peers does alike: sync points, and sums of a few doubles. */
#include "trainer/peers/peers.h"

#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"

static const char *const purposes[STK_SYNC_POINTS] = {
    [STK_SYNC_CREATE] = "create a trainer",
    [STK_SYNC_COMPARE] = "compare loaders",
    [STK_SYNC_PASS] = "train on a batch",
    [STK_SYNC_UPDATE] = "update the weights",
    [STK_SYNC_REPORT] = "report the loss",
    [STK_SYNC_EVALUATE] = "report a test",
    [STK_SYNC_SAVE] = "save a checkpoint",
    [STK_SYNC_LOAD] = "load a checkpoint",
    [STK_SYNC_SHARE] = "continue from rank 0",
    [STK_SYNC_ANY] = "ask all ranks",
    [STK_SYNC_READ] = "read what the GPUs have summed",
    [STK_SYNC_CAPTURE] = "capture a pass",
    [STK_SYNC_LEAVE] = "end",
};

static const char *purpose(uint32_t sync_point)
{
    return sync_point < STK_SYNC_POINTS ? purposes[sync_point] : "do something of another version";
}

struct stk_word stk_peers_word(enum stk_sync_point sync_point, int rc, const stoker_error *error)
{
    struct stk_word word = { .sync_point = (uint32_t)sync_point, .code = rc };
    if (rc == STOKER_OK)
        return word;
    const bool described = error != NULL && error->code == rc && error->message[0] != '\0';
    (void)snprintf(word.text, sizeof(word.text), "%.*s", STK_WORD_TEXT_BYTES - 1,
                   described ? error->message : stoker_strerror(rc));
    return word;
}

static bool same_sync_point(const struct stk_word *all, uint32_t world_size)
{
    for (uint32_t r = 1; r < world_size; r++)
        if (all[r].sync_point != all[0].sync_point)
            return false;
    return true;
}

/* The first rank that cannot continue; else, if ranks came for different things, the first that
 * leaves, or that differs from rank 0; else world_size. */
static uint32_t find_odd(const struct stk_word *all, uint32_t world_size)
{
    for (uint32_t r = 0; r < world_size; r++)
        if (all[r].code != STOKER_OK)
            return r;
    if (same_sync_point(all, world_size))
        return world_size;
    for (uint32_t r = 0; r < world_size; r++)
        if (all[r].sync_point == STK_SYNC_LEAVE)
            return r;
    for (uint32_t r = 1; r < world_size; r++)
        if (all[r].sync_point != all[0].sync_point)
            return r;
    return world_size;
}

static int tell(const struct stk_peers *peers, const struct stk_word *all, uint32_t odd,
                stoker_error *error)
{
    const struct stk_word *const word = &all[odd];
    if (word->code == STOKER_OK && word->sync_point == STK_SYNC_LEAVE)
        return stk_refuse_option(error, STOKER_EPEER,
                                 "rank %u has ended, while rank %u wanted to %s", odd, peers->rank,
                                 purpose(all[peers->rank].sync_point));
    if (word->code == STOKER_OK)
        return stk_refuse_option(
            error, STOKER_EPEER,
            "rank %u came to %s, rank 0 to %s: every rank must make the same calls", odd,
            purpose(word->sync_point), purpose(all[0].sync_point));
    return stk_refuse_option(error, STOKER_EPEER, "rank %u: %.*s", odd, STK_WORD_TEXT_BYTES - 1,
                             word->text);
}

int stk_peers_agree(struct stk_peers *peers, const struct stk_word *mine,
                    const struct stk_word **all, stoker_error *error)
{
    const void *gathered = NULL;
    const int rc = peers->ops->gather(peers, mine, sizeof(*mine), &gathered, error);
    if (rc != STOKER_OK)
        return rc;
    const struct stk_word *const words = gathered;
    const uint32_t odd = find_odd(words, peers->world_size);
    if (all != NULL)
        *all = words;
    if (odd == peers->world_size)
        return STOKER_OK;
    const int told = mine->code != STOKER_OK /* described where it happened */
                         ? mine->code
                         : tell(peers, words, odd, error);
    if (!same_sync_point(words, peers->world_size)) /* they are out of step for good */
        peers->ops->failed(peers, told, error != NULL ? error->message : "ranks are out of step");
    return told;
}

/* As many as one gather takes. */
static int sum_piece(struct stk_peers *peers, double *values, size_t count, stoker_error *error)
{
    const void *gathered = NULL;
    const int rc = peers->ops->gather(peers, values, count * sizeof(*values), &gathered, error);
    if (rc != STOKER_OK)
        return rc;
    const double *const all = gathered;
    memcpy(values, all, count * sizeof(*values));
    for (uint32_t r = 1; r < peers->world_size; r++)
        for (size_t i = 0; i < count; i++)
            values[i] += all[r * count + i];
    return STOKER_OK;
}

int stk_peers_sum(struct stk_peers *peers, double *values, uint32_t count, stoker_error *error)
{
    const size_t most = peers->gather_bytes_max / sizeof(*values);
    if (peers->world_size == 1)
        return STOKER_OK;
    for (size_t done = 0; done < count;) {
        const size_t piece = count - done < most ? count - done : most;
        const int rc = sum_piece(peers, values + done, piece, error);
        if (rc != STOKER_OK)
            return rc;
        done += piece;
    }
    return STOKER_OK;
}
