/* test_mixing.c - batches that are mixed in GPU memory have the bits of the CPU, and so have the
 * fields beside; where the host delivers images it mixes them as well.
 */
#include "support/cuda_bits.h"
#include "support/image_folder.h"
#include "support/made_set.h"
#include "support/opened_loader.h"

static void begin(void)
{
    stk_cuda_bits_begin(1);
}

TestSuite(cuda_mixing, .init = begin, .fini = stk_cuda_bits_finish);

static stoker_loader_options options_for(stoker_dtype dtype, stoker_layout layout)
{
    stoker_loader_options options = stk_cuda_bits_options(dtype, layout, 3);
    options.batch_size = 11;
    options.blend.mixup_alpha = 0.6F;
    options.blend.cutmix_alpha = 1.0F;
    options.blend.probability = 0.8F;
    return options;
}

static const stoker_dtype types[] = { STOKER_DTYPE_FLOAT32, STOKER_DTYPE_FLOAT16,
                                      STOKER_DTYPE_BFLOAT16, STOKER_DTYPE_UINT8 };

/* With kernels in the library most batches take one more. */
Test(cuda_mixing, bits_are_those_of_the_cpu)
{
    standin_cuda_delay(5);
    stoker_dataset *dataset = dataset_of("synth:bytes?count=60&shape=9x13x3");
    for (size_t type = 0; type < 4; type++)
        for (int layout = STOKER_LAYOUT_NHWC; layout <= STOKER_LAYOUT_NCHW; layout++)
            for (int32_t workers = 0; workers <= 3; workers += 3) {
                stoker_loader_options options = options_for(types[type], (stoker_layout)layout);
                options.num_workers = workers;
                options.transform.flip = true;
                const struct stk_cuda_bits run = stk_cuda_bits_expect(dataset, options, 0, "mixed");
                if (stk_cuda_kernels_built())
                    cr_assert(run.launches > run.batches + run.batches / 2 &&
                                  run.launches < 2 * run.batches,
                              "%u launches, %u batches", (unsigned)run.launches, run.batches);
            }
    stoker_dataset_close(&dataset);
}

Test(cuda_mixing, cached_rows_are_mixed_after_they_are_gathered)
{
    if (!stk_cuda_kernels_built())
        cr_skip("no nvcc here: no kernels in the library");
    stoker_dataset *dataset = dataset_of("synth:bytes?count=60&shape=9x13x3");
    for (size_t type = 0; type < 4; type++) {
        stoker_loader_options options = options_for(types[type], STOKER_LAYOUT_NCHW);
        options.cache = STOKER_CACHE_DEVICE;
        options.epochs = 3;
        static struct stk_run found, expected;
        (void)stk_cuda_run(dataset, &options, 0, &found);
        options.cache = STOKER_CACHE_NONE;
        options.device = STOKER_DEVICE_CPU;
        (void)stk_run(dataset, &options, &expected);
        cr_assert_eq(expected.rc, STOKER_FINISHED);
        cr_assert(stk_runs_equal(&expected, &found));
    }
    stoker_dataset_close(&dataset);
}

/* Images that differ in size are resized on the host; and if the GPU is to convert nothing, the
 * host mixes. */
Test(cuda_mixing, images_of_any_size_and_rows_that_the_host_converts)
{
    struct stk_image_folder images;
    stk_image_folder_make(&images, true, "");
    for (int convert = STOKER_SWITCH_AUTO; convert <= STOKER_SWITCH_OFF; convert += 2)
        for (size_t type = 0; type < 4; type++) {
            stoker_loader_options options = options_for(types[type], STOKER_LAYOUT_NCHW);
            options.convert_on_device = (stoker_switch)convert;
            options.transform.random_resized_crop = (stoker_size){ 12, 10 };
            const struct stk_cuda_bits run =
                stk_cuda_bits_expect(images.dataset, options, 0, "any");
            if (convert == STOKER_SWITCH_OFF)
                cr_assert_eq(run.launches, 0);
        }
    stk_image_folder_remove(&images);
}

static enum stk_made_kind some_broken(uint64_t id)
{
    return id % 10 == 4 ? STK_MADE_BROKEN : STK_MADE_ENCODED;
}

Test(cuda_mixing, bad_samples_are_no_partners_there_either)
{
    struct stk_made_set set = { .count = 90, .row_bytes = 70, .kind_of = some_broken };
    cr_assert(stk_made_set_open(&set));
    for (int policy = STOKER_ON_BAD_SKIP; policy <= STOKER_ON_BAD_SUBSTITUTE; policy++) {
        stoker_loader_options options = stk_small_options();
        options.device = STOKER_DEVICE_CUDA;
        options.dtype = STOKER_DTYPE_FLOAT32;
        options.on_bad_sample = (stoker_on_bad)policy;
        options.blend.mixup_alpha = 0.6F;
        (void)stk_cuda_bits_expect(set.dataset, options, 0, "bad");
    }
    stk_made_set_close(&set);
}

/* ---- the fields beside ---- */

struct seen {
    stoker_batch batch; /* its arrays lie on the GPU */
    float lambdas[16];
    int64_t partners[16], others[16], labels[16];
};

static void look(void *argument)
{
    struct seen *seen = argument;
    const stoker_field *fields = seen->batch.fields;
    const uint32_t rows = seen->batch.count;
    memcpy(seen->labels, standin_cuda_view(seen->batch.labels.data), rows * sizeof(int64_t));
    memcpy(seen->others, standin_cuda_view(fields[2].values.data), rows * sizeof(int64_t));
    memcpy(seen->partners, standin_cuda_view(fields[3].values.data), rows * sizeof(int64_t));
    memcpy(seen->lambdas, standin_cuda_view(fields[4].values.data), rows * sizeof(float));
}

static void check_numbers(const struct seen *seen)
{
    const bool mixed = seen->partners[0] != 0;
    for (uint32_t row = 0; row < seen->batch.count; row++) {
        const uint32_t other = !mixed ? row : (row > 0 ? row : seen->batch.count) - 1;
        cr_assert_eq(seen->partners[row], other);
        cr_assert_eq(seen->others[row], seen->labels[other]);
        cr_assert_eq(seen->lambdas[row], seen->lambdas[0]);
    }
}

Test(cuda_mixing, the_fields_beside_cross_with_the_batch)
{
    static struct stk_cuda_consumer consumer;
    static struct seen seen;
    stoker_dataset *dataset = dataset_of("synth:bytes?count=60&shape=9x13x3");
    const stoker_loader_options options = options_for(STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NHWC);
    stoker_loader *loader = loader_of(dataset, &options);
    cr_assert(stk_cuda_consumer_init(&consumer, 0));
    cr_assert_eq(stoker_loader_find_field(loader, "lambda"), 4);
    for (int i = 0; i < 5; i++) {
        seen.batch = (stoker_batch)STOKER_BATCH_INIT;
        cr_assert_eq(stoker_loader_next(loader, &seen.batch, -1), STOKER_OK);
        cr_assert_eq(stoker_batch_wait_on(&seen.batch, consumer.stream), STOKER_OK);
        standin_cuda_own_calls(true);
        (void)cudaLaunchHostFunc(consumer.stream, look, &seen);
        standin_cuda_own_calls(false);
        stk_cuda_consumer_wait(&consumer);
        check_numbers(&seen);
        stoker_batch_release(&seen.batch);
    }
    stoker_loader_destroy(&loader);
    stk_cuda_consumer_destroy(&consumer);
    stoker_dataset_close(&dataset);
}
