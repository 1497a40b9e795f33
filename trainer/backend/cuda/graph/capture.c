/* capture.c - a step recorded once and launched as one graph.
 *
 *   first time    queued as it is: kernels are found, libraries warm up
 *   second time   queued into a graph, which is then launched
 *   from then on  launched
 *
 * What is in a graph by value (sizes, places, counts) is its key; what changes from step to step lives on
 * the device. A step that cannot be recorded is queued as it is, always, and the first reason is kept. The recording that was used longest
 * ago makes room; so a group of more passes than there is room for is never recorded. */
#include <string.h>

#include "trainer/backend/cuda/graph/capture.h"

static bool same_key(const struct stk_cuda_key *a, const struct stk_cuda_key *b)
{
    return a->activations == b->activations && a->count == b->count && a->first == b->first &&
           a->last == b->last && a->samples == b->samples && a->first_sample == b->first_sample &&
           a->seed == b->seed;
}

static void drop(struct stk_backend *backend, struct stk_cuda_recording *recording)
{
    if (recording->graph != NULL)
        (void)stk_cuda_check(backend, backend->runtime.cudaGraphExecDestroy(recording->graph),
                             "cudaGraphExecDestroy", NULL);
    *recording = (struct stk_cuda_recording){ 0 };
}

/* The key's, or the one that was used longest ago, made empty. */
static struct stk_cuda_recording *find(struct stk_backend *backend,
                                       struct stk_cuda_recordings *recordings,
                                       const struct stk_cuda_key *key)
{
    struct stk_cuda_recording *oldest = &recordings->recording[0];
    for (uint32_t i = 0; i < STK_CUDA_RECORDINGS; i++) {
        struct stk_cuda_recording *const recording = &recordings->recording[i];
        if (recording->used > 0 && same_key(&recording->key, key))
            return recording;
        if (recording->used < oldest->used)
            oldest = recording;
    }
    drop(backend, oldest);
    oldest->key = *key;
    return oldest;
}

static int end_capture(struct stk_backend *backend, struct stk_cuda_recording *recording,
                       stoker_error *error)
{
    const struct stk_cuda_runtime *const cuda = &backend->runtime;
    cudaGraph_t graph = NULL;
    int rc = stk_cuda_check(backend, cuda->cudaStreamEndCapture(backend->stream, &graph),
                            "cudaStreamEndCapture", error);
    if (rc == STOKER_OK)
        rc = stk_cuda_check(backend, cuda->cudaGraphInstantiate(&recording->graph, graph, 0),
                            "cudaGraphInstantiate", error);
    if (rc != STOKER_OK)
        recording->graph = NULL;
    if (graph != NULL)
        (void)stk_cuda_check(backend, cuda->cudaGraphDestroy(graph), "cudaGraphDestroy", NULL);
    return rc;
}

/* Of this thread alone: a loader's go on meanwhile. */
static int capture(struct stk_backend *backend, struct stk_cuda_recording *recording,
                   stk_cuda_queue *queue, void *context, stoker_error *why)
{
    int rc = stk_cuda_check(
        backend,
        backend->runtime.cudaStreamBeginCapture(backend->stream, cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture", why);
    if (rc != STOKER_OK)
        return rc;
    const int queued = queue(context, why);
    rc = end_capture(backend, recording, queued == STOKER_OK ? why : NULL);
    if (queued != STOKER_OK)
        drop(backend, recording);
    return queued != STOKER_OK ? queued : rc;
}

/* Record it, or never try again. */
static void record(struct stk_backend *backend, struct stk_cuda_recording *recording,
                   stk_cuda_queue *queue, void *context)
{
    struct stk_capture *const captured = &backend->captured;
    const struct stk_cuda_recording unrecorded = *recording;
    stoker_error why = { .code = STOKER_OK };
    if (capture(backend, recording, queue, context, &why) == STOKER_OK)
        return;
    *recording = unrecorded;
    recording->refused = true;
    if (captured->refused++ == 0)
        captured->reason = why;
}

int stk_cuda_recordings_run(struct stk_backend *backend, struct stk_cuda_recordings *recordings,
                            const struct stk_cuda_key *key, stk_cuda_queue *queue, void *context,
                            stoker_error *error)
{
    struct stk_cuda_recording *const recording = find(backend, recordings, key);
    const bool seen = recording->used > 0;
    recording->used = ++recordings->tick;
    if (seen && recording->graph == NULL && !recording->refused)
        record(backend, recording, queue, context);
    if (recording->graph == NULL) {
        backend->captured.queued++;
        return queue(context, error);
    }
    backend->captured.launched++;
    return stk_cuda_check(backend,
                          backend->runtime.cudaGraphLaunch(recording->graph, backend->stream),
                          "cudaGraphLaunch", error);
}

void stk_cuda_recordings_drop(struct stk_backend *backend, struct stk_cuda_recordings *recordings,
                              uint32_t count)
{
    for (uint32_t i = 0; i < STK_CUDA_RECORDINGS; i++)
        if (count == 0 || recordings->recording[i].key.count == count)
            drop(backend, &recordings->recording[i]);
}
