/* test_wrong_streams.c - a stream that captures a graph, or that is another GPU's, is an error of
 * one call: with a message, without harm to the recording, and nothing is lost.
 */
#include "loader/api/lend/dlpack_layout.h"
#include "support/gpu/cuda_run.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"

enum { RIGHT, RECORDING, FOREIGN, STREAMS };

static struct stk_file_set set;
static struct stk_cuda_consumer consumer;
static struct stk_run expected, found;
static cudaStream_t streams[STREAMS];
static char heard[1024];

static void hear(void *self, stoker_log_level level, const char *message)
{
    (void)self;
    if (level == STOKER_LOG_WARNING)
        (void)snprintf(heard, sizeof(heard), "%s", message);
}

static void begin(void)
{
    standin_cuda_reset(2);
    heard[0] = '\0';
    cr_assert(stk_file_set_make(&set, 100, 4, 5, 3));
    cr_assert(stk_cuda_consumer_init(&consumer, 200));
    standin_cuda_own_calls(true);
    streams[RIGHT] = consumer.stream;
    cr_assert_eq(cudaStreamCreateWithFlags(&streams[RECORDING], cudaStreamNonBlocking),
                 cudaSuccess);
    cr_assert_eq(cudaSetDevice(1), cudaSuccess);
    cr_assert_eq(cudaStreamCreateWithFlags(&streams[FOREIGN], cudaStreamNonBlocking), cudaSuccess);
    cr_assert_eq(cudaSetDevice(0), cudaSuccess);
    standin_cuda_own_calls(false);
}

static void finish(void)
{
    standin_cuda_own_calls(true);
    cr_assert_eq(cudaStreamDestroy(streams[RECORDING]), cudaSuccess);
    cr_assert_eq(cudaStreamDestroy(streams[FOREIGN]), cudaSuccess);
    standin_cuda_own_calls(false);
    stk_cuda_consumer_destroy(&consumer);
    stk_file_set_remove(&set);
    standin_cuda_reset(1);
    cr_assert_eq(standin_cuda_live(), 0);
    stk_test_check_leaks();
}

TestSuite(cuda_wrong_streams, .init = begin, .fini = finish);

/* In this mode CUDA forbids the thread whatever may block, and then the recording fails. */
static void start_recording(void)
{
    standin_cuda_own_calls(true);
    cr_assert_eq(cudaStreamBeginCapture(streams[RECORDING], cudaStreamCaptureModeThreadLocal),
                 cudaSuccess);
    standin_cuda_own_calls(false);
}

static void end_recording(void)
{
    cudaGraph_t graph = NULL;
    standin_cuda_own_calls(true);
    cr_assert_eq(cudaStreamEndCapture(streams[RECORDING], &graph), cudaSuccess);
    cr_assert_not_null(graph);
    cr_assert_eq(cudaGraphDestroy(graph), cudaSuccess);
    standin_cuda_own_calls(false);
}

static stoker_loader *make(stoker_loader_options *options)
{
    options->on_log = hear;
    options->epochs = 1;
    return loader_of(set.dataset, options);
}

static void expect_the_bytes(stoker_loader_options options)
{
    options.device = STOKER_DEVICE_CPU;
    options.on_log = NULL;
    cr_assert_eq(stk_run(set.dataset, &options, &expected), STOKER_FINISHED);
    cr_assert(stk_runs_equal(&expected, &found));
}

/* Every call first with each wrong stream, then with the right one. */
static void use_wrongly(stoker_loader *loader, bool tensors)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    found = (struct stk_run){ 0 };
    while ((found.rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED) {
        DLManagedTensorVersioned *tensor = NULL;
        if (found.rc == STOKER_EPOCH_END) {
            found.epoch_ends++;
            continue;
        }
        cr_assert_eq(found.rc, STOKER_OK);
        const stoker_batch before = batch;
        start_recording();
        for (int s = RECORDING; s < STREAMS; s++) {
            cr_assert_eq(stoker_batch_wait_on(&batch, streams[s]), STOKER_EINVAL);
            cr_assert_eq(stoker_batch_to_dlpack(&batch, 0, streams[s], &tensor), STOKER_EINVAL);
            cr_assert_null(tensor);
        }
        end_recording();
        if (tensors)
            cr_assert_eq(stoker_batch_to_dlpack(&batch, 0, streams[RIGHT], &tensor), STOKER_OK);
        cr_assert_eq(stoker_batch_wait_on(&batch, streams[RIGHT]), STOKER_OK);
        found.samples += batch.count;
        stk_cuda_launch(&consumer, &batch, &found.hashes[found.batches++]);
        start_recording();
        for (int s = RECORDING; s < STREAMS; s++) {
            cr_assert_eq(stoker_batch_release_on(&batch, streams[s]), STOKER_EINVAL);
            cr_assert_eq(memcmp(&batch, &before, sizeof(batch)), 0);
        }
        end_recording();
        cr_assert_eq(stoker_batch_release_on(&batch, streams[RIGHT]), STOKER_OK);
        cr_assert_null(batch.loader);
        if (tensor != NULL)
            tensor->deleter(tensor);
    }
    cr_assert_null(stoker_loader_error(loader));
    stk_cuda_consumer_wait(&consumer);
    stoker_loader_destroy(&loader);
}

Test(cuda_wrong_streams, the_loader_goes_on_and_nothing_is_lost)
{
    static const stoker_on_lent kinds[] = { STOKER_ON_LENT_AUTO, STOKER_ON_LENT_GROW };
    for (int i = 0; i < 4; i++) {
        stoker_loader_options options =
            stk_small_options(.device = STOKER_DEVICE_CUDA, .on_lent = kinds[i % 2]);
        use_wrongly(make(&options), i / 2 == 1);
        expect_the_bytes(options);
        cr_assert_not_null(strstr(heard, "cuda:0: the consumer's stream"), "%s", heard);
    }
}

Test(cuda_wrong_streams, the_message_says_which_mistake_it_was)
{
    static const char *const words[STREAMS] = { [RECORDING] =
                                                    "is capturing a graph, which cannot wait",
                                                [FOREIGN] = "invalid resource handle (400)" };
    stoker_loader_options options =
        stk_small_options(.device = STOKER_DEVICE_CUDA, .prefetch_batches = 4);
    stoker_loader *loader = make(&options);
    for (int s = RECORDING; s < STREAMS; s++) {
        stoker_batch batch = next_batch(loader);
        start_recording();
        cr_assert_eq(stoker_batch_wait_on(&batch, streams[s]), STOKER_EINVAL);
        end_recording();
        stoker_batch_release(&batch); /* on no stream that was refused */
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
        cr_assert_not_null(strstr(heard, words[s]), "%s", heard);
        stoker_batch_release(&batch);
    }
    struct CUstream_st *const per_thread = (struct CUstream_st *)(intptr_t)2;
    DLManagedTensorVersioned *tensor = NULL;
    stoker_batch batch = next_batch(loader);
    cr_assert_eq(stoker_batch_to_dlpack(&batch, 0, per_thread, &tensor), STOKER_EINVAL);
    stoker_batch_release(&batch);
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
    cr_assert_not_null(strstr(heard, "per-thread default stream: its deleter may run"), "%s",
                       heard);
    stoker_batch_release(&batch);
    cr_assert_null(stoker_loader_error(loader));
    stoker_loader_destroy(&loader);
}

/* A deleter, or a release without a stream, can report nothing: it counts once the recording is
 * over. */
static void release_while_recording(stoker_loader *loader, bool tensors, bool by_next)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    found = (struct stk_run){ 0 };
    while ((found.rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK) {
        DLManagedTensorVersioned *tensor = NULL;
        cr_assert_eq(stoker_batch_wait_on(&batch, streams[RECORDING]), STOKER_OK);
        if (tensors)
            cr_assert_eq(stoker_batch_to_dlpack(&batch, 0, streams[RECORDING], &tensor), STOKER_OK);
        found.samples += batch.count;
        consumer.stream = streams[RECORDING];
        stk_cuda_launch(&consumer, &batch, &found.hashes[found.batches++]);
        consumer.stream = streams[RIGHT];
        start_recording();
        stoker_batch_release(&batch);
        cr_assert_null(batch.loader);
        if (tensor != NULL)
            tensor->deleter(tensor);
        end_recording();
        if (!by_next && found.batches == 3)
            break; /* destroy is the next to look */
    }
    cr_assert_null(stoker_loader_error(loader));
    stoker_loader_destroy(&loader);
    standin_cuda_own_calls(true);
    cr_assert_eq(cudaStreamSynchronize(streams[RECORDING]), cudaSuccess);
    standin_cuda_own_calls(false);
}

Test(cuda_wrong_streams, what_ends_while_a_graph_is_recorded_counts_afterwards)
{
    static const stoker_on_lent kinds[] = { STOKER_ON_LENT_AUTO, STOKER_ON_LENT_GROW,
                                            STOKER_ON_LENT_WAIT };
    for (int i = 0; i < 12; i++) {
        stoker_loader_options options =
            stk_small_options(.device = STOKER_DEVICE_CUDA, .on_lent = kinds[i % 3],
                              .prefetch_batches = 2);
        release_while_recording(make(&options), i / 3 % 2 == 1, i < 6);
        if (i >= 6)
            continue;
        cr_assert_eq(found.rc, STOKER_EPOCH_END);
        found.rc = STOKER_FINISHED;
        found.epoch_ends = 1;
        expect_the_bytes(options);
    }
}

/* The consumer copies from page-locked memory itself; a GPU that is not the loader's may do
 * that. */
Test(cuda_wrong_streams, a_batch_in_page_locked_memory_is_given_back_after_any_gpus_copy)
{
    stoker_loader_options options = stk_small_options(.device = STOKER_DEVICE_CUDA_HOST);
    stoker_loader *loader = make(&options);
    stoker_batch batch = next_batch(loader);
    start_recording();
    cr_assert_eq(stoker_batch_release_on(&batch, streams[RECORDING]), STOKER_EINVAL);
    end_recording();
    cr_assert_not_null(batch.loader);
    cr_assert_eq(stoker_batch_release_on(&batch, streams[FOREIGN]), STOKER_OK);
    cr_assert_null(batch.loader);
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
    cr_assert_eq(stoker_batch_release_on(&batch, streams[RIGHT]), STOKER_OK);
    cr_assert_null(stoker_loader_error(loader));
    stoker_loader_destroy(&loader);
}
