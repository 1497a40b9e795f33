/* test_decode.c - workers that let a GPU decode, under ThreadSanitizer: lanes of several workers,
 * late decoding, bad images, few slots; no file or row that is written while the GPU reads it.
 */
#include "support/files/jpeg_set.h"
#include "support/gpu/cuda_kernels.h"
#include "support/gpu/cuda_walk.h"
#include "support/standin_nvimgcodec/standin_nvimgcodec.h"

static struct stk_jpeg_set set;

static void step(uint64_t seed)
{
    stoker_loader_options options = stk_cuda_walk_options(seed);
    options.decode = STOKER_DECODE_DEVICE;
    options.num_workers = (int32_t)(seed % 4);
    options.cache = seed % 2 == 0 ? STOKER_CACHE_NONE : STOKER_CACHE_ENCODED;
    options.transform.resize = (stoker_size){ 8, 9 };
    options.on_bad_sample = seed % 3 == 0 ? STOKER_ON_BAD_SKIP : STOKER_ON_BAD_SUBSTITUTE;
    options.epochs = 1;
    standin_nvimgcodec_reset();
    if (seed % 5 == 3)
        standin_nvimgcodec_fail_image(seed, 7);
    standin_cuda_use_kernels();
    /* The walk compares with a run on the CPU, of which it only changes the device. */
    stoker_loader_options host = options;
    static struct stk_run expected, found; /* too large for a stack */
    standin_cuda_reset(1);
    standin_cuda_delay((uint32_t)(seed * 37 % 300));
    (void)stk_cuda_run(set.dataset, &options, (uint32_t)(seed * 53 % 200), &found);
    host.device = STOKER_DEVICE_CPU;
    host.decode = STOKER_DECODE_CPU;
    host.pin_memory = STOKER_SWITCH_OFF;
    (void)stk_run(set.dataset, &host, &expected);
    CHECK(expected.rc == STOKER_FINISHED);
    CHECK(stk_runs_equal(&expected, &found));
    CHECK(standin_nvimgcodec_images() > 0);
    CHECK(standin_nvimgcodec_violations() == 0);
    CHECK(standin_nvimgcodec_live() == 0);
    CHECK(standin_cuda_violations() == 0);
    CHECK(standin_cuda_live() == 0);
}

/* The consumer records graphs in CUDA's default mode, torch.cuda.graph's, which forbids every other
 * thread to wait or allocate: neither a recording nor the loader may notice the workers. */
static void record_beside(void)
{
    stoker_loader *loader = NULL;
    cudaStream_t stream = NULL;
    int rc;
    stoker_loader_options options =
        stk_small_options(.device = STOKER_DEVICE_CUDA, .decode = STOKER_DECODE_DEVICE,
                          .num_workers = 2, .batch_size = 8, .prefetch_batches = 4,
                          .on_bad_sample = STOKER_ON_BAD_SKIP);
    options.transform.resize = (stoker_size){ 8, 9 };
    standin_nvimgcodec_reset();
    standin_cuda_reset(1);
    standin_cuda_use_kernels();
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    CHECK(stoker_loader_create(&loader, set.dataset, &options, NULL) == STOKER_OK);
    do {
        stoker_batch batch = STOKER_BATCH_INIT;
        cudaGraph_t graph = NULL;
        rc = stoker_loader_next(loader, &batch, -1);
        if (rc != STOKER_OK)
            continue;
        CHECK(stoker_batch_wait_on(&batch, stream) == STOKER_OK);
        CHECK(stoker_batch_release_on(&batch, stream) == STOKER_OK);
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
        (void)usleep(2000);
        CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
        CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    } while (rc >= 0 && rc != STOKER_FINISHED);
    CHECK(rc == STOKER_FINISHED);
    stoker_loader_destroy(&loader);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess);
    CHECK(standin_cuda_violations() == 0);
    CHECK(standin_cuda_live() == 0);
}

int main(void)
{
    const struct stk_jpeg_set_kind bad = { .bad = true };
    if (!stk_cuda_kernels_built())
        return 77; /* no nvcc here: no kernels in the library */
    CHECK(stk_jpeg_set_make(&set, &bad, "?channels=3"));
    record_beside();
    stk_cuda_walk(step, 140);
    stk_jpeg_set_remove(&set);
    stk_cuda_walk_end();
    return 0;
}
