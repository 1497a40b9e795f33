/* messages.c - see mpi_peers.h: what ranks send each other beside sums, and finding out which
 * of them does not come. */
#include "trainer/peers/mpi/mpi_peers.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"

enum {
    YIELDS = 2000,           /* turns of a wait before it sleeps */
    SLEEP_NS = 50000,        /* between two looks */
    PRESENCE_MS_MIN = 250,   /* a presence check takes a quarter of the time-out, within these */
    PRESENCE_MS_MAX = 10000, /* */
    FAREWELL_MS = 200,       /* for messages of a failure to leave */
    NAMED_MAX = 8,           /* ranks in a message */
};

int stk_mpi_check(const struct stk_mpi_peers *p, stoker_error *error)
{
    if (!p->broken)
        return STOKER_OK;
    if (error != NULL)
        *error = p->cause;
    return p->cause.code;
}

/* Keeps the first cause; everything returns it from now on. */
static int breaks(struct stk_mpi_peers *p, const stoker_error *cause, stoker_error *error)
{
    if (!p->broken)
        p->cause = *cause;
    p->broken = true;
    for (uint32_t s = 0; s < STK_SLOTS; s++)
        p->peers.holds_arrays |= p->slots[s].state != STK_SLOT_FREE;
    return stk_mpi_check(p, error);
}

void stk_mpi_relax(uint32_t turn)
{
    if (turn < YIELDS)
        (void)sched_yield();
    else
        (void)nanosleep(&(struct timespec){ .tv_nsec = SLEEP_NS }, NULL);
}

/* ---- messages ----------------------------------------------------------------------- */

static void send_messages(struct stk_mpi_peers *p, enum stk_message_kind kind, int code,
                          const char *text)
{
    *p->message_out =
        (struct stk_message){ .kind = (uint32_t)kind, .from = p->peers.rank, .code = code };
    (void)snprintf(p->message_out->text, sizeof(p->message_out->text), "%.*s",
                   STK_WORD_TEXT_BYTES - 1, text);
    for (uint32_t r = 0; r < p->peers.world_size; r++)
        if (r != p->peers.rank) /* a rank that cannot be reached will not be heard either */
            (void)p->mpi->send(p->communicator, p->message_out, sizeof(*p->message_out), r,
                               STK_MESSAGE_TAG, &p->messages_sent[r]);
}

/* Gives the messages time to leave: nothing is called afterwards. */
static void flush_messages(struct stk_mpi_peers *p)
{
    const uint64_t end_ns = stk_now_ns() + FAREWELL_MS * STK_NS_PER_MS;
    uint32_t turn = 0;
    for (uint32_t r = 0; r < p->peers.world_size; r++) {
        bool done = r == p->peers.rank;
        while (!done && stk_now_ns() < end_ns) {
            if (p->mpi->test(&p->messages_sent[r], &done) != 0)
                break;
            stk_mpi_relax(turn++);
        }
    }
}

void stk_mpi_tell_failed(struct stk_peers *peers, int code, const char *text)
{
    struct stk_mpi_peers *const p = stk_mpi_peers_of(peers);
    stoker_error cause;
    if (p->broken)
        return;
    (void)stk_refuse_option(&cause, STOKER_EPEER, "%s", text);
    (void)breaks(p, &cause, NULL);
    send_messages(p, STK_MESSAGE_FAILED, code, text);
    flush_messages(p);
}

int stk_mpi_failed(struct stk_mpi_peers *p, int code, const char *what, stoker_error *error)
{
    char text[STK_MPI_TEXT_BYTES];
    char message[STK_WORD_TEXT_BYTES];
    stoker_error cause;
    p->mpi->error_text(code, text);
    (void)snprintf(message, sizeof(message), "%s failed: %.150s", what, text);
    (void)stk_refuse_option(&cause, STOKER_EPEER, "rank %u: %s", p->peers.rank, message);
    if (p->broken || p->communicator == NULL)
        return breaks(p, &cause, error);
    const int rc = breaks(p, &cause, error);
    send_messages(p, STK_MESSAGE_FAILED, code, message);
    flush_messages(p);
    return rc;
}

/* Begins to listen again after a message. */
static int listen_again(struct stk_mpi_peers *p)
{
    return p->mpi->receive(p->communicator, p->message_in, sizeof(*p->message_in), STK_MPI_ANY_RANK,
                           STK_MESSAGE_TAG, &p->message_request);
}

/* True if a message has come, which is then in *message. */
static bool receive_message(struct stk_mpi_peers *p, struct stk_message *message)
{
    bool come = false;
    if (!p->listens)
        return false;
    if (p->mpi->test(&p->message_request, &come) != 0) {
        p->listens = false; /* deaf, but not mute: time-outs still end every wait */
        return false;
    }
    if (!come)
        return false;
    *message = *p->message_in;
    message->text[sizeof(message->text) - 1] = '\0';
    p->listens = listen_again(p) == 0;
    return true;
}

/* ---- presence --------------------------------------------------------------- */

/* "rank 1", "ranks 1, 3 and 5" */
static void list_missing(const struct stk_mpi_peers *p, char *text, size_t bytes)
{
    uint32_t missing = 0;
    uint32_t named = 0;
    for (uint32_t r = 0; r < p->peers.world_size; r++)
        missing += p->heard[r] ? 0 : 1;
    size_t used = (size_t)snprintf(text, bytes, missing == 1 ? "rank" : "ranks");
    for (uint32_t r = 0; r < p->peers.world_size && named < NAMED_MAX; r++)
        if (!p->heard[r]) {
            const char *const between = named == 0 ? " " : named + 1 == missing ? " and " : ", ";
            used += (size_t)snprintf(text + used, bytes - used, "%s%u", between, r);
            named++;
        }
    if (missing > named)
        (void)snprintf(text + used, bytes - used, " and %u more", missing - named);
}

static bool all_heard(const struct stk_mpi_peers *p)
{
    for (uint32_t r = 0; r < p->peers.world_size; r++)
        if (!p->heard[r])
            return false;
    return true;
}

/* Another rank has failed: it is the cause. */
static int take_failure(struct stk_mpi_peers *p, const struct stk_message *message,
                        stoker_error *error)
{
    stoker_error cause;
    (void)stk_refuse_option(&cause, STOKER_EPEER, "rank %u: %s", message->from, message->text);
    return breaks(p, &cause, error);
}

static int conclude(struct stk_mpi_peers *p, const char *what, bool late, uint32_t caller,
                    stoker_error *error)
{
    char missing[160];
    stoker_error cause;
    if (!all_heard(p)) {
        list_missing(p, missing, sizeof(missing));
        (void)stk_refuse_option(&cause, STOKER_EPEER,
                                "%s did not come within %u ms (%s): stopped, slow or gone", missing,
                                p->options.timeout_ms, what);
    } else if (late) {
        (void)stk_refuse_option(&cause, STOKER_EPEER,
                                "rank %u gave up after %u ms, before this rank %u came (%s)",
                                caller, p->options.timeout_ms, p->peers.rank, what);
    } else {
        (void)stk_refuse_option(
            &cause, STOKER_EPEER,
            "every rank answers, but %s did not end within %u ms: the ranks wait "
            "for different things",
            what, p->options.timeout_ms);
    }
    return breaks(p, &cause, error);
}

int stk_mpi_check_presence(struct stk_mpi_peers *p, const char *what, uint32_t caller,
                           stoker_error *error)
{
    const uint32_t quarter = p->options.timeout_ms / 4;
    const uint64_t wait_ms = quarter < PRESENCE_MS_MIN   ? PRESENCE_MS_MIN
                             : quarter > PRESENCE_MS_MAX ? PRESENCE_MS_MAX
                                                         : quarter;
    const uint64_t end_ns = stk_now_ns() + wait_ms * STK_NS_PER_MS;
    struct stk_message message;
    memset(p->heard, 0, p->peers.world_size * sizeof(*p->heard));
    p->heard[p->peers.rank] = true;
    p->heard[caller] = true;
    send_messages(p, STK_MESSAGE_PRESENT, STOKER_OK, "");
    for (uint32_t turn = 0; !all_heard(p) && stk_now_ns() < end_ns; turn++) {
        if (!receive_message(p, &message))
            stk_mpi_relax(turn);
        else if (message.kind == STK_MESSAGE_FAILED)
            return take_failure(p, &message, error);
        else if (message.from < p->peers.world_size)
            p->heard[message.from] = true;
    }
    flush_messages(p);
    return conclude(p, what, caller != p->peers.rank, caller, error);
}

int stk_mpi_hear(struct stk_mpi_peers *p, const char *what, stoker_error *error)
{
    struct stk_message message;
    if (!receive_message(p, &message))
        return STOKER_OK;
    if (message.kind == STK_MESSAGE_FAILED || message.from >= p->peers.world_size)
        return take_failure(p, &message, error);
    return stk_mpi_check_presence(p, what, message.from, error);
}

int stk_mpi_listen(struct stk_mpi_peers *p, stoker_error *error)
{
    return stk_mpi_hear(p, "between two calls", error);
}
