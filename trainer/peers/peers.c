/* peers.c - what every kind of peers does alike: meetings, and sums of a few doubles. */
#include "trainer/peers/peers.h"

#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"

static const char *const purposes[STK_MEETINGS] = {
    [STK_MEET_CREATE] = "create a trainer",
    [STK_MEET_COMPARE] = "compare loaders",
    [STK_MEET_PASS] = "train on a batch",
    [STK_MEET_UPDATE] = "update the weights",
    [STK_MEET_REPORT] = "report the loss",
    [STK_MEET_EVALUATE] = "report a test",
    [STK_MEET_SAVE] = "save a checkpoint",
    [STK_MEET_LOAD] = "load a checkpoint",
    [STK_MEET_SHARE] = "continue from rank 0",
    [STK_MEET_ANY] = "ask all ranks",
    [STK_MEET_READ] = "read what the GPUs have summed",
    [STK_MEET_CAPTURE] = "capture a pass",
    [STK_MEET_LEAVE] = "end",
};

static const char *purpose(uint32_t meeting)
{
    return meeting < STK_MEETINGS ? purposes[meeting] : "do something of another version";
}

struct stk_word stk_peers_word(enum stk_meeting meeting, int rc, const stoker_error *error)
{
    struct stk_word word = { .meeting = (uint32_t)meeting, .code = rc };
    if (rc == STOKER_OK)
        return word;
    const bool described = error != NULL && error->code == rc && error->message[0] != '\0';
    (void)snprintf(word.text, sizeof(word.text), "%.*s", STK_WORD_TEXT_BYTES - 1,
                   described ? error->message : stoker_strerror(rc));
    return word;
}

static bool same_meeting(const struct stk_word *all, uint32_t world_size)
{
    for (uint32_t r = 1; r < world_size; r++)
        if (all[r].meeting != all[0].meeting)
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
    if (same_meeting(all, world_size))
        return world_size;
    for (uint32_t r = 0; r < world_size; r++)
        if (all[r].meeting == STK_MEET_LEAVE)
            return r;
    for (uint32_t r = 1; r < world_size; r++)
        if (all[r].meeting != all[0].meeting)
            return r;
    return world_size;
}

static int tell(const struct stk_peers *peers, const struct stk_word *all, uint32_t odd,
                stoker_error *error)
{
    const struct stk_word *const word = &all[odd];
    if (word->code == STOKER_OK && word->meeting == STK_MEET_LEAVE)
        return stk_refuse_option(error, STOKER_EPEER,
                                 "rank %u has ended, while rank %u wanted to %s", odd, peers->rank,
                                 purpose(all[peers->rank].meeting));
    if (word->code == STOKER_OK)
        return stk_refuse_option(
            error, STOKER_EPEER,
            "rank %u came to %s, rank 0 to %s: every rank must make the same calls", odd,
            purpose(word->meeting), purpose(all[0].meeting));
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
    if (!same_meeting(words, peers->world_size)) /* they are out of step for good */
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
