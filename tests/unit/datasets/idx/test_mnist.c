/* test_mnist.c - "mnist:DIR": which files are chosen, and the real set if it is there.
 *
 * The real files are looked for in $STOKER_DATA/mnist; their tests are skipped, and say
 * so, without.
 */
#include <stoker/stoker.h>

#include "support/files/dataset_files.h"
#include "support/leaks.h"
#include "support/sets/read_row.h"

static int open_directory(stoker_dataset **out, const char *path, const char *split,
                          stoker_error *error)
{
    char spec[512];
    (void)snprintf(spec, sizeof(spec), "mnist:%s", path);
    return stoker_dataset_open(
        out, spec, &(stoker_dataset_options){ STOKER_DATASET_OPTIONS_DEFAULTS.split = split },
        error);
}

/* ---- small files under the real names ------------------------------------------- */

/* `count` images of 2 x 2, all of them `value`. */
static void write_images(const struct stk_directory *directory, const char *name, uint32_t count,
                         uint8_t value, bool gzip)
{
    struct stk_bytes plain = { 0 };
    stk_put_idx_header(&plain, 0x08, 3, (uint32_t[]){ count, 2, 2 });
    for (uint32_t i = 0; i < count * 4; i++)
        stk_put(&plain, &value, 1);
    struct stk_bytes packed = { 0 };
    stk_put_gzip(&packed, plain.at, plain.size);
    const struct stk_bytes *chosen = gzip ? &packed : &plain;
    stk_file_write(directory, name, chosen->at, chosen->size);
}

static void write_labels(const struct stk_directory *directory, const char *name, uint32_t count)
{
    struct stk_bytes plain = { 0 };
    stk_put_idx_header(&plain, 0x08, 1, &count);
    for (uint32_t i = 0; i < count; i++)
        stk_put(&plain, &(uint8_t){ (uint8_t)i }, 1);
    stk_file_write(directory, name, plain.at, plain.size);
}

/* Open the split and recognize it by the value of its pixels. */
static void check_chosen(const struct stk_directory *directory, const char *split, uint64_t count,
                         uint8_t value)
{
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    cr_assert_eq(open_directory(&dataset, directory->path, split, &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_str_eq(stoker_dataset_name(dataset), "mnist");
    cr_assert_eq(stoker_dataset_get_info(dataset)->count, count);
    cr_assert_eq(stoker_dataset_get_info(dataset)->class_count, count);
    uint8_t row[4];
    stoker_label label;
    cr_assert_eq(stk_read_row(dataset, count - 1, row, 4, &label, NULL), STOKER_OK);
    cr_assert_eq(row[3], value);
    cr_assert_eq(label.index, (int64_t)count - 1);
    stoker_dataset_close(&dataset);
}

CleanTest(mnist, splits_are_files_and_train_is_the_first)
{
    const struct stk_directory directory = stk_directory_make();
    write_images(&directory, "train-images-idx3-ubyte", 3, 11, false);
    write_labels(&directory, "train-labels-idx1-ubyte", 3);
    write_images(&directory, "t10k-images-idx3-ubyte", 2, 22, false);
    write_labels(&directory, "t10k-labels-idx1-ubyte", 2);
    check_chosen(&directory, NULL, 3, 11);
    check_chosen(&directory, "train", 3, 11);
    check_chosen(&directory, "test", 2, 22);
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    cr_assert_eq(open_directory(&dataset, directory.path, "validation", &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "validation"));
    cr_assert_eq(stoker_dataset_open(&dataset, directory.path, NULL, NULL), STOKER_OK,
                 "a plain path");
    cr_assert_str_eq(stoker_dataset_name(dataset), "mnist");
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

CleanTest(mnist, plain_is_preferred_to_gzip_and_a_dash_to_a_dot)
{
    static const struct {
        const char *name;
        bool gzip;
    } names[] = { /* the least wanted first: each next one takes its place */
#ifdef STOKER_HAVE_DEFLATE
                  { "train-images.idx3-ubyte.gz", true },
                  { "train-images-idx3-ubyte.gz", true },
#endif
                  { "train-images.idx3-ubyte", false },
                  { "train-images-idx3-ubyte", false }
    };
    const struct stk_directory directory = stk_directory_make();
    write_labels(&directory, "train-labels.idx1-ubyte", 3);
    for (uint8_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        write_images(&directory, names[i].name, 3, (uint8_t)(i + 1), names[i].gzip);
        check_chosen(&directory, NULL, 3, (uint8_t)(i + 1));
    }
    stk_directory_remove(&directory);
}

CleanTest(mnist, what_is_missing_is_named)
{
    const struct stk_directory directory = stk_directory_make();
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    cr_assert_eq(open_directory(&dataset, directory.path, NULL, &error), STOKER_ENOENT);
    cr_assert_not_null(strstr(error.path, "/train-images-idx3-ubyte"));
    write_images(&directory, "train-images-idx3-ubyte", 3, 1, false);
    cr_assert_eq(open_directory(&dataset, directory.path, NULL, &error), STOKER_ENOENT);
    cr_assert_not_null(strstr(error.path, "/train-labels-idx1-ubyte"));
    write_labels(&directory, "train-labels-idx1-ubyte", 2);
    cr_assert_eq(open_directory(&dataset, directory.path, NULL, &error), STOKER_EMISMATCH);
    cr_assert_eq(open_directory(&dataset, directory.path, "test", &error), STOKER_ENOENT);
    cr_assert_not_null(strstr(error.path, "/t10k-images-idx3-ubyte"));
    cr_assert_eq(stoker_dataset_open(&dataset, "mnist:", NULL, NULL), STOKER_ESPEC);
    cr_assert_null(dataset);

    char long_path[5000];
    memset(long_path, 'x', sizeof(long_path));
    memcpy(long_path, "mnist:", 6);
    long_path[sizeof(long_path) - 1] = '\0';
    cr_assert_lt(stoker_dataset_open(&dataset, long_path, NULL, NULL), 0);
    stk_directory_remove(&directory);
}

/* ---- the real set --------------------------------------------------------------- */

/* FNV-1a of all images and all labels (one byte each). */
static void check_real(const char *split, uint64_t count, uint64_t images_hash,
                       uint64_t labels_hash)
{
    const char *data = getenv("STOKER_DATA");
    if (data == NULL)
        cr_skip_test("STOKER_DATA is not set: the real MNIST is not tested");
    char path[400];
    (void)snprintf(path, sizeof(path), "%s/mnist", data);
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    int rc = open_directory(&dataset, path, split, &error);
    if (rc == STOKER_ENOENT || rc == STOKER_ENOTSUP)
        cr_skip_test("the real MNIST is not tested: %s", error.message);
    cr_assert_eq(rc, STOKER_OK, "%s", error.message);
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_eq(info->count, count);
    cr_assert_eq(info->class_count, 10);
    cr_assert_eq(stoker_dataset_field_bytes(dataset, 0), 784);
    uint64_t images = STK_FNV1A_START;
    uint64_t labels = STK_FNV1A_START;
    for (uint64_t id = 0; id < count; id++) {
        uint8_t row[784];
        stoker_label label;
        cr_assert_eq(stk_read_row(dataset, id, row, sizeof(row), &label, &error), STOKER_OK);
        images = stk_fnv1a(images, row, sizeof(row));
        labels = stk_fnv1a(labels, &(uint8_t){ (uint8_t)label.index }, 1);
    }
    cr_assert_eq(images, images_hash, "images: %llx", (unsigned long long)images);
    cr_assert_eq(labels, labels_hash, "labels: %llx", (unsigned long long)labels);
    stoker_dataset_close(&dataset);
    stk_test_check_leaks();
}

Test(mnist, every_byte_of_the_real_training_set)
{
    check_real("train", 60000, UINT64_C(0xB6E6196608671562), UINT64_C(0xE3A35DEE662474A5));
}

Test(mnist, every_byte_of_the_real_test_set)
{
    check_real("test", 10000, UINT64_C(0x8614C3E55764D65F), UINT64_C(0xFCA1A11D31BD96BB));
}
