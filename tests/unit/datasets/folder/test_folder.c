/* test_folder.c - which files of a folder are samples, in which order, with which labels and
 * rows. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "support/files/folder_files.h"
#include "support/runs/emulator.h"
#include "support/sets/label_of.h"
#include "support/sets/read_row.h"
#include "support/sweep.h"

static int open_spec(stoker_dataset **out, stoker_error *error, const char *format, const char *a,
                     const char *b)
{
    char spec[2048];
    (void)snprintf(spec, sizeof(spec), format, a, b);
    *error = (stoker_error){ .message = "" };
    return stoker_dataset_open(out, spec, NULL, error);
}

static const char *path_of(const stoker_dataset *dataset, uint64_t id)
{
    static stoker_part sample;
    cr_assert_eq(stoker_dataset_locate(dataset, id, &sample, NULL), STOKER_OK);
    return sample.extent.path;
}

static int64_t label_of(const stoker_dataset *dataset, uint64_t id)
{
    return stk_label_of(dataset, id);
}

static uint64_t count_of(const stoker_dataset *dataset)
{
    return stoker_dataset_get_info(dataset)->count;
}

static void expect_samples(const stoker_dataset *dataset, const char *const *paths, uint64_t count)
{
    for (uint64_t i = 0; i < count && i < count_of(dataset); i++)
        cr_assert_str_eq(path_of(dataset, i), paths[i], "sample %llu: %s", (unsigned long long)i,
                         path_of(dataset, i));
    cr_assert_eq(count_of(dataset), count);
}

/* ---- which files, in which order ---- */

static atomic_bool stop_moving;

/* Folders come and go beside the samples. */
static void *move_folders(void *argument)
{
    const struct stk_directory *directory = argument;
    char name[16], path[512];
    for (uint32_t i = 0; !atomic_load(&stop_moving); i++) {
        (void)snprintf(name, sizeof(name), "a/%02u", i % 64);
        if (mkdir(stk_path_in(path, directory, name), 0700) != 0)
            (void)rmdir(path);
    }
    return NULL;
}

CleanTest(folder, folders_that_vanish_during_the_scan_are_skipped)
{
    static const char *const specs[] = { "folder:%s%s?extensions=raw", "folder:x=%s%s" };
    enum { OPENS = 400 };
    struct stk_directory directory = stk_directory_make();
    char path[512];
    pthread_t mover;
    cr_assert_eq(mkdir(stk_path_in(path, &directory, "a"), 0700), 0);
    stk_file_write(&directory, "a/s.raw", "0123", 4);
    cr_assert_eq(pthread_create(&mover, NULL, move_folders, &directory), 0);
    for (int i = 0; i < 2 * OPENS; i++) {
        stoker_dataset *dataset = NULL;
        stoker_error error;
        cr_assert_eq(open_spec(&dataset, &error, specs[i % 2], directory.path, ""), STOKER_OK, "%s",
                     error.message);
        cr_assert_eq(count_of(dataset), 1);
        stoker_dataset_close(&dataset);
    }
    atomic_store(&stop_moving, true);
    pthread_join(mover, NULL);
    stk_directory_remove(&directory);
}

/* The order is torchvision's: classes, then the folders of a class by their whole path, then
 * files, each by its bytes. */
CleanTest(folder, order_is_by_class_then_path_then_name)
{
    static const char *const folders[] = { "b", "a", "a-", "a/z", "a/z-", "a/z/deep", "\xFF", "B" };
    static const char *const paths[] = {
        "B/1.raw",    "a/10.raw",       "a/9.raw",         "a/z.raw",     "a/z/0.raw",
        "a/z-/0.raw", "a/z/deep/.raw",  "a/z/deep/\n.raw", "a-/\x01.raw", "b/ .raw",
        "b/\"'.raw",  "b/\xC3\xA4.raw", "b/\xFE.raw",      "\xFF/x.RAW",
    };
    static const char *const expected[] = {
        "B/1.raw",        "a/10.raw",        "a/9.raw",     "a/z.raw", "a/z/0.raw",
        "a/z-/0.raw",     "a/z/deep/\n.raw", "a-/\x01.raw", "b/ .raw", "b/\"'.raw",
        "b/\xC3\xA4.raw", "b/\xFE.raw",      "\xFF/x.RAW",
    };
    static const int64_t labels[] = { 0, 1, 1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 4 };
    static const char *const classes[] = { "B", "a", "a-", "b", "\xFF" };
    const struct stk_directory directory = stk_directory_make();
    stoker_dataset *dataset = NULL;
    stoker_error error;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        stk_folder_mkdir(&directory, folders[i]);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        stk_folder_touch(&directory, paths[i], 4); /* ".raw" in deep is hidden */
    cr_assert_eq(open_spec(&dataset, &error, "folder:%s?extensions=%s", directory.path, "raw"),
                 STOKER_OK, "%s", error.message);
    expect_samples(dataset, expected, sizeof(expected) / sizeof(expected[0]));
    for (uint64_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
        cr_assert_eq(label_of(dataset, i), labels[i]);
    cr_assert_eq(stoker_dataset_get_info(dataset)->class_count, 5);
    for (uint32_t i = 0; i < 5; i++)
        cr_assert_str_eq(stoker_dataset_class_name(dataset, 1, i), classes[i]);
    cr_assert_null(stoker_dataset_class_name(dataset, 1, 5));
    cr_assert_null(stoker_dataset_class_name(NULL, 1, 0));
    cr_assert_str_eq(stoker_dataset_name(dataset), "folder");
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

/* Many folders and more threads than one: every scan finds the same. */
CleanTest(folder, threads_change_nothing)
{
    enum { CLASSES = 23, FOLDERS = 9, FILES = 7, SCANS = 10 };
    const struct stk_directory directory = stk_directory_make();
    for (int class = 0; class < CLASSES; class ++)
        for (int folder = 0; folder < FOLDERS; folder++) {
            char name[64];
            (void)snprintf(name, sizeof(name), folder == 0 ? "%d" : "%d/%d", class, folder);
            stk_folder_mkdir(&directory, name);
            for (int file = 0; file < FILES; file++) {
                (void)snprintf(name, sizeof(name), folder == 0 ? "%d/%d.raw" : "%d/%d/%d.raw",
                               class, folder == 0 ? file : folder, file);
                stk_folder_touch(&directory, name, 4);
            }
        }
    uint64_t first = 0;
    for (int scan = 0; scan < SCANS; scan++) {
        stoker_dataset *dataset = NULL;
        stoker_error error;
        uint64_t hash = STK_FNV1A_START;
        cr_assert_eq(open_spec(&dataset, &error, "folder:%s?extensions=%s", directory.path, "raw"),
                     STOKER_OK, "%s", error.message);
        cr_assert_eq(count_of(dataset), CLASSES * FOLDERS * FILES);
        for (uint64_t id = 0; id < count_of(dataset); id++) {
            const char *path = path_of(dataset, id);
            const char *class =
                stoker_dataset_class_name(dataset, 1, (uint32_t)label_of(dataset, id));
            cr_assert_eq(strncmp(path, class, strlen(class)), 0);
            cr_assert_eq(path[strlen(class)], '/');
            hash = stk_fnv1a(hash, path, strlen(path) + 1);
        }
        first = scan == 0 ? hash : first;
        cr_assert_eq(hash, first);
        stoker_dataset_close(&dataset);
    }
    stk_directory_remove(&directory);
}

CleanTest(folder, what_is_no_sample_is_passed_over)
{
    static const char *const expected[] = { "a/1.raw", "a/2.Raw", "a/link.raw" };
    const struct stk_directory directory = stk_directory_make();
    stoker_dataset *dataset = NULL;
    stoker_error error;
    char path[512];
    char outside[512];
    const bool follows = stk_test_has_openat2(); /* else no link is a sample */
    stk_folder_mkdir(&directory, "a");
    stk_folder_mkdir(&directory, "empty");
    stk_folder_mkdir(&directory, ".hidden");
    stk_folder_mkdir(&directory, "a/.hidden");
    stk_folder_touch(&directory, "a/1.raw", 4);
    stk_folder_touch(&directory, "a/2.Raw", 4);
    stk_folder_touch(&directory, "a/3.png", 4);
    stk_folder_touch(&directory, "a/4.raw.txt", 4);
    stk_folder_touch(&directory, "a/raw", 4);
    stk_folder_touch(&directory, "a/.5.raw", 4);
    stk_folder_touch(&directory, "a/.hidden/6.raw", 4);
    stk_folder_touch(&directory, ".hidden/7.raw", 4);
    stk_folder_touch(&directory, "beside.raw", 4);
    cr_assert_eq(mkfifo(stk_path_in(path, &directory, "a/pipe.raw"), 0644), 0);
    cr_assert_eq(symlink("1.raw", stk_path_in(path, &directory, "a/link.raw")), 0);
    cr_assert_eq(symlink("nothing", stk_path_in(path, &directory, "a/broken.raw")), 0);
    cr_assert_eq(symlink("loop.raw", stk_path_in(path, &directory, "a/loop.raw")), 0);
    cr_assert_eq(symlink("/etc/passwd", stk_path_in(path, &directory, "a/passwd.raw")), 0);
    stk_path_in(outside, &directory, "beside.raw");
    cr_assert_eq(symlink(outside, stk_path_in(path, &directory, "a/absolute.raw")), 0);
    cr_assert_eq(symlink("../empty", stk_path_in(path, &directory, "a/folder.raw")), 0);
    cr_assert_eq(symlink("..", stk_path_in(path, &directory, "a/up")), 0);
    cr_assert_eq(symlink("a", stk_path_in(path, &directory, "b")), 0); /* no class */
    cr_assert_eq(open_spec(&dataset, &error, "folder:%s?extensions=%s", directory.path, ".RAW"),
                 STOKER_OK, "%s", error.message);
    expect_samples(dataset, expected, follows ? 3 : 2);
    /* A class without files keeps its number. */
    cr_assert_eq(stoker_dataset_get_info(dataset)->class_count, 2);
    cr_assert_str_eq(stoker_dataset_class_name(dataset, 1, 1), "empty");
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

/* As deep as names go, and one deeper. */
CleanTest(folder, deep_folders_are_walked_to_a_limit)
{
    enum { DEPTH = 16 }; /* x 251 bytes: just below 4096 */
    const struct stk_directory directory = stk_directory_make();
    stoker_dataset *dataset = NULL;
    stoker_error error;
    char name[256];
    memset(name, 'n', 250);
    name[250] = '\0';
    int at[DEPTH + 1] = { open(directory.path, O_RDONLY | O_DIRECTORY) };
    for (int depth = 0; depth < DEPTH; depth++) {
        cr_assert_eq(mkdirat(at[depth], name, 0755), 0);
        at[depth + 1] = openat(at[depth], name, O_RDONLY | O_DIRECTORY);
        cr_assert_geq(at[depth + 1], 0);
    }
    const int file = openat(at[DEPTH], "1.raw", O_WRONLY | O_CREAT, 0644);
    cr_assert_eq(write(file, "1234", 4), 4);
    close(file);
    cr_assert_eq(open_spec(&dataset, &error, "folder:%s?extensions=%s", directory.path, "raw"),
                 STOKER_OK, "%s", error.message);
    uint8_t row[4];
    cr_assert_eq(count_of(dataset), 1);
    cr_assert_eq(strlen(path_of(dataset, 0)), DEPTH * 251 + 5);
    cr_assert_eq(stk_read_row(dataset, 0, row, 4, NULL, &error), STOKER_OK, "%s", error.message);
    cr_assert_eq(memcmp(row, "1234", 4), 0);
    stoker_dataset_close(&dataset);
    cr_assert_eq(mkdirat(at[DEPTH], name, 0755), 0);
    cr_assert_eq(open_spec(&dataset, &error, "folder:%s?extensions=%s", directory.path, "raw"),
                 STOKER_ELIMIT);
    cr_assert_null(dataset);
    cr_assert_eq(unlinkat(at[DEPTH], name, AT_REMOVEDIR), 0);
    cr_assert_eq(unlinkat(at[DEPTH], "1.raw", 0), 0);
    for (int depth = DEPTH; depth > 0; depth--) { /* too deep for code that opens by path */
        close(at[depth]);
        cr_assert_eq(unlinkat(at[depth - 1], name, AT_REMOVEDIR), 0);
    }
    close(at[0]);
    stk_directory_remove(&directory);
}

/* ---- what cannot be opened ---- */

static struct stk_directory make_wrong_folders(void)
{
    const struct stk_directory directory = stk_directory_make();
    stk_folder_mkdir(&directory, "empty");
    stk_folder_mkdir(&directory, "hollow");
    stk_folder_mkdir(&directory, "hollow/a");
    stk_folder_mkdir(&directory, "set");
    stk_folder_mkdir(&directory, "set/a");
    stk_folder_touch(&directory, "set/a/1.raw", 8);
    stk_folder_touch(&directory, "set/a/2.raw", 8);
    stk_folder_touch(&directory, "set/a/3.png", 8);
    stk_folder_mkdir(&directory, "uneven");
    stk_folder_mkdir(&directory, "uneven/a");
    stk_folder_touch(&directory, "uneven/a/1.raw", 8);
    stk_folder_touch(&directory, "uneven/a/2.raw", 9);
    stk_folder_touch(&directory, "file", 8);
    return directory;
}

CleanTest(folder, mistakes_are_reported)
{
    static const struct {
        const char *format;
        int code;
        const char *words; /* in the message */
    } cases[] = {
        { "folder:", STOKER_ESPEC, "names no folder" },
        { "folder:?channels=3", STOKER_ESPEC, "names no folder" },
        { "folder:%s/none", STOKER_ENOENT, "none" },
        { "folder:%s/file", STOKER_ENOENT, "file" },
        { "folder:%s/empty", STOKER_EEMPTY, "no folders" },
        { "folder:%s/hollow", STOKER_EEMPTY,
          "no file that ends in one of png,jpg,jpeg,webp in any" },
        { "folder:%s/set?extensions=bmp", STOKER_EEMPTY, "bmp" },
        { "folder:%s/set?extensions=", STOKER_EMAGIC, "a/3.png" }, /* the default */
        { "folder:%s/set?extensions=png,", STOKER_ESPEC, "extensions" },
        { "folder:%s/set?extensions=a/b", STOKER_ESPEC, "extensions" },
        { "folder:%s/set?extensions=.", STOKER_ESPEC, "extensions" },
        { "folder:%s/set?extensions=tar.gz", STOKER_ESPEC, "extensions" },
        { "folder:%s/set?color=1", STOKER_ESPEC, "color" },
        { "folder:%s/set?channels=0", STOKER_EINVAL, "channels" },
        { "folder:%s/set?channels=5", STOKER_EINVAL, "channels" },
        { "folder:%s/set?max_file_bytes=0", STOKER_EINVAL, "max_file_bytes" },
        { "folder:%s/set", STOKER_EMAGIC, "a/3.png" }, /* no image gives its shape */
        { "folder:%s/set?max_file_bytes=7", STOKER_ELIMIT, "max_file_bytes=7" },
        { "folder:%s/set?extensions=raw,png", STOKER_EINVAL, "raw files need" },
        { "folder:%s/set?extensions=raw&height=2", STOKER_EINVAL, "raw files need" },
        { "folder:%s/set?extensions=raw&max_file_bytes=7", STOKER_ELIMIT, "max_file_bytes" },
        { "folder:%s/uneven?extensions=raw", STOKER_EFORMAT, "more than half" },
        { "folder:%s/set?extensions=raw&height=1048576&width=1025&channels=1", STOKER_ELIMIT,
          "1 GiB" },
        { "folder:%s/set?height=2&width=2&channels=2", STOKER_EINVAL, "shape" },
        { "folder:%s/set?extensions=raw&index=%s/none/x", STOKER_ENOENT, "index" },
    };
    const struct stk_directory directory = make_wrong_folders();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stoker_dataset *dataset = NULL;
        stoker_error error;
        const int rc = open_spec(&dataset, &error, cases[i].format, directory.path, directory.path);
        cr_assert_eq(rc, cases[i].code, "%s: %d, %s", cases[i].format, rc, error.message);
        cr_assert_eq(error.code, cases[i].code);
        cr_assert_eq(error.stage, STOKER_STAGE_OPEN);
        cr_assert_not_null(strstr(error.message, cases[i].words), "%s: %s", cases[i].format,
                           error.message);
        cr_assert_null(dataset);
    }
    stk_directory_remove(&directory);
}

CleanTest(folder, an_unreadable_folder_is_refused)
{
    const struct stk_directory directory = make_wrong_folders();
    char path[512];
    cr_assert_eq(chmod(stk_path_in(path, &directory, "set/a"), 0), 0);
    if (geteuid() != 0 || seteuid(65534) == 0) { /* root may read anything */
        stoker_dataset *dataset = NULL;
        stoker_error error;
        cr_assert_eq(chmod(directory.path, 0755) == 0 || errno == EPERM, 1);
        cr_assert_eq(open_spec(&dataset, &error, "folder:%s/set", directory.path, ""),
                     STOKER_EACCES, "%s", error.message);
        cr_assert_eq(getuid() != 0 || seteuid(0) == 0, 1);
    }
    cr_assert_eq(chmod(path, 0755), 0);
    stk_directory_remove(&directory);
}

/* ---- rows ---- */

static void expect_shape(const stoker_dataset *dataset, uint64_t a, uint64_t b, uint64_t c)
{
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_eq(info->rank, b == 0 ? 1 : 3);
    cr_assert_eq(info->is_image, b != 0);
    cr_assert_eq(info->shape[0], a);
    cr_assert_eq(info->shape[1], b);
    cr_assert_eq(info->shape[2], c);
    cr_assert_eq(info->dtype, STOKER_DTYPE_UINT8);
    cr_assert_eq(info->label_dtype, STOKER_DTYPE_INT64);
}

CleanTest(folder, the_shape_is_the_first_files_or_what_the_spec_says)
{
    struct stk_folder_set set;
    stoker_dataset *dataset = NULL;
    stoker_error error;
    uint8_t row[STK_FOLDER_ROW * 4];
    uint8_t expected[STK_FOLDER_ROW];
    stoker_label label;
    stk_folder_make(&set, 6, 2, true);
    expect_shape(set.dataset, 1, STK_FOLDER_ROW, 1);
    for (uint64_t id = 0; id < 6; id++) {
        cr_assert_eq(stk_read_row(set.dataset, id, row, sizeof(row), &label, &error), STOKER_OK,
                     "%s", error.message);
        stk_folder_row(id, expected);
        cr_assert_eq(memcmp(row, expected, sizeof(expected)), 0);
        cr_assert_eq(label.index, (int64_t)id / 2);
    }
    cr_assert_eq(open_spec(&dataset, &error, "folder:%s?channels=3", set.directory.path, ""),
                 STOKER_OK, "%s", error.message);
    expect_shape(dataset, 1, STK_FOLDER_ROW, 3);
    cr_assert_eq(stk_read_row(dataset, 5, row, sizeof(row), NULL, &error), STOKER_OK);
    stk_folder_row(5, expected);
    for (size_t at = 0; at < sizeof(expected) * 3; at++)
        cr_assert_eq(row[at], expected[at / 3]);
    stoker_dataset_close(&dataset);
    /* A file of another shape is bad when it is read, not when the set is opened. */
    cr_assert_eq(open_spec(&dataset, &error, "folder:%s?height=2", set.directory.path, ""),
                 STOKER_OK);
    expect_shape(dataset, 2, STK_FOLDER_ROW, 1);
    cr_assert_eq(stk_read_row(dataset, 5, row, sizeof(row), NULL, &error), STOKER_EFORMAT);
    cr_assert_str_eq(error.path, "c02/f00005.png");
    stoker_dataset_close(&dataset);
    stk_folder_remove(&set);

    stk_folder_make(&set, 6, 2, false);
    expect_shape(set.dataset, STK_FOLDER_ROW, 0, 0);
    cr_assert_eq(open_spec(&dataset, &error,
                           "folder:%s?extensions=raw&height=5&width=%s&channels=2",
                           set.directory.path, "4"),
                 STOKER_OK);
    expect_shape(dataset, 5, 4, 2);
    cr_assert_eq(stk_read_row(dataset, 5, row, sizeof(row), NULL, &error), STOKER_OK);
    cr_assert_eq(memcmp(row, expected, sizeof(expected)), 0);
    stoker_dataset_close(&dataset);
    stk_folder_remove(&set);
}

/* ---- colors and sizes of images ---- */

/* Sample `id` of a set of gray images becomes one in color. */
static void color_one(const struct stk_folder_set *set, uint64_t id)
{
    uint8_t row[STK_FOLDER_ROW];
    struct stk_bytes bytes = { 0 };
    char name[64];
    stk_folder_row(id, row);
    stk_put_png_rgb(&bytes, row, STK_FOLDER_ROW);
    stk_file_write(&set->directory, stk_folder_name(set, id, name), bytes.at, bytes.size);
}

static void expect_description(const stoker_dataset *dataset, const char *words)
{
    const char *found = stoker_dataset_get_info(dataset)->description;
    cr_assert_not_null(found);
    cr_assert_not_null(strstr(found, words), "%s", found);
}

/* Whichever comes first, a set with a color image has 3 channels. */
CleanTest(folder, rows_are_gray_only_if_every_image_is)
{
#ifndef STOKER_HAVE_PNG
    cr_skip_test("built without libpng");
#endif
    stoker_error error;
    uint8_t row[3 * STK_FOLDER_ROW];
    uint8_t gray[STK_FOLDER_ROW];
    for (uint64_t colored = 0; colored < 6; colored += 5) {
        struct stk_folder_set set;
        stk_folder_make(&set, 6, 2, true);
        expect_shape(set.dataset, 1, STK_FOLDER_ROW, 1);
        expect_description(set.dataset, "6 of 6 image headers read: 1x40, gray");
        stoker_dataset_close(&set.dataset);
        color_one(&set, colored);
        cr_assert_eq(open_spec(&set.dataset, &error, "folder:%s", set.directory.path, ""),
                     STOKER_OK, "%s", error.message);
        expect_shape(set.dataset, 1, STK_FOLDER_ROW, 3);
        expect_description(set.dataset, "1x40, gray and color");
        for (uint64_t id = 0; id < 6; id++) {
            cr_assert_eq(stk_read_row(set.dataset, id, row, sizeof(row), NULL, &error), STOKER_OK,
                         "%s", error.message);
            stk_folder_row(id, gray);
            for (size_t at = 0; at < sizeof(row); at++)
                cr_assert_eq(row[at], (uint8_t)(gray[at / 3] + (id == colored ? at % 3 : 0)));
        }
        stk_folder_remove(&set);
    }
}

/* 1500 images, of which 1000 are looked at, number 2 not among them. */
CleanTest(folder, a_color_image_among_gray_ones_is_an_error_unless_gray_is_asked_for)
{
#ifndef STOKER_HAVE_PNG
    cr_skip_test("built without libpng");
#endif
    static const struct {
        const char *format;
        uint64_t channels;
        int code;
    } rows[] = { { "folder:%s", 1, STOKER_EFORMAT },
                 { "folder:%s?channels=1", 1, STOKER_OK },
                 { "folder:%s?channels=3", 3, STOKER_OK } };
    struct stk_folder_set set;
    stoker_error error;
    uint8_t row[3 * STK_FOLDER_ROW];
    stk_folder_make(&set, 1500, 500, true);
    color_one(&set, 2);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        stoker_dataset_close(&set.dataset);
        cr_assert_eq(open_spec(&set.dataset, &error, rows[i].format, set.directory.path, ""),
                     STOKER_OK, "%s", error.message);
        expect_shape(set.dataset, 1, STK_FOLDER_ROW, rows[i].channels);
        expect_description(set.dataset, "1000 of 1500 image headers read: 1x40, gray");
        cr_assert_eq(stk_read_row(set.dataset, 3, row, sizeof(row), NULL, &error), STOKER_OK, "%s",
                     error.message);
        const int rc = stk_read_row(set.dataset, 2, row, sizeof(row), NULL, &error);
        cr_assert_eq(rc, rows[i].code, "%s: %d %s", rows[i].format, rc, error.message);
        if (rc == STOKER_OK)
            continue;
        cr_assert_str_eq(error.path, "c00/f00002.png");
        cr_assert_not_null(strstr(error.message, "channels=3 in the spec"), "%s", error.message);
    }
    stk_folder_remove(&set);
}

static int create_loader(const stoker_dataset *dataset, bool resizes, stoker_error *error)
{
    stoker_loader *loader = NULL;
    stoker_loader_options options =
        stk_small_options(.batch_size = 2, .on_bad_sample = STOKER_ON_BAD_SKIP);
    if (resizes)
        options.transform.resize = (stoker_size){ 1, 8 };
    *error = (stoker_error){ .message = "" };
    const int rc = stoker_loader_create(&loader, dataset, &options, error);
    stoker_loader_destroy(&loader);
    return rc;
}

CleanTest(folder, several_sizes_need_a_resize_or_one_size_in_the_spec)
{
#ifndef STOKER_HAVE_PNG
    cr_skip_test("built without libpng");
#endif
    struct stk_folder_set set;
    stoker_error error;
    uint8_t row[STK_FOLDER_ROW];
    struct stk_bytes bytes = { 0 };
    stk_folder_make(&set, 6, 2, true);
    cr_assert_eq(create_loader(set.dataset, false, &error), STOKER_OK, "%s", error.message);
    stoker_dataset_close(&set.dataset);
    stk_folder_row(9, row);
    stk_put_png(&bytes, row, 30);
    stk_file_write(&set.directory, "c01/x.png", bytes.at, bytes.size);
    cr_assert_eq(open_spec(&set.dataset, &error, "folder:%s", set.directory.path, ""), STOKER_OK,
                 "%s", error.message);
    cr_assert(stoker_dataset_get_info(set.dataset)->sizes_differ);
    cr_assert_eq(create_loader(set.dataset, false, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "set transform.resize,"), "%s", error.message);
    cr_assert_not_null(strstr(error.message, "c00/f00000.png 1x40, c01/x.png 1x30"), "%s",
                       error.message);
    cr_assert_eq(create_loader(set.dataset, true, &error), STOKER_OK, "%s", error.message);
    stoker_dataset_close(&set.dataset);
    cr_assert_eq(
        open_spec(&set.dataset, &error, "folder:%s?height=1&width=40", set.directory.path, ""),
        STOKER_OK, "%s", error.message);
    cr_assert_not(stoker_dataset_get_info(set.dataset)->sizes_differ);
    cr_assert_eq(create_loader(set.dataset, false, &error), STOKER_OK, "%s", error.message);
    cr_assert_eq(stk_read_row(set.dataset, 4, row, sizeof(row), NULL, &error), STOKER_EFORMAT);
    stk_folder_remove(&set);
}

/* The first bytes decide what a file is, whatever its name says; and the first file that is an
 * image gives the shape. */
CleanTest(folder, contents_count_and_not_names)
{
    struct stk_folder_set set;
    stoker_dataset *dataset = NULL;
    stoker_error error;
    char from[512];
    char to[512];
    char name[64];
    uint8_t row[STK_FOLDER_ROW];
    static const uint8_t jpeg[20] = { 0xFF, 0xD8, 0xFF, 0xE0, 0, 16, 'J', 'F', 'I', 'F' };
    stk_folder_make(&set, 4, 2, true);
    stoker_dataset_close(&set.dataset);
    cr_assert_eq(rename(stk_path_in(from, &set.directory, stk_folder_name(&set, 3, name)),
                        stk_path_in(to, &set.directory, "c01/f00003.jpeg")),
                 0);
    stk_file_write(&set.directory, stk_folder_name(&set, 0, name), "not an image at all", 19);
    stk_file_write(&set.directory, "c01/cut.jpg", jpeg, sizeof(jpeg));
    stk_file_write(&set.directory, "c01/empty.png", jpeg, 0);
    cr_assert_eq(open_spec(&dataset, &error, "folder:%s", set.directory.path, ""), STOKER_OK, "%s",
                 error.message);
    expect_shape(dataset, 1, STK_FOLDER_ROW, 1);
    static const int codes[] = { STOKER_EMAGIC, 0, STOKER_ETRUNCATED, STOKER_ETRUNCATED, 0, 0 };
    cr_assert_eq(count_of(dataset), 6);
    for (uint64_t id = 0; id < 6; id++) {
        const int rc = stk_read_row(dataset, id, row, sizeof(row), NULL, &error);
        cr_assert_eq(rc, codes[id], "%s: %d %s", path_of(dataset, id), rc, error.message);
        if (rc != STOKER_OK)
            cr_assert_str_eq(error.path, path_of(dataset, id));
    }
    stoker_dataset_close(&dataset);
    stk_directory_remove(&set.directory);
}

CleanTest(folder, longer_files_than_allowed_are_bad_alone)
{
    struct stk_folder_set set;
    stoker_dataset *dataset = NULL;
    stoker_error error;
    uint8_t row[STK_FOLDER_ROW];
    stk_folder_make(&set, 4, 2, false);
    stoker_dataset_close(&set.dataset);
    stk_folder_touch(&set.directory, "c00/huge.raw", STK_FOLDER_ROW + 1);
    cr_assert_eq(open_spec(&dataset, &error, "folder:%s?extensions=raw&max_file_bytes=%s",
                           set.directory.path, "40"),
                 STOKER_OK, "%s", error.message);
    cr_assert_eq(stoker_dataset_get_info(dataset)->encoded_bytes_max, STK_FOLDER_ROW);
    cr_assert_eq(stk_read_row(dataset, 1, row, sizeof(row), NULL, &error), STOKER_OK);
    cr_assert_eq(stk_read_row(dataset, 2, row, sizeof(row), NULL, &error), STOKER_ELIMIT);
    cr_assert_str_eq(error.path, "c00/huge.raw");

    static struct stk_run run;
    stoker_loader *loader = NULL;
    stoker_loader_options options =
        stk_small_options(.on_bad_sample = STOKER_ON_BAD_SKIP, .batch_size = 2);
    memset(&run, 0, sizeof(run));
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
    stk_run_on(loader, &run, UINT32_MAX);
    cr_assert_eq(run.samples, 8);
    cr_assert_eq(stoker_loader_bad_sample(loader, 0, &error), STOKER_OK);
    cr_assert_eq(error.code, STOKER_ELIMIT);
    cr_assert_str_eq(error.path, "c00/huge.raw");
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&set.directory);
}

/* A stray file that sorts first, far longer than memory, beside empty and short ones: it takes no
 * memory, and the rows are what most files are. */
CleanTest(folder, stray_raw_files_are_bad_alone)
{
    static const struct {
        const char *name;
        off_t bytes;
        int code;
    } strays[] = { { "c00/a.raw", 3LL << 30, STOKER_ELIMIT },
                   { "c00/b.raw", (64 << 20) + 1, STOKER_ELIMIT },
                   { "c00/c.raw", 0, STOKER_EFORMAT },
                   { "c00/d.raw", 7, STOKER_EFORMAT },
                   { "c00/e.raw", 512 << 20, STOKER_ELIMIT } };
    enum { STRAYS = sizeof(strays) / sizeof(strays[0]), GOOD = 9 };
    struct stk_folder_set set;
    stoker_error error;
    char path[512];
    uint8_t row[STK_FOLDER_ROW];
    stk_folder_make(&set, GOOD, GOOD, false);
    stoker_dataset_close(&set.dataset);
    for (size_t i = 0; i < STRAYS; i++) {
        stk_folder_touch(&set.directory, strays[i].name, 0);
        cr_assert_eq(truncate(stk_path_in(path, &set.directory, strays[i].name), strays[i].bytes),
                     0);
    }
    cr_assert_eq(
        open_spec(&set.dataset, &error, "folder:%s?extensions=%s", set.directory.path, "raw"),
        STOKER_OK, "%s", error.message);
    expect_shape(set.dataset, STK_FOLDER_ROW, 0, 0);
    cr_assert_eq(count_of(set.dataset), STRAYS + GOOD);
    for (uint64_t id = 0; id < STRAYS + GOOD; id++) {
        const int rc = stk_read_row(set.dataset, id, row, sizeof(row), NULL, &error);
        cr_assert_eq(rc, id < STRAYS ? strays[id].code : STOKER_OK, "%s: %d %s",
                     path_of(set.dataset, id), rc, error.message);
    }
    static struct stk_run run;
    stoker_loader *loader = NULL;
    stoker_loader_options options =
        stk_small_options(.on_bad_sample = STOKER_ON_BAD_SKIP, .batch_size = 2);
    memset(&run, 0, sizeof(run));
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
    stk_run_on(loader, &run, UINT32_MAX);
    cr_assert_eq(run.samples, GOOD * options.epochs);
    stoker_loader_destroy(&loader);
    stk_folder_remove(&set);
}

CleanTest(folder, one_sample_read_reports_what_changed)
{
    struct stk_folder_set set;
    stoker_error error;
    char path[512];
    uint8_t row[STK_FOLDER_ROW];
    stk_folder_make(&set, 4, 2, false);
    cr_assert_eq(truncate(stk_path_in(path, &set.directory, "c00/f00000.raw"), 39), 0);
    stk_folder_touch(&set.directory, "c00/f00001.raw", 41);
    cr_assert_eq(unlink(stk_path_in(path, &set.directory, "c01/f00002.raw")), 0);
    cr_assert_eq(unlink(stk_path_in(path, &set.directory, "c01/f00003.raw")), 0);
    cr_assert_eq(symlink("/etc/passwd", path), 0);
    static const int codes[] = { STOKER_ECHANGED, STOKER_ECHANGED, STOKER_ENOENT, STOKER_EACCES };
    static const char *const words[] = { "shorter than the 40", "longer than the 40",
                                         "no such file", "permission" };
    for (uint64_t id = 0; id < 4; id++) {
        cr_assert_eq(stk_read_row(set.dataset, id, row, sizeof(row), NULL, &error), codes[id]);
        cr_assert_eq(error.sample, id);
        cr_assert_str_eq(error.path, path_of(set.dataset, id));
        cr_assert_not_null(strstr(error.message, words[id]), "%s", error.message);
    }
    stk_folder_remove(&set);
}

CleanTest(folder, a_split_is_a_folder_and_a_plain_path_is_recognized)
{
    struct stk_folder_set set;
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    char spec[400];
    char parent[400];
    char *slash;
    stk_folder_make(&set, 4, 2, true);
    cr_assert_eq(stoker_dataset_open(&dataset, set.directory.path, NULL, NULL), STOKER_OK);
    cr_assert_str_eq(stoker_dataset_name(dataset), "folder");
    cr_assert_eq(count_of(dataset), 4);
    stoker_dataset_close(&dataset);

    (void)snprintf(parent, sizeof(parent), "%s", set.directory.path);
    slash = strrchr(parent, '/');
    *slash = '\0';
    (void)snprintf(spec, sizeof(spec), "folder:%.380s", parent);
    stoker_dataset_options options = { STOKER_DATASET_OPTIONS_DEFAULTS.split = slash + 1 };
    cr_assert_eq(stoker_dataset_open(&dataset, spec, &options, &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_eq(count_of(dataset), 4);
    stoker_dataset_close(&dataset);
    static const char *const wrong[] = { "", "..", "a/b", ".", "none" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        options.split = wrong[i];
        cr_assert_lt(stoker_dataset_open(&dataset, spec, &options, &error), 0);
    }
    stk_folder_remove(&set);

    stk_folder_make(&set, 4, 2, false); /* raw files are no images */
    cr_assert_eq(stoker_dataset_open(&dataset, set.directory.path, NULL, NULL), STOKER_ESPEC);
    stk_folder_remove(&set);
}

/* Memory is what the header says. */
CleanTest(folder, memory_is_as_stated)
{
    struct stk_folder_set set;
    stoker_dataset *dataset = NULL;
    stoker_error error;
    char spec[400];
    stk_folder_make(&set, 5000, 500, false);
    (void)snprintf(spec, sizeof(spec), "folder:%s?extensions=raw", set.directory.path);
    const int64_t before = stk_fault_live_bytes();
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, NULL), STOKER_OK);
    const int64_t taken = stk_fault_live_bytes() - before;
    const int64_t stated = 5000 * (16 + 15) + 10 * (32 + 8 + 4); /* "c00/f00000.raw" and a 0 */
    cr_assert_geq(taken, stated);
    cr_assert_leq(taken, stated + 16384);
    stoker_dataset_close(&dataset);
    stoker_dataset_options options = { .struct_size = sizeof(stoker_dataset_options),
                                       .max_bytes = 100000 };
    cr_assert_eq(stoker_dataset_open(&dataset, spec, &options, &error), STOKER_ELIMIT);
    cr_assert_not_null(strstr(error.message, "max_bytes"));
    stk_folder_remove(&set);
}

/* ---- nothing left behind ---- */

/* The first file is none: what its probe says must not hide that there was no memory for the
 * next one's. */
CleanTest(folder, a_failed_allocation_is_reported_for_any_files)
{
#ifndef STOKER_HAVE_PNG
    cr_skip_test("built without libpng");
#endif
    struct stk_folder_set set;
    stoker_dataset *dataset = NULL;
    char spec[400];
    stk_folder_make(&set, 2, 2, true);
    stk_file_write(&set.directory, "c00/f00000.png", "no image", 8);
    (void)snprintf(spec, sizeof(spec), "folder:%s", set.directory.path);
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    while (stk_sweep_next(&sweep))
        sweep.rc = stoker_dataset_open(&dataset, spec, NULL, &sweep.error);
    stoker_dataset_close(&dataset);
    stk_folder_remove(&set);
}
