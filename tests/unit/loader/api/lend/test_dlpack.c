/* test_dlpack.c - tensors of a batch: their layout, and the last reference to the memory.
 *
 * The structs are written down once more, after the specification, so that a slip in ours shows.
 */
#include <pthread.h>
#include <stddef.h>

#include <stoker/cuda.h>
#include <stoker/dlpack.h>

#include "loader/base/fault.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/scenario.h"

/* dlpack.h 1.0 on a machine with 64-bit pointers, by offset. */
enum {
    AT_MAJOR = 0,
    AT_MINOR = 4,
    AT_CONTEXT = 8,
    AT_DELETER = 16,
    AT_FLAGS = 24,
    AT_DATA = 32,
    AT_DEVICE_TYPE = 40,
    AT_DEVICE_ID = 44,
    AT_NDIM = 48,
    AT_CODE = 52,
    AT_BITS = 53,
    AT_LANES = 54,
    AT_SHAPE = 56,
    AT_STRIDES = 64,
    AT_BYTE_OFFSET = 72
};

/* dlpack.h 0.8 begins with the tensor, which is the same, and has no version. */
enum { OLD_DELETER_AT = 56 };

struct DLManagedTensorVersioned;
typedef struct DLManagedTensorVersioned managed;
typedef void deleter(managed *self);

static struct stk_file_set set;

static uint64_t read_at(const managed *tensor, size_t at, size_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, (const char *)tensor + at, bytes);
    return value;
}

static const int64_t *axes_at(const managed *tensor, size_t at)
{
    const int64_t *axes;
    memcpy(&axes, (const char *)tensor + at, sizeof(axes));
    return axes;
}

static const uint8_t *data_of(const managed *tensor)
{
    const uint8_t *data;
    memcpy(&data, (const char *)tensor + AT_DATA, sizeof(data));
    return data;
}

static void delete_tensor(managed *tensor)
{
    deleter *call;
    memcpy(&call, (const char *)tensor + AT_DELETER, sizeof(call));
    call(tensor);
}

static stoker_loader *make(stoker_loader_options options)
{
    return loader_of(set.dataset, &options);
}

static stoker_loader_options ring_of(uint32_t slots)
{
    return stk_small_options(.prefetch_batches = slots, .epochs = STOKER_EPOCHS_ENDLESS);
}

static managed *tensor_of(const stoker_batch *batch, uint32_t part)
{
    managed *tensor = NULL;
    cr_assert_eq(stoker_batch_to_dlpack(batch, part, NULL, &tensor), STOKER_OK);
    return tensor;
}

static void begin(void)
{
    cr_assert(stk_file_set_make(&set, 100, 4, 5, 3));
}

static void finish(void)
{
    stk_file_set_remove(&set);
    stk_test_check_leaks();
}

TestSuite(dlpack, .init = begin, .fini = finish);

static void expect_header(const managed *tensor, uint32_t code, uint32_t bits, uint32_t rank)
{
    cr_assert_eq(read_at(tensor, AT_MAJOR, 4), 1U);
    cr_assert_eq(read_at(tensor, AT_FLAGS, 8), 0U);
    cr_assert_eq(read_at(tensor, AT_DEVICE_TYPE, 4), 1U); /* kDLCPU */
    cr_assert_eq(read_at(tensor, AT_DEVICE_ID, 4), 0U);
    cr_assert_eq(read_at(tensor, AT_NDIM, 4), rank);
    cr_assert_eq(read_at(tensor, AT_CODE, 1), code);
    cr_assert_eq(read_at(tensor, AT_BITS, 1), bits);
    cr_assert_eq(read_at(tensor, AT_LANES, 2), 1U);
    cr_assert_eq(read_at(tensor, AT_BYTE_OFFSET, 8), 0U);
}

Test(dlpack, images_labels_and_ids)
{
    stoker_loader *loader = make(ring_of(3));
    stoker_batch batch = next_batch(loader);
    managed *images = tensor_of(&batch, STOKER_TENSOR_IMAGES);
    managed *labels = tensor_of(&batch, STOKER_TENSOR_LABELS);
    managed *ids = tensor_of(&batch, STOKER_TENSOR_IDS);
    expect_header(images, 1, 8, 4);
    expect_header(labels, 0, 64, 1);
    expect_header(ids, 1, 64, 1);
    static const int64_t shape[] = { 16, 4, 5, 3 };
    static const int64_t strides[] = { 60, 15, 3, 1 };
    cr_assert_arr_eq(axes_at(images, AT_SHAPE), shape, sizeof(shape));
    cr_assert_arr_eq(axes_at(images, AT_STRIDES), strides, sizeof(strides));
    cr_assert_eq(axes_at(labels, AT_SHAPE)[0], 16);
    cr_assert_eq(axes_at(labels, AT_STRIDES)[0], 1);
    cr_assert_eq((const void *)data_of(images), batch.images.data);
    cr_assert_eq((const void *)data_of(labels), batch.labels.data);
    cr_assert_eq((const void *)data_of(ids), (const void *)batch.ids);
    delete_tensor(images);
    delete_tensor(labels);
    delete_tensor(ids);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
}

Test(dlpack, every_type_has_its_code)
{
    static const struct {
        stoker_dtype dtype;
        uint32_t code, bits;
    } types[] = { { STOKER_DTYPE_FLOAT16, 2, 16 },
                  { STOKER_DTYPE_BFLOAT16, 4, 16 },
                  { STOKER_DTYPE_FLOAT32, 2, 32 } };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        stoker_loader_options options = ring_of(3);
        options.dtype = types[i].dtype;
        options.layout = STOKER_LAYOUT_NCHW;
        stoker_loader *loader = make(options);
        stoker_batch batch = next_batch(loader);
        managed *images = tensor_of(&batch, STOKER_TENSOR_IMAGES);
        expect_header(images, types[i].code, types[i].bits, 4);
        static const int64_t shape[] = { 16, 3, 4, 5 };
        cr_assert_arr_eq(axes_at(images, AT_SHAPE), shape, sizeof(shape));
        delete_tensor(images);
        stoker_batch_release(&batch);
        stoker_loader_destroy(&loader);
    }
}

/* The slot is refilled only when the batch is released and no tensor of it is left. */
static void expect_held_until_both(bool releases_first)
{
    stoker_loader_options options = ring_of(2);
    options.on_lent = STOKER_ON_LENT_BUSY;
    stoker_loader *loader = make(options);
    stoker_batch first = next_batch(loader);
    managed *images = tensor_of(&first, STOKER_TENSOR_IMAGES);
    managed *labels = tensor_of(&first, STOKER_TENSOR_LABELS);
    stoker_batch second = next_batch(loader);
    stoker_batch none = STOKER_BATCH_INIT;
    const uint64_t hash = stk_batch_hash(&first);
    stoker_batch copy = first;
    if (releases_first)
        stoker_batch_release(&first);
    else
        delete_tensor(images);
    delete_tensor(labels);
    stoker_batch_release(&second);
    cr_assert_eq(stoker_loader_next(loader, &none, -1), STOKER_BUSY);
    cr_assert_eq(stk_batch_hash(&copy), hash);
    if (releases_first)
        delete_tensor(images);
    else
        stoker_batch_release(&first);
    stoker_batch_release(&copy); /* was given back: nothing happens */
    for (int i = 0; i < 5; i++) {
        stoker_batch batch = next_batch(loader);
        cr_assert(stk_file_set_matches(&set, &batch));
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
}

Test(dlpack, a_slot_comes_back_when_batch_and_tensors_are_gone)
{
    expect_held_until_both(true);
    expect_held_until_both(false);
}

Test(dlpack, misuse_is_refused)
{
    stoker_loader *loader = make(ring_of(3));
    stoker_batch batch = next_batch(loader);
    managed *tensor = NULL;
    managed *images = tensor_of(&batch, STOKER_TENSOR_IMAGES);
    stoker_batch copy = batch;
    cr_assert_eq(stoker_batch_to_dlpack(NULL, 0, NULL, &tensor), STOKER_EINVAL);
    cr_assert_eq(stoker_batch_to_dlpack(&batch, 0, NULL, NULL), STOKER_EINVAL);
    cr_assert_eq(stoker_batch_to_dlpack(&batch, 3, NULL, &tensor), STOKER_EINVAL);
    cr_assert_eq(stoker_batch_to_dlpack(&batch, 0, NULL, &tensor), STOKER_BUSY);
    stoker_batch_release(&batch);
    cr_assert_eq(stoker_batch_to_dlpack(&batch, 0, NULL, &tensor), STOKER_EINVAL);
    cr_assert_eq(stoker_batch_to_dlpack(&copy, 1, NULL, &tensor), STOKER_EINVAL);
    delete_tensor(images);
    cr_assert_eq(stoker_batch_to_dlpack(&copy, 1, NULL, &tensor), STOKER_EINVAL);
    stoker_batch next = next_batch(loader);
    cr_assert_eq(stoker_batch_to_dlpack(&copy, 1, NULL, &tensor), STOKER_EINVAL);
    cr_assert_eq(stoker_batch_to_dlpack(&next, STOKER_TENSOR_OFFSETS, NULL, &tensor),
                 STOKER_EINVAL);
    cr_assert_eq(stoker_batch_to_dlpack(&next, UINT32_MAX, NULL, &tensor), STOKER_EINVAL);
    cr_assert_null(tensor);
    stoker_batch_release(&next);
    stoker_loader_destroy(&loader);
}

/* The struct of DLPack 0.x, for consumers that accept no other. */
Test(dlpack, without_a_version_it_is_the_same_tensor)
{
    stoker_loader *loader = make(ring_of(2));
    for (int i = 0; i < 12; i++) {
        stoker_batch batch = next_batch(loader);
        static const uint32_t parts[] = { STOKER_TENSOR_IMAGES, STOKER_TENSOR_LABELS, 1,
                                          STOKER_TENSOR_IDS };
        for (int p = 0; p < 4; p++) {
            const uint32_t part = parts[p];
            struct DLManagedTensor *old = NULL;
            managed *versioned = NULL;
            uint8_t tensors[2][48];
            int64_t axes[2][4];
            void (*call)(struct DLManagedTensor *);
            cr_assert_eq(stoker_batch_to_dlpack(&batch, part, NULL, &versioned), STOKER_OK);
            memcpy(tensors[0], (const char *)versioned + AT_DATA, 48);
            const size_t axis_bytes = read_at(versioned, AT_NDIM, 4) * sizeof(axes[0][0]);
            memcpy(axes[0], axes_at(versioned, AT_SHAPE), axis_bytes);
            cr_assert_eq(stoker_batch_to_dlpack_unversioned(&batch, part, NULL, &old), STOKER_BUSY);
            delete_tensor(versioned);
            cr_assert_eq(stoker_batch_to_dlpack_unversioned(&batch, part, NULL, &old), STOKER_OK);
            memcpy(tensors[1], old, 48);
            memcpy(axes[1],
                   axes_at((const managed *)(const void *)((const char *)old - AT_DATA), AT_SHAPE),
                   axis_bytes);
            cr_assert_arr_eq(tensors[0], tensors[1], 48);
            cr_assert_arr_eq(axes[0], axes[1], axis_bytes);
            memcpy(&call, (const char *)old + OLD_DELETER_AT, sizeof(call));
            call(old);
        }
        stoker_batch_release(&batch);
    }
    stoker_batch batch = next_batch(loader);
    struct DLManagedTensor *old = NULL;
    cr_assert_eq(stoker_batch_to_dlpack_unversioned(&batch, 0, NULL, NULL), STOKER_EINVAL);
    cr_assert_eq(stoker_batch_to_dlpack_unversioned(NULL, 0, NULL, &old), STOKER_EINVAL);
    cr_assert_null(old);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
}

Test(dlpack, tensors_outlive_the_loader)
{
    for (int released = 0; released <= 1; released++) {
        stoker_loader *loader = make(ring_of(3));
        stoker_batch batch = next_batch(loader);
        managed *images = tensor_of(&batch, STOKER_TENSOR_IMAGES);
        managed *ids = tensor_of(&batch, STOKER_TENSOR_IDS);
        const stoker_batch copy = batch;
        if (released == 1)
            stoker_batch_release(&batch);
        stoker_loader_destroy(&loader);
        cr_assert_null(loader);
        cr_assert(stk_file_set_matches(&set, &copy)); /* labels lie in the same slot */
        delete_tensor(ids);
        cr_assert_eq(data_of(images)[0], stk_set_byte(copy.ids[0], 0));
        delete_tensor(images);
        stoker_batch_release(&batch);
        cr_assert_gt(stk_fault_live_bytes(), 0); /* the data set alone, see finish() */
    }
}

static void *delete_elsewhere(void *tensor)
{
    delete_tensor(tensor);
    return NULL;
}

Test(dlpack, a_deleter_may_come_from_any_thread)
{
    stoker_loader *loader = make(ring_of(2));
    for (int i = 0; i < 50; i++) {
        stoker_batch batch = next_batch(loader);
        pthread_t thread;
        cr_assert_eq(pthread_create(&thread, NULL, delete_elsewhere, tensor_of(&batch, 0)), 0);
        cr_assert(stk_file_set_matches(&set, &batch));
        stoker_batch_release(&batch);
        cr_assert_eq(pthread_join(thread, NULL), 0);
    }
    stoker_loader_destroy(&loader);
}
