/* test_csv.c - CSV files: what is right is read right, and what is wrong is reported by line and
 * column.
 *
 * Method: small files in memory. Every prefix and every flipped bit of one must give an error or
 * a data set of finite numbers; every error is checked for code, offset and words.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stoker/stoker.h>
#include <string.h>

#include "loader/base/fault.h"
#include "support/comma_locale.h"
#include "support/dataset_files.h"
#include "support/fields_of.h"
#include "support/leaks.h"

static int open_bytes(stoker_dataset **out, const void *bytes, size_t size, const char *parameters,
                      const char *split, stoker_error *error)
{
    const stoker_dataset_options options = { .struct_size = sizeof(stoker_dataset_options),
                                             .max_bytes = 1 << 20,
                                             .split = split };
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
    return open_bytes(out, text, strlen(text), parameters, NULL, error);
}

static void read_row(const stoker_dataset *dataset, uint64_t id, float *row, stoker_label *label)
{
    stoker_error error = { 0 };
    int rc =
        stoker_dataset_read(dataset, id, row, stoker_dataset_row_bytes(dataset), label, &error);
    cr_assert_eq(rc, STOKER_OK, "%s", error.message);
}

/* ---- what is right -------------------------------------------------------------- */

/* Each of these is the same 2 rows of 2 features, with or without a label. */
static const struct good {
    const char *text;
    const char *parameters;
    bool labelled;
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
    { "1,x,2\n-3.5,y,40\n", "", false },
    { "1,\"x,\n\"\"x\",2\n-3.5,\"\",40\n", "", false },
    { "a,b,c\n9,2,1\n9,40,-3.5\n", "?columns=c,b", false },
    { "a,b,c\n9,2,1\n9,40,-3.5\n", "?columns=3,2", false },
    { "9,2,1\n9,40,-3.5\n", "?columns=3,2&header=0", false },
    { "2,1,0\n7,1,2\n7,-3.5,40\n", "?columns=1,0&header=1", false }, /* names before numbers */
    { "a,\"b\"\"c,&\",\"d\ne\"\n9,1,2\n9,-3.5,40\n", "?columns=b%22c%2C%26,d%0Ae", false },
    { "a,b,y\n1,2,7\n-3.5,40,8\n", "?label=y", true },
    { "y,a,b\n7,1,2\n8,-3.5,40\n", "?label=1", true },
    { "7,1,2\n8,-3.5,40\n", "?label=1", true },
    { "y,a,z,b\n7,1,5,2\n8,-3.5,6,40\n", "?label=y&columns=a,b", true },
    { "a,b,y\n1,2,7\n-3.5,40,8\n", "?label=y&test=0", true },
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
        cr_assert_eq(info->label_dtype,
                     good[i].labelled ? STOKER_DTYPE_FLOAT32 : STOKER_DTYPE_NONE);
        cr_assert_eq(info->class_count, 0);
        cr_assert_str_eq(stoker_dataset_name(dataset), "csv");
        static const float want[2][2] = { { 1, 2 }, { -3.5F, 40 } };
        cr_assert_arr_eq(info->rows, want, sizeof(want), "file %zu", i);
        for (uint64_t id = 0; id < 2; id++) {
            float row[2];
            stoker_label label;
            read_row(dataset, id, row, &label);
            cr_assert_arr_eq(row, want[id], sizeof(row));
            cr_assert(!good[i].labelled || label.value == (float)(7 + id), "file %zu", i);
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
    cr_assert_eq(open_bytes(&dataset, packed.at, packed.size, "", NULL, NULL), STOKER_OK);
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

CleanTest(csv, a_path_ending_in_csv_is_recognised_and_may_hold_a_question_mark)
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
    { "a,b\nx,y\n", "", STOKER_EFORMAT, 4, "line 2: no column holds numbers" },
    { "a,b\nx,2\n", "?label=b", STOKER_EFORMAT, 4, "no column but the label's holds numbers" },
    { "1,2\n3,4,5\n", "", STOKER_EFORMAT, 4, "line 2: 3 fields, but the first record has 2" },
    { "1,2\n\n3\n", "", STOKER_EFORMAT, 5, "line 3: 1 fields, but the first record has 2" },
    { "1,2\n3,4,\n", "", STOKER_EFORMAT, 4, "line 2: 3 fields" },
    { "a,b\n1,2\n3,x\n", "", STOKER_EFORMAT, 10, "line 3, column 2: b: \"x\" is no number" },
    { "1,2\r\n3,x\r\n", "", STOKER_EFORMAT, 7, "line 2, column 2: \"x\" is no number" },
    { "1,2\n3,\n", "", STOKER_EFORMAT, 6, "line 2, column 2: \"\" is a missing value" },
    { "1,2\n3, NA \n", "", STOKER_EFORMAT, 7, "\"NA\" is a missing value" },
    { "1,NA\n3,4\n", "", STOKER_EFORMAT, 2, "line 1, column 2: \"NA\" is a missing value" },
    { "1,2\n3,\"\"\n", "", STOKER_EFORMAT, 7, "\"\" is a missing value" },
    { "1,2\nnan,4\n", "", STOKER_EFORMAT, 4, "\"nan\" is no finite number" },
    { "1,2\n3,-Inf\n", "", STOKER_EFORMAT, 6, "\"-Inf\" is no finite number" },
    { "1,2\n3,1e39\n", "", STOKER_EFORMAT, 6, "\"1e39\" is too large" },
    { "1,2\n3,3.5e38\n", "", STOKER_EFORMAT, 6, "\"3.5e38\" is too large" },
    { "1,2\n3,0x10\n", "", STOKER_EFORMAT, 6, "\"0x10\" is no number" },
    { "1,2\n3,1,\n", "", STOKER_EFORMAT, 4, "3 fields" },
    { "1,2\n3,.\n", "", STOKER_EFORMAT, 6, "\".\" is no number" },
    { "1,2\n3,1e\n", "", STOKER_EFORMAT, 6, "\"1e\" is no number" },
    { "1,2\n3,1 2\n", "", STOKER_EFORMAT, 6, "\"1 2\" is no number" },
    { "1,2\n3,\xc3\xa9\n", "", STOKER_EFORMAT, 6, "\"\xc3\xa9\" is no number" },
    { "1,2\n3,5\x01\n", "", STOKER_EFORMAT, 6, "\"5?\" is no number" },
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
    { "1,2\n3,x\n", "?label=2", STOKER_EFORMAT, 6,
      "line 2, column 2: \"x\" is no number; label_type=category reads words" },
    { "1,x\n3,4\n", "?label=2&label_type=float", STOKER_EFORMAT, 2, "\"x\" is no number" },
    { "1,x\n3,\n", "?label=2", STOKER_EFORMAT, 6, "an empty word; missing=drop" },
    { "1,2\n3,\n", "?label=2&missing=mean", STOKER_EFORMAT, 6, "missing value; missing=drop" },
    { "1,2\n3,\n", "?label=2&missing=7", STOKER_EFORMAT, 6, "missing value; missing=drop" },
    { "1,2\n3,\n", "?missing=error", STOKER_EFORMAT, 6,
      "\"\" is a missing value; missing=mean or missing=NUMBER fills it in, missing=drop leaves" },
    { "1,2\n3,inf\n", "?missing=drop", STOKER_EFORMAT, 6, "\"inf\" is no finite number" },
    { "1,2\n3,-nan\n", "?missing=0", STOKER_EFORMAT, 6, "\"-nan\" is no finite number" },
    { "1,\n3,NA\n", "?missing=drop", STOKER_EEMPTY, STOKER_NO_OFFSET, "every row has a missing" },
    { "1,\n3,NA\n", "?missing=mean", STOKER_EFORMAT, STOKER_NO_OFFSET,
      "column 2 has no value in the training rows" },
    { "1,2\n", "?missing=median", STOKER_ESPEC, STOKER_NO_OFFSET, "missing is error, drop, mean" },
    { "1,2\n", "?missing=1e99", STOKER_ESPEC, STOKER_NO_OFFSET, "missing is error, drop, mean" },
    { "a,b\n1,2\n", "?label=a,b", STOKER_EFORMAT, 4, "no column but the label's holds numbers" },
    { "a,b\n1,2\n", "?label=b,b", STOKER_EINVAL, STOKER_NO_OFFSET, "named twice" },
    { "a,b\n1,2\n", "?label=b&categories=b", STOKER_EINVAL, STOKER_NO_OFFSET, "named twice" },
    { "a,b\n1,2\n", "?categories=c", STOKER_EINVAL, STOKER_NO_OFFSET, "column \"c\" is not in" },
    { "a,b\n1,x\n3,\n", "?categories=b", STOKER_EFORMAT, 10, "b: an empty word" },
    { "a,b\n1,2\n3,x\n", "", STOKER_EFORMAT, 10, "is no number; categories=COLUMN or bytes=" },
    { "1,2\n", "?test=0.5", STOKER_EEMPTY, STOKER_NO_OFFSET, "one row cannot be split" },
    { "1,2\n", "?test=1", STOKER_EINVAL, STOKER_NO_OFFSET, "\"1\": test is from 0" },
    { "1,2\n", "?test=-0.1", STOKER_EINVAL, STOKER_NO_OFFSET, "test is from 0" },
    { "1,2\n", "?test=half", STOKER_ESPEC, STOKER_NO_OFFSET, "\"half\": test is a share" },
    { "1,2\n", "?split=test", STOKER_EINVAL, STOKER_NO_OFFSET, "no row is for testing" },
    { "1,2\n", "?split=dev", STOKER_EINVAL, STOKER_NO_OFFSET, "splits train and test" },
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
    { "1,2\n", "?zscore=2", STOKER_EINVAL, STOKER_NO_OFFSET, "outside 0..1" },
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
    cr_assert_eq(open_bytes(&dataset, "1,\0002", 4, "", NULL, &error), STOKER_EFORMAT);
    cr_assert_eq(error.offset, 2);
    cr_assert_eq(open_bytes(&dataset, "1,\"\0\"", 5, "", NULL, &error), STOKER_EFORMAT);
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
    cr_assert_eq(open_bytes(&dataset, wide, 2 * COLUMNS - 3, "", NULL, &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_eq(stoker_dataset_get_info(dataset)->shape[0], COLUMNS - 1);
    stoker_dataset_close(&dataset);
    cr_assert_eq(open_bytes(&dataset, wide, 2 * COLUMNS - 1, "", NULL, &error), STOKER_ELIMIT);
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

static const char missing_parameters[] = "?label=name&missing=mean";
static const char bytes_parameters[] = "?label=y&bytes=name&missing=drop";

static const char small[] = "\xEF\xBB\xBFname,a,\"b \"\"q\"\"\",y\r\n\"x\ny\",1.5,-2e1,0\r\n"
                            "\"\", 3,\"4\" ,2\r\n\nz,5,6,1\r\n";
static const char small_parameters[] = "?label=y&label_type=int&zscore=1&test=0.3";

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
        for (int split = 0; split < 2; split++) {
            stoker_error error = { 0 };
            stoker_dataset *dataset = NULL;
            int rc = open_bytes(&dataset, bytes, here, small_parameters,
                                split == 0 ? "train" : "test", &error);
            cr_assert_eq(rc == STOKER_OK, dataset != NULL);
            cr_assert_eq(error.code, rc);
            if (dataset == NULL)
                continue;
            opened++;
            check_finite(dataset);
            stoker_dataset_close(&dataset);
            if (open_bytes(&dataset, bytes, here, bytes_parameters, NULL, &error) == STOKER_OK)
                for (uint64_t id = 0; id < stoker_dataset_get_info(dataset)->count; id++) {
                    struct stk_fields_of sample = stk_fields_read(dataset, id);
                    cr_assert_eq(sample.rc, STOKER_OK);
                    stk_fields_free(&sample);
                }
            stoker_dataset_close(&dataset);
            if (open_bytes(&dataset, bytes, here, missing_parameters, NULL, &error) == STOKER_OK)
                check_finite(dataset);
            stoker_dataset_close(&dataset);
        }
    }
    cr_assert_gt(opened, 100); /* digits into digits, names into names */
}

static uint64_t fail_each_allocation(const char *text, const char *parameters)
{
    stoker_dataset *dataset = NULL;
    uint64_t nth = 1;
    for (; dataset == NULL; nth++) {
        cr_assert_lt(nth, 100);
        stoker_error error = { 0 };
        stk_fault_arm(STK_FAULT_ANY, nth);
        int rc = open_text(&dataset, text, parameters, &error);
        cr_assert_eq(stk_fault_disarm(), dataset == NULL);
        if (dataset == NULL) {
            cr_assert_eq(rc, STOKER_ENOMEM);
            cr_assert_eq(error.code, STOKER_ENOMEM, "allocation %d is not reported", (int)nth);
            cr_assert_eq(stk_fault_live_bytes(), 0);
        }
    }
    stoker_dataset_close(&dataset);
    return nth;
}

CleanTest(csv, each_allocation_may_fail)
{
    const uint64_t numbers = fail_each_allocation(small, small_parameters);
    cr_assert_gt(numbers, 10);
    const uint64_t words = fail_each_allocation("a,b\n1,x\n,y\n", "?label=b&missing=drop");
    cr_assert_gt(words, 14);
    const uint64_t fields = fail_each_allocation("a,b,c\n1,x,y\n", "?categories=b&bytes=c");
    cr_assert_gt(fields, 17);
}

/* ---- words and missing values --------------------------------------------------- */

static stoker_dataset *open_good(const char *text, const char *parameters)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { 0 };
    cr_assert_eq(open_text(&dataset, text, parameters, &error), STOKER_OK, "%s", error.message);
    return dataset;
}

static void check_description(const stoker_dataset *dataset, const char *wanted)
{
    const char *found = stoker_dataset_get_info(dataset)->description;
    if (wanted == NULL)
        cr_assert_null(found, "%s", found);
    else
        cr_assert_str_eq(found, wanted);
}

/* Words are numbered in the order of their bytes; both splits, and quoted words, have the same numbers. */
CleanTest(csv, labels_may_be_words)
{
    static const char text[] = "x,kind\n1,\"say \"\"a\"\"\"\n2,b\n3,B\n4,b\n5,ab\n6,b\n7,\"b\"\n";
    static const char *const words[] = { "B", "ab", "b", "say \"a\"" };
    static const int64_t kinds[] = { 3, 2, 0, 2, 1, 2, 2 };
    static const char *const parameters[] = { "?label=kind", "?label=kind&test=0.4",
                                              "?label=kind&test=0.4&split=test" };
    uint64_t rows = 0;
    for (int i = 0; i < 3; i++) {
        stoker_dataset *dataset = open_good(text, parameters[i]);
        const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
        cr_assert_eq(info->label_dtype, STOKER_DTYPE_INT64);
        cr_assert_eq(info->class_count, 4);
        for (uint32_t c = 0; c < 4; c++)
            cr_assert_str_eq(stoker_dataset_class_name(dataset, c), words[c]);
        cr_assert_null(stoker_dataset_class_name(dataset, 4));
        for (uint64_t id = 0; id < info->count; id++) {
            float row;
            stoker_label label;
            read_row(dataset, id, &row, &label);
            cr_assert_eq(label.index, kinds[(int)row - 1]);
        }
        rows += info->count;
        check_description(dataset, "2 of 2 columns read; kind: 4 words (B, ab, b, say \"a\")");
        stoker_dataset_close(&dataset);
    }
    cr_assert_eq(rows, 7 + 7);
}

/* Labels and categories are fields of their own, in memory; text is a part. */
CleanTest(csv, columns_become_fields)
{
    static const char text[] = "name,x,kind,price,rooms,sale price\n"
                               "\"a \"\"b\"\"\",1,red,10.5,3,7\n"
                               ",2,blue,20,4,8\n"
                               "ccc,3,red,30,5,9\n";
    static const char *const names[] = { "", "a \"b\"", "", "ccc" };
    stoker_dataset *dataset =
        open_good(text, "?label=price,sale price&categories=kind,rooms&bytes=name");
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    static const char *const fields[] = { "row", "price", "sale_price", "kind", "rooms", "name" };
    cr_assert_eq(info->field_count, 6);
    cr_assert_eq(info->part_count, 2);
    cr_assert_null(info->rows);
    for (uint32_t f = 0; f < 6; f++)
        cr_assert_str_eq(stoker_dataset_field(dataset, f)->name, fields[f]);
    cr_assert_eq(stoker_dataset_field(dataset, 3)->class_count, 2);
    cr_assert_str_eq(stoker_dataset_field_class_name(dataset, 3, 1), "red");
    cr_assert_null(stoker_dataset_field_class_name(dataset, 3, 2));
    cr_assert_str_eq(stoker_dataset_field_class_name(dataset, 4, 2), "5");
    cr_assert_null(stoker_dataset_field_class_name(dataset, 0, 0), "numbers");
    cr_assert_null(stoker_dataset_field_class_name(dataset, 5, 0), "text");
    cr_assert_null(stoker_dataset_field_class_name(dataset, 6, 0), "no field");
    cr_assert_null(stoker_dataset_class_name(dataset, 0), "no label");
    check_description(dataset,
                      "6 of 6 columns read; kind: 2 words (blue, red); rooms: 3 words (3, 4, 5)");
    for (uint64_t id = 0; id < 3; id++) {
        struct stk_fields_of sample = stk_fields_read(dataset, id);
        const float x = (float)id + 1;
        const float prices[2] = { id == 0 ? 10.5F : 10.0F * x, 6 + x };
        const int64_t kind = id == 1 ? 0 : 1;
        const int64_t rooms = (int64_t)id;
        stk_fields_check(dataset, &sample, "row", &x, 0, sizeof(x));
        stk_fields_check(dataset, &sample, "price", &prices[0], 0, sizeof(float));
        stk_fields_check(dataset, &sample, "sale_price", &prices[1], 0, sizeof(float));
        stk_fields_check(dataset, &sample, "kind", &kind, 0, sizeof(kind));
        stk_fields_check(dataset, &sample, "rooms", &rooms, 0, sizeof(rooms));
        stk_fields_check(dataset, &sample, "name", names[id + 1], strlen(names[id + 1]),
                         strlen(names[id + 1]));
        stk_fields_free(&sample);
    }
    stoker_dataset_close(&dataset);

    /* Without text the rows stay resident; names that are taken, or no names, give way to numbers. */
    dataset = open_good("1,x,y\n2,x,z\n", "?header=0&label=2&categories=3");
    cr_assert_not_null(stoker_dataset_get_info(dataset)->rows);
    cr_assert_eq(stoker_dataset_find_field(dataset, "label"), 1);
    cr_assert_eq(stoker_dataset_find_field(dataset, "column3"), 2);
    cr_assert_str_eq(stoker_dataset_class_name(dataset, 0), "x");
    cr_assert_str_eq(stoker_dataset_field_class_name(dataset, 1, 0), "x");
    cr_assert_str_eq(stoker_dataset_field_class_name(dataset, 2, 1), "z");
    stoker_dataset_close(&dataset);
    dataset = open_good("a,row,b c,b_c\n1,x,y,z\n", "?categories=row,b c,b_c");
    cr_assert_eq(stoker_dataset_find_field(dataset, "column2"), 1);
    cr_assert_eq(stoker_dataset_find_field(dataset, "b_c"), 2);
    cr_assert_eq(stoker_dataset_find_field(dataset, "column4"), 3);
    stoker_dataset_close(&dataset);
}

/* More words than the first table has room for. */
CleanTest(csv, many_words_keep_their_order)
{
    enum { WORDS = 5000 };
    static char text[16 * WORDS];
    size_t used = 0;
    for (int i = 0; i < WORDS; i++)
        used +=
            (size_t)snprintf(text + used, sizeof(text) - used, "%d,w%04d\n", i, (i * 1237) % WORDS);
    stoker_dataset *dataset = open_good(text, "?label=2");
    cr_assert_eq(stoker_dataset_get_info(dataset)->class_count, WORDS);
    for (uint64_t id = 0; id < WORDS; id++) {
        float row;
        char word[16];
        stoker_label label;
        read_row(dataset, id, &row, &label);
        (void)snprintf(word, sizeof(word), "w%04d", (int)label.index);
        cr_assert_eq(label.index, (int64_t)(id * 1237 % WORDS));
        cr_assert_str_eq(stoker_dataset_class_name(dataset, (uint32_t)label.index), word);
    }
    stoker_dataset_close(&dataset);
}

CleanTest(csv, too_many_words_are_refused)
{
    enum { WORDS = 65537 };
    static char text[9 * WORDS];
    stoker_dataset *dataset = NULL;
    stoker_error error = { 0 };
    size_t used = 0;
    for (int i = 0; i < WORDS; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "1,w%x\n", (unsigned)i);
    cr_assert_eq(open_text(&dataset, text, "?label=2", &error), STOKER_ELIMIT);
    cr_assert_not_null(strstr(error.message, "more than 65536 different words"), "%s",
                       error.message);
    cr_assert_eq(error.offset, used - 7);
}

CleanTest(csv, missing_values_are_filled_or_their_rows_left_out)
{
    static const char text[] = "a,b,y\n1,2,0\n,4,1\n5,NaN,2\n9,9,3\n";
    static const struct {
        const char *parameters;
        uint64_t count;
        float rows[4][2];
        const char *description;
    } cases[] = {
        { "?label=y&missing=drop",
          2,
          { { 1, 2 }, { 9, 9 } },
          "3 of 3 columns read; 2 rows with a missing value left out" },
        { "?label=y&missing=-7.5",
          4,
          { { 1, 2 }, { -7.5F, 4 }, { 5, -7.5F }, { 9, 9 } },
          "3 of 3 columns read; 2 missing values filled in" },
        { "?label=y&missing=mean",
          4,
          { { 1, 2 }, { 5, 4 }, { 5, 5 }, { 9, 9 } },
          "3 of 3 columns read; 2 missing values filled in" },
        { "?label=y&missing=drop&columns=a",
          3,
          { { 1, 5 }, { 9, 0 } },
          "2 of 3 columns read, not read: b; 1 rows with a missing value left out" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stoker_dataset *dataset = open_good(text, cases[i].parameters);
        const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
        cr_assert_eq(info->count, cases[i].count);
        cr_assert_arr_eq(info->rows, cases[i].rows, info->count * info->shape[0] * sizeof(float),
                         "case %zu", i);
        check_description(dataset, cases[i].description);
        stoker_dataset_close(&dataset);
    }
    /* A filled value is 0 after normalisation, and the deviation counts it, as if it had been there. */
    stoker_dataset *dataset = open_good("1\n\"\"\n5\n", "?missing=mean&zscore=1");
    const float *rows = stoker_dataset_get_info(dataset)->rows;
    cr_assert_float_eq(rows[0], -2 / sqrt(8.0 / 3), 1e-6);
    cr_assert_eq(rows[1], 0.0F);
    stoker_dataset_close(&dataset);
}

/* The test rows are chosen among those that are kept, and the mean is that of the training rows. */
CleanTest(csv, dropped_rows_are_no_part_of_a_split)
{
    char text[1024] = "";
    size_t used = 0;
    for (int i = 0; i < 20; i++)
        used +=
            (size_t)snprintf(text + used, sizeof(text) - used, i % 2 == 0 ? "%d\n" : "\"\"\n", i);
    stoker_dataset *train = open_good(text, "?missing=drop&test=0.5");
    stoker_dataset *test = open_good(text, "?missing=drop&test=0.5&split=test");
    cr_assert_eq(stoker_dataset_get_info(train)->count, 5);
    cr_assert_eq(stoker_dataset_get_info(test)->count, 5);
    float sum = 0;
    for (int i = 0; i < 5; i++)
        sum += ((const float *)stoker_dataset_get_info(train)->rows)[i] +
               ((const float *)stoker_dataset_get_info(test)->rows)[i];
    cr_assert_eq(sum, 90);
    stoker_dataset_close(&train);
    stoker_dataset_close(&test);
}

CleanTest(csv, columns_that_are_not_read_are_named)
{
    stoker_dataset *dataset = open_good("1,2\n3,4\n", "");
    check_description(dataset, NULL);
    stoker_dataset_close(&dataset);
    dataset = open_good("name,a,\"ci\x01ty\"\nx,1,y\n", "");
    check_description(
        dataset,
        "1 of 3 columns read, not read: name, ci?ty (text: categories= or bytes= reads it)");
    stoker_dataset_close(&dataset);
    dataset = open_good("x,1,y,2\n", "?header=0&columns=2");
    check_description(dataset, "1 of 4 columns read, not read: 1, 3, 4");
    stoker_dataset_close(&dataset);
    dataset = open_good("1,a,b,c,d,e,f,g,h,i,j\n", "?header=0");
    check_description(dataset,
                      "1 of 11 columns read, not read: 2, 3, 4, 5, 6, 7, 8, 9 and 2 more (text: "
                      "categories= or bytes= reads it)");
    stoker_dataset_close(&dataset);
}

/* ---- splits --------------------------------------------------------------------- */

enum { ROWS = 100 };

/* Row i is (i, 7, i x i), its label i. */
static size_t numbered_rows(char *text, size_t bytes)
{
    size_t used = 0;
    for (int i = 0; i < ROWS; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%d,7,%d,%d\n", i, i * i, i);
    return used;
}

static stoker_dataset *open_split(const char *parameters, const char *split)
{
    static char text[4096];
    stoker_dataset *dataset = NULL;
    stoker_error error = { 0 };
    size_t size = numbered_rows(text, sizeof(text));
    cr_assert_eq(open_bytes(&dataset, text, size, parameters, split, &error), STOKER_OK, "%s",
                 error.message);
    return dataset;
}

/* Mark the labels of a data set, each of which must be new. Returns how many. */
static uint64_t mark(const stoker_dataset *dataset, bool seen[ROWS])
{
    const uint64_t count = stoker_dataset_get_info(dataset)->count;
    float before = -1;
    for (uint64_t id = 0; id < count; id++) {
        float row[3];
        stoker_label label;
        read_row(dataset, id, row, &label);
        cr_assert_gt(label.value, before, "rows keep the order of the file");
        before = label.value;
        cr_assert_not(seen[(int)label.value]);
        seen[(int)label.value] = true;
    }
    return count;
}

CleanTest(csv, a_split_parts_the_rows)
{
    bool of_seed[2][ROWS] = { { false } };
    for (int seed = 0; seed < 2; seed++) {
        char parameters[64];
        (void)snprintf(parameters, sizeof(parameters), "?label=4&test=0.2&seed=%d", seed);
        stoker_dataset *test = open_split(parameters, "test");
        stoker_dataset *train = open_split(parameters, "train");
        stoker_dataset *first = open_split(parameters, NULL);
        cr_assert_eq(mark(test, of_seed[seed]), 20);
        bool all[ROWS];
        memcpy(all, of_seed[seed], sizeof(all));
        cr_assert_eq(mark(train, all), 80);
        cr_assert_arr_eq(stoker_dataset_get_info(first)->rows, stoker_dataset_get_info(train)->rows,
                         80 * 3 * sizeof(float), "the first split is train");
        stoker_dataset_close(&test);
        stoker_dataset_close(&train);
        stoker_dataset_close(&first);
    }
    cr_assert_arr_neq(of_seed[0], of_seed[1], sizeof(of_seed[0]));
}

CleanTest(csv, each_row_is_as_likely_for_testing)
{
    uint32_t tested[ROWS] = { 0 };
    enum { SEEDS = 400 };
    for (int seed = 0; seed < SEEDS; seed++) {
        char parameters[64];
        bool seen[ROWS] = { false };
        (void)snprintf(parameters, sizeof(parameters), "?label=4&test=0.25&split=test&seed=%d",
                       seed);
        stoker_dataset *test = open_split(parameters, NULL);
        cr_assert_eq(mark(test, seen), 25);
        stoker_dataset_close(&test);
        for (int row = 0; row < ROWS; row++)
            tested[row] += seen[row] ? 1 : 0;
    }
    double chi_square = 0;
    for (int row = 0; row < ROWS; row++)
        chi_square += pow((double)tested[row] - (double)SEEDS / 4, 2) / ((double)SEEDS / 4 * 0.75);
    cr_assert_lt(chi_square, 160); /* 100 draws: 99 on average, over 160 once in 10^4 */
}

CleanTest(csv, two_rows_or_a_tiny_share_leave_one_on_either_side)
{
    static const char *const shares[] = { "?test=0.01", "?test=0.99" };
    for (int i = 0; i < 2; i++) {
        for (int split = 0; split < 2; split++) {
            stoker_dataset *dataset = NULL;
            cr_assert_eq(
                open_bytes(&dataset, "1\n2\n", 4, shares[i], split == 0 ? "train" : "test", NULL),
                STOKER_OK);
            cr_assert_eq(stoker_dataset_get_info(dataset)->count, 1);
            stoker_dataset_close(&dataset);
        }
    }
}

CleanTest(csv, the_specs_split_and_the_options_may_not_differ)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { 0 };
    cr_assert_eq(open_bytes(&dataset, "1\n2\n", 4, "?test=0.5&split=train", "test", &error),
                 STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "\"test\": the spec asks for another"));
    cr_assert_eq(open_bytes(&dataset, "1\n2\n", 4, "?test=0.5&split=test", "test", &error),
                 STOKER_OK);
    stoker_dataset_close(&dataset);
}

CleanTest(csv, zscore_is_that_of_the_training_rows)
{
    stoker_dataset *plain = open_split("?label=4&test=0.3", "train");
    double mean = 0, square = 0;
    for (uint64_t id = 0; id < 70; id++) {
        float row[3];
        read_row(plain, id, row, NULL);
        mean += (double)row[0] / 70;
        square += (double)row[0] * (double)row[0] / 70;
    }
    const double deviation = sqrt(square - mean * mean);
    static const char *const splits[] = { "train", "test" };
    for (int split = 0; split < 2; split++) {
        stoker_dataset *scored = open_split("?label=4&test=0.3&zscore=1", splits[split]);
        for (uint64_t id = 0; id < stoker_dataset_get_info(scored)->count; id++) {
            float row[3];
            stoker_label label;
            read_row(scored, id, row, &label);
            cr_assert_float_eq(row[0], ((double)label.value - mean) / deviation, 1e-5);
            cr_assert_eq(row[1], 0.0F, "a column that never changes");
        }
        stoker_dataset_close(&scored);
    }
    stoker_dataset_close(&plain);
}

/* ---- the loader and a real file ------------------------------------------------- */

CleanTest(csv, a_loader_delivers_rows_and_labels)
{
    stoker_dataset *dataset = open_split("?label=4", NULL);
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    stoker_loader *loader = NULL;
    options.batch_size = 30;
    options.num_workers = 1;
    options.shuffle = true;
    options.epochs = 1;
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
