/* test_specs.c - views by name: what a spec says is what the calls make; and what it cannot
 * mean is refused with a word about where and how.
 */
#include "datasets/views/spec.h"
#include "loader/base/memory/memory.h"
#include "loader/dataset/dataset.h"
#include "support/files/folder_files.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/sets/read_row.h"
#include "support/sets/refused_specs.h"

/* The number that a sample of synth:bytes begins with: its id. */
static uint64_t word_of(const stoker_dataset *dataset, uint64_t id)
{
    uint8_t row[64] = { 0 };
    uint64_t word;
    stoker_error error = { .message = "" };
    cr_assert_eq(stk_read_row(dataset, id, row, sizeof(row), NULL, &error), STOKER_OK, "%s",
                 error.message);
    memcpy(&word, row, sizeof(word));
    return word;
}

static stoker_dataset *open_split(const char *spec, const char *split)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    stoker_dataset_options options = STOKER_DATASET_OPTIONS_INIT;
    options.split = split;
    cr_assert_eq(stoker_dataset_open(&dataset, spec, &options, &error), STOKER_OK, "%s: %s", spec,
                 error.message);
    return dataset;
}

/* Same samples in the same order; closes both. */
static void expect_equal(stoker_dataset *a, stoker_dataset *b)
{
    const uint64_t count = stoker_dataset_get_info(a)->count;
    cr_assert_eq(count, stoker_dataset_get_info(b)->count);
    for (uint64_t id = 0; id < count; id++)
        cr_assert_eq(word_of(a, id), word_of(b, id));
    stoker_dataset_close(&a);
    stoker_dataset_close(&b);
}

#define SET "synth:bytes?count=20&shape=8"

/* ---- parentheses -------------------------------------------------------------------------- */

CleanTest(view_specs, wrap_what_is_in_parentheses)
{
    static const char ids[] = "3 # the third\n\n 1\r\n19";
    char spec[400];
    struct stk_memory_file chosen = stk_memory_file(ids, sizeof(ids) - 1);

    stoker_dataset *view = dataset_of("concat:(" SET ")+(synth:bytes?count=5&shape=8)");
    cr_assert_eq(stoker_dataset_get_info(view)->count, 25);
    cr_assert_eq(word_of(view, 19), 19);
    cr_assert_eq(word_of(view, 20), 0);
    stoker_dataset_close(&view);

    (void)snprintf(spec, sizeof(spec), "select:%s:(" SET ")", chosen.path);
    view = dataset_of(spec);
    cr_assert_eq(stoker_dataset_get_info(view)->count, 3);
    cr_assert_eq(word_of(view, 0), 3);
    cr_assert_eq(word_of(view, 1), 1);
    cr_assert_eq(word_of(view, 2), 19);
    stoker_dataset_close(&view);

    close(chosen.fd);
}

CleanTest(view_specs, nest)
{
    stoker_dataset *view = dataset_of("concat:(concat:(" SET "&test=0.5&seed=3)+(" SET
                                      "&test=0.5))+(concat:(" SET "))?test=0.25");
    cr_assert_str_eq(stoker_dataset_name(view), "split");
    cr_assert_eq(stoker_dataset_get_info(view)->count, 30);
    stoker_dataset_close(&view);
}

/* Parentheses and question marks in the names of files. */
CleanTest(view_specs, take_names_with_marks_in_them)
{
    char spec[600], name[64];
    const struct stk_directory directory = stk_directory_make();
    stk_file_write(&directory, "ids (1)?test=0.5", "1 2", 3);
    (void)snprintf(spec, sizeof(spec), "select:%s/ids (1)?test=0.5:(" SET ")", directory.path);
    stoker_dataset *view = dataset_of(spec);
    cr_assert_eq(stoker_dataset_get_info(view)->count, 2);
    stoker_dataset_close(&view);
    static const uint8_t file[] = { 0, 0, 8, 2, 0, 0, 0, 4, 0, 0, 0, 1, 1, 2, 3, 4 };
    (void)snprintf(name, sizeof(name), "a?test=0.5");
    stk_file_write(&directory, name, file, sizeof(file));
    (void)snprintf(spec, sizeof(spec), "idx:%s/%s", directory.path, name);
    view = dataset_of(spec);
    cr_assert_eq(stoker_dataset_get_info(view)->count, 4);
    stoker_dataset_close(&view);
    (void)snprintf(spec, sizeof(spec), "%s/%s?test=0.25&split=test", directory.path, name);
    view = dataset_of(spec);
    cr_assert_eq(stoker_dataset_get_info(view)->count, 1);
    stoker_dataset_close(&view);
    stk_directory_remove(&directory);
}

/* ---- parameters of every spec -------------------------------------------------------------- */

CleanTest(view_specs, split_any_format)
{
    stoker_split split = stk_split_of(.test = 0.25, .seed = 7);
    for (int stratified = 0; stratified < 2; stratified++)
        for (int side = 0; side < 2; side++) {
            char spec[200];
            stoker_dataset *inner = dataset_of(SET);
            stoker_dataset *made = NULL;
            split.side = (stoker_side)side;
            split.stratified = stratified == 1;
            cr_assert_eq(stoker_dataset_split(&made, inner, &split, NULL), STOKER_OK);
            (void)snprintf(spec, sizeof(spec), SET "&test=0.25&seed=7&stratified=%d&split=%s",
                           stratified, side == 1 ? "test" : "train");
            expect_equal(dataset_of(spec), made);
            stoker_dataset_close(&inner);
        }
    expect_equal(open_split(SET "&test=0.25", "test"), dataset_of(SET "&test=0.25&split=test"));
    expect_equal(open_split(SET "&test=0.25", NULL), dataset_of(SET "&split=train&test=0.25"));
    expect_equal(open_split(SET "&test=0.25&split=test", "test"),
                 dataset_of(SET "&seed=0&test=0.25&split=test"));
}

/* The split of a format that has some, by its name in the spec; with test= the format's first one
 * is split. */
CleanTest(view_specs, name_the_split_of_a_format)
{
    stoker_dataset *train = dataset_of("synth:digits?count=10&seed=4");
    stoker_dataset *test = open_split("synth:digits?count=10&seed=4", "test");
    stoker_dataset *named = dataset_of("synth:digits?count=10&seed=4&split=test");
    stoker_dataset *both = dataset_of("concat:(synth:digits?count=10&split=train&seed=4)+(synth:"
                                      "digits?count=10&seed=4&split=test)");
    uint8_t rows[2][784];
    for (uint64_t id = 0; id < 10; id++) {
        cr_assert_eq(stk_read_row(test, id, rows[0], 784, NULL, NULL), 0);
        cr_assert_eq(stk_read_row(named, id, rows[1], 784, NULL, NULL), 0);
        cr_assert_arr_eq(rows[0], rows[1], 784);
        cr_assert_eq(stk_read_row(both, 10 + id, rows[1], 784, NULL, NULL), 0);
        cr_assert_arr_eq(rows[0], rows[1], 784);
        cr_assert_eq(stk_read_row(train, id, rows[0], 784, NULL, NULL), 0);
        cr_assert_eq(stk_read_row(both, id, rows[1], 784, NULL, NULL), 0);
        cr_assert_arr_eq(rows[0], rows[1], 784);
    }
    stoker_dataset_close(&both);
    stoker_dataset_close(&named);
    stoker_dataset_close(&test);
    stoker_dataset_close(&train);
    stoker_dataset *side = open_split("synth:digits?count=10&seed=4&test=0.3", "test");
    cr_assert_eq(stoker_dataset_get_info(side)->count, 3);
    stoker_dataset_close(&side);
}

CleanTest(view_specs, split_a_folder_and_keep_its_parameters)
{
    struct stk_folder_set folder;
    char spec[600];
    stk_folder_make(&folder, 12, 3, true);
    for (int plain = 0; plain < 2; plain++) {
        (void)snprintf(spec, sizeof(spec),
                       plain ? "%s?test=0.25&stratified=1&weighted=balanced&split=train"
                             : "folder:%s?extensions=png&test=0.25&stratified=1&weighted=balanced",
                       folder.directory.path);
        stoker_dataset *view = dataset_of(spec);
        cr_assert_eq(stoker_dataset_get_info(view)->count, 9);
        cr_assert_not_null(view->weights);
        cr_assert_str_eq(stoker_dataset_class_name(view, 1, 2), "c02");
        stoker_dataset_close(&view);
    }
    stk_folder_remove(&folder);
}

CleanTest(view_specs, split_a_table)
{
    static const char table[] = "a,y\n1,0\n2,1\n3,0\n4,1\n5,0\n6,1\n7,0\n8,1\n9,0\n10,1\n";
    char spec[200];
    struct stk_memory_file file = stk_memory_file(table, sizeof(table) - 1);
    (void)snprintf(spec, sizeof(spec), "csv:%s?label=y&classes=2&test=0.2&stratified=1&seed=3",
                   file.path);
    stoker_dataset *sides[2] = { open_split(spec, "test"), open_split(spec, "train") };
    float sum = 0;
    for (int side = 0; side < 2; side++) {
        const uint64_t count = stoker_dataset_get_info(sides[side])->count;
        cr_assert_eq(count, side == 0 ? 2 : 8);
        for (uint64_t id = 0; id < count; id++) {
            float value;
            cr_assert_eq(stk_read_row(sides[side], id, &value, sizeof(value), NULL, NULL),
                         STOKER_OK);
            sum += value;
        }
        stoker_dataset_close(&sides[side]);
    }
    cr_assert_eq(sum, 55);
    close(file.fd);
}

/* ---- what is refused ------------------------------------------------------------------------ */

CleanTest(view_specs, that_mean_nothing_are_refused)
{
    static const struct stk_refused_spec rows[] = {
        { "concat:", NULL, STOKER_ESPEC, "write concat:(SPEC)+(SPEC), not \"\"" },
        { "concat:" SET, NULL, STOKER_ESPEC, "write concat:" },
        { "concat:(" SET, NULL, STOKER_ESPEC, "write concat:" },
        { "concat:(" SET ")(" SET ")", NULL, STOKER_ESPEC, "'+'" },
        { "concat:(" SET ")+", NULL, STOKER_ESPEC, "not \"\"" },
        { "concat:()", NULL, STOKER_ENOENT, "the name is empty" },
        { "concat:(" SET ")+(synth:bytes?count=2&shape=9)", NULL, STOKER_EMISMATCH, "8 uint8" },
        { "concat:(" SET ")+(nowhere:x)", NULL, STOKER_ESPEC, "nowhere" },
        { "select:(" SET ")", NULL, STOKER_ESPEC, "select:FILE:(SPEC)" },
        { "select:/nowhere/ids:(" SET ")", NULL, STOKER_ENOENT, "/nowhere/ids" },
        { SET "&test=0", NULL, STOKER_EINVAL, "above 0 and below 1" },
        { SET "&test=1", NULL, STOKER_EINVAL, "above 0 and below 1" },
        { SET "&test=nan", NULL, STOKER_ESPEC, "like 0.1" },
        { SET "&test=", NULL, STOKER_ESPEC, "0 bytes" },
        { SET "&test=0.1&test=0.2", NULL, STOKER_ESPEC, "given twice" },
        { SET "&test=0.1&seed=-1", NULL, STOKER_ESPEC, "decimal number" },
        { SET "&test=0.1&seed=123456789012345678901", NULL, STOKER_ESPEC, "19 digits" },
        { SET "&test=0.1&stratified=yes", NULL, STOKER_ESPEC, "0 or 1" },
        { SET "&test=0.1&split=valid", NULL, STOKER_EINVAL, "train and test" },
        { SET "&test=0.1", "valid", STOKER_EINVAL, "train and test" },
        { SET "&test=0.1&split=train", "test", STOKER_EINVAL, "another split" },
        { SET "&split=test", NULL, STOKER_EINVAL, "has no splits" },
        { SET "&stratified=1", NULL, STOKER_ESPEC, "needs test=" },
        { SET "&seed=1", NULL, STOKER_ESPEC, "needs test=" },
        { "tokens:x.bin?test=0.1&stratified=1", NULL, STOKER_ESPEC, "reads test= itself" },
        { SET "&weighted=class", NULL, STOKER_ESPEC, "balanced" },
        { SET "&tset=0.1", NULL, STOKER_ESPEC, "did you mean 'test'" },
        { "/nowhere?test=0.1", NULL, STOKER_ENOENT, "/nowhere" },
        { "concat:(((((((((((((((((" SET ")))))))))))))))))", NULL, STOKER_ELIMIT, "16" },
        { "conact:(" SET ")", NULL, STOKER_ESPEC, "concat" },
    };
    stk_expect_refused(rows, sizeof(rows) / sizeof(rows[0]));
}

/* Each prefix, and each bit of a good spec flipped: opened, or refused with a reason. */
CleanTest(view_specs, any_damage_is_survived)
{
    static const char good[] =
        "concat:(concat:(synth:bytes?count=20&shape=8&test=0.25&seed=7&split=test))+"
        "(synth:bytes?count=20&shape=8&test=0.5&stratified=1&weighted=balanced)?test=0.5";
    uint32_t opened = 0;
    char spec[sizeof(good)];
    for (size_t size = 0; size < sizeof(good); size++)
        for (int bit = -1; bit < 8; bit++) {
            stoker_dataset *dataset = NULL;
            stoker_error error = { .message = "" };
            memcpy(spec, good, sizeof(good));
            spec[size] = bit < 0 ? '\0' : (char)(spec[size] ^ (1 << bit));
            spec[sizeof(good) - 1] = '\0';
            const int rc = stoker_dataset_open(&dataset, spec, NULL, &error);
            cr_assert_eq(rc == STOKER_OK, dataset != NULL);
            cr_assert(rc == STOKER_OK || (error.code == rc && error.message[0] != '\0'), "%s",
                      spec);
            opened += rc == STOKER_OK;
            stoker_dataset_close(&dataset);
        }
    cr_assert_gt(opened, 10); /* the whole one, other counts and seeds */
}

/* ---- files of ids --------------------------------------------------------------------------- */

static int read_ids(uint64_t **ids, uint64_t *count, const void *bytes, size_t size,
                    stoker_error *error)
{
    struct stk_memory_file file = stk_memory_file(bytes, size);
    const int rc = stk_id_file_read(ids, count, &stk_storage_local, file.path, 1 << 20, error);
    close(file.fd);
    return rc;
}

CleanTest(view_specs, ids_that_are_none_are_refused_with_their_place)
{
    static const struct {
        const char *text;
        int code;
        const char *words;
    } cases[] = {
        { "", STOKER_EEMPTY, "no numbers" },
        { " \n# none\n", STOKER_EEMPTY, "no numbers" },
        { "1 2 x", STOKER_EFORMAT, "offset 4: not a sample id" },
        { "1 -2", STOKER_EFORMAT, "offset 2: not a sample id" },
        { "1.5", STOKER_EFORMAT, "offset 0: not a sample id" },
        { "18446744073709551616", STOKER_EFORMAT, "not a sample id" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t *ids = NULL, count = 0;
        stoker_error error = { .message = "" };
        cr_assert_eq(read_ids(&ids, &count, cases[i].text, strlen(cases[i].text), &error),
                     cases[i].code, "%s: %s", cases[i].text, error.message);
        cr_assert_not_null(strstr(error.message, cases[i].words), "%s", error.message);
        cr_assert_null(ids);
    }
}

/* An array of one axis, in each type: 3, 0, 100. */
static size_t put_array(uint8_t bytes[400], const char *descr, uint32_t element_bytes)
{
    static const uint64_t integers[] = { 3, 0, 100 };
    char text[128];
    (void)snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': (3,), }",
                   descr);
    memset(bytes, ' ', 128);
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(bytes + 10, text, strlen(text));
    bytes[127] = '\n';
    for (uint32_t i = 0; i < 3; i++) {
        uint8_t element[8];
        memcpy(element, &integers[i], 8);
        for (uint32_t at = 0; at < element_bytes; at++)
            bytes[128 + i * element_bytes + at] =
                element[descr[0] == '>' ? element_bytes - 1 - at : at];
    }
    return 128 + 3 * (size_t)element_bytes;
}

CleanTest(view_specs, numpy_arrays_are_ids)
{
    static const struct {
        const char *descr;
        uint32_t bytes;
    } types[] = { { "|u1", 1 }, { "|i1", 1 }, { "<u2", 2 }, { ">i2", 2 }, { "<i4", 4 },
                  { ">u4", 4 }, { "<i8", 8 }, { ">u8", 8 }, { "<f4", 4 }, { ">f8", 8 } };
    uint8_t bytes[400];
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        const size_t size = put_array(bytes, types[i].descr, types[i].bytes);
        const bool is_float = types[i].descr[1] == 'f';
        uint64_t *ids = NULL, count = 0;
        stoker_error error = { .message = "" };
        const int rc = read_ids(&ids, &count, bytes, size, &error);
        cr_assert_eq(rc, is_float ? STOKER_ENOTSUP : STOKER_OK, "%s: %s", types[i].descr,
                     error.message);
        cr_assert(is_float || (count == 3 && ids[0] == 3 && ids[1] == 0 && ids[2] == 100));
        stk_free(ids);
        for (size_t cut = 0; cut < size; cut++) /* each prefix */
            cr_assert_lt(read_ids(&ids, &count, bytes, cut, &error), 0);
        for (size_t bit = 0; bit < 8 * size; bit++) { /* each flipped bit */
            bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
            if (read_ids(&ids, &count, bytes, size, &error) == STOKER_OK)
                stk_free(ids);
            bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        }
    }
}
