/* test_idx.c - IDX files: what is right is read right, and what is wrong is reported.
 *
 * Method: small files in memory. Every prefix and every flipped bit of them must give an
 * error or a data set that fits the file; every error is checked for code and place.
 */
#include <errno.h>

#include "support/files/array_files.h"
#include "support/leaks.h"
#include "support/sets/label_of.h"
#include "support/sets/read_row.h"
#include "support/sets/refused_specs.h"

/* ---- files ---------------------------------------------------------------------- */

enum { COUNT = 6, HEIGHT = 3, WIDTH = 4, ROW = HEIGHT * WIDTH };

static struct stk_bytes small_images(void)
{
    struct stk_bytes file = { 0 };
    stk_put_idx_header(&file, 0x08, 3, (uint32_t[]){ COUNT, HEIGHT, WIDTH });
    for (int i = 0; i < COUNT * ROW; i++)
        stk_put(&file, &(uint8_t){ (uint8_t)(i * 7) }, 1);
    return file;
}

static struct stk_bytes small_labels(uint32_t count)
{
    struct stk_bytes file = { 0 };
    stk_put_idx_header(&file, 0x08, 1, &count);
    for (uint32_t i = 0; i < count; i++)
        stk_put(&file, &(uint8_t){ (uint8_t)(i * i % 10) }, 1);
    return file;
}

static int open_files(stoker_dataset **out, const struct stk_bytes *images,
                      const struct stk_bytes *labels, stoker_error *error)
{
    return stk_arrays_open(out, "idx", images, labels, error);
}

/* ---- what is right -------------------------------------------------------------- */

static void check_small_images(stoker_dataset *dataset)
{
    const struct stk_bytes images = small_images();
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_eq(info->count, COUNT);
    cr_assert_eq(info->dtype, STOKER_DTYPE_UINT8);
    cr_assert_eq(info->rank, 3);
    cr_assert_eq(info->shape[0], HEIGHT);
    cr_assert_eq(info->shape[1], WIDTH);
    cr_assert_eq(info->shape[2], 1);
    cr_assert(info->is_image);
    cr_assert_eq(stoker_dataset_field_bytes(dataset, 0), ROW);
    for (uint64_t id = 0; id < COUNT; id++) {
        uint8_t row[ROW];
        cr_assert_eq(stk_read_row(dataset, id, row, sizeof(row), NULL, NULL), STOKER_OK);
        cr_assert_arr_eq(row, images.at + 16 + id * ROW, ROW);
    }
}

CleanTest(idx, plain_rows_are_extents_of_one_dense_file)
{
    const struct stk_bytes images = small_images();
    stoker_dataset *dataset = NULL;
    cr_assert_eq(open_files(&dataset, &images, NULL, NULL), STOKER_OK);
    check_small_images(dataset);
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_str_eq(stoker_dataset_name(dataset), "idx");
    cr_assert_eq(info->file_count, 1);
    cr_assert_eq(info->encoded_bytes_max, ROW);
    cr_assert(info->dense);
    cr_assert_eq(info->label_dtype, STOKER_DTYPE_NONE);
    for (uint64_t id = 0; id < COUNT; id++) {
        stoker_part sample;
        cr_assert_eq(stoker_dataset_locate(dataset, id, &sample, NULL), STOKER_OK);
        cr_assert_null(sample.extent.memory);
        cr_assert_null(sample.codec);
        cr_assert_eq(sample.extent.offset, 16 + id * ROW);
        cr_assert_eq(sample.extent.bytes, ROW);
        cr_assert_eq(sample.extent.file, 0);
    }
    stoker_dataset_close(&dataset);
}

CleanTest(idx, a_gzip_is_known_by_its_bytes_and_lies_in_memory)
{
#ifndef STOKER_HAVE_DEFLATE
    cr_skip_test("built without libdeflate");
#endif
    const struct stk_bytes images = small_images();
    const struct stk_bytes labels = small_labels(COUNT);
    struct stk_bytes images_gzip = { 0 };
    struct stk_bytes labels_gzip = { 0 };
    stk_put_gzip(&images_gzip, images.at, images.size);
    stk_put_gzip(&labels_gzip, labels.at, labels.size);
    stoker_dataset *dataset = NULL;
    cr_assert_eq(open_files(&dataset, &images_gzip, &labels_gzip, NULL), STOKER_OK);
    check_small_images(dataset);
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_eq(info->file_count, 0);
    cr_assert_not(info->dense);
    cr_assert_eq(info->label_dtype, STOKER_DTYPE_INT64);
    cr_assert_eq(info->class_count, 10);
    stoker_part sample;
    for (uint64_t id = 0; id < COUNT; id++) {
        cr_assert_eq(stoker_dataset_locate(dataset, id, &sample, NULL), STOKER_OK);
        cr_assert_not_null(sample.extent.memory);
        cr_assert_eq(stk_label_of(dataset, id), (int64_t)(id * id % 10));
    }
    stoker_dataset_close(&dataset);
}

/* The element at `index` of each type, as stored and as decoded. */
CleanTest(idx, each_element_type_arrives_in_host_order)
{
    static const struct {
        uint8_t code;
        stoker_dtype dtype;
        uint8_t stored[8];
        double value;
    } rows[] = {
        { 0x08, STOKER_DTYPE_UINT8, { 0xFE }, 254 },
        { 0x09, STOKER_DTYPE_INT8, { 0xFE }, -2 },
        { 0x0B, STOKER_DTYPE_INT16, { 0x80, 0x01 }, -32767 },
        { 0x0C, STOKER_DTYPE_INT32, { 0x80, 0, 0, 0x02 }, -2147483646 },
        { 0x0D, STOKER_DTYPE_FLOAT32, { 0xC0, 0x20, 0, 0 }, -2.5 },
        { 0x0E,
          STOKER_DTYPE_FLOAT64,
          { 0x40, 0x09, 0x21, 0xFB, 0x54, 0x44, 0x2D, 0x18 },
          3.141592653589793 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const size_t bytes = stoker_dtype_bytes(rows[i].dtype);
        struct stk_bytes file = { 0 };
        stk_put_idx_header(&file, rows[i].code, 2, (uint32_t[]){ 2, 3 });
        for (int element = 0; element < 6; element++)
            stk_put(&file, rows[i].stored, bytes);
        stoker_dataset *dataset = NULL;
        cr_assert_eq(open_files(&dataset, &file, NULL, NULL), STOKER_OK);
        const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
        cr_assert_eq(info->dtype, rows[i].dtype);
        cr_assert_eq(info->rank, 1);
        cr_assert_eq(info->shape[0], 3);
        cr_assert_not(info->is_image);
        cr_assert_eq(info->dense, bytes == 1);
        union {
            uint8_t u8[24];
            int8_t i8[24];
            int16_t i16[12];
            int32_t i32[6];
            float f32[6];
            double f64[3];
        } row;
        cr_assert_eq(stk_read_row(dataset, 1, &row, 3 * bytes, NULL, NULL), STOKER_OK);
        const double values[] = { row.u8[2],  row.i8[2],          row.i16[2],
                                  row.i32[2], (double)row.f32[2], row.f64[2] };
        cr_assert_eq(values[i], rows[i].value, "%s: %.17g", stoker_dtype_name(rows[i].dtype),
                     values[i]);
        stoker_dataset_close(&dataset);
    }
}

CleanTest(idx, axes_make_scalars_images_and_tensors)
{
    static const struct {
        uint8_t code, rank;
        uint32_t lengths[7];
        uint32_t sample_rank;
        bool is_image;
    } rows[] = {
        { 0x08, 1, { 2 }, 0, false },          { 0x08, 2, { 2, 5 }, 1, false },
        { 0x08, 3, { 2, 5, 3 }, 3, true },     { 0x09, 3, { 2, 5, 3 }, 2, false },
        { 0x08, 4, { 2, 5, 3, 4 }, 3, true },  { 0x08, 4, { 2, 5, 3, 5 }, 3, false },
        { 0x0B, 4, { 2, 5, 3, 3 }, 3, false }, { 0x08, 7, { 2, 1, 2, 1, 2, 1, 2 }, 6, false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stk_bytes file = { 0 };
        stk_put_idx_header(&file, rows[i].code, rows[i].rank, rows[i].lengths);
        size_t elements = rows[i].code == 0x0B ? 2 : 1;
        for (int axis = 0; axis < rows[i].rank; axis++)
            elements *= rows[i].lengths[axis];
        for (size_t at = 0; at < elements; at++)
            stk_put(&file, "", 1);
        stoker_dataset *dataset = NULL;
        cr_assert_eq(open_files(&dataset, &file, NULL, NULL), STOKER_OK, "row %zu", i);
        const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
        cr_assert_eq(info->rank, rows[i].sample_rank, "row %zu: %u", i, info->rank);
        cr_assert_eq(info->is_image, rows[i].is_image, "row %zu", i);
        for (int axis = 1; axis < rows[i].rank; axis++)
            cr_assert_eq(info->shape[axis - 1], rows[i].lengths[axis]);
        stk_arrays_check_read(dataset, file.size);
        stoker_dataset_close(&dataset);
    }
}

CleanTest(idx, labels_of_every_integer_type_are_kept)
{
    static const struct {
        uint8_t code;
        uint8_t stored[12];
        int64_t labels[3];
        uint32_t classes;
    } rows[] = {
        { 0x08, { 0, 255, 3 }, { 0, 255, 3 }, 256 },
        { 0x09, { 0, 127, 3 }, { 0, 127, 3 }, 128 },
        { 0x09, { 0, 0xFF, 3 }, { 0, -1, 3 }, 0 },
        { 0x0B, { 1, 0, 0, 0, 0, 2 }, { 256, 0, 2 }, 257 },
        { 0x0C, { 0, 0, 0xFF, 0xFF, 0, 0, 0, 1, 0, 0, 0, 2 }, { 65535, 1, 2 }, 65536 },
        { 0x0C, { 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2 }, { 65536, 1, 2 }, 0 },
        { 0x0C, { 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFE, 0, 0, 0, 2 }, { 0, -2, 2 }, 0 },
    };
    struct stk_bytes samples = { 0 };
    stk_put_idx_header(&samples, 0x08, 1, (uint32_t[]){ 3 });
    stk_put(&samples, "abc", 3);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const size_t bytes = rows[i].code < 0x0B ? 1 : rows[i].code == 0x0B ? 2 : 4;
        struct stk_bytes labels = { 0 };
        stk_put_idx_header(&labels, rows[i].code, 1, (uint32_t[]){ 3 });
        stk_put(&labels, rows[i].stored, 3 * bytes);
        stoker_dataset *dataset = NULL;
        cr_assert_eq(open_files(&dataset, &samples, &labels, NULL), STOKER_OK);
        cr_assert_eq(stoker_dataset_get_info(dataset)->class_count, rows[i].classes, "row %zu", i);
        for (uint64_t id = 0; id < 3; id++) {
            uint8_t row;
            stoker_label label;
            cr_assert_eq(stk_read_row(dataset, id, &row, 1, &label, NULL), STOKER_OK);
            cr_assert_eq(row, "abc"[id]);
            cr_assert_eq(label.index, rows[i].labels[id], "row %zu", i);
        }
        stoker_dataset_close(&dataset);
    }
}

/* ---- what is wrong -------------------------------------------------------------- */

CleanTest(idx, each_fault_of_a_header_has_its_code_and_offset)
{
    static const struct {
        const char *what;
        uint8_t bytes[36];
        size_t size;
        int code;
        uint64_t offset;
    } rows[] = {
        { "nothing", { 0 }, 0, STOKER_ETRUNCATED, 0 },
        { "half a magic number", { 0, 0, 8 }, 3, STOKER_ETRUNCATED, 3 },
        { "first byte", { 1, 0, 8, 1, 0, 0, 0, 1, 0 }, 9, STOKER_EMAGIC, 0 },
        { "second byte", { 0, 1, 8, 1, 0, 0, 0, 1, 0 }, 9, STOKER_EMAGIC, 0 },
        { "type 07", { 0, 0, 7, 1, 0, 0, 0, 1, 0 }, 9, STOKER_EFORMAT, 2 },
        { "type 0A", { 0, 0, 10, 1, 0, 0, 0, 1, 0 }, 9, STOKER_EFORMAT, 2 },
        { "type 0F", { 0, 0, 15, 1, 0, 0, 0, 1, 0 }, 9, STOKER_EFORMAT, 2 },
        { "rank 0", { 0, 0, 8, 0, 0 }, 5, STOKER_EFORMAT, 3 },
        { "rank 8", { 0, 0, 8, 8, 0 }, 36, STOKER_EFORMAT, 3 },
        { "half a length", { 0, 0, 8, 1, 0, 0, 0 }, 7, STOKER_ETRUNCATED, 7 },
        { "no samples", { 0, 0, 8, 1, 0, 0, 0, 0 }, 8, STOKER_EEMPTY, 4 },
        { "rows of nothing", { 0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 0 }, 12, STOKER_EFORMAT, 8 },
        { "a row over 1 GiB", { 0, 0, 8, 2, 0, 0, 0, 1, 0x40, 0, 0, 1 }, 12, STOKER_ELIMIT, 8 },
        { "a row over 2^64",
          { 0, 0, 14, 4, 0, 0, 0, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255 },
          20,
          STOKER_ELIMIT,
          8 },
        { "2^32 - 1 rows of 1 GiB",
          { 0, 0, 8, 2, 255, 255, 255, 255, 0x40, 0, 0, 0 },
          12,
          STOKER_ETRUNCATED,
          12 },
        { "a byte too few", { 0, 0, 8, 1, 0, 0, 0, 2, 1 }, 9, STOKER_ETRUNCATED, 9 },
        { "a byte too many", { 0, 0, 8, 1, 0, 0, 0, 1, 1, 2 }, 10, STOKER_EOVERSIZE, 9 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stk_bytes file = { 0 };
        stk_put(&file, rows[i].bytes, rows[i].size);
        stoker_error error = { 0 };
        stoker_dataset *dataset = NULL;
        int rc = open_files(&dataset, &file, NULL, &error);
        cr_assert_eq(rc, rows[i].code, "%s: %s", rows[i].what, error.message);
        cr_assert_null(dataset);
        cr_assert_eq(error.code, rc);
        cr_assert_eq(error.stage, STOKER_STAGE_OPEN);
        cr_assert_eq(error.offset, rows[i].offset, "%s: %s", rows[i].what, error.message);
        cr_assert_eq(strncmp(error.path, "/proc/self/fd/", 14), 0);
        cr_assert_eq(strncmp(error.message, error.path, strlen(error.path)), 0);
    }
}

CleanTest(idx, labels_must_fit_their_samples)
{
    const struct stk_bytes images = small_images();
    const struct stk_bytes fewer = small_labels(COUNT - 1);
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    cr_assert_eq(open_files(&dataset, &images, &fewer, &error), STOKER_EMISMATCH);
    cr_assert_null(dataset);
    const char *first = strstr(error.message, "/proc/self/fd/");
    cr_assert_not_null(first);
    cr_assert_not_null(strstr(first + 1, "/proc/self/fd/"), "both files: %s", error.message);
    cr_assert_not_null(strstr(error.message, "5 labels for the 6 samples"));

    struct stk_bytes floats = { 0 };
    stk_put_idx_header(&floats, 0x0D, 1, (uint32_t[]){ COUNT });
    stk_put(&floats, (uint8_t[4 * COUNT]){ 0 }, 4 * COUNT);
    cr_assert_eq(open_files(&dataset, &images, &floats, &error), STOKER_EFORMAT);
    cr_assert_eq(open_files(&dataset, &images, &images, &error), STOKER_EFORMAT);
    cr_assert_eq(error.offset, 2);
}

CleanTest(idx, labels_over_the_limit_are_not_taken)
{
    enum { LABELS = 1000 };
    struct stk_bytes file = { 0 };
    stk_put_idx_header(&file, 0x0B, 1, (uint32_t[]){ LABELS });
    stk_put(&file, (uint8_t[2 * LABELS]){ 0 }, 2 * LABELS);
    struct stk_memory_file memory = stk_memory_file(file.at, file.size);
    char spec[128];
    (void)snprintf(spec, sizeof(spec), "idx:%s,%s", memory.path, memory.path);
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    stoker_dataset_options options = { .struct_size = sizeof(stoker_dataset_options),
                                       .max_bytes = 8 * LABELS - 1 };
    cr_assert_eq(stoker_dataset_open(&dataset, spec, &options, &error), STOKER_ELIMIT);
    cr_assert_eq(error.code, STOKER_ELIMIT);
    options.max_bytes = 8 * LABELS;
    cr_assert_eq(stoker_dataset_open(&dataset, spec, &options, &error), STOKER_OK);
    cr_assert_eq(stoker_dataset_get_info(dataset)->class_count, 1);
    stoker_dataset_close(&dataset);
    close(memory.fd);
}

CleanTest(idx, every_prefix_of_a_file_is_an_error)
{
    const struct stk_bytes images = small_images();
    stk_arrays_check_prefixes("idx", &images);
}

CleanTest(idx, every_flipped_bit_gives_an_error_or_a_set_that_fits)
{
    const struct stk_bytes images = small_images();
    const struct stk_bytes labels = small_labels(COUNT);
    const unsigned opened = stk_arrays_flip_bits("idx", &images, &labels, COUNT, ROW);
    /* Flipped pixels and labels, and the types that take one byte (08 <-> 09). */
    cr_assert_eq(opened, (COUNT * ROW + COUNT) * 8 + 2);
}

CleanTest(idx, each_allocation_may_fail)
{
    struct stk_bytes images = small_images();
    const struct stk_bytes labels = small_labels(COUNT);
#ifdef STOKER_HAVE_DEFLATE
    struct stk_bytes packed = { 0 };
    stk_put_gzip(&packed, images.at, images.size);
    images = packed;
#endif
    cr_assert_gt(stk_arrays_fail_allocations("idx", &images, &labels), 4);
}

/* ---- what is no file ------------------------------------------------------------ */

static void check_refused(const char *path, int code, int os_errno)
{
    char spec[600];
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    (void)snprintf(spec, sizeof(spec), "idx:%s", path);
    int rc = stoker_dataset_open(&dataset, spec, NULL, &error);
    cr_assert_eq(rc, code, "%s: %s", path, error.message);
    cr_assert_null(dataset);
    cr_assert_eq(error.os_errno, os_errno);
    cr_assert_str_eq(error.path, path);
}

CleanTest(idx, what_is_no_regular_file_is_refused_at_once)
{
    const struct stk_directory directory = stk_directory_make();
    char path[512];
    check_refused(stk_path_in(path, &directory, "missing"), STOKER_ENOENT, ENOENT);
    check_refused(directory.path, STOKER_EISDIR, EISDIR);
    cr_assert_eq(mkfifo(stk_path_in(path, &directory, "pipe"), 0600), 0);
    check_refused(path, STOKER_ENOTSUP, 0);
    check_refused("/dev/zero", STOKER_ENOTSUP, 0);
    stk_file_write(&directory, "file", "", 0);
    check_refused(stk_path_in(path, &directory, "file/below"), STOKER_ENOENT, ENOTDIR);
    stk_directory_remove(&directory);
}

CleanTest(idx, an_unreadable_file_is_reported)
{
    const struct stk_directory directory = stk_directory_make();
    char path[512];
    stk_file_write(&directory, "secret", "", 0);
    cr_assert_eq(chmod(directory.path, 0755), 0);
    cr_assert_eq(chmod(stk_path_in(path, &directory, "secret"), 0), 0);
    const bool root = geteuid() == 0;
    if (root && seteuid(65534) != 0) {
        stk_directory_remove(&directory);
        cr_skip_test("root reads everything, and may not become another user here");
    }
    check_refused(path, STOKER_EACCES, EACCES);
    cr_assert(!root || seteuid(0) == 0);
    stk_directory_remove(&directory);
}

CleanTest(idx, too_many_open_files_are_reported)
{
    int last = -1;
    for (int fd = dup(STDIN_FILENO); fd >= 0; fd = dup(STDIN_FILENO))
        last = fd;
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    int rc = stoker_dataset_open(&dataset, "idx:whatever", NULL, &error);
    for (int fd = last; fd > STDERR_FILENO && fd > last - 64; fd--)
        close(fd); /* the reports of this test need some */
    cr_assert_eq(rc, STOKER_ENOFILE, "%s", error.message);
}

CleanTest(idx, the_spec_is_read_as_written)
{
    static const struct stk_refused_spec rows[] = {
        { "idx:", NULL, STOKER_ESPEC, NULL },
        { "idx:,", NULL, STOKER_ESPEC, NULL },
        { "idx:a,", NULL, STOKER_ESPEC, NULL },
        { "idx:,b", NULL, STOKER_ESPEC, NULL },
        { "idx:a", "train", STOKER_EINVAL, NULL },
        { "idx:missing-a,missing-b", NULL, STOKER_ENOENT, NULL },
        { "idx:missing-a?limit=9", NULL, STOKER_ESPEC,
          "idx: limit: no such parameter; there are test," },
        { "mnist:missing?tset=9", NULL, STOKER_ESPEC,
          "mnist: tset: no such parameter (did you mean 'test'?)" },
        { "mnist:missing?split=test&limit=9", NULL, STOKER_ESPEC,
          "mnist: limit: no such parameter" },
    };
    stk_expect_refused(rows, sizeof(rows) / sizeof(rows[0]));
}

CleanTest(idx, a_comma_may_be_part_of_a_name)
{
    const struct stk_directory directory = stk_directory_make();
    const struct stk_bytes images = small_images();
    const struct stk_bytes labels = small_labels(COUNT);
    char path[512];
    char spec[1200];
    stoker_dataset *dataset = NULL;
    stk_file_write(&directory, "a,b", images.at, images.size);
    stk_file_write(&directory, "labels", labels.at, labels.size);
    (void)snprintf(spec, sizeof(spec), "idx:%s", stk_path_in(path, &directory, "a,b"));
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, NULL), STOKER_OK);
    check_small_images(dataset);
    stoker_dataset_close(&dataset);
    (void)snprintf(spec, sizeof(spec), "idx:%s/a,b,%s/labels", directory.path, directory.path);
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, NULL), STOKER_OK);
    cr_assert_eq(stoker_dataset_get_info(dataset)->class_count, 10);
    stoker_dataset_close(&dataset);
    cr_assert_eq(stoker_dataset_open(&dataset, path, NULL, NULL), STOKER_OK, "a plain path");
    check_small_images(dataset);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}
