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

int main(void)
{
    const struct stk_jpeg_set_kind bad = { .bad = true };
    if (!stk_cuda_kernels_built())
        return 77; /* no nvcc here: no kernels in the library */
    CHECK(stk_jpeg_set_make(&set, &bad, "?channels=3"));
    stk_cuda_walk(step, 140);
    stk_jpeg_set_remove(&set);
    stk_cuda_walk_end();
    return 0;
}
