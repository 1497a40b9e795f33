/* test_npy.c - NPY files: what NumPy writes is read right, and what is wrong is reported.
 *
 * Method: small files in memory. Every prefix and every flipped bit of them must give an error or a
 * data set that fits the file; every error is checked for code and place.
 */
#include "loader/base/fault.h"
#include "loader/reader/readers.h"
#include "support/files/array_files.h"
#include "support/leaks.h"
#include "support/runs/scenario.h"
#include "support/sets/fields_of.h"
#include "support/sets/label_of.h"
#include "support/sets/read_row.h"
#include "support/sets/refused_specs.h"

/* ---- files ---------------------------------------------------------------------- */

enum { COUNT = 6, HEIGHT = 3, WIDTH = 4, ROW = HEIGHT * WIDTH };

/* The header as NumPy pads it: elements begin at a multiple of 64. */
static void put_header(struct stk_bytes *to, int version, const char *text)
{
    const size_t fixed = version == 1 ? 10 : 12;
    const size_t whole = (fixed + strlen(text) + 1 + 63) / 64 * 64;
    const size_t text_bytes = whole - fixed;
    const uint8_t begin[12] = { 0x93,
                                'N',
                                'U',
                                'M',
                                'P',
                                'Y',
                                (uint8_t)version,
                                0,
                                (uint8_t)text_bytes,
                                (uint8_t)(text_bytes >> 8),
                                0,
                                0 };
    stk_put(to, begin, fixed);
    stk_put(to, text, strlen(text));
    while (to->size < whole - 1)
        stk_put(to, " ", 1);
    stk_put(to, "\n", 1);
}

static void put_array(struct stk_bytes *to, const char *descr, const char *shape,
                      const void *elements, size_t bytes)
{
    char text[200];
    (void)snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                   descr, shape);
    put_header(to, 1, text);
    stk_put(to, elements, bytes);
}

static struct stk_bytes small_rows(void)
{
    struct stk_bytes file = { 0 };
    uint8_t elements[COUNT * ROW];
    for (int i = 0; i < COUNT * ROW; i++)
        elements[i] = (uint8_t)(i * 7);
    put_array(&file, "|u1", "(6, 3, 4)", elements, sizeof(elements));
    return file;
}

static struct stk_bytes small_labels(void)
{
    struct stk_bytes file = { 0 };
    const int64_t elements[COUNT] = { 0, 1, 4, 9, 6, 5 };
    put_array(&file, "<i8", "(6,)", elements, sizeof(elements));
    return file;
}

static int open_files(stoker_dataset **out, const struct stk_bytes *rows,
                      const struct stk_bytes *labels, stoker_error *error)
{
    return stk_arrays_open(out, "npy", rows, labels, error);
}

/* ---- what is right -------------------------------------------------------------- */

CleanTest(npy, rows_are_extents_of_one_dense_file)
{
    const struct stk_bytes file = small_rows();
    const struct stk_bytes labels = small_labels();
    const size_t begin = file.size - COUNT * ROW;
    stoker_dataset *dataset = NULL;
    cr_assert_eq(open_files(&dataset, &file, &labels, NULL), STOKER_OK);
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_str_eq(stoker_dataset_name(dataset), "npy");
    cr_assert_eq(info->count, COUNT);
    cr_assert_eq(info->dtype, STOKER_DTYPE_UINT8);
    cr_assert_eq(info->rank, 3);
    cr_assert_eq(info->shape[0], HEIGHT);
    cr_assert_eq(info->shape[1], WIDTH);
    cr_assert_eq(info->shape[2], 1);
    cr_assert(info->is_image && info->dense);
    cr_assert_eq(info->label_dtype, STOKER_DTYPE_INT64);
    cr_assert_eq(info->class_count, 10);
    for (uint64_t id = 0; id < COUNT; id++) {
        uint8_t row[ROW];
        stoker_label label;
        stoker_part sample;
        cr_assert_eq(stoker_dataset_locate(dataset, id, &sample, NULL), STOKER_OK);
        cr_assert_eq(sample.extent.offset, begin + id * ROW);
        cr_assert_null(sample.codec);
        cr_assert_eq(stk_read_row(dataset, id, row, ROW, &label, NULL), STOKER_OK);
        cr_assert_arr_eq(row, file.at + begin + id * ROW, ROW);
        cr_assert_eq(label.index, (int64_t)(id * id % 10));
    }
    stoker_dataset_close(&dataset);
}

/* Small arrays are read at open, and swapped; large ones are parts, with a codec if they are
 * big-endian. */
CleanTest(npy, named_arrays_become_fields)
{
    const struct stk_directory directory = stk_directory_make();
    struct stk_bytes file = small_rows();
    uint8_t large[COUNT * 80];
    char spec[2048];
    stoker_dataset *dataset = NULL;
    stoker_error error = { 0 };
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (uint8_t)(i * 3);
    stk_file_write(&directory, "a,b.npy", file.at, file.size);
    file.size = 0;
    put_array(&file, ">i2", "(6,)", "\0\1\0\2\0\3\0\4\0\5\0\6", 12);
    stk_file_write(&directory, "n.npy", file.at, file.size);
    file.size = 0;
    put_array(&file, ">f4", "(6, 20)", large, sizeof(large));
    stk_file_write(&directory, "big.npy", file.at, file.size);
    file.size = 0;
    put_array(&file, "|b1", "(6, 2)", "\0\1\1\0\0\1\1\0\0\1\1\0", 12);
    stk_file_write(&directory, "flags.npy", file.at, file.size);
    file = small_labels();
    stk_file_write(&directory, "y.npy", file.at, file.size);
    const char *at = directory.path;
    (void)snprintf(
        spec, sizeof(spec),
        "npy:image=%s/a,b.npy,n=%s/n.npy,big=%s/big.npy,flags=%s/flags.npy,label=%s/y.npy", at, at,
        at, at, at);
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, &error), STOKER_OK, "%s", error.message);
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_eq(info->field_count, 5);
    cr_assert_eq(info->part_count, 2);
    cr_assert_eq(info->file_count, 2);
    cr_assert_eq(info->class_count, 10);
    cr_assert_eq(stoker_dataset_field(dataset, 0)->kind, STOKER_FIELD_KIND_IMAGE);
    cr_assert_eq(stoker_dataset_field(dataset, 1)->dtype, STOKER_DTYPE_INT16);
    cr_assert_eq(stoker_dataset_field(dataset, 3)->dtype, STOKER_DTYPE_BOOL);
    for (uint64_t id = 0; id < COUNT; id++) {
        struct stk_fields_of sample = stk_fields_read(dataset, id);
        uint8_t row[ROW];
        uint8_t swapped[80];
        const int16_t n = (int16_t)(id + 1);
        const uint8_t flags[2] = { (uint8_t)(id % 2), (uint8_t)(1 - id % 2) };
        const int64_t label = (int64_t)(id * id % 10);
        for (uint64_t i = 0; i < ROW; i++)
            row[i] = (uint8_t)((id * ROW + i) * 7);
        for (size_t i = 0; i < sizeof(swapped); i++)
            swapped[i] = large[id * 80 + (i / 4 * 4 + 3 - i % 4)];
        stk_fields_check(dataset, &sample, "image", row, 0, sizeof(row));
        stk_fields_check(dataset, &sample, "n", &n, 0, sizeof(n));
        stk_fields_check(dataset, &sample, "big", swapped, 0, sizeof(swapped));
        stk_fields_check(dataset, &sample, "flags", flags, 0, sizeof(flags));
        stk_fields_check(dataset, &sample, "label", &label, 0, sizeof(label));
        stk_fields_free(&sample);
    }
    stoker_dataset_close(&dataset);
    (void)snprintf(spec, sizeof(spec), "npy:image=%s/a,b.npy,big=", at);
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, &error), STOKER_ESPEC);
    cr_assert_not_null(strstr(error.message, "NAME=FILE"), "%s", error.message);
    stk_directory_remove(&directory);
}

/* Each type as rows, in either byte order. */
CleanTest(npy, each_element_type_arrives_in_host_order)
{
    static const struct {
        const char *type;
        stoker_dtype dtype;
        uint8_t stored[8]; /* big-endian */
    } rows[] = {
        { "b1", STOKER_DTYPE_UINT8, { 1 } },
        { "u1", STOKER_DTYPE_UINT8, { 0xFE } },
        { "i1", STOKER_DTYPE_INT8, { 0xFE } },
        { "i2", STOKER_DTYPE_INT16, { 0x80, 1 } },
        { "i4", STOKER_DTYPE_INT32, { 0x80, 0, 0, 2 } },
        { "i8", STOKER_DTYPE_INT64, { 0x80, 0, 0, 0, 0, 0, 0, 3 } },
        { "u2", STOKER_DTYPE_UINT16, { 0x80, 1 } },
        { "u4", STOKER_DTYPE_UINT32, { 0x80, 0, 0, 2 } },
        { "u8", STOKER_DTYPE_UINT64, { 0x80, 0, 0, 0, 0, 0, 0, 3 } },
        { "f2", STOKER_DTYPE_FLOAT16, { 0x3C, 0x01 } },
        { "f4", STOKER_DTYPE_FLOAT32, { 0xC0, 0x20, 0, 0 } },
        { "f8", STOKER_DTYPE_FLOAT64, { 0x40, 0x09, 0x21, 0xFB, 0x54, 0x44, 0x2D, 0x18 } },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const size_t bytes = stoker_dtype_bytes(rows[i].dtype);
        for (int big = 0; big <= 1; big++) {
            uint8_t little[8];
            uint8_t elements[48];
            char descr[8];
            struct stk_bytes file = { 0 };
            for (size_t b = 0; b < bytes; b++)
                little[b] = rows[i].stored[bytes - 1 - b];
            for (size_t element = 0; element < 6; element++)
                memcpy(elements + element * bytes, big ? rows[i].stored : little, bytes);
            (void)snprintf(descr, sizeof(descr), "%c%s", big ? '>' : '<', rows[i].type);
            put_array(&file, descr, "(2, 3)", elements, 6 * bytes);
            stoker_dataset *dataset = NULL;
            cr_assert_eq(open_files(&dataset, &file, NULL, NULL), STOKER_OK, "%s", descr);
            const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
            cr_assert_eq(info->dtype, rows[i].dtype);
            cr_assert_eq(info->rank, 1);
            cr_assert_eq(info->dense, !big || bytes == 1, "%s", descr);
            uint8_t row[24];
            cr_assert_eq(stk_read_row(dataset, 1, row, 3 * bytes, NULL, NULL), STOKER_OK);
            for (size_t element = 0; element < 3; element++)
                cr_assert_arr_eq(row + element * bytes, little, bytes, "%s", descr);
            stoker_dataset_close(&dataset);
        }
    }
}

CleanTest(npy, labels_of_every_type_are_kept)
{
    static const struct {
        const char *descr;
        uint8_t stored[16]; /* two of them */
        double labels[2];
        uint32_t classes;
    } rows[] = {
        { "|b1", { 1, 0 }, { 1, 0 }, 2 },
        { "|u1", { 255, 3 }, { 255, 3 }, 256 },
        { "|i1", { 255, 3 }, { -1, 3 }, 0 },
        { "<i2", { 0, 1, 2, 0 }, { 256, 2 }, 257 },
        { ">i2", { 1, 0, 0xFF, 0xFE }, { 256, -2 }, 0 },
        { "<u2", { 0xFF, 0xFF, 1, 0 }, { 65535, 1 }, 65536 },
        { "<i4", { 0, 0, 1, 0, 1, 0, 0, 0 }, { 65536, 1 }, 0 },
        { ">u4", { 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 1 }, { 4294967295.0, 1 }, 0 },
        { "<i8", { 7, 0, 0, 0, 0, 0, 0, 0, 2 }, { 7, 2 }, 8 },
        { ">u8", { 0, 0, 0, 0, 0, 0, 0, 7, 0 }, { 7, 0 }, 8 },
        { "<f2", { 0x01, 0x3C, 0, 0xC1 }, { 1.0009765625, -2.5 }, 0 },
        { "<f2", { 0x01, 0x00, 0xFF, 0x7B }, { 5.9604644775390625e-8, 65504 }, 0 },
        { "<f4", { 0, 0, 0x20, 0xC0, 0, 0, 0x80, 0x3F }, { -2.5, 1 }, 0 },
        { ">f8", { 0x40, 0x04, 0, 0, 0, 0, 0, 0, 0xC0, 0x04 }, { 2.5, -2.5 }, 0 },
    };
    struct stk_bytes samples = { 0 };
    put_array(&samples, "|u1", "(2,)", "ab", 2);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const bool real = rows[i].descr[1] == 'f';
        struct stk_bytes labels = { 0 };
        put_array(&labels, rows[i].descr, i % 2 == 0 ? "(2,)" : "(2, 1)", rows[i].stored,
                  2 * (size_t)(rows[i].descr[2] - '0'));
        stoker_dataset *dataset = NULL;
        cr_assert_eq(open_files(&dataset, &samples, &labels, NULL), STOKER_OK, "row %zu", i);
        const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
        cr_assert_eq(info->label_dtype, real ? STOKER_DTYPE_FLOAT32 : STOKER_DTYPE_INT64);
        cr_assert_eq(info->class_count, rows[i].classes, "row %zu", i);
        cr_assert_eq(info->rank, 0);
        for (uint64_t id = 0; id < 2; id++) {
            uint8_t row;
            stoker_label label;
            cr_assert_eq(stk_read_row(dataset, id, &row, 1, &label, NULL), STOKER_OK);
            cr_assert_eq(row, "ab"[id]);
            const double found = real ? (double)label.value : (double)label.index;
            cr_assert_eq(found, rows[i].labels[id], "row %zu: %.17g", i, found);
        }
        stoker_dataset_close(&dataset);
    }
}

CleanTest(npy, axes_make_scalars_images_and_tensors)
{
    static const struct {
        const char *descr, *shape;
        size_t bytes;
        uint32_t rank;
        bool is_image;
    } rows[] = {
        { "|u1", "(2,)", 2, 0, false },
        { "|u1", "(2, 5)", 10, 1, false },
        { "|u1", "(2, 5, 3)", 30, 3, true },
        { "|i1", "(2, 5, 3)", 30, 2, false },
        { "|u1", "(2, 5, 3, 4)", 120, 3, true },
        { "|u1", "(2, 3, 5, 5)", 150, 3, false },
        { "<f4", "(2, 5, 3, 3)", 360, 3, false },
        { "|u1", "(2, 1, 2, 1, 2, 1, 2, 1)", 16, 7, false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static const uint8_t zeros[400];
        struct stk_bytes file = { 0 };
        put_array(&file, rows[i].descr, rows[i].shape, zeros, rows[i].bytes);
        stoker_dataset *dataset = NULL;
        cr_assert_eq(open_files(&dataset, &file, NULL, NULL), STOKER_OK, "row %zu", i);
        const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
        cr_assert_eq(info->rank, rows[i].rank, "row %zu", i);
        cr_assert_eq(info->is_image, rows[i].is_image, "row %zu", i);
        stk_arrays_check_read(dataset, file.size);
        stoker_dataset_close(&dataset);
    }
}

/* ---- headers -------------------------------------------------------------------- */

#define GOOD "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }"

CleanTest(npy, a_header_may_be_written_in_several_ways)
{
    static const struct {
        int version;
        const char *text;
    } rows[] = {
        { 1, GOOD },
        { 2, GOOD },
        { 3, GOOD },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)}" },
        { 1, "{\"shape\":(2,3,),\"fortran_order\":False,\"descr\":\"<u1\"}" },
        { 1, "  { 'shape' : ( 2L , 3L ) , 'descr' : '>u1' , 'fortran_order' : False , }   " },
        { 1, "{'descr': '|u1', 'fortran_order': True, 'shape': (6,), }" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stk_bytes file = { 0 };
        put_header(&file, rows[i].version, rows[i].text);
        stk_put(&file, "abcdef", 6);
        stoker_dataset *dataset = NULL;
        stoker_error error = { .message = "" };
        cr_assert_eq(open_files(&dataset, &file, NULL, &error), STOKER_OK, "%s: %s", rows[i].text,
                     error.message);
        stk_arrays_check_read(dataset, file.size);
        stoker_dataset_close(&dataset);
    }
}

CleanTest(npy, each_fault_of_a_header_has_its_code)
{
    static const struct {
        int version;
        const char *text;
        int code;
    } rows[] = {
        { 0, GOOD, STOKER_EFORMAT },
        { 4, GOOD, STOKER_EFORMAT },
        { 1, "", STOKER_EFORMAT },
        { 1, "{}", STOKER_EFORMAT },
        { 1, "{'descr': '|u1', 'fortran_order': False, }", STOKER_EFORMAT },
        { 1, "{'descr': '|u1', 'shape': (2, 3), }", STOKER_EFORMAT },
        { 1, "{'fortran_order': False, 'shape': (2, 3), }", STOKER_EFORMAT },
        { 1, "{'descr': '|u1', 'descr': '|u1', 'shape': (2, 3), }", STOKER_EFORMAT },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), 'x': 1}", STOKER_EFORMAT },
        { 1, "{'descr': '|u1', 'fortran_order': False 'shape': (2, 3)}", STOKER_EFORMAT },
        { 1, "{'descr': '|u1', 'fortran_order': false, 'shape': (2, 3)}", STOKER_EFORMAT },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)", STOKER_EFORMAT },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)}}", STOKER_EFORMAT },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': 6}", STOKER_EFORMAT },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (6)}", STOKER_EFORMAT },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': ()}", STOKER_EFORMAT },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2 3)}", STOKER_EFORMAT },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2,, 3)}", STOKER_EFORMAT },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (-2, 3)}", STOKER_EFORMAT },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (02, 3)}", STOKER_EFORMAT },
        { 3, "{'descr': '|u1', 'fortran_order': False, 'shape': (2L, 3)}", STOKER_EFORMAT },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 0)}", STOKER_EFORMAT },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (0, 3)}", STOKER_EEMPTY },
        { 1, "{'descr': '|u1\\n', 'fortran_order': False, 'shape': (2, 3)}", STOKER_EFORMAT },
        { 1, "{'descr': u'|u1', 'fortran_order': False, 'shape': (2, 3)}", STOKER_EFORMAT },
        { 1, "{'descr': '', 'fortran_order': False, 'shape': (2, 3)}", STOKER_ENOTSUP },
        { 1, "{'descr': '<', 'fortran_order': False, 'shape': (2, 3)}", STOKER_ENOTSUP },
        { 1, "{'descr': '<f', 'fortran_order': False, 'shape': (2, 3)}", STOKER_ENOTSUP },
        { 1, "{'descr': '|f4', 'fortran_order': False, 'shape': (2, 3)}", STOKER_ENOTSUP },
        { 1, "{'descr': '<f1', 'fortran_order': False, 'shape': (2, 3)}", STOKER_ENOTSUP },
        { 1, "{'descr': '<b2', 'fortran_order': False, 'shape': (1, 3)}", STOKER_ENOTSUP },
        { 1, "{'descr': '<c8', 'fortran_order': False, 'shape': (2, 3)}", STOKER_ENOTSUP },
        { 1, "{'descr': '|O', 'fortran_order': False, 'shape': (2, 3)}", STOKER_ENOTSUP },
        { 1, "{'descr': '<U16', 'fortran_order': False, 'shape': (2, 3)}", STOKER_ENOTSUP },
        { 1, "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,)}", STOKER_ENOTSUP },
        { 1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", STOKER_ENOTSUP },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2,1,1,1,1,1,1,1,3)}",
          STOKER_ELIMIT },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999,)}",
          STOKER_ELIMIT },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1073741825)}", STOKER_ELIMIT },
        { 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 4294967296, 4294967296)}",
          STOKER_ELIMIT },
        { 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (18446744073709551615, 3)}",
          STOKER_ELIMIT },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 4)}", STOKER_ETRUNCATED },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2)}", STOKER_EOVERSIZE },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stk_bytes file = { 0 };
        put_header(&file, rows[i].version, rows[i].text);
        stk_put(&file, "abcdef", 6);
        stoker_error error = { 0 };
        stoker_dataset *dataset = NULL;
        int rc = open_files(&dataset, &file, NULL, &error);
        cr_assert_eq(rc, rows[i].code, "%s: %s", rows[i].text, error.message);
        cr_assert_null(dataset);
        cr_assert_eq(error.code, rc);
        cr_assert_eq(error.stage, STOKER_STAGE_OPEN);
        cr_assert_eq(strncmp(error.path, "/proc/self/fd/", 14), 0);
    }
}

/* A header that says 4 GiB of itself, in a file that is as long. */
CleanTest(npy, a_huge_header_is_refused_before_it_is_read)
{
    static const uint8_t begin[12] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 0xF0, 255, 255, 255 };
    struct stk_memory_file file = stk_memory_file(begin, sizeof(begin));
    cr_assert_eq(ftruncate(file.fd, (off_t)5 << 30), 0);
    char spec[64];
    (void)snprintf(spec, sizeof(spec), "npy:%s", file.path);
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    const uint64_t before = stk_fault_allocations();
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, &error), STOKER_ELIMIT, "%s",
                 error.message);
    cr_assert_leq(stk_fault_allocations() - before, 6); /* the set itself and its path */
    close(file.fd);
}

/* ---- labels that do not fit ----------------------------------------------------- */

CleanTest(npy, labels_must_fit_their_rows)
{
    static const struct {
        const char *descr, *shape;
        uint8_t last[8];
        int code;
    } rows[] = {
        { "<i8", "(5,)", { 0 }, STOKER_EMISMATCH },
        { "<i8", "(6, 2)", { 0 }, STOKER_EFORMAT },
        { "<i8", "(6, 1, 1)", { 0 }, STOKER_EFORMAT },
        { "<f4", "(6,)", { 0, 0, 0x80, 0x7F }, STOKER_EFORMAT },
        { "<f4", "(6,)", { 0, 0, 0xC0, 0xFF }, STOKER_EFORMAT },
        { "<f2", "(6,)", { 0, 0x7C }, STOKER_EFORMAT },
        { "<f2", "(6,)", { 1, 0x7C }, STOKER_EFORMAT },
        { "<f8", "(6,)", { 0, 0, 0, 0, 0, 0, 0xF0, 0x47 }, STOKER_EFORMAT }, /* 3.4e38 x 1e9 */
        { "<u8", "(6,)", { 0, 0, 0, 0, 0, 0, 0, 0x80 }, STOKER_EFORMAT },
    };
    const struct stk_bytes samples = small_rows();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const size_t element_bytes = (size_t)(rows[i].descr[2] - '0');
        const size_t count = rows[i].shape[1] == '5'              ? 5
                             : strchr(rows[i].shape, '2') != NULL ? 12
                                                                  : 6;
        uint8_t elements[96] = { 0 };
        struct stk_bytes labels = { 0 };
        memcpy(elements + (count - 1) * element_bytes, rows[i].last, element_bytes);
        put_array(&labels, rows[i].descr, rows[i].shape, elements, count * element_bytes);
        stoker_error error = { 0 };
        stoker_dataset *dataset = NULL;
        cr_assert_eq(open_files(&dataset, &samples, &labels, &error), rows[i].code, "row %zu: %s",
                     i, error.message);
        if (i >= 3)
            cr_assert_eq(error.offset, labels.size - element_bytes);
    }
}

CleanTest(npy, labels_over_the_limit_are_not_taken)
{
    enum { LABELS = 2500 }; /* more than are read at once */
    static uint8_t elements[LABELS];
    struct stk_bytes file = { 0 };
    for (int i = 0; i < LABELS; i++)
        elements[i] = (uint8_t)(i % 251);
    put_array(&file, "|u1", "(2500,)", elements, sizeof(elements));
    struct stk_memory_file memory = stk_memory_file(file.at, file.size);
    char spec[128];
    (void)snprintf(spec, sizeof(spec), "npy:%s,%s", memory.path, memory.path);
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    stoker_dataset_options options = { .struct_size = sizeof(stoker_dataset_options),
                                       .max_bytes = 8 * LABELS - 1 };
    cr_assert_eq(stoker_dataset_open(&dataset, spec, &options, &error), STOKER_ELIMIT);
    options.max_bytes = 8 * LABELS;
    cr_assert_eq(stoker_dataset_open(&dataset, spec, &options, &error), STOKER_OK);
    for (uint64_t id = 0; id < LABELS; id++) {
        cr_assert_eq(stk_label_of(dataset, id), (int64_t)(id % 251));
    }
    stoker_dataset_close(&dataset);
    close(memory.fd);
}

/* ---- damage --------------------------------------------------------------------- */

CleanTest(npy, every_prefix_of_a_file_is_an_error)
{
    const struct stk_bytes rows = small_rows();
    stk_arrays_check_prefixes("npy", &rows);
}

CleanTest(npy, every_flipped_bit_gives_an_error_or_a_set_that_fits)
{
    const struct stk_bytes rows = small_rows();
    const struct stk_bytes labels = small_labels();
    const unsigned opened = stk_arrays_flip_bits("npy", &rows, &labels, COUNT, ROW);
    /* All flips of elements, and few of the headers'. */
    cr_assert_geq(opened, (COUNT * ROW + COUNT * 8) * 8);
    cr_assert_leq(opened, (COUNT * ROW + COUNT * 8) * 8 + 32, "%u", opened);
}

CleanTest(npy, each_allocation_may_fail)
{
    const struct stk_bytes rows = small_rows();
    const struct stk_bytes labels = small_labels();
    cr_assert_geq(stk_arrays_fail_allocations("npy", &rows, &labels), 4);
}

/* ---- the spec, and a run -------------------------------------------------------- */

CleanTest(npy, the_spec_is_read_as_written)
{
    static const struct stk_refused_spec rows[] = {
        { "npy:", NULL, STOKER_ESPEC, NULL },
        { "npy:,", NULL, STOKER_ESPEC, NULL },
        { "npy:a,", NULL, STOKER_ESPEC, NULL },
        { "npy:,b", NULL, STOKER_ESPEC, NULL },
        { "npy:a", "train", STOKER_EINVAL, NULL },
        { "npy:missing-a,missing-b", NULL, STOKER_ENOENT, NULL },
        { "npy:missing-a,missing-b?mmap=1", NULL, STOKER_ESPEC, "npy: mmap: no such parameter" },
        { "npy:x=missing-a?mmap=1", NULL, STOKER_ESPEC, "npy: mmap: no such parameter" },
        { "npy:missing?", NULL, STOKER_ENOENT, NULL },
        { "npy:missing?b.npy", NULL, STOKER_ENOENT, NULL },
    };
    stk_expect_refused(rows, sizeof(rows) / sizeof(rows[0]));
}

/* Big rows and little ones, by either reader and many workers: the same batches. */
CleanTest(npy, a_plain_path_is_recognized_and_every_reader_brings_the_same)
{
    static const stoker_reader *const readers[] = { &stk_reader_pread, NULL };
    static struct stk_run runs[2];
    const struct stk_directory directory = stk_directory_make();
    for (int big = 0; big <= 1; big++) {
        uint8_t elements[50 * 12];
        struct stk_bytes file = { 0 };
        char path[512];
        for (size_t i = 0; i < sizeof(elements); i++)
            elements[i] = stk_set_byte(i / 12, (uint32_t)(i % 12));
        put_array(&file, big ? ">f4" : "<f4", "(50, 3)", elements, sizeof(elements));
        stk_file_write(&directory, "rows,of.npy", file.at, file.size);
        stoker_dataset *dataset = NULL;
        cr_assert_eq(
            stoker_dataset_open(&dataset, stk_path_in(path, &directory, "rows,of.npy"), NULL, NULL),
            STOKER_OK);
        cr_assert_str_eq(stoker_dataset_name(dataset), "npy");
        stoker_loader_options options = stk_small_options();
        for (int i = 0; i < 2; i++) {
            options.reader = readers[i];
            options.num_workers = i * 3;
            cr_assert_eq(stk_run(dataset, &options, &runs[i]), STOKER_FINISHED);
        }
        cr_assert_eq(runs[0].samples, 100);
        cr_assert(stk_runs_equal(&runs[0], &runs[1]));
        stoker_dataset_close(&dataset);
    }
    stk_directory_remove(&directory);
}
