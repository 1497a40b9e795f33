/* words.c - see words.h. */
#include "trainer/backend/cuda/ranks/words.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "trainer/backend/cuda/device/device.h"
#include "trainer/peers/nccl/nccl.h"
#include "trainer/peers/nccl/rendezvous.h"

enum { FAREWELL_MS = 1000, LOOK_NS = 100000 };

struct words {
    struct stk_peers peers; /* first */
    stoker_ranks ranks;
    uint32_t timeout_ms;
    struct stk_backend gpu;       /* no more than its context and stream */
    struct stk_device_sums *sums; /* NULL = not connected */
    struct stk_word *met;         /* at the rendezvous */
    /* Page-locked, and on the GPU: the words of all ranks, then this rank's. The host has its last
     * one behind that: a copy of the one before may be under way. */
    struct stk_word *host, *device;
    bool says_farewell; /* the last word is queued */
    bool broken;        /* with this cause */
    stoker_error cause;
};

static struct words *words_of(struct stk_peers *peers)
{
    return (struct words *)peers;
}

/* ---- words ----------------------------------------------------------------------- */

/* The GPU is current. */
static int queue_exchange(struct words *w, const struct stk_word *mine, bool last,
                          stoker_error *error)
{
    const uint32_t ranks = w->peers.world_size;
    struct stk_word *const from = &w->host[ranks + (last ? 1 : 0)];
    _Static_assert(sizeof(*mine) % sizeof(float) == 0, "gathered as floats");
    *from = *mine;
    int rc = stk_cuda_copy(&w->gpu, &w->device[ranks], from, sizeof(*mine), cudaMemcpyHostToDevice,
                           error);
    if (rc == STOKER_OK)
        rc = w->sums->ops->all_gather(w->sums, (const float *)(const void *)&w->device[ranks],
                                      (float *)(void *)w->device, sizeof(*mine) / sizeof(float),
                                      w->gpu.stream, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_copy(&w->gpu, w->host, w->device, ranks * sizeof(*mine),
                           cudaMemcpyDeviceToHost, error);
    return rc;
}

/* Nobody waits for the last word. */
static int exchange(struct words *w, const struct stk_word *mine, bool last, stoker_error *error)
{
    int before;
    int rc = stk_cuda_enter(&w->gpu, &before, error);
    if (rc != STOKER_OK)
        return rc;
    w->gpu.sums = w->sums; /* a wait ends with the communicator */
    rc = queue_exchange(w, mine, last, error);
    if (rc == STOKER_OK && !last)
        rc = stk_cuda_await(&w->gpu, NULL, error);
    stk_cuda_leave(&w->gpu, before);
    return rc;
}

/* Once. The others read it in place of this rank's next word. */
static void failed(struct stk_peers *peers, int code, const char *text)
{
    struct words *const w = words_of(peers);
    struct stk_word word = { .sync_point = STK_SYNC_LEAVE, .code = code };
    if (w->broken)
        return;
    w->broken = true;
    (void)stk_refuse_option(&w->cause, STOKER_EPEER, "%s", text);
    (void)snprintf(word.text, sizeof(word.text), "%.*s", STK_WORD_TEXT_BYTES - 1, text);
    w->says_farewell = w->sums != NULL && exchange(w, &word, true, NULL) == STOKER_OK;
}

static int gather(struct stk_peers *peers, const void *mine, size_t bytes, const void **all,
                  stoker_error *error)
{
    struct words *const w = words_of(peers);
    stoker_error cause = w->cause;
    assert(bytes == sizeof(struct stk_word));
    (void)bytes;
    if (!w->broken && w->sums == NULL) {
        *all = w->met;
        return stk_nccl_rendezvous(&w->ranks, w->timeout_ms, mine, w->met, error);
    }
    const int rc = w->broken ? cause.code : exchange(w, mine, false, &cause);
    *all = w->host;
    if (rc == STOKER_OK)
        return STOKER_OK;
    failed(peers, rc, cause.message);
    if (error != NULL)
        *error = cause;
    return rc;
}

/* What is shared is a few hundred bytes: arrays go by NCCL's own broadcast. */
static int broadcast(struct stk_peers *peers, void *memory, size_t bytes, stoker_error *error)
{
    for (size_t done = 0; done < bytes; done += STK_WORD_TEXT_BYTES) {
        const size_t left = bytes - done;
        const size_t count = left < STK_WORD_TEXT_BYTES ? left : STK_WORD_TEXT_BYTES;
        const struct stk_word *all = NULL;
        struct stk_word word = stk_peers_word(STK_SYNC_SHARE, STOKER_OK, NULL);
        memcpy(word.text, (uint8_t *)memory + done, count);
        const int rc = stk_peers_agree(peers, &word, &all, error);
        if (rc != STOKER_OK)
            return rc;
        memcpy((uint8_t *)memory + done, all[0].text, count);
    }
    return STOKER_OK;
}

/* Nothing is under way between two calls. */
static int check(struct stk_peers *peers, stoker_error *error)
{
    const struct words *const w = words_of(peers);
    if (w->broken && error != NULL)
        *error = w->cause;
    return w->broken ? w->cause.code : STOKER_OK;
}

/* ---- leaving --------------------------------------------------------------------- */

/* The others may need the last word, and come late. */
static void await_farewell(const struct words *w)
{
    const uint64_t end_ns = stk_now_ns() + FAREWELL_MS * UINT64_C(1000000);
    while (stk_now_ns() < end_ns &&
           w->gpu.runtime.cudaStreamQuery(w->gpu.stream) == cudaErrorNotReady)
        (void)nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
}

static void close_words(struct words *w, bool whole)
{
    int before = 0;
    const bool entered =
        w->gpu.stream != NULL && stk_cuda_enter(&w->gpu, &before, NULL) == STOKER_OK;
    if (entered && w->says_farewell)
        await_farewell(w);
    stk_nccl_leave(&w->sums, !whole);
    w->gpu.sums = NULL;
    if (w->gpu.stream != NULL)
        stk_cuda_drain(&w->gpu);
    stk_cuda_free(&w->gpu, w->device);
    if (w->host != NULL)
        (void)stk_cuda_check(&w->gpu, w->gpu.runtime.cudaFreeHost(w->host), "cudaFreeHost", NULL);
    stk_cuda_device_close(&w->gpu);
    if (entered)
        stk_cuda_leave(&w->gpu, before);
    stk_free(w->met);
    stk_free(w);
}

static void leave(struct stk_peers *peers)
{
    const struct stk_word word = stk_peers_word(STK_SYNC_LEAVE, STOKER_OK, NULL);
    close_words(words_of(peers), stk_peers_agree(peers, &word, NULL, NULL) == STOKER_OK);
}

static const struct stk_peers_ops ops = { .name = "nccl",
                                          .leave = leave,
                                          .gather = gather,
                                          .poll = check,
                                          .finish = check,
                                          .broadcast = broadcast,
                                          .failed = failed };

/* ---- joining --------------------------------------------------------------------- */

static int take_memory(struct words *w, stoker_error *error)
{
    const size_t bytes = (w->peers.world_size + (size_t)2) * sizeof(struct stk_word);
    void *host = NULL;
    const int rc =
        stk_cuda_check(&w->gpu, w->gpu.runtime.cudaHostAlloc(&host, bytes, cudaHostAllocDefault),
                       "cudaHostAlloc", error);
    w->host = host;
    w->device = rc == STOKER_OK ? stk_cuda_alloc(&w->gpu, bytes, error) : NULL;
    return w->device == NULL ? STOKER_EDEVICE : STOKER_OK;
}

/* A rank without a GPU joins too, to report that: the others need not wait for it. */
static int join(struct words *w, uint32_t device, stoker_error *error)
{
    const struct stk_backend_options wanted = { .device = device };
    int before = 0;
    int rc = stk_cuda_device_open(&w->gpu, &wanted, &before, error);
    const bool entered = rc == STOKER_OK;
    if (rc == STOKER_OK)
        rc = take_memory(w, error);
    const struct stk_nccl_options options = { .timeout_ms = w->timeout_ms,
                                              .device_index = device,
                                              .device = w->gpu.id };
    rc = stk_nccl_join(&w->sums, &w->peers, &options, rc, error);
    if (entered)
        stk_cuda_leave(&w->gpu, before);
    return rc;
}

int stk_cuda_words_join(struct stk_peers **out, const stoker_ranks *ranks, uint32_t device,
                        uint32_t timeout_ms, stoker_error *error)
{
    struct words *const w = stk_calloc(1, sizeof(*w));
    struct stk_word *const met = stk_calloc(ranks->world_size, sizeof(*met));
    if (w == NULL || met == NULL) {
        stk_free(w);
        stk_free(met);
        return stk_refuse_option(error, STOKER_ENOMEM, "memory to talk to %u ranks",
                                 ranks->world_size);
    }
    w->peers = (struct stk_peers){ .ops = &ops,
                                   .rank = ranks->rank,
                                   .world_size = ranks->world_size,
                                   .gather_bytes_max = sizeof(struct stk_word) };
    w->ranks = *ranks;
    w->timeout_ms = timeout_ms;
    w->met = met;
    const int rc = join(w, device, error);
    if (rc == STOKER_OK)
        *out = &w->peers;
    else
        close_words(w, false);
    return rc;
}
