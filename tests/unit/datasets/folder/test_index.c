/* test_index.c - the index of a folder is believed only while it is true. */
#include <fcntl.h>
#include <time.h>

#include "loader/base/fault.h"
#include "loader/base/rng.h"
#include "support/files/folder_files.h"
#include "support/leaks.h"
#include "support/sets/label_of.h"

struct indexed {
    struct stk_folder_set set;
    char spec[900];
    char index[300];
};

static void indexed_make(struct indexed *indexed, uint32_t count)
{
    stk_folder_make(&indexed->set, count, 2, false);
    stoker_dataset_close(&indexed->set.dataset);
    /* Beside the classes, where many would put it. */
    (void)snprintf(indexed->index, sizeof(indexed->index), "%s/.index",
                   indexed->set.directory.path);
    (void)snprintf(indexed->spec, sizeof(indexed->spec), "folder:%s?extensions=raw&index=%s",
                   indexed->set.directory.path, indexed->index);
}

static uint64_t open_and_hash(const struct indexed *indexed, uint64_t *count)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    stoker_part sample;
    uint64_t hash = STK_FNV1A_START;
    cr_assert_eq(stoker_dataset_open(&dataset, indexed->spec, NULL, &error), STOKER_OK, "%s",
                 error.message);
    *count = stoker_dataset_get_info(dataset)->count;
    for (uint64_t id = 0; id < *count; id++) {
        cr_assert_eq(stoker_dataset_locate(dataset, id, &sample, NULL), STOKER_OK);
        hash = stk_fnv1a(hash, sample.extent.path, strlen(sample.extent.path) + 1);
        hash = stk_fnv1a(hash, &sample.extent.bytes, sizeof(sample.extent.bytes));
        const int64_t label = stk_label_of(dataset, id);
        hash = stk_fnv1a(hash, &label, sizeof(label));
    }
    stoker_dataset_close(&dataset);
    return hash;
}

static size_t read_index(const struct indexed *indexed, uint8_t *to, size_t bytes_max)
{
    const int fd = open(indexed->index, O_RDONLY | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    const ssize_t got = read(fd, to, bytes_max);
    cr_assert_gt(got, 0);
    cr_assert_lt((size_t)got, bytes_max);
    close(fd);
    return (size_t)got;
}

static void write_index(const struct indexed *indexed, const uint8_t *bytes, size_t count)
{
    stk_file_write(&indexed->set.directory, ".index", bytes, count);
}

/* Folders that changed a moment ago are not believed: wait until they are old. */
static void grow_old(void)
{
    const struct timespec pause = { .tv_sec = 2, .tv_nsec = 100000000 };
    nanosleep(&pause, NULL);
}

CleanTest(folder_index, a_good_index_is_used_and_a_damaged_one_is_not)
{
    static uint8_t good[4096];
    static uint8_t other[4096];
    static uint8_t after[4096];
    struct indexed indexed;
    uint64_t count;
    char path[512];
    if (access("/dev/shm", W_OK) == 0) /* thousands of files are written: spare the disk */
        cr_assert_eq(setenv("TMPDIR", "/dev/shm", 1), 0);
    indexed_make(&indexed, 6);
    grow_old();
    const uint64_t hash = open_and_hash(&indexed, &count);
    const size_t bytes = read_index(&indexed, good, sizeof(good));

    /* A file that is written to changes no folder: the index keeps its content. */
    stk_path_in(path, &indexed.set.directory, "c01/f00002.raw");
    cr_assert_eq(truncate(path, 7), 0);
    cr_assert_eq(open_and_hash(&indexed, &count), hash);
    cr_assert_eq(truncate(path, STK_FOLDER_ROW), 0);

    for (size_t at = 0; at < bytes; at++)
        for (int bit = 0; bit < 8; bit += 1 + (int)(at % 3)) {
            memcpy(other, good, bytes);
            other[at] ^= (uint8_t)(1 << bit);
            write_index(&indexed, other, bytes);
            cr_assert_eq(open_and_hash(&indexed, &count), hash, "byte %zu bit %d", at, bit);
            cr_assert_eq(read_index(&indexed, after, sizeof(after)), bytes);
            cr_assert_eq(memcmp(after, good, bytes), 0, "it was made again");
        }
    for (size_t length = 0; length < bytes + 9; length++) { /* cut, and with more behind */
        if (length == bytes)
            continue;
        write_index(&indexed, good, length);
        cr_assert_eq(open_and_hash(&indexed, &count), hash);
        cr_assert_eq(read_index(&indexed, after, sizeof(after)), bytes);
    }
    stk_directory_remove(&indexed.set.directory);
}

static void change_none(const struct stk_directory *directory)
{
    (void)directory;
}

static void change_add(const struct stk_directory *directory)
{
    stk_folder_touch(directory, "c01/a.raw", STK_FOLDER_ROW);
}

static void change_remove(const struct stk_directory *directory)
{
    char path[512];
    cr_assert_eq(unlink(stk_path_in(path, directory, "c00/f00000.raw")), 0);
}

static void change_rename(const struct stk_directory *directory)
{
    char from[512];
    char to[512];
    cr_assert_eq(rename(stk_path_in(from, directory, "c00/f00000.raw"),
                        stk_path_in(to, directory, "c00/g.raw")),
                 0);
}

static void change_move(const struct stk_directory *directory)
{
    char from[512];
    char to[512];
    cr_assert_eq(rename(stk_path_in(from, directory, "c00/f00000.raw"),
                        stk_path_in(to, directory, "c02/f00000.raw")),
                 0);
}

static void change_new_class(const struct stk_directory *directory)
{
    stk_folder_mkdir(directory, "c00a");
    stk_folder_touch(directory, "c00a/1.raw", STK_FOLDER_ROW);
}

static void change_rename_class(const struct stk_directory *directory)
{
    char from[512];
    char to[512];
    cr_assert_eq(rename(stk_path_in(from, directory, "c00"), stk_path_in(to, directory, "d")), 0);
}

static void change_nested(const struct stk_directory *directory)
{
    stk_folder_touch(directory, "c00/deep/er/2.raw", STK_FOLDER_ROW);
}

CleanTest(folder_index, the_index_of_a_changed_tree_is_rebuilt)
{
    static void (*const changes[])(const struct stk_directory *) = {
        change_none, change_add,       change_remove,       change_rename,
        change_move, change_new_class, change_rename_class, change_nested,
    };
    enum { CHANGES = sizeof(changes) / sizeof(changes[0]) };
    struct indexed *indexed[CHANGES];
    uint64_t hashes[CHANGES];
    uint64_t count;
    for (size_t i = 0; i < CHANGES; i++) {
        indexed[i] = calloc(1, sizeof(*indexed[i]));
        cr_assert_not_null(indexed[i]);
        indexed_make(indexed[i], 6);
        stk_folder_mkdir(&indexed[i]->set.directory, "c00/deep");
        stk_folder_mkdir(&indexed[i]->set.directory, "c00/deep/er");
        stk_folder_touch(&indexed[i]->set.directory, "c00/deep/er/1.raw", STK_FOLDER_ROW);
    }
    grow_old();
    for (size_t i = 0; i < CHANGES; i++) {
        hashes[i] = open_and_hash(indexed[i], &count);
        cr_assert_eq(count, 7);
        changes[i](&indexed[i]->set.directory);
        const uint64_t hash = open_and_hash(indexed[i], &count);
        cr_assert_eq(hash == hashes[0], i == 0, "change %zu", i);
        /* And without the index it is the same. */
        char scanned[300];
        (void)snprintf(scanned, sizeof(scanned), "folder:%s?extensions=raw",
                       indexed[i]->set.directory.path);
        (void)snprintf(indexed[i]->spec, sizeof(indexed[i]->spec), "%s", scanned);
        cr_assert_eq(open_and_hash(indexed[i], &count), hash);
        stk_directory_remove(&indexed[i]->set.directory);
        free(indexed[i]);
    }
}

/* The checksum that an index has, by its definition. */
static void seal(uint8_t *index, size_t bytes)
{
    enum { HEADER = 64, SUM_AT = 56 };
    uint64_t hash = 0;
    memset(index + SUM_AT, 0, 8);
    for (size_t at = 0, end = HEADER; end <= bytes;
         at = end, end = end < bytes ? bytes : bytes + 1) {
        uint64_t word = 0;
        for (; end - at >= 8; at += 8)
            hash = stk_mix64(hash ^ stk_load_le64(index + at));
        memcpy(&word, index + at, end - at);
        hash = stk_mix64(stk_mix64(hash ^ word) ^ (end - at));
    }
    stk_store_le64(index + SUM_AT, hash);
}

/* Another folder with the name of one that was scanned, or the same one at another time. */
CleanTest(folder_index, a_folder_is_known_by_inode_and_times)
{
    static uint8_t good[4096], other[4096], after[4096];
    struct indexed indexed;
    struct stat status;
    uint64_t count, inode;
    char path[512];
    indexed_make(&indexed, 6);
    grow_old();
    const uint64_t hash = open_and_hash(&indexed, &count);
    const size_t bytes = read_index(&indexed, good, sizeof(good));
    cr_assert_eq(stat(stk_path_in(path, &indexed.set.directory, "c01"), &status), 0);
    size_t at = 64;
    do {
        cr_assert_lt(at + 8, bytes);
        at += 8;
        inode = stk_load_le64(good + at);
    } while (inode != status.st_ino);
    for (size_t word = 0; word < 3; word++) { /* inode, mtime, ctime */
        memcpy(other, good, bytes);
        seal(other, bytes);
        cr_assert_arr_eq(other, good, bytes);
        stk_store_le64(other + at + 8 * word, stk_load_le64(good + at + 8 * word) + 1);
        seal(other, bytes);
        write_index(&indexed, other, bytes);
        cr_assert_eq(open_and_hash(&indexed, &count), hash);
        cr_assert_eq(read_index(&indexed, after, sizeof(after)), bytes);
        cr_assert_arr_eq(after, good, bytes, "word %zu was believed", word);
    }
    stk_directory_remove(&indexed.set.directory);
}

/* A tree that has changed within the clock's tick is scanned again, and again. */
CleanTest(folder_index, a_fresh_tree_is_not_believed)
{
    struct indexed indexed;
    uint64_t count;
    indexed_make(&indexed, 6);
    const uint64_t hash = open_and_hash(&indexed, &count);
    for (int round = 0; round < 20; round++) {
        char name[64];
        (void)snprintf(name, sizeof(name), "c00/%d.raw", round);
        stk_folder_touch(&indexed.set.directory, name, STK_FOLDER_ROW);
        cr_assert_neq(open_and_hash(&indexed, &count), hash);
        cr_assert_eq(count, 7 + (uint64_t)round);
    }
    stk_directory_remove(&indexed.set.directory);
}

/* Looking for other files is another question. */
CleanTest(folder_index, an_index_answers_its_own_question_only)
{
    struct indexed indexed;
    uint64_t count;
    indexed_make(&indexed, 6);
    stk_folder_touch(&indexed.set.directory, "c00/more.bin", STK_FOLDER_ROW);
    grow_old();
    (void)open_and_hash(&indexed, &count);
    cr_assert_eq(count, 6);
    (void)snprintf(indexed.spec, sizeof(indexed.spec),
                   "folder:%s?extensions=raw,bin&height=1&width=40&channels=1&index=%s",
                   indexed.set.directory.path, indexed.index);
    (void)open_and_hash(&indexed, &count);
    cr_assert_eq(count, 7);
    stk_directory_remove(&indexed.set.directory);
}

CleanTest(folder_index, each_failed_allocation_or_thread_leaves_nothing)
{
    struct indexed indexed;
    stoker_dataset *dataset = NULL;
    uint64_t count;
    indexed_make(&indexed, 6);
    stk_folder_mkdir(&indexed.set.directory, "c00/deep");
    stk_folder_touch(&indexed.set.directory, "c00/deep/1.raw", STK_FOLDER_ROW);
    grow_old();
    const uint64_t hash = open_and_hash(&indexed, &count);
    for (int with_index = 0; with_index <= 1; with_index++) {
        bool reached = true;
        for (uint64_t nth = 1; reached; nth++) {
            stoker_error error = { .message = "" };
            cr_assert_lt(nth, 1000);
            if (with_index == 0)
                (void)unlink(indexed.index);
            stk_fault_arm(STK_FAULT_ANY, nth);
            const int rc = stoker_dataset_open(&dataset, indexed.spec, NULL, &error);
            reached = stk_fault_disarm();
            if (rc < 0) { /* a thread less is no failure, nor an index that finds no memory */
                cr_assert_eq(rc, STOKER_ENOMEM, "%llu: %s", (unsigned long long)nth, error.message);
                cr_assert_eq(error.code, STOKER_ENOMEM);
                cr_assert_null(dataset);
            } else {
                cr_assert_eq(stoker_dataset_get_info(dataset)->count, 7);
            }
            stoker_dataset_close(&dataset);
            cr_assert_eq(stk_fault_live_bytes(), 0);
        }
    }
    cr_assert_eq(open_and_hash(&indexed, &count), hash);
    stk_directory_remove(&indexed.set.directory);
}
