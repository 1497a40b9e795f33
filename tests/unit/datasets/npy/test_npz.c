/* test_npz.c - NumPy archives: what NumPy and Python's zipfile write is read right, and what is
 * wrong is reported.
 *
 * Method: archives made by tests/golden/make_npz_golden.py. Every prefix and every flipped bit of
 * them must give an error or a data set that reads; faults are written into them one by one.
 */
#include "support/files/dataset_files.h"
#include "support/sets/read_row.h"
#include "support/sets/refused_specs.h"
#include "support/sweep.h"

enum { ROWS = 6, PIXELS = 12, ARCHIVE_BYTES_MAX = 4096 };

static struct archive {
    const char *name;
    bool deflated;
    size_t size;
    uint8_t bytes[ARCHIVE_BYTES_MAX];
} archives[] = {
    { .name = "stored" },
    { .name = "zip64" },
    { .name = "commented" },
    { .name = "deflated", .deflated = true },
};
enum { ARCHIVES = sizeof(archives) / sizeof(archives[0]) };

static struct archive *const stored = &archives[0];
static struct archive *const deflated = &archives[3];

static void read_archives(void)
{
    for (size_t i = 0; i < ARCHIVES; i++) {
        char path[512];
        (void)snprintf(path, sizeof(path), STOKER_TEST_SOURCES "/tests/golden/npz/%s.npz",
                       archives[i].name);
        FILE *file = fopen(path, "rb");
        cr_assert_not_null(file, "%s", path);
        archives[i].size = fread(archives[i].bytes, 1, ARCHIVE_BYTES_MAX, file);
        cr_assert_gt(archives[i].size, 0);
        fclose(file);
    }
}

TestSuite(npz, .init = read_archives);

static int open_bytes(stoker_dataset **out, const void *bytes, size_t size, const char *parameters,
                      uint64_t max_bytes, stoker_error *error)
{
    const stoker_dataset_options options = { .struct_size = sizeof(options),
                                             .max_bytes = max_bytes };
    struct stk_memory_file file = stk_memory_file(bytes, size);
    char spec[300];
    (void)snprintf(spec, sizeof(spec), "npz:%s%s", file.path, parameters);
    const int rc = stoker_dataset_open(out, spec, &options, error);
    close(file.fd);
    return rc;
}

static stoker_dataset *open_good(const struct archive *archive, const char *parameters)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { 0 };
    cr_assert_eq(open_bytes(&dataset, archive->bytes, archive->size, parameters, 1 << 20, &error),
                 STOKER_OK, "%s", error.message);
    return dataset;
}

/* ---- what is right -------------------------------------------------------------- */

static void check_sample(const stoker_dataset *dataset, uint64_t id)
{
    uint8_t pixels[PIXELS];
    float targets[2];
    int16_t label = -1;
    stoker_error error = { 0 };
    stoker_row rows[3] = { { .data = pixels, .bytes_max = sizeof(pixels) },
                           { .data = targets, .bytes_max = sizeof(targets) },
                           { .data = &label, .bytes_max = sizeof(label) } };
    cr_assert_eq(stoker_dataset_read(dataset, id, rows, &error), STOKER_OK, "%s", error.message);
    for (uint64_t i = 0; i < PIXELS; i++)
        cr_assert_eq(pixels[i], (id * PIXELS + i) * 7 % 256);
    for (uint64_t i = 0; i < 2; i++)
        cr_assert_eq(targets[i], (float)(id * 2 + i) * 0.5F - 1);
    cr_assert_eq(label, id * id % 5);
}

CleanTest(npz, what_numpy_writes_is_read)
{
    for (int i = 0; i < ARCHIVES; i++) {
        stoker_dataset *dataset = open_good(&archives[i], "");
        const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
        cr_assert_eq(info->count, ROWS);
        cr_assert_eq(info->field_count, 3);
        cr_assert_str_eq(stoker_dataset_name(dataset), "npz");
        const stoker_field_info *x = stoker_dataset_field(dataset, 0);
        cr_assert_str_eq(x->name, "x");
        cr_assert_eq(x->kind, STOKER_FIELD_KIND_IMAGE);
        cr_assert_eq(x->rank, 3);
        cr_assert_eq(stoker_dataset_field(dataset, 1)->dtype, STOKER_DTYPE_FLOAT32);
        cr_assert_eq(stoker_dataset_field(dataset, 1)->shape[0], 2);
        cr_assert_eq(stoker_dataset_field(dataset, 2)->dtype, STOKER_DTYPE_INT16);
        for (uint64_t id = 0; id < ROWS; id++)
            check_sample(dataset, id);
        stoker_dataset_close(&dataset);
    }
}

CleanTest(npz, fields_chooses_orders_and_renames)
{
    for (int i = 0; i < ARCHIVES; i++) {
        stoker_dataset *dataset = open_good(&archives[i], "?fields=t,label=y");
        cr_assert_eq(stoker_dataset_get_info(dataset)->field_count, 2);
        cr_assert_eq(stoker_dataset_get_info(dataset)->label_dtype, STOKER_DTYPE_INT64);
        cr_assert_eq(stoker_dataset_get_info(dataset)->class_count, 5);
        cr_assert_eq(stoker_dataset_find_field(dataset, "t"), 0);
        for (uint64_t id = 0; id < ROWS; id++) {
            float targets[2];
            stoker_label label = { .index = -1 };
            cr_assert_eq(stk_read_row(dataset, id, targets, sizeof(targets), &label, NULL),
                         STOKER_OK);
            cr_assert_eq(targets[1], (float)(id * 2 + 1) * 0.5F - 1);
            cr_assert_eq(label.index, (int64_t)(id * id % 5));
        }
        stoker_dataset_close(&dataset);
    }
}

/* Stored rows are read in place; unpacked ones are resident, and need no file. */
CleanTest(npz, only_deflated_members_take_memory)
{
    stoker_error error = { 0 };
    stoker_dataset *dataset = open_good(&archives[0], "?fields=x");
    cr_assert(stoker_dataset_get_info(dataset)->dense);
    cr_assert_null(stoker_dataset_get_info(dataset)->rows);
    stoker_dataset_close(&dataset);
    dataset = open_good(&archives[3], "?fields=x,y");
    cr_assert_not_null(stoker_dataset_get_info(dataset)->rows);
    cr_assert_eq(stoker_dataset_get_info(dataset)->part_count, 1);
    stoker_dataset_close(&dataset);
    cr_assert_eq(open_bytes(&dataset, deflated->bytes, deflated->size, "", 199, &error),
                 STOKER_ELIMIT);
    cr_assert_not_null(strstr(error.message, "\"x.npy\": unpacked it takes more"), "%s",
                       error.message);
    cr_assert_eq(open_bytes(&dataset, deflated->bytes, deflated->size, "", 300, &error),
                 STOKER_ELIMIT);
    cr_assert_not_null(strstr(error.message, "\"t.npy\""), "%s", error.message);
}

CleanTest(npz, a_path_that_ends_in_npz_is_recognized)
{
    const struct stk_directory directory = stk_directory_make();
    char path[512];
    stoker_dataset *dataset = NULL;
    stk_file_write(&directory, "set.npz", stored->bytes, stored->size);
    cr_assert_eq(
        stoker_dataset_open(&dataset, stk_path_in(path, &directory, "set.npz"), NULL, NULL),
        STOKER_OK);
    cr_assert_str_eq(stoker_dataset_name(dataset), "npz");
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

/* ---- what is wrong -------------------------------------------------------------- */

static uint8_t bytes[ARCHIVE_BYTES_MAX];

/* Byte offset of the nth "PK" header of the kind `magic`. */
static size_t find(size_t size, const char magic[4], int nth)
{
    for (size_t at = 0; at + 4 <= size; at++)
        if (memcmp(bytes + at, magic, 4) == 0 && nth-- == 0)
            return at;
    cr_assert_fail("no such header");
    return 0;
}

static void expect(size_t size, const char *parameters, int code, const char *says)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { 0 };
    const int rc = open_bytes(&dataset, bytes, size, parameters, 1 << 20, &error);
    cr_assert_eq(rc, code, "%s: %s", stoker_error_name(rc), error.message);
    cr_assert_eq(error.code, code);
    cr_assert_null(dataset);
    cr_assert_not_null(strstr(error.message, says), "\"%s\" is not in: %s", says, error.message);
}

#define ENTRY "PK\1\2"
#define LOCAL "PK\3\4"
#define END   "PK\5\6"

/* A byte of the nth header of a kind is set, and this is said. */
static const struct fault {
    const char *magic;
    int nth;
    size_t at;
    uint8_t value;
    int code;
    const char *says;
} faults[] = {
    { LOCAL, 0, 0, 'Q', STOKER_EMAGIC, "begins with \"PK\"" },
    { LOCAL, 1, 0, 'Q', STOKER_EFORMAT, "no local header of \"t.npy\"" },
    { LOCAL, 1, 30, 'q', STOKER_EFORMAT, "no local header of \"t.npy\"" },
    { ENTRY, 1, 0, 'Q', STOKER_EFORMAT, "no entry of the directory" },
    { ENTRY, 1, 8, 1, STOKER_ENOTSUP, "\"t.npy\" is encrypted" },
    { ENTRY, 1, 10, 12, STOKER_ENOTSUP, "packed by method 12; stored and deflated" },
    { ENTRY, 1, 20, 0, STOKER_EFORMAT, "the sizes of \"t.npy\" do not agree" },
    { ENTRY, 1, 28, 0, STOKER_ELIMIT, "a name of 0 bytes" },
    { ENTRY, 1, 29, 9, STOKER_EFORMAT, "beyond the directory" },
    { ENTRY, 1, 44, 9, STOKER_EFORMAT, "does not lie before the directory" },
    { ENTRY, 1, 46, 'x', STOKER_EFORMAT, "\"x.npy\" is there twice" },
    { ENTRY, 1, 46, 0, STOKER_EFORMAT, "a NUL byte" },
    { END, 0, 4, 1, STOKER_ENOTSUP, "several files" },
    { END, 0, 10, 2, STOKER_EFORMAT, "more than its 2 entries" },
    { END, 0, 10, 4, STOKER_EFORMAT, "153 bytes for 4 entries" },
    { END, 0, 11, 0xFF, STOKER_ELIMIT, "65283 members" },
    { END, 0, 16, 1, STOKER_EFORMAT, "does not end at its end record" },
    { END, 0, 20, 1, STOKER_ETRUNCATED, "no end record" },
};

CleanTest(npz, each_fault_is_reported_with_its_member)
{
    const size_t size = stored->size;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        memcpy(bytes, stored->bytes, size);
        const size_t at = find(size, faults[i].magic, faults[i].nth) + faults[i].at;
        bytes[at] = faults[i].value;
        expect(size, "", faults[i].code, faults[i].says);
    }
}

CleanTest(npz, a_damaged_member_is_found_by_its_checksum)
{
    const size_t size = deflated->size;
    memcpy(bytes, deflated->bytes, size);
    bytes[find(size, ENTRY, 0) + 16] ^= 1;
    expect(size, "", STOKER_ECORRUPT, "\"x.npy\": its checksum is wrong");
    memcpy(bytes, deflated->bytes, size);
    bytes[find(size, LOCAL, 1) - 3] ^= 0xFF;
    expect(size, "", STOKER_ECORRUPT, "\"x.npy\"");
    memcpy(bytes, deflated->bytes, size);
    stk_store_le32(bytes + find(size, ENTRY, 0) + 24, 1 << 24);
    expect(size, "", STOKER_EFORMAT, "the sizes of \"x.npy\" do not agree");
}

CleanTest(npz, what_numpy_wrote_inside_is_checked_as_in_a_file)
{
    const size_t size = stored->size;
    memcpy(bytes, stored->bytes, size);
    char *shape = memmem(bytes, size, "(6, 2)", 6);
    cr_assert_not_null(shape);
    memcpy(shape, "(4, 3)", 6);
    expect(size, "", STOKER_EMISMATCH, ":t.npy: 4 samples along axis 0, but ");
    memcpy(shape, "(6, 3)", 6);
    expect(size, "", STOKER_ETRUNCATED, ":t.npy: offset 176: NPY: the header promises 200 bytes");
    expect(size, "?fields=q", STOKER_ESPEC, "no array \"q\"; there are x, t, y");
    expect(size, "?fields=x,", STOKER_ESPEC, "no array \"\"");
}

CleanTest(npz, specs_that_name_no_archive)
{
    static const struct stk_refused_spec specs[] = {
        { "npz:", NULL, STOKER_ESPEC, "write npz:FILE" },
        { "npz:/nowhere/a.npz", NULL, STOKER_ENOENT, "/nowhere/a.npz" },
        { "npz:/dev/null", NULL, STOKER_ENOTSUP, NULL },
        { "npz:a.npz", "train", STOKER_EINVAL, "no splits" },
        { "npz:a.npz?feilds=x", NULL, STOKER_ESPEC, "did you mean 'fields'" },
    };
    stk_expect_refused(specs, sizeof(specs) / sizeof(specs[0]));
}

/* ---- sweeps --------------------------------------------------------------------- */

CleanTest(npz, every_prefix_is_an_error)
{
    for (int i = 0; i < ARCHIVES; i++)
        for (size_t size = 0; size < archives[i].size; size++) {
            stoker_error error = { 0 };
            stoker_dataset *dataset = NULL;
            const int rc = open_bytes(&dataset, archives[i].bytes, size, "", 1 << 20, &error);
            cr_assert(rc < 0, "archive %d, %zu bytes", i, size);
            cr_assert_eq(error.code, rc);
            cr_assert_null(dataset);
        }
}

static void read_all(const stoker_dataset *dataset)
{
    uint8_t room[4][4096];
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    stoker_row rows[4];
    cr_assert_leq(info->field_count, 4);
    for (uint64_t id = 0; id < info->count; id++) {
        for (uint32_t f = 0; f < info->field_count; f++) {
            rows[f] = (stoker_row){ .data = room[f],
                                    .bytes_max = stoker_dataset_field_bytes(dataset, f) };
            cr_assert_leq(rows[f].bytes_max, sizeof(room[f]));
        }
        cr_assert_eq(stoker_dataset_read(dataset, id, rows, NULL), STOKER_OK);
    }
}

CleanTest(npz, every_flipped_bit_gives_an_error_or_a_set_that_reads)
{
    for (int i = 0; i < ARCHIVES; i++) {
        unsigned opened = 0;
        for (size_t bit = 0; bit < 8 * archives[i].size; bit++) {
            stoker_error error = { 0 };
            stoker_dataset *dataset = NULL;
            memcpy(bytes, archives[i].bytes, archives[i].size);
            bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
            const int rc = open_bytes(&dataset, bytes, archives[i].size, "", 1 << 20, &error);
            cr_assert_eq(rc == STOKER_OK, dataset != NULL);
            cr_assert_eq(error.code, rc);
            if (dataset == NULL)
                continue;
            opened++;
            read_all(dataset);
            stoker_dataset_close(&dataset);
        }
        cr_assert_gt(opened, 0);
    }
}

CleanTest(npz, each_allocation_may_fail)
{
    for (int i = 0; i < ARCHIVES; i++) {
        stoker_dataset *dataset = NULL;
        struct stk_sweep sweep = { .kinds = STK_FAULT_ANY };
        while (stk_sweep_next(&sweep))
            sweep.rc = open_bytes(&dataset, archives[i].bytes, archives[i].size,
                                  "?fields=x,t,label=y", 1 << 20, &sweep.error);
        cr_assert_geq(sweep.failed, archives[i].deflated ? 16 : 10);
        stoker_dataset_close(&dataset);
    }
}
