/* nccl.c - see nccl.h. */
#include "trainer/peers/nccl/nccl.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "loader/base/clock.h"
#include "loader/base/cpu/thread.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

enum {
    YIELDS = 200,    /* turns of a wait before it sleeps */
    SLEEP_NS = 20000 /* between two looks */
};

/* How long to wait for an abort. A slower one continues in its thread. */
static const uint64_t abort_ns = UINT64_C(2000000000);
/* What a rank's failure looks like to another's NCCL comes before the words that explain it. */
static const uint64_t explanation_ns = UINT64_C(1000000000);
static const uint64_t ns_per_ms = UINT64_C(1000000);

struct nccl {
    struct stk_device_sums sums; /* first */
    struct stk_nccl_functions call;
    struct stk_peers *words;
    stk_nccl_communicator communicator; /* NULL: not joined, or aborted */
    uint32_t timeout_ms;
    bool broken; /* with this cause */
    stoker_error cause;
};

static struct nccl *nccl_of(struct stk_device_sums *sums)
{
    return (struct nccl *)sums;
}

static void relax(uint32_t turn)
{
    if (turn < YIELDS)
        (void)sched_yield();
    else
        (void)nanosleep(&(struct timespec){ .tv_nsec = SLEEP_NS }, NULL);
}

/* ---- failures -------------------------------------------------------------------- */

/* A call of ncclCommAbort() in a thread of its own: it waits, without a limit, until the GPU has
 * ended what was queued and no graph holds an operation (NCCL 2.30, init.cc, commDestroySync). */
struct abort_call {
    int (*abort)(stk_nccl_communicator communicator);
    stk_nccl_communicator communicator;
    /* Exchanged, acq_rel: the second of both sides frees the call. */
    _Atomic uint32_t state;
};
enum { RUNNING, ENDED, ABANDONED };

static void *run_abort(void *argument)
{
    struct abort_call *const call = argument;
    (void)call->abort(call->communicator);
    if (atomic_exchange(&call->state, ENDED) == ABANDONED)
        stk_free(call);
    return NULL;
}

/* Ends what is queued. A capture in progress holds operations until the caller ends it: then the
 * thread is not waited for. Without memory or a thread this thread aborts, but not in a capture, in
 * which it would wait for itself: then the communicator leaks. */
static void end_communicator(struct nccl *n)
{
    struct abort_call *const call = stk_calloc(1, sizeof(*call));
    const uint64_t end_ns = stk_now_ns() + (n->sums.capturing ? 0 : abort_ns);
    pthread_t thread;
    if (n->sums.drop_captured != NULL)
        n->sums.drop_captured(n->sums.owner);
    stk_nccl_communicator communicator = n->communicator;
    n->communicator = NULL;
    if (call != NULL)
        *call = (struct abort_call){ .abort = n->call.ncclCommAbort, .communicator = communicator };
    if (call == NULL || stk_thread_start(&thread, "stoker-abort", run_abort, call) != 0) {
        stk_free(call);
        if (!n->sums.capturing)
            (void)n->call.ncclCommAbort(communicator);
        return;
    }
    for (uint32_t turn = 0; atomic_load(&call->state) == RUNNING && stk_now_ns() < end_ns; turn++)
        relax(turn);
    if (atomic_exchange(&call->state, ABANDONED) != ENDED) {
        (void)pthread_detach(thread);
        return;
    }
    (void)pthread_join(thread, NULL);
    stk_free(call);
}

/* Keeps the first cause, which everything returns from now on, and ends what is queued. */
static int breaks(struct nccl *n, const stoker_error *cause, stoker_error *error)
{
    if (!n->broken)
        n->cause = *cause;
    n->broken = true;
    if (n->communicator != NULL)
        end_communicator(n);
    if (error != NULL)
        *error = n->cause;
    return n->cause.code;
}

/* True if another rank has said that it failed. */
static bool hear(struct nccl *n, stoker_error *cause)
{
    return n->words->ops->poll(n->words, cause) != STOKER_OK;
}

static bool await_explanation(struct nccl *n, stoker_error *cause)
{
    const uint64_t end_ns = stk_now_ns() + explanation_ns;
    for (uint32_t turn = 0; stk_now_ns() < end_ns; turn++) {
        if (hear(n, cause))
            return true;
        relax(turn);
    }
    return false;
}

/* This rank's own failure, which the others hear of. */
static int fails(struct nccl *n, const char *text, stoker_error *error)
{
    stoker_error cause;
    (void)stk_refuse_option(&cause, STOKER_EPEER, "rank %u: %s", n->sums.rank, text);
    const bool first = !n->broken;
    const int rc = breaks(n, &cause, error);
    if (first)
        n->words->ops->failed(n->words, rc, text);
    return rc;
}

static int state_of(const struct nccl *n)
{
    int state = STK_NCCL_SUCCESS;
    const int code = n->call.ncclCommGetAsyncError(n->communicator, &state);
    return code != STK_NCCL_SUCCESS ? code : state;
}

static int failed(struct nccl *n, int result, const char *what, stoker_error *error)
{
    char text[STK_WORD_TEXT_BYTES];
    stoker_error cause = { .message = "" };
    if (n->sums.capturing && state_of(n) == STK_NCCL_SUCCESS)
        return stk_refuse_option(error, STOKER_EDEVICE, "%s: %s", what,
                                 n->call.ncclGetErrorString(result));
    const bool remote = result == STK_NCCL_REMOTE_ERROR || result == STK_NCCL_SYSTEM_ERROR;
    if (remote ? await_explanation(n, &cause) : hear(n, &cause))
        return breaks(n, &cause, error);
    const char *const last = n->call.ncclGetLastError(n->communicator);
    (void)snprintf(text, sizeof(text), "%s failed: %.60s%s%.90s", what,
                   n->call.ncclGetErrorString(result), last == NULL || *last == '\0' ? "" : ": ",
                   last == NULL ? "" : last);
    return fails(n, text, error);
}

static int late(struct nccl *n, const char *what, stoker_error *error)
{
    char text[STK_WORD_TEXT_BYTES];
    (void)snprintf(
        text, sizeof(text),
        "%s of %u ranks did not end within %u ms: a rank, its GPU or the network between "
        "them is stuck",
        what, n->sums.ranks, n->timeout_ms);
    return fails(n, text, error);
}

/* ---- waiting --------------------------------------------------------------------- */

static int poll_sums(struct stk_device_sums *sums, uint64_t waited_ns, stoker_error *error)
{
    struct nccl *const n = nccl_of(sums);
    stoker_error cause = { .message = "" };
    if (n->broken)
        return breaks(n, &n->cause, error);
    if (hear(n, &cause))
        return breaks(n, &cause, error);
    const int state = state_of(n);
    if (state != STK_NCCL_SUCCESS && state != STK_NCCL_IN_PROGRESS)
        return failed(n, state, "an exchange of all ranks", error);
    return waited_ns < n->timeout_ms * ns_per_ms ? STOKER_OK : late(n, "an exchange", error);
}

/* Waits until a call that has returned `result` is done. */
static int settle(struct nccl *n, int result, const char *what, stoker_error *error)
{
    const uint64_t end_ns = stk_now_ns() + n->timeout_ms * ns_per_ms;
    for (uint32_t turn = 0; result == STK_NCCL_IN_PROGRESS; turn++) {
        stoker_error cause = { .message = "" };
        if (hear(n, &cause))
            return breaks(n, &cause, error);
        if (stk_now_ns() > end_ns)
            return late(n, what, error);
        relax(turn);
        result = state_of(n);
    }
    return result == STK_NCCL_SUCCESS ? STOKER_OK : failed(n, result, what, error);
}

/* ---- what is queued -------------------------------------------------------------- */

static int all_reduce(struct stk_device_sums *sums, void *numbers, uint64_t count,
                      stoker_dtype dtype, void *stream, stoker_error *error)
{
    struct nccl *const n = nccl_of(sums);
    const int type = dtype == STOKER_DTYPE_FLOAT64 ? STK_NCCL_FLOAT64 : STK_NCCL_FLOAT32;
    if (n->broken)
        return breaks(n, &n->cause, error);
    const int result =
        n->call.ncclAllReduce(numbers, numbers, count, type, STK_NCCL_SUM, n->communicator, stream);
    return settle(n, result, "ncclAllReduce", error);
}

static int all_gather(struct stk_device_sums *sums, const float *from, float *to, uint64_t count,
                      void *stream, stoker_error *error)
{
    struct nccl *const n = nccl_of(sums);
    if (n->broken)
        return breaks(n, &n->cause, error);
    const int result =
        n->call.ncclAllGather(from, to, count, STK_NCCL_FLOAT32, n->communicator, stream);
    return settle(n, result, "ncclAllGather", error);
}

static int broadcast(struct stk_device_sums *sums, void *memory, uint64_t bytes, void *stream,
                     stoker_error *error)
{
    struct nccl *const n = nccl_of(sums);
    if (n->broken)
        return breaks(n, &n->cause, error);
    const int result =
        n->call.ncclBroadcast(memory, memory, bytes, STK_NCCL_BYTES, 0, n->communicator, stream);
    return settle(n, result, "ncclBroadcast", error);
}

static int agree_capture(struct stk_device_sums *sums, bool captured, bool *all_captured,
                         stoker_error *why, stoker_error *error)
{
    struct nccl *const n = nccl_of(sums);
    const struct stk_word *all = NULL;
    stoker_error cause = { .message = "" };
    struct stk_word word = stk_peers_word(STK_SYNC_CAPTURE, STOKER_OK, NULL);
    if (n->broken)
        return breaks(n, &n->cause, error);
    word.number[0] = captured ? 1 : 0;
    if (!captured)
        (void)snprintf(word.text, sizeof(word.text), "%.*s", STK_WORD_TEXT_BYTES - 1, why->message);
    if (stk_peers_agree(n->words, &word, &all, &cause) != STOKER_OK)
        return breaks(n, &cause, error);
    *all_captured = true;
    for (uint32_t r = 0; r < sums->ranks; r++) {
        const bool first = *all_captured && all[r].number[0] == 0;
        *all_captured = *all_captured && all[r].number[0] == 1;
        if (first && captured)
            (void)stk_refuse_option(why, STOKER_EDEVICE, "rank %u: %.*s", r,
                                    STK_WORD_TEXT_BYTES - 1, all[r].text);
    }
    return STOKER_OK;
}

static const struct stk_device_sums_ops ops = { .name = "nccl",
                                                .all_reduce = all_reduce,
                                                .all_gather = all_gather,
                                                .broadcast = broadcast,
                                                .poll = poll_sums,
                                                .agree_capture = agree_capture };

/* ---- joining --------------------------------------------------------------------- */

/* A rank's GPU and library; of rank 0 also the id. */
static struct stk_word introduce(const struct nccl *n, const struct stk_nccl_options *options,
                                 const struct stk_nccl_id *id, int rc, const stoker_error *error)
{
    struct stk_word word = stk_peers_word(STK_SYNC_CREATE, rc, error);
    _Static_assert(STK_DEVICE_ID_BYTES == 2 * sizeof(word.number[0]), "two numbers hold it");
    _Static_assert(sizeof(id->internal) <= sizeof(word.text), "the text holds it");
    if (rc == STOKER_OK)
        memcpy(word.text, id->internal, sizeof(id->internal));
    memcpy(word.number, options->device.bytes, STK_DEVICE_ID_BYTES);
    word.number[2] = options->device_index;
    word.number[3] = (uint64_t)n->call.version;
    return word;
}

static bool same_device(const struct stk_word *a, const struct stk_word *b)
{
    return a->number[0] == b->number[0] && a->number[1] == b->number[1];
}

/* NCCL says "Duplicate GPU detected", and not whose. */
static int compare(const struct stk_word *all, uint32_t ranks, stoker_error *error)
{
    for (uint32_t r = 1; r < ranks; r++) {
        for (uint32_t other = 0; other < r; other++)
            if (same_device(&all[r], &all[other]))
                return stk_refuse_option(
                    error, STOKER_EINVAL,
                    "ranks %u and %u have one GPU (cuda:%u and cuda:%u): start at "
                    "most as many ranks on a node as it has GPUs",
                    other, r, (unsigned)all[other].number[2], (unsigned)all[r].number[2]);
        if (all[r].number[3] != all[0].number[3])
            return stk_refuse_option(error, STOKER_EMISMATCH, "rank %u has NCCL %u, rank 0 has %u",
                                     r, (unsigned)all[r].number[3], (unsigned)all[0].number[3]);
    }
    return STOKER_OK;
}

/* Rank 0's, or why it has none. */
static int make_id(struct nccl *n, struct stk_nccl_id *id, stoker_error *error)
{
    if (n->sums.rank != 0)
        return STOKER_OK;
    const int result = n->call.ncclGetUniqueId(id);
    if (result == STK_NCCL_SUCCESS)
        return STOKER_OK;
    const char *const last = n->call.ncclGetLastError(NULL);
    return stk_refuse_option(error, STOKER_EPEER, "ncclGetUniqueId failed: %.60s: %.90s",
                             n->call.ncclGetErrorString(result), last == NULL ? "" : last);
}

static int start(struct nccl *n, const struct stk_nccl_id *id, stoker_error *error)
{
    struct stk_nccl_config config;
    memset(&config, 0, sizeof(config));
    config.size = sizeof(config);
    config.magic = STK_NCCL_MAGIC;
    config.version = STK_NCCL_VERSION_MIN;
    config.blocking = 0;
    /* A rank without NCCL has met the others with that error. */
    assert(n->call.ncclCommInitRankConfig != NULL);
    const int result = n->call.ncclCommInitRankConfig(&n->communicator, (int)n->sums.ranks, *id,
                                                      (int)n->sums.rank, &config);
    return settle(n, result, "ncclCommInitRankConfig", error);
}

static int join(struct stk_device_sums **out, struct nccl *n,
                const struct stk_nccl_options *options, int rc, stoker_error *error)
{
    const struct stk_word *all = NULL;
    struct stk_nccl_id id = { .internal = "" };
    struct stk_word word;
    if (rc == STOKER_OK)
        rc = stk_nccl_load(&n->call, error);
    if (rc == STOKER_OK)
        rc = make_id(n, &id, error);
    word = introduce(n, options, &id, rc, error);
    rc = stk_peers_agree(n->words, &word, &all, error);
    if (rc == STOKER_OK)
        rc = compare(all, n->sums.ranks, error);
    if (rc == STOKER_OK) {
        memcpy(id.internal, all[0].text, sizeof(id.internal));
        rc = start(n, &id, error);
    }
    if (rc != STOKER_OK)
        return rc;
    *out = &n->sums; /* words may go through them from now on */
    word = stk_peers_word(STK_SYNC_CREATE, STOKER_OK, NULL);
    return stk_peers_agree(n->words, &word, NULL, error);
}

int stk_nccl_join(struct stk_device_sums **out, struct stk_peers *words,
                  const struct stk_nccl_options *options, int rc, stoker_error *error)
{
    struct nccl *const made = stk_calloc(1, sizeof(*made));
    struct nccl none = { .words = words };
    struct nccl *const n = made == NULL ? &none : made;
    if (made == NULL && rc == STOKER_OK)
        rc = stk_refuse_option(error, STOKER_ENOMEM, "NCCL");
    n->sums =
        (struct stk_device_sums){ .ops = &ops, .rank = words->rank, .ranks = words->world_size };
    n->words = words;
    n->timeout_ms = options->timeout_ms;
    rc = join(out, n, options, rc, error); /* says so to the others if this rank cannot */
    if (rc == STOKER_OK)
        return STOKER_OK;
    *out = NULL;
    if (n->communicator != NULL)
        end_communicator(n);
    stk_free(made);
    return rc;
}

void stk_nccl_leave(struct stk_device_sums **sums, bool abandon)
{
    if (*sums == NULL)
        return;
    struct nccl *const n = nccl_of(*sums);
    *sums = NULL;
    if (n->communicator != NULL && !abandon &&
        settle(n, n->call.ncclCommFinalize(n->communicator), "ncclCommFinalize", NULL) == STOKER_OK)
        (void)n->call.ncclCommDestroy(n->communicator);
    else if (n->communicator != NULL)
        end_communicator(n);
    stk_free(n);
}
