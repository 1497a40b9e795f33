/* test_masks.c - if the GPU transforms the images, their masks take the same geometry on the host:
 * images and masks have the bits of the CPU.
 */
#include "support/cuda_bits.h"
#include "support/opened_loader.h"

static void begin(void)
{
    stk_cuda_bits_begin(1);
}

TestSuite(cuda_masks, .init = begin, .fini = stk_cuda_bits_finish);

enum { COUNT = 50, HEIGHT = 12, WIDTH = 15, BATCHES_MAX = 32 };

static uint8_t images[COUNT][HEIGHT * WIDTH * 3], masks[COUNT][HEIGHT * WIDTH];

static stoker_array array_of(const char *name, stoker_field_kind kind, const void *data,
                             uint64_t channels)
{
    stoker_array array = STOKER_ARRAY_INIT;
    array.name = name;
    array.kind = kind;
    array.data = data;
    array.dtype = STOKER_DTYPE_UINT8;
    array.rank = 3;
    memcpy(array.shape, (uint64_t[]){ HEIGHT, WIDTH, channels }, 3 * sizeof(uint64_t));
    return array;
}

static stoker_dataset *open_set(void)
{
    stoker_array arrays[2] = { array_of("image", STOKER_FIELD_KIND_IMAGE, images, 3),
                               array_of("mask", STOKER_FIELD_KIND_MASK, masks, 1) };
    stoker_dataset *dataset = NULL;
    for (uint32_t id = 0; id < COUNT; id++) {
        for (uint32_t at = 0; at < sizeof(images[0]); at++)
            images[id][at] = stk_set_byte(id, at);
        for (uint32_t at = 0; at < sizeof(masks[0]); at++)
            masks[id][at] = stk_set_byte(id + COUNT, at);
    }
    cr_assert_eq(stoker_dataset_from_arrays(&dataset, arrays, 2, COUNT, NULL, NULL), STOKER_OK);
    return dataset;
}

/* ---- runs, as hashes of images and masks ---- */

struct seen {
    stoker_batch batch;
    bool on_device;
    uint64_t hash;
};

static const void *view(const struct seen *seen, const void *at)
{
    return seen->on_device ? standin_cuda_view((void *)(uintptr_t)at) : at;
}

static void look(void *argument)
{
    struct seen *seen = argument;
    seen->hash = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const stoker_tensor *values = &seen->batch.fields[i].values;
        size_t bytes = stoker_dtype_bytes(values->dtype);
        for (uint32_t axis = 0; axis < values->rank; axis++)
            bytes *= (size_t)values->shape[axis];
        seen->hash = stk_hash_bytes(seen->hash, view(seen, values->data), bytes);
    }
}

static uint32_t run(const stoker_dataset *dataset, const stoker_loader_options *options,
                    uint64_t hashes[BATCHES_MAX])
{
    static struct stk_cuda_consumer consumer;
    static struct seen seen;
    uint32_t count = 0;
    stoker_loader *loader = loader_of(dataset, options);
    cr_assert(stk_cuda_consumer_init(&consumer, 0));
    seen.on_device = options->device == STOKER_DEVICE_CUDA;
    for (;;) {
        seen.batch = (stoker_batch)STOKER_BATCH_INIT;
        const int rc = stoker_loader_next(loader, &seen.batch, -1);
        if (rc == STOKER_FINISHED)
            break;
        if (rc != STOKER_OK)
            continue;
        cr_assert_eq(stoker_batch_wait_on(&seen.batch, consumer.stream), STOKER_OK);
        standin_cuda_own_calls(true);
        (void)cudaLaunchHostFunc(consumer.stream, look, &seen);
        standin_cuda_own_calls(false);
        stk_cuda_consumer_wait(&consumer);
        cr_assert_lt(count, BATCHES_MAX);
        hashes[count++] = seen.hash;
        stoker_batch_release(&seen.batch);
    }
    stoker_loader_destroy(&loader);
    stk_cuda_consumer_destroy(&consumer);
    return count;
}

static stoker_transform transform_of(int number)
{
    stoker_transform transform = STOKER_TRANSFORM_INIT;
    if (number == 0) {
        transform.random_crop = (stoker_size){ 10, 10 };
        transform.pad = 3;
        transform.flip = true;
        transform.cutout = 4;
    } else if (number == 1) {
        transform.random_resized_crop = (stoker_size){ 8, 9 };
        transform.rotate_min = -30;
        transform.rotate_max = 30;
    } else {
        transform.resize = (stoker_size){ 20, 18 };
        transform.random_crop = (stoker_size){ 16, 16 };
        transform.brightness = 0.5F;
    }
    return transform;
}

Test(cuda_masks, follow_images_that_the_gpu_transforms)
{
    static uint64_t found[BATCHES_MAX], expected[BATCHES_MAX];
    stoker_dataset *dataset = open_set();
    stoker_field_options mask = STOKER_FIELD_OPTIONS_INIT;
    mask.name = "mask";
    mask.dtype = STOKER_DTYPE_INT64;
    mask.fill_value = 255;
    for (int number = 0; number < 3; number++)
        for (int mixes = 0; mixes < 2; mixes++)
            for (int32_t workers = 0; workers <= 2; workers += 2) {
                stoker_loader_options options =
                    stk_cuda_bits_options(STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NCHW, 3);
                options.transform = transform_of(number);
                options.num_workers = workers;
                options.fields = &mask;
                options.field_count = 1;
                options.blend.cutmix_alpha = mixes == 1 ? 1.0F : 0.0F;
                if (stk_cuda_kernels_built())
                    options.convert_on_device = STOKER_SWITCH_ON;
                const uint64_t before = standin_cuda_launches();
                const uint32_t batches = run(dataset, &options, found);
                cr_assert(!stk_cuda_kernels_built() || standin_cuda_launches() - before >= batches);
                options.device = STOKER_DEVICE_CPU;
                options.convert_on_device = STOKER_SWITCH_AUTO;
                cr_assert_eq(run(dataset, &options, expected), batches);
                cr_assert_eq(memcmp(found, expected, batches * sizeof(found[0])), 0,
                             "transform %d, mixing %d", number, mixes);
            }
    stoker_dataset_close(&dataset);
}
