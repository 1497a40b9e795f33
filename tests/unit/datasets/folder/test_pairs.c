/* test_pairs.c - folders whose files are matched by name: every field of every sample, and
 * what has no partner.
 *
 * Method: folders of PNG, NPY and text files written by hand. The same samples as an archive give
 * the same fields.
 */
#include "support/files/npy_bytes.h"
#include "support/sets/fields_of.h"
#include "support/sets/refused_specs.h"
#include "support/sets/tar_reading.h"
#include "support/sweep.h"

enum { SAMPLES = 5 };

static struct stk_archive archive;

static const char *const captions[SAMPLES] = { "a bee", "", "two\nlines", "x", "y" };
static const char *const keys[SAMPLES] = { "a/1", "a/2", "b.c", "b/0", "z" };

static void put_image(struct stk_bytes *to, uint64_t id)
{
    uint8_t row[STK_FOLDER_ROW];
    stk_folder_row(id, row);
    to->size = 0;
    stk_put_png(to, row, STK_FOLDER_ROW);
}

static void put_boxes(struct stk_bytes *to, int sample)
{
    float boxes[4 * SAMPLES];
    char shape[20];
    (void)snprintf(shape, sizeof(shape), "(%d, 4)", sample % 3);
    for (int at = 0; at < 4 * SAMPLES; at++)
        boxes[at] = (float)(100 * sample + at) / 8;
    to->size = 0;
    stk_put_npy(to, "<f4", shape, boxes, (size_t)(sample % 3) * 16);
}

static void write_one(const struct stk_directory *directory, const char *folder, const char *key,
                      const char *extension, const void *bytes, size_t size)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%s/%s.%s", folder, key, extension);
    stk_file_write(directory, name, bytes, size);
}

/* The members of sample i, as files and in the archive. */
static void write_sample(const struct stk_directory *directory, int i)
{
    char name[64];
    struct stk_bytes bytes = { 0 };
    put_image(&bytes, (uint64_t)i);
    write_one(directory, "images", keys[i], "png", bytes.at, bytes.size);
    (void)snprintf(name, sizeof(name), "k%d.png", i);
    stk_archive_add(&archive, '0', name, bytes.at, bytes.size);
    put_image(&bytes, (uint64_t)i + 50);
    write_one(directory, "masks", keys[i], "png", bytes.at, bytes.size);
    (void)snprintf(name, sizeof(name), "k%d.mask.png", i);
    stk_archive_add(&archive, '0', name, bytes.at, bytes.size);
    put_boxes(&bytes, i);
    write_one(directory, "boxes", keys[i], "npy", bytes.at, bytes.size);
    (void)snprintf(name, sizeof(name), "k%d.boxes.npy", i);
    stk_archive_add(&archive, '0', name, bytes.at, bytes.size);
    write_one(directory, "captions", keys[i], "txt", captions[i], strlen(captions[i]));
    (void)snprintf(name, sizeof(name), "k%d.caption.txt", i);
    stk_archive_text(&archive, name, captions[i]);
}

static struct stk_directory make_folders(void)
{
    static const char *const folders[] = { "images", "masks", "boxes", "captions" };
    const struct stk_directory directory = stk_directory_make();
    archive.size = 0;
    for (int f = 0; f < 4; f++) {
        char name[40];
        stk_folder_mkdir(&directory, folders[f]);
        (void)snprintf(name, sizeof(name), "%s/a", folders[f]);
        stk_folder_mkdir(&directory, name);
        (void)snprintf(name, sizeof(name), "%s/b", folders[f]);
        stk_folder_mkdir(&directory, name);
        (void)snprintf(name, sizeof(name), "%s/.hidden", folders[f]);
        stk_file_write(&directory, name, "x", 1);
    }
    for (int i = 0; i < SAMPLES; i++)
        write_sample(&directory, i);
    stk_archive_end(&archive);
    return directory;
}

static int open_folders(stoker_dataset **out, const struct stk_directory *directory,
                        const char *format, uint64_t max_bytes, stoker_error *error)
{
    char spec[2048];
    const char *at = directory->path;
    const stoker_dataset_options options = { .struct_size = sizeof(options),
                                             .max_bytes = max_bytes };
    (void)snprintf(spec, sizeof(spec), format, at, at, at, at);
    return stoker_dataset_open(out, spec, &options, error);
}

#define ALL "folder:image=%s/images,mask=%s/masks,boxes=%s/boxes,caption=%s/captions"

static void check_sample(const stoker_dataset *dataset, int i)
{
    struct stk_fields_of sample = stk_fields_read(dataset, (uint64_t)i);
    uint8_t row[STK_FOLDER_ROW];
    float boxes[4 * SAMPLES];
    for (int at = 0; at < 4 * SAMPLES; at++)
        boxes[at] = (float)(100 * i + at) / 8;
    stk_folder_row((uint64_t)i, row);
    stk_fields_check(dataset, &sample, "image", row, 0, sizeof(row));
    stk_folder_row((uint64_t)i + 50, row);
    stk_fields_check(dataset, &sample, "mask", row, 0, sizeof(row));
    stk_fields_check(dataset, &sample, "boxes", boxes, (uint64_t)i % 3, (size_t)(i % 3) * 16);
    stk_fields_check(dataset, &sample, "caption", captions[i], strlen(captions[i]),
                     strlen(captions[i]));
    if (stoker_dataset_find_field(dataset, "key") >= 0)
        stk_fields_check(dataset, &sample, "key", keys[i], strlen(keys[i]), strlen(keys[i]));
    stk_fields_free(&sample);
}

CleanTest(folder_pairs, files_are_matched_by_name)
{
    stk_archive_needs_png();
    const struct stk_directory directory = make_folders();
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(open_folders(&dataset, &directory, ALL "?key=1", 1 << 20, &error), STOKER_OK, "%s",
                 error.message);
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_eq(info->count, SAMPLES);
    cr_assert_eq(info->field_count, 5);
    cr_assert_eq(stoker_dataset_field(dataset, 0)->kind, STOKER_FIELD_KIND_IMAGE);
    cr_assert_eq(stoker_dataset_field(dataset, 1)->kind, STOKER_FIELD_KIND_MASK);
    cr_assert(stoker_dataset_field(dataset, 2)->varies);
    cr_assert_eq(stoker_dataset_field(dataset, 2)->shape[0], 2);
    for (int i = 0; i < SAMPLES; i++)
        check_sample(dataset, i);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

/* The fields of an archive of the same members are the same, name for name and byte for byte. */
CleanTest(folder_pairs, an_archive_of_the_members_has_the_same_fields)
{
    stk_archive_needs_png();
    const struct stk_directory directory = make_folders();
    stoker_dataset *folders = NULL;
    stoker_dataset *tar = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(open_folders(&folders, &directory, ALL, 1 << 20, &error), STOKER_OK);
    cr_assert_eq(
        stk_archive_open(&tar, &archive, "?fields=png,mask.png,boxes.npy,caption.txt", &error),
        STOKER_OK, "%s", error.message);
    for (uint32_t f = 0; f < 4; f++) {
        const stoker_field_info *a = stoker_dataset_field(folders, f);
        const stoker_field_info *b = stoker_dataset_field(tar, f);
        cr_assert_str_eq(a->name, b->name);
        cr_assert_eq(a->kind, b->kind);
        cr_assert_eq(a->dtype, b->dtype);
        cr_assert_eq(a->varies, b->varies);
        cr_assert_arr_eq(a->shape, b->shape, a->rank * sizeof(a->shape[0]));
    }
    for (int i = 0; i < SAMPLES; i++)
        check_sample(tar, i);
    stoker_dataset_close(&folders);
    stoker_dataset_close(&tar);
    stk_directory_remove(&directory);
}

CleanTest(folder_pairs, big_endian_arrays_are_swapped)
{
    static const uint8_t stored[8] = { 0, 0, 0, 1, 0, 0, 1, 0 };
    static const int32_t due[2] = { 1, 256 };
    const struct stk_directory directory = stk_directory_make();
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    stk_folder_mkdir(&directory, "x");
    for (int i = 0; i < 3; i++) {
        char name[20];
        char shape[20];
        struct stk_bytes file = { 0 };
        (void)snprintf(name, sizeof(name), "%d", i);
        (void)snprintf(shape, sizeof(shape), "(%d,)", i);
        stk_put_npy(&file, ">i4", shape, stored, (size_t)i * 4);
        write_one(&directory, "x", name, "npy", file.at, file.size);
    }
    cr_assert_eq(open_folders(&dataset, &directory, "folder:x=%s/x", 1 << 20, &error), STOKER_OK,
                 "%s", error.message);
    for (uint64_t i = 0; i < 3; i++) {
        struct stk_fields_of sample = stk_fields_read(dataset, i);
        stk_fields_check(dataset, &sample, "x", due, i, 4 * i);
        stk_fields_free(&sample);
    }
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

static void expect(const struct stk_directory *directory, const char *format, int code,
                   const char *says)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    const int rc = open_folders(&dataset, directory, format, 1 << 20, &error);
    cr_assert_eq(rc, code, "%s: %s", stoker_error_name(rc), error.message);
    cr_assert_eq(error.code, code);
    cr_assert_null(dataset);
    cr_assert_not_null(strstr(error.message, says), "\"%s\" is not in: %s", says, error.message);
}

CleanTest(folder_pairs, a_file_without_a_partner_is_named)
{
    stk_archive_needs_png();
    const struct stk_directory directory = make_folders();
    char path[600];
    cr_assert_eq(unlink(stk_path_in(path, &directory, "masks/b.c.png")), 0);
    expect(&directory, ALL, STOKER_EMISMATCH,
           "images/b.c.png: folder: no file of that name for the field \"mask\"");
    write_one(&directory, "masks", "b.c", "jpg", "x", 1);
    write_one(&directory, "boxes", "zz", "npy", "x", 1);
    expect(&directory, ALL, STOKER_EMISMATCH, "boxes/zz.npy: folder: no file of that name");
    cr_assert_eq(unlink(stk_path_in(path, &directory, "boxes/zz.npy")), 0);
    write_one(&directory, "captions", "z", "md", "x", 1);
    expect(&directory, ALL, STOKER_EMISMATCH, "differ only in their extension");
    cr_assert_eq(unlink(stk_path_in(path, &directory, "captions/z.md")), 0);
    cr_assert_eq(unlink(stk_path_in(path, &directory, "captions/z.txt")), 0);
    write_one(&directory, "captions", "z", "png", "x", 1);
    expect(&directory, ALL, STOKER_EMISMATCH, "are not of one kind");
    stk_directory_remove(&directory);
}

CleanTest(folder_pairs, arrays_that_do_not_fit_are_named)
{
    stk_archive_needs_png();
    const struct stk_directory directory = make_folders();
    struct stk_bytes bytes = { 0 };
    stk_put_npy(&bytes, "<f4", "(1, 5)", "01234567890123456789", 20);
    write_one(&directory, "boxes", "z", "npy", bytes.at, bytes.size);
    expect(&directory, ALL, STOKER_EMISMATCH, "boxes/z.npy: it and ");
    for (size_t size = 0; size < bytes.size; size++) { /* every prefix */
        write_one(&directory, "boxes", "z", "npy", bytes.at, size);
        expect(&directory, ALL, STOKER_ETRUNCATED, "boxes/z.npy: ");
    }
    /* A file that changes later is a bad sample. */
    put_boxes(&bytes, 1);
    write_one(&directory, "boxes", "z", "npy", bytes.at, bytes.size);
    stoker_dataset *dataset = NULL;
    cr_assert_eq(open_folders(&dataset, &directory, ALL, 1 << 20, NULL), STOKER_OK);
    for (size_t bit = 0; bit < 8 * bytes.size; bit++) {
        bytes.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
        write_one(&directory, "boxes", "z", "npy", bytes.at, bytes.size);
        struct stk_fields_of sample = stk_fields_read(dataset, SAMPLES - 1);
        cr_assert(sample.rc == STOKER_OK || sample.error.message[0] != '\0');
        stk_fields_free(&sample);
        bytes.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

CleanTest(folder_pairs, specs_that_name_nothing)
{
    static const struct stk_refused_spec specs[] = {
        { "folder:images=/nowhere", NULL, STOKER_ENOENT, "/nowhere" },
        { "folder:images=", NULL, STOKER_ESPEC, "write images=DIR" },
        { "folder:images=/nowhere", "train", STOKER_EINVAL, "no splits" },
        { "folder:images=/nowhere?hight=3", NULL, STOKER_ESPEC, "did you mean 'height'" },
    };
    stk_expect_refused(specs, sizeof(specs) / sizeof(specs[0]));
}

CleanTest(folder_pairs, each_allocation_may_fail_and_memory_is_limited)
{
    stk_archive_needs_png();
    const struct stk_directory directory = make_folders();
    stoker_dataset *dataset = NULL;
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    while (stk_sweep_next(&sweep))
        sweep.rc = open_folders(&dataset, &directory, ALL, 1 << 20, &sweep.error);
    cr_assert_geq(sweep.failed, 10);
    stoker_dataset_close(&dataset);
    stoker_error error = { .message = "" };
    cr_assert_eq(open_folders(&dataset, &directory, ALL, 20000, &error), STOKER_ELIMIT);
    cr_assert_not_null(strstr(error.message, "max_bytes"));
    stk_directory_remove(&directory);
}
