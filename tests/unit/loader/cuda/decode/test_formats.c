/* test_formats.c - JPEG files in archives and shards, beside other fields, other files and raw
 * records, decoded on a GPU. */
#include "support/files/jpeg_set.h"
#include "support/files/shard_files.h"
#include "support/files/tar_files.h"
#include "support/gpu/cuda_kernels.h"
#include "support/gpu/cuda_run.h"
#include "support/leaks.h"
#include "support/standin_nvimgcodec/standin_nvimgcodec.h"

enum { SHARD_JPEG = 3, MEMBERS = 24 };

static struct stk_run expected, found;

static void begin(void)
{
    standin_cuda_reset(1);
    standin_cuda_delay(30);
    standin_nvimgcodec_reset();
    standin_cuda_use_kernels();
}

static void end(void)
{
    cr_assert_eq(standin_nvimgcodec_live(), 0);
    cr_assert_eq(standin_nvimgcodec_violations(), 0);
    standin_cuda_reset(1);
    cr_assert_eq(standin_cuda_live(), 0);
    stk_test_check_leaks();
}

TestSuite(decode_formats, .init = begin, .fini = end);

/* Without nvcc the library has no kernels. */
static void expect_refused(const stoker_dataset *dataset, stoker_loader_options options)
{
    stoker_loader *loader = NULL;
    stoker_error error = { .message = "" };
    options.device = STOKER_DEVICE_CUDA;
    options.decode = STOKER_DECODE_DEVICE;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_ENOTSUP);
    cr_assert_not_null(strstr(error.message, "without nvcc"), "%s", error.message);
}

/* The bytes of the CPU, with any number of workers; `images` or more of them from the GPU. */
static void expect_same(const stoker_dataset *dataset, stoker_loader_options options,
                        uint64_t images)
{
    options.batch_size = 5;
    if (!stk_cuda_kernels_built()) {
        expect_refused(dataset, options);
        return;
    }
    for (int32_t workers = 0; workers < 3; workers++) {
        const uint64_t before = standin_nvimgcodec_images();
        options.num_workers = workers;
        options.device = STOKER_DEVICE_CUDA;
        options.decode = STOKER_DECODE_DEVICE;
        options.cache = workers == 1 ? STOKER_CACHE_ENCODED : STOKER_CACHE_NONE;
        (void)stk_cuda_run(dataset, &options, 50, &found);
        cr_assert_geq(standin_nvimgcodec_images() - before, images);
        options.device = STOKER_DEVICE_CPU;
        options.decode = STOKER_DECODE_CPU;
        options.cache = STOKER_CACHE_NONE;
        (void)stk_run(dataset, &options, &expected);
        cr_assert_eq(found.rc, expected.rc, "%d: %s", found.rc, found.error.message);
        cr_assert(stk_runs_equal(&expected, &found), "%d workers", workers);
    }
}

static stoker_dataset *open_spec(const char *spec)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, &error), STOKER_OK, "%s", error.message);
    return dataset;
}

/* Every image has a label in a part of its own; one image is truncated, and one damaged. */
static void make_archive(struct stk_archive *archive, bool bad)
{
    const struct stk_jpeg_set_kind kind = { .gray = false };
    archive->size = 0;
    for (uint64_t id = 0; id < MEMBERS; id++) {
        struct stk_jpeg_bytes file = stk_jpeg_set_file(id, &kind);
        char name[40], label[24];
        (void)snprintf(name, sizeof(name), "k%02u.jpg", (unsigned)id);
        stk_archive_add(archive, '0', name, file.at, bad && id == 9 ? file.size / 2 : file.size);
        (void)snprintf(name, sizeof(name), "k%02u.cls", (unsigned)id);
        (void)snprintf(label, sizeof(label), "%u", (unsigned)(id % 3));
        stk_archive_text(archive, name, label);
        free(file.at);
    }
    stk_archive_end(archive);
}

Test(decode_formats, an_archive_of_images_and_labels)
{
    static struct stk_archive archive;
    struct stk_directory directory = stk_directory_make();
    stoker_loader_options options = stk_small_options(.transform.resize = (stoker_size){ 12, 10 });
    char spec[400];
    for (int bad = 0; bad < 2; bad++) {
        make_archive(&archive, bad != 0);
        stk_file_write(&directory, "x.tar", archive.at, archive.size);
        (void)snprintf(spec, sizeof(spec), "tar:%s/x.tar?channels=3", directory.path);
        stoker_dataset *dataset = open_spec(spec);
        options.on_bad_sample = bad != 0 ? STOKER_ON_BAD_SUBSTITUTE : STOKER_ON_BAD_FAIL;
        expect_same(dataset, options, MEMBERS);
        options.on_bad_sample = STOKER_ON_BAD_SKIP;
        expect_same(dataset, options, MEMBERS);
        stoker_dataset_close(&dataset);
    }
    stk_directory_remove(&directory);
}

/* Records 0, 3, 6, ... become JPEG files; the others stay raw or LZ4. All lie one behind the
 * other. */
static void put_jpegs(struct stk_shard_image *image, uint32_t count)
{
    const struct stk_jpeg_set_kind kind = { .gray = true, .size = { 4, 6 } };
    static struct stk_shard_image from;
    from = *image;
    stk_shard_image_empty(image);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *entry = stk_shard_image_part(&from, i, 0);
        struct stk_jpeg_bytes file = { stk_shard_image_bytes(&from, i), stk_load_le64(entry + 8) };
        if (i % 3 == 0)
            file = stk_jpeg_set_file(i, &kind);
        cr_assert_leq(image->used + file.size, (uint32_t)STK_SHARD_TEST_INDEX_AT);
        stk_shard_image_put(image, i, 0, file.at, (uint32_t)file.size,
                            i % 3 == 0 ? SHARD_JPEG : entry[20]);
        if (i % 3 == 0)
            free(file.at);
    }
    stk_shard_image_seal(image);
}

Test(decode_formats, a_shard_of_several_kinds_of_records)
{
    static struct stk_shard_image image;
    struct stk_directory directory = stk_directory_make();
    stoker_loader_options options = stk_small_options();
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    stk_shard_image_make(&image, 0, 1, 15, 2);
    put_jpegs(&image, 15);
    stk_shard_image_write(&image, &directory, "s-00000.stk");
    cr_assert_eq(stk_shard_test_open(&dataset, &directory, "", &error), STOKER_OK, "%s",
                 error.message);
    expect_same(dataset, options, 10);
    options.dtype = STOKER_DTYPE_FLOAT32;
    expect_same(dataset, options, 10);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}
