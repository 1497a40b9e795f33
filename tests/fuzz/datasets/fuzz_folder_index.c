/* fuzz_folder_index.c - a good index of a small folder with changes, its checksum made right: what
 * it says is then believed only where it is sound.
 *
 *   input   1 byte: the length, less or more; changes (edits.h) of the file
 *
 * The stamps of the folders are made those of now first: an index of folders this young would not
 * be believed for that alone.
 */
#include "datasets/folder/index.h"
#include "datasets/folder/list.h"
#include "fuzz/edits.h"
#include "fuzz/scratch.h"
#include "loader/base/bytes.h"
#include "loader/base/rng.h"
#include "support/sets/read_row.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum {
    HEADER_BYTES = 64,
    SUM_AT = 56,
    FILES = 5,
    CLASSES = 3,
    DIRECTORIES = 4,
    INDEX_BYTES_MAX = 4096
};

static const char content[9] = "contents";
static uint8_t good[INDEX_BYTES_MAX];
static size_t good_bytes;

static const char *spec_of(char spec[3 * STK_FUZZ_PATH_BYTES])
{
    (void)snprintf(spec, 3 * STK_FUZZ_PATH_BYTES, "folder:%s/set?extensions=raw&index=%s/index",
                   stk_fuzz_folder, stk_fuzz_folder);
    return spec;
}

static uint64_t sum(uint64_t hash, const uint8_t *at, size_t count)
{
    uint8_t last[8] = { 0 };
    for (; count >= 8; count -= 8, at += 8)
        hash = stk_mix64(hash ^ stk_load_le64(at));
    memcpy(last, at, count);
    return stk_mix64(stk_mix64(hash ^ stk_load_le64(last)) ^ count);
}

static void seal(uint8_t *index, size_t size)
{
    memset(index + SUM_AT, 0, 8);
    stk_store_le64(index + SUM_AT,
                   sum(sum(0, index, HEADER_BYTES), index + HEADER_BYTES, size - HEADER_BYTES));
}

/* ---- the good index ---- */

static void check_rows(const stoker_dataset *dataset)
{
    STK_FUZZ_CHECK(stoker_dataset_get_info(dataset)->count == FILES);
    STK_FUZZ_CHECK(stoker_dataset_get_info(dataset)->class_count == CLASSES);
}

static void make_files(void)
{
    static const char *const folders[] = { "set", "set/a", "set/b", "set/b/deep", "set/empty" };
    static const char *const files[FILES] = { "set/a/1.raw", "set/a/2.raw", "set/b/3.raw",
                                              "set/b/deep/4.raw", "set/b/deep/5.raw" };
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        stk_fuzz_mkdir(folders[i]);
    for (size_t i = 0; i < FILES; i++)
        stk_fuzz_write(files[i], content, 8);
}

static void refresh_stamps(void)
{
    char path[STK_FUZZ_PATH_BYTES];
    const int root = open(stk_fuzz_path(path, "set"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    STK_FUZZ_CHECK(root >= 0);
    const uint8_t *names = good + HEADER_BYTES + DIRECTORIES * sizeof(struct stk_folder_directory) +
                           CLASSES * sizeof(uint64_t) + FILES * sizeof(struct stk_folder_file);
    for (size_t i = 0; i < DIRECTORIES; i++) {
        struct stk_folder_directory directory;
        uint8_t *at = good + HEADER_BYTES + i * sizeof(directory);
        memcpy(&directory, at, sizeof(directory));
        const uint64_t name = directory.path;
        STK_FUZZ_CHECK(stk_folder_stamp(root, (const char *)names + name, &directory) == 0);
        directory.path = name;
        memcpy(at, &directory, sizeof(directory));
    }
    close(root);
}

static void make_index(void)
{
    char spec[3 * STK_FUZZ_PATH_BYTES];
    char path[STK_FUZZ_PATH_BYTES];
    make_files();
    stk_fuzz_open(spec_of(spec), check_rows);
    const int fd = open(stk_fuzz_path(path, "index"), O_RDONLY | O_CLOEXEC);
    STK_FUZZ_CHECK(fd >= 0);
    const ssize_t got = read(fd, good, sizeof(good));
    close(fd);
    STK_FUZZ_CHECK(got > HEADER_BYTES && got < INDEX_BYTES_MAX);
    good_bytes = (size_t)got;
    refresh_stamps();
}

/* ---- one input ---- */

static ino_t inode_of_index(void)
{
    struct stat status;
    char path[STK_FUZZ_PATH_BYTES];
    STK_FUZZ_CHECK(stat(stk_fuzz_path(path, "index"), &status) == 0);
    return status.st_ino;
}

/* Whatever the index says, rows are those of files in the set. */
static void look_at(const stoker_dataset *dataset)
{
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    uint8_t row[64];
    const size_t row_bytes = stoker_dataset_field_bytes(dataset, 0);
    STK_FUZZ_CHECK(row_bytes <= 1U << 30);
    for (uint32_t i = 0; i < info->class_count; i++)
        STK_FUZZ_CHECK(strlen(stoker_dataset_class_name(dataset, 1, i)) < INDEX_BYTES_MAX);
    for (uint64_t id = 0; id < info->count && row_bytes <= sizeof(row); id++) {
        stoker_error error = { 0 };
        const int rc = stk_read_row(dataset, id, row, row_bytes, NULL, &error);
        STK_FUZZ_CHECK(rc == STOKER_OK || (error.code == rc && error.message[0] != '\0'));
        STK_FUZZ_CHECK(rc != STOKER_OK || (row_bytes == 8 && memcmp(row, content, 8) == 0));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t index[INDEX_BYTES_MAX + 256] = { 0 };
    char spec[3 * STK_FUZZ_PATH_BYTES];
    if (stk_fuzz_begins())
        make_index();
    size_t index_bytes =
        good_bytes + (size == 0 ? 0 : bytes[0] % 64) - (size == 0 ? 0 : bytes[0] / 64);
    memcpy(index, good, good_bytes);
    if (size > 1)
        stk_fuzz_edit(index, index_bytes, bytes + 1, size - 1);
    seal(index, index_bytes);
    stk_fuzz_write("index", index, index_bytes);
    const ino_t before = inode_of_index();
    stk_fuzz_open(spec_of(spec), size == 0 ? check_rows : look_at);
    if (size == 0) /* the good one was believed: a new one would be another file */
        STK_FUZZ_CHECK(inode_of_index() == before);
    return 0;
}
