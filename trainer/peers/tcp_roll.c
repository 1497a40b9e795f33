/* tcp_roll.c - see tcp_peers.h: how a run ends on all ranks, and finding out which of them does not come. */
#include <stdio.h>
#include <string.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "trainer/peers/tcp_peers.h"

static const struct stk_place nowhere = STK_NOWHERE;

enum {
    ROLL_MS_MIN = 250,   /* a roll call takes a quarter of the time-out, within these */
    ROLL_MS_MAX = 10000, /* */
    NAMED_MAX = 8        /* ranks in a message */
};

int stk_tcp_check(const struct stk_tcp_peers *p, stoker_error *error)
{
    if (!p->broken)
        return STOKER_OK;
    if (error != NULL)
        *error = p->cause;
    return p->cause.code;
}

/* ---- the end of a run ---------------------------------------------------------------- */

static bool has_notes(const struct stk_tcp_peers *p)
{
    for (uint32_t i = 0; i < p->link_count; i++)
        if (!p->links[i].closed && !stk_tcp_is_sent(&p->links[i]))
            return true;
    return false;
}

/* Lets the notes leave, behind frames that have begun; the memory of arrays belongs to the caller from now on. */
static void push_notes(struct stk_tcp_peers *p)
{
    const uint64_t end_ns = stk_now_ns() + STK_TCP_FAREWELL_MS * STK_TCP_NS_PER_MS;
    for (uint32_t i = 0; i < p->link_count; i++) {
        struct stk_tcp_outbox *const out = &p->links[i].out;
        out->array_bytes = out->in_frame ? out->frame_left : 0;
    }
    while (has_notes(p) && stk_now_ns() < end_ns)
        if (stk_tcp_move(p, 0, end_ns) < 0)
            break;
    for (uint32_t i = 0; i < p->link_count; i++)
        p->links[i].out = (struct stk_tcp_outbox){ .notes_bytes = 0 };
    p->answer_kind = 0;
}

int stk_tcp_end(struct stk_tcp_peers *p, const stoker_error *cause, const char *report,
                stoker_error *error)
{
    if (p->broken)
        return stk_tcp_check(p, error);
    p->cause = *cause;
    p->broken = true;
    for (uint32_t i = 0; i < p->link_count && report != NULL; i++)
        if (!p->links[i].ended)
            stk_tcp_queue_note(&p->links[i], p->peers.rank == 0 ? STK_TCP_ENDED : STK_TCP_FAILED,
                               cause->code, report);
    push_notes(p);
    return stk_tcp_check(p, error);
}

int stk_tcp_failed(struct stk_tcp_peers *p, int os_errno, const char *what, stoker_error *error)
{
    const struct stk_place place = { .offset = STOKER_NO_OFFSET,
                                     .sample = STOKER_NO_SAMPLE,
                                     .os_errno = os_errno };
    stoker_error cause;
    (void)stk_error_set(&cause, STOKER_EPEER, STOKER_STAGE_OPTIONS, &place, "rank %u: %s failed",
                        p->peers.rank, what);
    /* Rank 0 adds the number of a rank that reports. */
    char text[STK_TCP_TEXT_BYTES];
    (void)snprintf(text, sizeof(text), "%s failed (errno %d)", what, os_errno);
    return stk_tcp_end(p, &cause, p->peers.rank == 0 ? cause.message : text, error);
}

void stk_tcp_report_failed(struct stk_peers *peers, int code, const char *text)
{
    struct stk_tcp_peers *const p = stk_tcp_peers_of(peers);
    char report[STK_TCP_TEXT_BYTES];
    stoker_error cause;
    (void)code;
    (void)stk_error_set(&cause, STOKER_EPEER, STOKER_STAGE_OPTIONS, &nowhere, "%s", text);
    (void)snprintf(report, sizeof(report), p->peers.rank == 0 ? "rank 0: %.300s" : "%.300s", text);
    (void)stk_tcp_end(p, &cause, report, NULL);
}

/* ---- what has come ------------------------------------------------------------------- */

/* A rank reports its own failure; rank 0 that of any. */
static int take_end(struct stk_tcp_peers *p, const struct stk_tcp_link *link, stoker_error *error)
{
    stoker_error cause;
    if (p->peers.rank != 0) {
        (void)stk_error_set(&cause, STOKER_EPEER, STOKER_STAGE_OPTIONS, &nowhere, "%s",
                            link->note.text);
        return stk_tcp_end(p, &cause, NULL, error);
    }
    (void)stk_error_set(&cause, STOKER_EPEER, STOKER_STAGE_OPTIONS, &nowhere, "rank %u: %s",
                        link->rank, link->note.text);
    return stk_tcp_end(p, &cause, cause.message, error);
}

static int take_nonsense(struct stk_tcp_peers *p, const struct stk_tcp_link *link,
                         stoker_error *error)
{
    stoker_error cause;
    (void)stk_error_set(&cause, STOKER_EPEER, STOKER_STAGE_OPTIONS, &nowhere,
                        "rank %u sent rank %u %s: every rank must make the same calls, with the "
                        "same library",
                        link->rank, p->peers.rank, link->broken);
    return stk_tcp_end(p, &cause, cause.message, error);
}

static int take_loss(struct stk_tcp_peers *p, const struct stk_tcp_link *link, const char *what,
                     stoker_error *error)
{
    const struct stk_place place = { .offset = STOKER_NO_OFFSET,
                                     .sample = STOKER_NO_SAMPLE,
                                     .os_errno = link->os_errno };
    stoker_error cause;
    (void)stk_error_set(&cause, STOKER_EPEER, STOKER_STAGE_OPTIONS, &place,
                        "rank %u has ended, crashed or was killed: its connection is closed (%s)",
                        link->rank, what);
    return stk_tcp_end(p, &cause, cause.message, error);
}

static bool is_rolling(const struct stk_tcp_peers *p, const struct stk_tcp_link *link)
{
    return link->rolls && (p->peers.rank != 0 || link->roll_call > p->done_call);
}

bool stk_tcp_is_called(const struct stk_tcp_peers *p, bool given_up)
{
    for (uint32_t i = 0; i < p->link_count; i++)
        if (is_rolling(p, &p->links[i]) && (!given_up || p->links[i].closed))
            return true;
    return false;
}

int stk_tcp_judge(struct stk_tcp_peers *p, const struct stk_tcp_wait *wait, stoker_error *error)
{
    for (uint32_t i = 0; i < p->link_count; i++)
        if (p->links[i].ended)
            return take_end(p, &p->links[i], error);
    for (uint32_t i = 0; i < p->link_count; i++)
        if (p->links[i].broken != NULL)
            return take_nonsense(p, &p->links[i], error);
    for (uint32_t i = 0; i < p->link_count; i++) {
        const struct stk_tcp_link *const link = &p->links[i];
        const bool gave_up = p->peers.rank == 0 && is_rolling(p, link); /* the roll call says why */
        if (link->closed && !gave_up && (wait == NULL || wait->needs(p, link)))
            return take_loss(p, link, wait == NULL ? "between two calls" : wait->what, error);
    }
    return STOKER_OK;
}

/* ---- the roll call --------------------------------------------------------------------- */

uint32_t stk_tcp_list_unheard(const struct stk_tcp_peers *p, char *text, size_t bytes)
{
    uint32_t missing = 0;
    uint32_t named = 0;
    for (uint32_t i = 0; i < p->link_count; i++)
        missing += p->links[i].heard ? 0 : 1;
    size_t used = (size_t)snprintf(text, bytes, missing == 1 ? "rank" : "ranks");
    for (uint32_t i = 0; i < p->link_count && named < NAMED_MAX; i++)
        if (!p->links[i].heard) {
            const char *const between = named == 0 ? " " : named + 1 == missing ? " and " : ", ";
            used += (size_t)snprintf(text + used, bytes - used, "%s%u", between, p->links[i].rank);
            named++;
        }
    if (missing > named)
        (void)snprintf(text + used, bytes - used, " and %u more", missing - named);
    return missing;
}

static uint64_t roll_ns(const struct stk_tcp_peers *p)
{
    const uint32_t quarter = p->options.timeout_ms / 4;
    const uint64_t ms = quarter < ROLL_MS_MIN   ? ROLL_MS_MIN
                        : quarter > ROLL_MS_MAX ? ROLL_MS_MAX
                                                : quarter;
    return ms * STK_TCP_NS_PER_MS;
}

static bool listens_to_any(const struct stk_tcp_peers *p)
{
    for (uint32_t i = 0; i < p->link_count; i++)
        if (!p->links[i].heard && !p->links[i].closed)
            return true;
    return false;
}

/* The ranks that did not answer learn that they are too late, when they come. */
static void warn_unheard(struct stk_tcp_peers *p, uint32_t caller, const char *what)
{
    char text[STK_TCP_TEXT_BYTES];
    for (uint32_t i = 0; i < p->link_count; i++) {
        struct stk_tcp_link *const link = &p->links[i];
        if (link->heard || link->closed)
            continue;
        (void)snprintf(text, sizeof(text),
                       "rank %u gave up after %u ms, before this rank %u came (%s)", caller,
                       p->options.timeout_ms, link->rank, what);
        stk_tcp_queue_note(link, STK_TCP_ENDED, STOKER_EPEER, text);
    }
}

static int conclude(struct stk_tcp_peers *p, const char *what, uint32_t caller, bool late,
                    stoker_error *error)
{
    char missing[160];
    stoker_error cause;
    if (stk_tcp_list_unheard(p, missing, sizeof(missing)) > 0) {
        (void)stk_error_set(&cause, STOKER_EPEER, STOKER_STAGE_OPTIONS, &nowhere,
                            "%s did not come within %u ms (%s): stopped, slow or gone", missing,
                            p->options.timeout_ms, what);
        warn_unheard(p, caller, what); /* the first note that a rank reads is the one that counts */
    } else if (late) {
        (void)stk_error_set(&cause, STOKER_EPEER, STOKER_STAGE_OPTIONS, &nowhere,
                            "rank %u gave up after %u ms, before rank 0 came (%s)", caller,
                            p->options.timeout_ms, what);
    } else {
        (void)stk_error_set(&cause, STOKER_EPEER, STOKER_STAGE_OPTIONS, &nowhere,
                            "every rank answers, but %s did not end within %u ms: the ranks wait "
                            "for different things",
                            what, p->options.timeout_ms);
    }
    return stk_tcp_end(p, &cause, cause.message, error);
}

static bool needs_nothing(const struct stk_tcp_peers *p, const struct stk_tcp_link *link)
{
    (void)p;
    (void)link;
    return false;
}

static int call_all(struct stk_tcp_peers *p, const char *what, bool late, stoker_error *error)
{
    static const struct stk_tcp_wait no_one = { .what = "a roll call", .needs = needs_nothing };
    const uint64_t end_ns = stk_now_ns() + roll_ns(p);
    uint32_t caller = 0;
    int rc = STOKER_OK;
    for (uint32_t i = p->link_count; i-- > 0;) {
        struct stk_tcp_link *const link = &p->links[i];
        link->heard = is_rolling(p, link);
        caller = link->heard ? link->rank : caller;
        stk_tcp_queue(link, STK_TCP_ROLL, p->call, NULL, 0);
    }
    while (rc == STOKER_OK && listens_to_any(p) && stk_now_ns() < end_ns) {
        const int code = stk_tcp_move(p, 0, end_ns);
        if (code < 0)
            return stk_tcp_failed(p, -code, "poll", error);
        rc = stk_tcp_judge(p, &no_one, error);
    }
    return rc == STOKER_OK ? conclude(p, what, caller, late, error) : rc;
}

static int name_rank_0(struct stk_tcp_peers *p, const char *what, stoker_error *error)
{
    stoker_error cause;
    (void)stk_error_set(&cause, STOKER_EPEER, STOKER_STAGE_OPTIONS, &nowhere,
                        "rank 0 did not come within %u ms (%s): stopped, slow or gone",
                        p->options.timeout_ms, what);
    return stk_tcp_end(p, &cause, NULL, error);
}

/* Rank 0 answers a roll call by its own, and then says how it ended. */
static int call_rank_0(struct stk_tcp_peers *p, const struct stk_tcp_wait *wait, bool called,
                       stoker_error *error)
{
    enum { ENDS_AFTER = 3 }; /* rank 0's own roll call, and its notes to a thousand ranks */
    struct stk_tcp_link *const link = &p->links[0];
    const uint64_t began_ns = stk_now_ns();
    stk_tcp_queue(link, called ? STK_TCP_HERE : STK_TCP_ROLL, p->call, NULL, 0);
    for (;;) {
        const uint64_t end_ns = began_ns + roll_ns(p) * (link->rolls ? 1 + ENDS_AFTER : 1);
        if (stk_now_ns() >= end_ns)
            return name_rank_0(p, wait->what, error);
        const int code = stk_tcp_move(p, 0, end_ns);
        if (code < 0)
            return stk_tcp_failed(p, -code, "poll", error);
        if (!called && !link->rolls && !link->ended && !wait->needs(p, link))
            return STOKER_OK;
        const int rc = stk_tcp_judge(p, NULL, error);
        if (rc != STOKER_OK)
            return rc;
    }
}

int stk_tcp_call_roll(struct stk_tcp_peers *p, const struct stk_tcp_wait *wait, bool called,
                      bool late, stoker_error *error)
{
    return p->peers.rank == 0 ? call_all(p, wait->what, late, error)
                              : call_rank_0(p, wait, called, error);
}
