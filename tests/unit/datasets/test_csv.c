/* test_csv.c - CSV files: what is right is read right, and what is wrong is reported by line and
 * column.
 *
 * Method: small files in memory. Every prefix and every flipped bit of one must give an error or
 * a data set of finite numbers; every error is checked for code, offset and words.
 */
#include <math.h>
#include <stoker/stoker.h>

#include "support/comma_locale.h"
#include "support/files/dataset_files.h"
#include "support/sets/read_row.h"
#include "support/sweep.h"

static int open_bytes(stoker_dataset **out, const void *bytes, size_t size, const char *parameters,
                      stoker_error *error)
{
    const stoker_dataset_options options = { .struct_size = sizeof(stoker_dataset_options),
                                             .max_bytes = 1 << 20 };
    struct stk_memory_file file = stk_memory_file(bytes, size);
    char spec[600];
    (void)snprintf(spec, sizeof(spec), "csv:%s%s", file.path, parameters);
    int rc = stoker_dataset_open(out, spec, &options, error);
    close(file.fd);
    return rc;
}

static int open_text(stoker_dataset **out, const char *text, const char *parameters,
                     stoker_error *error)
{
    return open_bytes(out, text, strlen(text), parameters, error);
}

static void read_row(const stoker_dataset *dataset, uint64_t id, float *row, stoker_label *label)
{
    stoker_error error = { 0 };
    int rc = stk_read_row(dataset, id, row, stoker_dataset_field_bytes(dataset, 0), label, &error);
    cr_assert_eq(rc, STOKER_OK, "%s", error.message);
}

/* ---- what is right -------------------------------------------------------------- */

/* Each of these is the same 2 rows of 2 features, with or without a label. */
static const struct good {
    const char *text;
    const char *parameters;
    bool labeled;
} good[] = {
    { "1,2\n-3.5,4e1\n", "", false },
    { "1,2\n-3.5,4e1", "", false },
    { "1,2\r\n-3.5,4e1\r\n", "", false },
    { "1,2\r-3.5,4e1\r", "", false },
    { "\n \n1,2\n\n-3.5,4e1\n\t\n", "", false },
    { "\xEF\xBB\xBF"
      "1,2\n-3.5,4e1\n",
      "", false },
    { "\xEF\xBB\xBF\"a\",b\n1,2\n-3.5,4e1\n", "", false },
    { " 1 ,\t2 \n-3.5 , +4.e1 \n", "", false },
    { "\"1\",\"2\"\n \"-3.5\" , \"40\" \n", "", false },
    { "a,b\n1,2\n-3.5,40\n", "", false },
    { "a,b\n1,2\n-3.5,40\n", "?", false },
    { "a,b\n1,2\n-3.5,40\n", "?header=1", false },
    { "1;2\n-3.5;40\n", "?delimiter=;", false },
    { "1;2\n-3.5;40\n", "?delimiter=%3b", false },
    { "1|2\n-3.5|40\n", "?delimiter=|", false },
    { "1\t2\n-3.5\t40\n", "?delimiter=tab", false },
    { "1\t 2\n-3.5\t40\n", "?delimiter=%09", false },
    { "1,x,2\n-3.5,y,40\n", "?columns=1,3", false },
    { "1,\"x,\n\"\"x\",2\n-3.5,\"\",40\n", "?columns=1,3", false },
    { "\"\",a,b\n7,1,2\n8,-3.5,40\n", "?label=1", true }, /* row names, as R writes them */
    { "a,b,c\n9,2,1\n9,40,-3.5\n", "?columns=c,b", false },
    { "a,b,c\n9,2,1\n9,40,-3.5\n", "?columns=3,2", false },
    { "9,2,1\n9,40,-3.5\n", "?columns=3,2&header=0", false },
    { "2,1,0\n7,1,2\n7,-3.5,40\n", "?columns=1,0&header=1", false }, /* names before numbers */
    { "a,\"b\"\"c,&\",\"d\ne\"\n9,1,2\n9,-3.5,40\n", "?columns=b%22c%2C%26,d%0Ae", false },
    { "a,b,y\n1,2,7\n-3.5,40,8\n", "?label=y", true },
    { "y,a,b\n7,1,2\n8,-3.5,40\n", "?label=1", true },
    { "7,1,2\n8,-3.5,40\n", "?label=1", true },
    { "y,a,z,b\n7,1,5,2\n8,-3.5,6,40\n", "?label=y&columns=a,b", true },
    { "a,b\n1,2\n-3.5,0000000000000000000000000000000000000000000000000000000000000040\n", "",
      false },
};

CleanTest(csv, what_is_right_is_read_right)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        stoker_error error = { 0 };
        stoker_dataset *dataset = NULL;
        int rc = open_text(&dataset, good[i].text, good[i].parameters, &error);
        cr_assert_eq(rc, STOKER_OK, "file %zu: %s", i, error.message);
        const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
        cr_assert_eq(info->count, 2);
        cr_assert_eq(info->rank, 1);
        cr_assert_eq(info->shape[0], 2, "file %zu", i);
        cr_assert_eq(info->dtype, STOKER_DTYPE_FLOAT32);
        cr_assert_not(info->is_image);
        cr_assert_eq(info->label_dtype, good[i].labeled ? STOKER_DTYPE_FLOAT32 : STOKER_DTYPE_NONE);
        cr_assert_eq(info->class_count, 0);
        cr_assert_str_eq(stoker_dataset_name(dataset), "csv");
        static const float want[2][2] = { { 1, 2 }, { -3.5F, 40 } };
        cr_assert_arr_eq(info->rows, want, sizeof(want), "file %zu", i);
        for (uint64_t id = 0; id < 2; id++) {
            float row[2];
            stoker_label label;
            read_row(dataset, id, row, &label);
            cr_assert_arr_eq(row, want[id], sizeof(row));
            cr_assert(!good[i].labeled || label.value == (float)(7 + id), "file %zu", i);
        }
        stoker_dataset_close(&dataset);
    }
}

CleanTest(csv, labels_may_be_classes)
{
    static const struct {
        const char *parameters;
        uint32_t classes;
    } rows[] = { { "?label=y&label_type=int", 4 },
                 { "?label=y&classes=10", 10 },
                 { "?label=y&classes=4&label_type=int", 4 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        stoker_error error = { 0 };
        stoker_dataset *dataset = NULL;
        int rc = open_text(&dataset, "a,y\n1,0\n2,3\n3,1.0\n", rows[i].parameters, &error);
        cr_assert_eq(rc, STOKER_OK, "%s", error.message);
        cr_assert_eq(stoker_dataset_get_info(dataset)->label_dtype, STOKER_DTYPE_INT64);
        cr_assert_eq(stoker_dataset_get_info(dataset)->class_count, rows[i].classes);
        static const int64_t want[] = { 0, 3, 1 };
        for (uint64_t id = 0; id < 3; id++) {
            float row;
            stoker_label label;
            read_row(dataset, id, &row, &label);
            cr_assert_eq(label.index, want[id]);
        }
        stoker_dataset_close(&dataset);
    }
    stoker_dataset *dataset = NULL;
    cr_assert_eq(open_text(&dataset, "a,y\n1,-1\n2,3\n", "?label=y&label_type=int", NULL),
                 STOKER_OK);
    cr_assert_eq(stoker_dataset_get_info(dataset)->class_count, 0, "-1 is no class");
    stoker_dataset_close(&dataset);
}

CleanTest(csv, a_gzip_is_known_by_its_bytes)
{
#ifndef STOKER_HAVE_DEFLATE
    cr_skip_test("built without libdeflate");
#endif
    struct stk_bytes packed = { 0 };
    stk_put_gzip(&packed, (const uint8_t *)"a\n5\n6\n", 6);
    stoker_dataset *dataset = NULL;
    cr_assert_eq(open_bytes(&dataset, packed.at, packed.size, "", NULL), STOKER_OK);
    cr_assert_eq(stoker_dataset_get_info(dataset)->count, 2);
    stoker_dataset_close(&dataset);
}

CleanTest(csv, the_programs_locale_changes_nothing)
{
    stoker_dataset *dataset = NULL;
    float row;
    if (!stk_comma_locale())
        cr_skip_test("no locale with a comma is available");
    cr_assert_eq(open_text(&dataset, "1.5\n2.5\n", "", NULL), STOKER_OK);
    read_row(dataset, 1, &row, NULL);
    cr_assert_eq(row, 2.5F);
    stoker_dataset_close(&dataset);
}

CleanTest(csv, a_path_ending_in_csv_is_recognized_and_may_hold_a_question_mark)
{
    const struct stk_directory directory = stk_directory_make();
    char path[512];
    char spec[600];
    stk_file_write(&directory, "what?.csv", "1,2\n", 4);
    stoker_dataset *dataset = NULL;
    (void)stk_path_in(path, &directory, "what?.csv");
    cr_assert_eq(stoker_dataset_open(&dataset, path, NULL, NULL), STOKER_OK);
    stoker_dataset_close(&dataset);
    (void)snprintf(spec, sizeof(spec), "csv:%s", path);
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, NULL), STOKER_OK);
    stoker_dataset_close(&dataset);
    (void)snprintf(spec, sizeof(spec), "csv:%s?label=2", path);
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, NULL), STOKER_OK);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

/* ---- what is wrong -------------------------------------------------------------- */

#define SIXTY_FIVE "10000000000000000000000000000000000000000000000000000000000000000"

static const struct bad {
    const char *text;
    const char *parameters;
    int code;
    uint64_t offset;
    const char *words;
} bad[] = {
    { "", "", STOKER_EEMPTY, STOKER_NO_OFFSET, "an empty file" },
    { " \n\r\n\t", "", STOKER_EEMPTY, STOKER_NO_OFFSET, "no line" },
    { "\xEF\xBB\xBF", "", STOKER_EEMPTY, STOKER_NO_OFFSET, "no line" },
    { "a,b\n", "", STOKER_EEMPTY, STOKER_NO_OFFSET, "a header, and no row" },
    { "1,2\n", "?header=1", STOKER_EEMPTY, STOKER_NO_OFFSET, "a header, and no row" },
    { "\xFF\xFE"
      "1",
      "", STOKER_EFORMAT, 0, "UTF-16" },
    { "a,b\nx,y\n", "", STOKER_EFORMAT, 4,
      "line 2, column 1: a: \"x\" is not a number; columns= chooses" },
    { "1,2\n3,4,5\n", "", STOKER_EFORMAT, 4, "line 2: 3 fields, but the first record has 2" },
    { "1,2\n\n3\n", "", STOKER_EFORMAT, 5, "line 3: 1 fields, but the first record has 2" },
    { "1,2\n3,4,\n", "", STOKER_EFORMAT, 4, "line 2: 3 fields" },
    { "a,b\n1,2\n3,x\n", "", STOKER_EFORMAT, 10, "line 3, column 2: b: \"x\" is not a number" },
    { "1,2\r\n3,x\r\n", "", STOKER_EFORMAT, 7, "line 2, column 2: \"x\" is not a number" },
    { "1,2\n3,\n", "", STOKER_EFORMAT, 6, "line 2, column 2: \"\" is not a number" },
    { "1,2\n3, NA \n", "", STOKER_EFORMAT, 7, "\"NA\" is not a number" },
    { "1,NA\n3,4\n", "", STOKER_EFORMAT, 2, "line 1, column 2: \"NA\" is not a number" },
    { "1,2\n3,\"\"\n", "", STOKER_EFORMAT, 7, "\"\" is not a number" },
    { "1,2\nnan,4\n", "", STOKER_EFORMAT, 4, "\"nan\" is not a finite number" },
    { "1,2\n3,-Inf\n", "", STOKER_EFORMAT, 6, "\"-Inf\" is not a finite number" },
    { "1,2\n3,1e39\n", "", STOKER_EFORMAT, 6, "\"1e39\" is too large" },
    { "1,2\n3,3.5e38\n", "", STOKER_EFORMAT, 6, "\"3.5e38\" is too large" },
    { "1,2\n3,0x10\n", "", STOKER_EFORMAT, 6, "\"0x10\" is not a number" },
    { "1,2\n3,1,\n", "", STOKER_EFORMAT, 4, "3 fields" },
    { "1,2\n3,.\n", "", STOKER_EFORMAT, 6, "\".\" is not a number" },
    { "1,2\n3,1e\n", "", STOKER_EFORMAT, 6, "\"1e\" is not a number" },
    { "1,2\n3,1 2\n", "", STOKER_EFORMAT, 6, "\"1 2\" is not a number" },
    { "1,2\n3,\xc3\xa9\n", "", STOKER_EFORMAT, 6, "\"\xc3\xa9\" is not a number" },
    { "1,2\n3,5\x01\n", "", STOKER_EFORMAT, 6, "\"5?\" is not a number" },
    { "1,2\n3," SIXTY_FIVE "\n", "", STOKER_EFORMAT, 6, "more than 64 characters" },
    { "1,\"2\n3,4\n", "", STOKER_ETRUNCATED, 2, "line 1, column 2: this quote is never closed" },
    { "1,\"2\"x\n", "", STOKER_EFORMAT, 5, "line 1, column 2: text after the closing" },
    { "1,\"2\"\"\n", "", STOKER_ETRUNCATED, 2, "never closed" },
    { "a,\"b\nc\"\n1,2\n3,x\n", "", STOKER_EFORMAT, 14, "line 4, column 2: b?c: \"x\"" },
    { "a,b\n1,2\n", "?label=c", STOKER_EINVAL, STOKER_NO_OFFSET, "column \"c\" is not in the hea" },
    { "a,b\n1,2\n", "?label=3", STOKER_EINVAL, STOKER_NO_OFFSET, "column \"3\" is not in the hea" },
    { "a,b\n1,2\n", "?label=0", STOKER_EINVAL, STOKER_NO_OFFSET, "column \"0\"" },
    { "1,2\n", "?label=c", STOKER_EINVAL, STOKER_NO_OFFSET, "there is no header" },
    { "a,b\n1,2\n", "?columns=a,c", STOKER_EINVAL, STOKER_NO_OFFSET, "column \"c\"" },
    { "a,b\n1,2\n", "?columns=a,", STOKER_EINVAL, STOKER_NO_OFFSET, "column \"\"" },
    { "a,b\n1,2\n", "?columns=a,1", STOKER_EINVAL, STOKER_NO_OFFSET, "\"1\" is named twice" },
    { "a,b\n1,2\n", "?columns=a&label=a", STOKER_EINVAL, STOKER_NO_OFFSET, "named twice" },
    { "a,a\n1,2\n", "?label=a", STOKER_EINVAL, STOKER_NO_OFFSET, "\"a\" occurs twice" },
    { "a,b\n1,2\n", "?label=%4", STOKER_EINVAL, STOKER_NO_OFFSET, "two hexadecimal digits" },
    { "a,b\n1,2\n", "?label=99999999999", STOKER_EINVAL, STOKER_NO_OFFSET, "not in the header" },
    { "1,2\n3,4.5\n", "?label=2&classes=9", STOKER_EFORMAT, 6, "\"4.5\" is not a whole number" },
    { "1,2\n3,1e16\n", "?label=2&label_type=int", STOKER_EFORMAT, 6, "not a whole number below" },
    { "1,2\n3,4\n", "?label=2&classes=4", STOKER_EFORMAT, 6, "column 2: label \"4\" out of range" },
    { "1,2\n3,-1\n", "?label=2&classes=4", STOKER_EFORMAT, 6, "out of range (0..3)" },
    { "1,2\n3,x\n", "?label=2", STOKER_EFORMAT, 6, "line 2, column 2: \"x\" is not a number" },
    { "1,x\n3,4\n", "?label=2&label_type=float", STOKER_EFORMAT, 2, "\"x\" is not a number" },
    { "a\n1\n", "?label=a", STOKER_EFORMAT, STOKER_NO_OFFSET, "no column but the label's" },
    { "a,b,c\n1,2,3\n", "?label=a,b", STOKER_EINVAL, STOKER_NO_OFFSET, "column \"a,b\" is not" },
    { "1,2\n", "?split=test", STOKER_EINVAL, STOKER_NO_OFFSET, "csv has no splits; test=0.2" },
    { "1,2\n", "?missing=0", STOKER_ESPEC, STOKER_NO_OFFSET, "no such parameter" },
    { "1,2\n", "?header=yes", STOKER_ESPEC, STOKER_NO_OFFSET, "header is 0, 1 or auto" },
    { "1,2\n", "?delimiter=1", STOKER_ESPEC, STOKER_NO_OFFSET, "the delimiter is" },
    { "1,2\n", "?delimiter=%0A", STOKER_ESPEC, STOKER_NO_OFFSET, "the delimiter is" },
    { "1,2\n", "?delimiter=%", STOKER_ESPEC, STOKER_NO_OFFSET, "the delimiter is" },
    { "1,2\n", "?delimiter=;;", STOKER_ESPEC, STOKER_NO_OFFSET, "the delimiter is" },
    { "1,2\n", "?label_type=word", STOKER_ESPEC, STOKER_NO_OFFSET, "label_type is" },
    { "1,2\n", "?label_type=int", STOKER_EINVAL, STOKER_NO_OFFSET, "label=NAME" },
    { "1,2\n", "?classes=3", STOKER_EINVAL, STOKER_NO_OFFSET, "label=NAME" },
    { "1,2\n", "?label=1&classes=3&label_type=float", STOKER_EINVAL, STOKER_NO_OFFSET, "with int" },
    { "1,2\n", "?classes=0&label=1", STOKER_EINVAL, STOKER_NO_OFFSET, "outside 1..65536" },
    { "1,2\n", "?lable=1", STOKER_ESPEC, STOKER_NO_OFFSET,
      "no such parameter (did you mean 'label'?); there are label" },
};

CleanTest(csv, errors_name_line_and_column)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        stoker_error error = { 0 };
        stoker_dataset *dataset = NULL;
        int rc = open_text(&dataset, bad[i].text, bad[i].parameters, &error);
        cr_assert_eq(rc, bad[i].code, "file %zu: %d, %s", i, rc, error.message);
        cr_assert_eq(error.code, rc);
        cr_assert_null(dataset);
        cr_assert_eq(error.offset, bad[i].offset, "file %zu: %s", i, error.message);
        cr_assert_not_null(strstr(error.message, bad[i].words), "file %zu: %s", i, error.message);
    }
}

CleanTest(csv, a_nul_byte_is_refused_in_and_out_of_quotes)
{
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    cr_assert_eq(open_bytes(&dataset, "1,\0002", 4, "", &error), STOKER_EFORMAT);
    cr_assert_eq(error.offset, 2);
    cr_assert_eq(open_bytes(&dataset, "1,\"\0\"", 5, "", &error), STOKER_EFORMAT);
    cr_assert_eq(error.offset, 3);
}

CleanTest(csv, limits_come_before_memory)
{
    enum { COLUMNS = 65536 };
    static char wide[2 * COLUMNS + 2];
    for (size_t i = 0; i < COLUMNS; i++)
        memcpy(wide + 2 * i, "1,", 2);
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    cr_assert_eq(open_bytes(&dataset, wide, 2 * COLUMNS - 3, "", &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_eq(stoker_dataset_get_info(dataset)->shape[0], COLUMNS - 1);
    stoker_dataset_close(&dataset);
    cr_assert_eq(open_bytes(&dataset, wide, 2 * COLUMNS - 1, "", &error), STOKER_ELIMIT);
    cr_assert_not_null(strstr(error.message, "65536 columns"));

    struct stk_memory_file file = stk_memory_file("1,2\n3,4\n", 8);
    char spec[100];
    (void)snprintf(spec, sizeof(spec), "csv:%s", file.path);
    for (uint64_t most = 1; most <= 16; most++) {
        const stoker_dataset_options options = { .struct_size = sizeof(stoker_dataset_options),
                                                 .max_bytes = most };
        int rc = stoker_dataset_open(&dataset, spec, &options, &error);
        cr_assert_eq(rc, most < 16 ? STOKER_ELIMIT : STOKER_OK, "%d bytes", (int)most);
        stoker_dataset_close(&dataset);
    }
    close(file.fd);
}

static const char small[] = "\xEF\xBB\xBFname,a,\"b \"\"q\"\"\",y\r\n\"x\ny\",1.5,-2e1,0\r\n"
                            "\"\", 3,\"4\" ,2\r\n\nz,5,6,1\r\n";
static const char small_parameters[] = "?label=y&label_type=int&columns=2,3";

/* Whatever opens holds finite numbers only. */
static void check_finite(const stoker_dataset *dataset)
{
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    const float *values = info->rows;
    for (uint64_t i = 0; i < info->count * info->shape[0]; i++)
        cr_assert(isfinite(values[i]));
}

CleanTest(csv, every_prefix_and_every_flipped_bit_is_an_error_or_fits)
{
    const size_t size = sizeof(small) - 1;
    uint32_t opened = 0;
    for (size_t at = 0; at < size * 9; at++) {
        char bytes[sizeof(small)];
        memcpy(bytes, small, size);
        size_t here = at < size ? at : size; /* first the prefixes */
        if (at >= size)
            bytes[(at - size) / 8] = (char)(bytes[(at - size) / 8] ^ (1 << (at - size) % 8));
        stoker_error error = { 0 };
        stoker_dataset *dataset = NULL;
        int rc = open_bytes(&dataset, bytes, here, small_parameters, &error);
        cr_assert_eq(rc == STOKER_OK, dataset != NULL);
        cr_assert_eq(error.code, rc);
        if (dataset == NULL)
            continue;
        opened++;
        check_finite(dataset);
        stoker_dataset_close(&dataset);
    }
    cr_assert_gt(opened, 100); /* digits into digits, names into names */
}

CleanTest(csv, each_allocation_may_fail)
{
    stoker_dataset *dataset = NULL;
    struct stk_sweep sweep = { .kinds = STK_FAULT_ANY };
    while (stk_sweep_next(&sweep))
        sweep.rc = open_text(&dataset, small, small_parameters, &sweep.error);
    stoker_dataset_close(&dataset);
    cr_assert_geq(sweep.failed, 7);
}

/* ---- the loader and a real file ------------------------------------------------- */

/* Row i is (i, 7, i x i), its label i. */
CleanTest(csv, a_loader_delivers_rows_and_labels)
{
    enum { ROWS = 100 };
    static char text[4096];
    size_t used = 0;
    for (int i = 0; i < ROWS; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%d,7,%d,%d\n", i, i * i, i);
    stoker_dataset *dataset = NULL;
    cr_assert_eq(open_text(&dataset, text, "?label=4", NULL), STOKER_OK);
    stoker_loader_options options =
        stk_default_options(.batch_size = 30, .num_workers = 1, .shuffle = true, .epochs = 1);
    stoker_loader *loader = NULL;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
    stoker_batch batch = STOKER_BATCH_INIT;
    uint32_t count = 0;
    while (stoker_loader_next(loader, &batch, -1) == STOKER_OK) {
        cr_assert_eq(batch.images.rank, 2);
        cr_assert_eq(batch.labels.dtype, STOKER_DTYPE_FLOAT32);
        for (uint32_t i = 0; i < batch.count; i++) {
            const float *row = (const float *)batch.images.data + (size_t)i * 3;
            float label = ((const float *)batch.labels.data)[i];
            cr_assert_eq(row[0], label);
            cr_assert_eq(row[2], label * label);
            cr_assert_eq((float)batch.ids[i], label);
        }
        count += batch.count;
        stoker_batch_release(&batch);
    }
    cr_assert_eq(count, ROWS);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

CleanTest(csv, the_boston_housing_file_reads)
{
    char path[512];
    char spec[600];
    const char *data = getenv("STOKER_DATA");
    (void)snprintf(path, sizeof(path), "%s/boston/BostonHousing.csv", data == NULL ? "data" : data);
    if (access(path, R_OK) != 0)
        cr_skip_test("NOT TESTED: there is no $STOKER_DATA/boston/BostonHousing.csv");
    stoker_dataset *dataset = NULL;
    stoker_error error = { 0 };
    (void)snprintf(spec, sizeof(spec), "csv:%s?label=medv", path);
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, &error), STOKER_OK, "%s", error.message);
    cr_assert_eq(stoker_dataset_get_info(dataset)->count, 506);
    cr_assert_eq(stoker_dataset_get_info(dataset)->shape[0], 13);
    float row[13];
    stoker_label label;
    double sum = 0;
    for (uint64_t id = 0; id < 506; id++) {
        read_row(dataset, id, row, &label);
        sum += (double)label.value;
    }
    cr_assert_float_eq(sum / 506, 22.5328, 1e-3); /* the published mean of medv */
    read_row(dataset, 505, row, &label);
    cr_assert_eq(row[0], 0.04741F);
    cr_assert_eq(row[12], 7.88F);
    cr_assert_eq(label.value, 11.9F);
    stoker_dataset_close(&dataset);
}
