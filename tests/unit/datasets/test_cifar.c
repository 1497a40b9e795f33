/* test_cifar.c - CIFAR-10 and CIFAR-100: planes become pixels, labels are those asked for, and
 * files of another length or with labels of no class are refused.
 *
 * Method: small sets in a directory of their own, whose every byte is known from its sample.
 */
#include "loader/reader/readers.h"
#include "support/files/dataset_files.h"
#include "support/runs/scenario.h"
#include "support/sets/read_row.h"
#include "support/sweep.h"

enum { PLANE = 1024, PIXELS = 3 * PLANE, EACH = 3 }; /* samples of a file */

static struct stk_directory directory; /* one per test: each runs in a process of its own */

/* ---- files ---------------------------------------------------------------------- */

static uint8_t label_of(uint64_t id, uint8_t classes)
{
    return (uint8_t)(stk_set_byte(id, PIXELS) % classes);
}

/* A record as it is stored: labels, then three planes. */
static size_t make_record(uint8_t *to, uint64_t id, bool hundred)
{
    const size_t begin = hundred ? 2 : 1;
    to[0] = label_of(id, hundred ? 20 : 10);
    if (hundred)
        to[1] = label_of(id, 100);
    for (uint32_t at = 0; at < PIXELS; at++)
        to[begin + at] = stk_set_byte(id, at);
    return begin + PIXELS;
}

static void write_file(const char *name, uint64_t first, uint32_t count, bool hundred)
{
    static uint8_t bytes[700 * (PIXELS + 2)];
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++)
        size += make_record(bytes + size, first + i, hundred);
    stk_file_write(&directory, name, bytes, size);
}

static void write_ten(void)
{
    for (int file = 1; file <= 5; file++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "data_batch_%d.bin", file);
        write_file(name, (uint64_t)(file - 1) * EACH, EACH, false);
    }
    write_file("test_batch.bin", 100, 2, false);
}

static int open_set(stoker_dataset **out, const char *parameters, const char *split,
                    stoker_error *error)
{
    char spec[400];
    (void)snprintf(spec, sizeof(spec), "cifar:%s%s", directory.path, parameters);
    return stoker_dataset_open(
        out, spec,
        &(stoker_dataset_options){
            .struct_size = sizeof(stoker_dataset_options), .split = split, .max_bytes = 4096 },
        error);
}

static void check_refused(const char *parameters, const char *split, int code, const char *told)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(open_set(&dataset, parameters, split, &error), code, "%s: %s", told,
                 error.message);
    cr_assert_null(dataset);
    cr_assert_eq(error.code, code);
    cr_assert_not_null(strstr(error.message, told), "\"%s\" is not in: %s", told, error.message);
}

static void check_samples(const stoker_dataset *dataset, uint64_t first, uint64_t count,
                          uint8_t classes)
{
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_eq(info->count, count);
    cr_assert_eq(info->class_count, classes);
    cr_assert_eq(info->label_dtype, STOKER_DTYPE_INT64);
    cr_assert(info->is_image);
    cr_assert_eq(info->shape[0], 32);
    cr_assert_eq(info->shape[1], 32);
    cr_assert_eq(info->shape[2], 3);
    for (uint64_t id = 0; id < count; id++) {
        uint8_t row[PIXELS];
        stoker_label label;
        cr_assert_eq(stk_read_row(dataset, id, row, sizeof(row), &label, NULL), STOKER_OK);
        cr_assert_eq(label.index, label_of(first + id, classes));
        for (uint32_t at = 0; at < PIXELS; at++)
            cr_assert_eq(row[at], stk_set_byte(first + id, at % 3 * PLANE + at / 3));
    }
}

static void begin(void)
{
    directory = stk_directory_make();
}

static void check_done(void)
{
    stk_directory_remove(&directory);
    stk_test_check_leaks();
}

/* ---- what is right -------------------------------------------------------------- */

Test(cifar, five_batches_are_one_set_and_planes_become_pixels)
{
    stoker_dataset *dataset = NULL;
    begin();
    write_ten();
    cr_assert_eq(open_set(&dataset, "", NULL, NULL), STOKER_OK);
    cr_assert_str_eq(stoker_dataset_name(dataset), "cifar");
    cr_assert_eq(stoker_dataset_get_info(dataset)->file_count, 5);
    cr_assert_null(stoker_dataset_class_name(dataset, 1, 0));
    check_samples(dataset, 0, 5 * EACH, 10);
    stoker_dataset_close(&dataset);
    cr_assert_eq(open_set(&dataset, "", "test", NULL), STOKER_OK);
    check_samples(dataset, 100, 2, 10);
    stoker_dataset_close(&dataset);
    check_done();
}

Test(cifar, a_hundred_classes_are_fine_or_coarse)
{
    stoker_dataset *dataset = NULL;
    begin();
    write_file("train.bin", 0, 600, true); /* more than are read at once */
    write_file("test.bin", 700, 4, true);
    cr_assert_eq(open_set(&dataset, "", "train", NULL), STOKER_OK);
    check_samples(dataset, 0, 600, 100);
    stoker_dataset_close(&dataset);
    cr_assert_eq(open_set(&dataset, "?labels=fine", "test", NULL), STOKER_OK);
    check_samples(dataset, 700, 4, 100);
    stoker_dataset_close(&dataset);
    cr_assert_eq(open_set(&dataset, "?labels=coarse", "test", NULL), STOKER_OK);
    check_samples(dataset, 700, 4, 20);
    stoker_dataset_close(&dataset);
    check_done();
}

Test(cifar, classes_have_names_if_there_is_one_for_each)
{
    static const struct {
        const char *text;
        bool named;
    } rows[] = {
        { "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n", true },
        { "a\r\nb\r\nc\r\nd\r\ne\r\nf\r\ng\r\nh\r\ni\r\nj\r\n\r\n", true },
        { "\na\nb\nc\nd\ne\nf\ng\nh\ni\nj", true },
        { "a\nb\nc\nd\ne\nf\ng\nh\ni\n", false },
        { "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n", false },
        { "a\nb\nc\nd\ne\nf\ng\nh\ni\nthis is a name of thirty-two bytes\n", false },
        { "", false },
    };
    begin();
    write_ten();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        stoker_dataset *dataset = NULL;
        stk_file_write(&directory, "batches.meta.txt", rows[i].text, strlen(rows[i].text));
        cr_assert_eq(open_set(&dataset, "", NULL, NULL), STOKER_OK);
        for (uint32_t class = 0; class < 10; class ++) {
            const char expected[2] = { (char)('a' + class), '\0' };
            const char *name = stoker_dataset_class_name(dataset, 1, class);
            cr_assert_eq(name != NULL, rows[i].named, "row %zu", i);
            cr_assert(name == NULL || strcmp(name, expected) == 0, "row %zu: %s", i, name);
        }
        stoker_dataset_close(&dataset);
    }
    check_done();
}

Test(cifar, a_plain_path_is_recognized_and_every_reader_brings_the_same)
{
    static const stoker_reader *const readers[] = { &stk_reader_pread, NULL };
    static struct stk_run runs[2];
    stoker_dataset *dataset = NULL;
    begin();
    write_ten();
    cr_assert_eq(stoker_dataset_open(&dataset, directory.path, NULL, NULL), STOKER_OK);
    cr_assert_str_eq(stoker_dataset_name(dataset), "cifar");
    stoker_loader_options options = stk_small_options(.batch_size = 4);
    for (int i = 0; i < 2; i++) {
        options.reader = readers[i];
        options.num_workers = i * 3;
        cr_assert_eq(stk_run(dataset, &options, &runs[i]), STOKER_FINISHED);
    }
    cr_assert_eq(runs[0].samples, 2 * 5 * EACH);
    cr_assert(stk_runs_equal(&runs[0], &runs[1]));
    stoker_dataset_close(&dataset);
    check_done();
}

/* ---- what is wrong -------------------------------------------------------------- */

Test(cifar, the_spec_is_read_as_written)
{
    begin();
    check_refused("", NULL, STOKER_ENOENT, "neither");
    check_refused("/missing", NULL, STOKER_ENOENT, "neither");
    write_ten();
    check_refused("?labels=fine", NULL, STOKER_EINVAL, "CIFAR-10");
    check_refused("?labels=both", NULL, STOKER_ESPEC, "fine or coarse");
    check_refused("?label=fine", NULL, STOKER_ESPEC, "label");
    check_refused("", "valid", STOKER_EINVAL, "valid");
    write_file("train.bin", 0, 2, true);
    check_refused("", NULL, STOKER_EMISMATCH, "both CIFAR-10");
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_open(&dataset, "cifar:", NULL, NULL), STOKER_ESPEC);
    cr_assert_eq(stoker_dataset_open(&dataset, "cifar:?labels=fine", NULL, NULL), STOKER_ESPEC);
    check_done();
}

Test(cifar, a_missing_batch_is_reported)
{
    char path[512];
    begin();
    write_ten();
    cr_assert_eq(unlink(stk_path_in(path, &directory, "data_batch_4.bin")), 0);
    check_refused("", NULL, STOKER_ENOENT, "data_batch_4.bin");
    cr_assert_eq(mkdir(path, 0755), 0);
    check_refused("", NULL, STOKER_EISDIR, "data_batch_4.bin");
    check_done();
}

Test(cifar, labels_over_the_limit_are_not_taken)
{
    char path[512];
    begin();
    write_file("test.bin", 0, 1, true);
    /* A million records, most of them a hole: refused by the number of labels, before a record is
     * read. */
    stk_path_in(path, &directory, "test.bin");
    cr_assert_eq(truncate(path, (off_t)3074 << 20), 0);
    check_refused("", "test", STOKER_ELIMIT, "max_bytes");
    check_done();
}

/* Every length but a whole number of records; then every bit of the labels, and some of pixels. */
Test(cifar, damage_is_an_error_or_another_pixel)
{
    static uint8_t record[PIXELS + 2];
    begin();
    cr_assert_eq(make_record(record, 5, true), sizeof(record));
    for (size_t size = 0; size < sizeof(record); size++) {
        stk_file_write(&directory, "test.bin", record, size);
        check_refused("", "test", STOKER_ETRUNCATED, "test.bin");
    }
    for (size_t bit = 0; bit < sizeof(record) * 8; bit += bit < 64 ? 1 : 61) {
        uint8_t row[PIXELS];
        stoker_dataset *dataset = NULL;
        record[bit / 8] ^= (uint8_t)(1U << bit % 8);
        stk_file_write(&directory, "test.bin", record, sizeof(record));
        const int rc = open_set(&dataset, "", "test", NULL);
        cr_assert_eq(rc, record[1] < 100 ? STOKER_OK : STOKER_EFORMAT, "bit %zu", bit);
        if (dataset != NULL) {
            cr_assert_eq(stk_read_row(dataset, 0, row, sizeof(row), NULL, NULL), STOKER_OK);
            for (uint32_t at = 0; at < PIXELS; at++)
                cr_assert_eq(row[at], record[2 + at % 3 * PLANE + at / 3]);
        }
        stoker_dataset_close(&dataset);
        record[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    record[1] = 100;
    stk_file_write(&directory, "test.bin", record, sizeof(record));
    check_refused("", "test", STOKER_EFORMAT, "offset 1: cifar: label 100");
    check_done();
}

Test(cifar, each_allocation_may_fail)
{
    stoker_dataset *dataset = NULL;
    struct stk_sweep sweep = { .kinds = STK_FAULT_ANY };
    begin();
    write_ten();
    while (stk_sweep_next(&sweep))
        sweep.rc = open_set(&dataset, "", NULL, &sweep.error);
    cr_assert_geq(sweep.failed, 8);
    stoker_dataset_close(&dataset);
    check_done();
}
