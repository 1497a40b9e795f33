/* test_disk_cache.c - the pieces of far objects in a local folder: what was kept comes back byte by
 * byte or not at all, whatever happened to the folder meanwhile.
 *
 * Method: the bytes of a piece are a function of (object, number), so that a process knows what
 * another one must have written. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loader/storage/disk_cache.h"
#include "support/files/dataset_files.h"
#include "support/leaks.h"
#include "support/sweep.h"

enum { MIB = 1 << 20, SUM_BYTES = 64 << 10, HEADER_BYTES = 128 };

static struct stk_directory directory;
static char folder[600];
static uint8_t bytes[MIB], found[MIB];

static struct stk_disk_cache *open_cache(uint64_t bytes_max)
{
    struct stk_disk_cache *cache = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(stk_disk_cache_open(&cache, folder, bytes_max, &error), STOKER_OK, "%s",
                 error.message);
    return cache;
}

static void enter(void)
{
    directory = stk_directory_make();
    (void)snprintf(folder, sizeof(folder), "%s/cache", directory.path);
}

static void leave(void)
{
    char command[700];
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    cr_assert_eq(system(command), 0);
    stk_directory_remove(&directory);
}

/* Piece `number` of object `object`, whose bytes are then in bytes[]. */
static struct stk_object_piece piece_of(uint8_t object, uint64_t number, size_t size)
{
    uint64_t word = object * UINT64_C(0x9E3779B97F4A7C15) + number * UINT64_C(0xBF58476D1CE4E5B9);
    for (size_t i = 0; i < size; i++) {
        word = word * UINT64_C(6364136223846793005) + 1442695040888963407U;
        bytes[i] = (uint8_t)(word >> 56);
    }
    struct stk_object_piece piece = { .number = number };
    memset(piece.digest, object, sizeof(piece.digest));
    return piece;
}

static bool has_piece(struct stk_disk_cache *cache, uint8_t object, uint64_t number, size_t size)
{
    const struct stk_object_piece piece = piece_of(object, number, size);
    memset(found, 0xA5, size);
    if (stk_disk_cache_get(cache, &piece, 0, found, size) != size)
        return false;
    cr_assert_arr_eq(found, bytes, size, "object %u, piece %llu", object,
                     (unsigned long long)number);
    return true;
}

static void put_piece(struct stk_disk_cache *cache, uint8_t object, uint64_t number, size_t size)
{
    const struct stk_object_piece piece = piece_of(object, number, size);
    stk_disk_cache_put(cache, &piece, bytes, size);
}

/* The file of a piece. */
static const char *path_of(uint8_t object, uint64_t number)
{
    static char path[800];
    size_t used = (size_t)snprintf(path, sizeof(path), "%s/%02x/", folder, object);
    for (int i = 0; i < STK_PIECE_DIGEST_BYTES; i++)
        used += (size_t)snprintf(path + used, sizeof(path) - used, "%02x", object);
    (void)snprintf(path + used, sizeof(path) - used, "-%llu", (unsigned long long)number);
    return path;
}

/* ---- what comes back ------------------------------------------------------------ */

CleanTest(disk_cache, gives_back_what_was_kept)
{
    static const size_t sizes[] = { 1, 4097, SUM_BYTES - 1, SUM_BYTES, SUM_BYTES + 1, MIB };
    enter();
    for (int reopened = 0; reopened < 2; reopened++) {
        struct stk_disk_cache *cache = open_cache(16 * MIB);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            const size_t size = sizes[i];
            if (reopened == 0) {
                cr_assert_not(has_piece(cache, 7, i, size));
                put_piece(cache, 7, i, size);
            }
            cr_assert(has_piece(cache, 7, i, size));
            cr_assert_not(has_piece(cache, 8, i, size), "another object");
            const struct stk_object_piece piece = piece_of(7, i, size);
            cr_assert_eq(stk_disk_cache_get(cache, &piece, size - 1, found, 10), 1);
            cr_assert_eq(stk_disk_cache_get(cache, &piece, size, found, 1), 0);
            for (size_t from = 0; from < size; from += size / 7 + 1)
                for (size_t count = 1; count <= size - from; count += size / 5 + 1) {
                    cr_assert_eq(stk_disk_cache_get(cache, &piece, from, found, count), count);
                    cr_assert_arr_eq(found, bytes + from, count);
                }
        }
        const struct stk_disk_cache_counts counts = stk_disk_cache_count(cache);
        cr_assert_eq(counts.kept, reopened == 0 ? 6 : 0);
        cr_assert_eq(counts.refused + counts.damaged + counts.evicted, 0);
        stk_disk_cache_close(cache);
    }
    leave();
}

/* Each bit of the header, some of the bytes, and each length. */
CleanTest(disk_cache, a_damaged_piece_is_noticed_and_removed)
{
    enum { SIZE = SUM_BYTES + 999, FILE_BYTES = HEADER_BYTES + SIZE };
    enter();
    struct stk_disk_cache *cache = open_cache(16 * MIB);
    uint64_t damaged = 0;
    for (uint32_t bit = 0; bit < FILE_BYTES * 8; bit += bit < HEADER_BYTES * 8 ? 1 : 8 * 977 + 1) {
        uint8_t byte;
        put_piece(cache, 1, 3, SIZE);
        const int fd = open(path_of(1, 3), O_RDWR);
        cr_assert_geq(fd, 0);
        cr_assert_eq(pread(fd, &byte, 1, bit / 8), 1);
        byte ^= (uint8_t)(1 << bit % 8);
        cr_assert_eq(pwrite(fd, &byte, 1, bit / 8), 1);
        close(fd);
        cr_assert_not(has_piece(cache, 1, 3, SIZE), "bit %u", bit);
        cr_assert_eq(stk_disk_cache_count(cache).damaged, ++damaged);
        cr_assert_eq(access(path_of(1, 3), F_OK), -1);
    }
    for (uint32_t size = 0; size < FILE_BYTES; size += size < HEADER_BYTES ? 1 : 4999) {
        put_piece(cache, 1, 3, SIZE);
        cr_assert_eq(truncate(path_of(1, 3), size), 0);
        cr_assert_not(has_piece(cache, 1, 3, SIZE), "%u bytes", size);
    }
    put_piece(cache, 1, 3, SIZE); /* under the name of another piece */
    char from[800];
    (void)snprintf(from, sizeof(from), "%s", path_of(1, 3));
    cr_assert_eq(rename(from, path_of(1, 4)), 0);
    cr_assert_not(has_piece(cache, 1, 4, SIZE));
    stk_disk_cache_close(cache);
    leave();
}

/* ---- room ----------------------------------------------------------------------- */

static void set_age(uint8_t object, uint64_t number, time_t seconds)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
                                       { .tv_sec = time(NULL) - seconds } };
    cr_assert_eq(utimensat(AT_FDCWD, path_of(object, number), times, 0), 0);
}

CleanTest(disk_cache, evicts_what_no_run_has_used_since)
{
    const uint64_t room = 10 * (HEADER_BYTES + SUM_BYTES) + 100;
    enter();
    struct stk_disk_cache *cache = open_cache(room);
    for (uint64_t i = 0; i < 12; i++)
        put_piece(cache, 1, i, SUM_BYTES);
    cr_assert_eq(stk_disk_cache_count(cache).kept, 10);
    cr_assert_eq(stk_disk_cache_count(cache).refused, 2, "nothing of this run makes way");
    for (uint64_t i = 0; i < 10; i++)
        cr_assert(has_piece(cache, 1, i, SUM_BYTES));
    stk_disk_cache_close(cache);

    for (uint64_t i = 0; i < 10; i++)
        set_age(1, i, (time_t)(1000 - i));
    cache = open_cache(room);
    cr_assert(has_piece(cache, 1, 0, SUM_BYTES), "the oldest, but used now");
    for (uint64_t i = 0; i < 9; i++)
        put_piece(cache, 2, i, SUM_BYTES);
    put_piece(cache, 2, 9, SUM_BYTES);
    const struct stk_disk_cache_counts counts = stk_disk_cache_count(cache);
    cr_assert_eq(counts.evicted, 9);
    cr_assert_eq(counts.kept, 9);
    cr_assert_eq(counts.refused, 1);
    cr_assert(has_piece(cache, 1, 0, SUM_BYTES));
    for (uint64_t i = 0; i < 9; i++)
        cr_assert(has_piece(cache, 2, i, SUM_BYTES));
    stk_disk_cache_close(cache);
    leave();
}

CleanTest(disk_cache, removes_what_a_killed_process_left)
{
    char path[800];
    enter();
    struct stk_disk_cache *cache = open_cache(16 * MIB);
    put_piece(cache, 1, 0, 100);
    stk_disk_cache_close(cache);
    for (int old = 0; old < 2; old++) {
        (void)snprintf(path, sizeof(path), "%s/01/.%d-0-0", folder, old);
        const int fd = open(path, O_CREAT | O_WRONLY, 0600);
        cr_assert_geq(fd, 0);
        const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
                                           { .tv_sec = time(NULL) - (old == 1 ? 1000 : 0) } };
        cr_assert_eq(futimens(fd, times), 0);
        close(fd);
    }
    cache = open_cache(16 * MIB);
    cr_assert_eq(access(path, F_OK), -1);
    (void)snprintf(path, sizeof(path), "%s/01/.0-0-0", folder);
    cr_assert_eq(access(path, F_OK), 0, "it may still be written");
    cr_assert(has_piece(cache, 1, 0, 100));
    stk_disk_cache_close(cache);
    leave();
}

/* Mount a file system of 1 MiB on the folder, in a name space of this process. */
static bool mount_small(void)
{
    char map[64];
    (void)snprintf(map, sizeof(map), "0 %lu 1", (unsigned long)geteuid());
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0) {
        const int fd = unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0
                           ? -1
                           : open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, map, strlen(map)) < 0)
            return false;
        close(fd);
    }
    return mkdir(folder, 0700) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", folder, "tmpfs", 0, "size=1m,mode=700") == 0;
}

CleanTest(disk_cache, a_full_disk_keeps_what_is_there)
{
    enter();
    if (!mount_small())
        cr_skip("SKIPPED: this process may not mount a small file system");
    struct stk_disk_cache *cache = open_cache(UINT64_C(1) << 40);
    for (uint64_t i = 0; i < 20; i++)
        put_piece(cache, 1, i, 2 * SUM_BYTES);
    const struct stk_disk_cache_counts counts = stk_disk_cache_count(cache);
    cr_assert(counts.kept > 0 && counts.kept < 9, "%llu", (unsigned long long)counts.kept);
    cr_assert_eq(counts.kept + counts.refused, 20);
    for (uint64_t i = 0; i < 20; i++)
        cr_assert_eq(has_piece(cache, 1, i, 2 * SUM_BYTES), i < counts.kept);
    stk_disk_cache_close(cache);
    cr_assert_eq(umount(folder), 0);
    cr_assert_eq(rmdir(folder), 0);
    stk_directory_remove(&directory);
}

CleanTest(disk_cache, keeps_nothing_beyond_the_limit_of_file_sizes)
{
    const struct rlimit limit = { 1000, RLIM_INFINITY };
    struct rlimit before;
    enter();
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    struct stk_disk_cache *cache = open_cache(16 * MIB); /* a write would be SIGXFSZ */
    put_piece(cache, 1, 0, 2000);
    cr_assert_not(has_piece(cache, 1, 0, 2000));
    cr_assert_eq(stk_disk_cache_count(cache).refused, 1);
    stk_disk_cache_close(cache);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    leave();
}

/* ---- several processes ---------------------------------------------------------- */

static _Noreturn void keep_putting(unsigned seed)
{
    struct stk_disk_cache *cache = open_cache(64 * MIB);
    for (uint64_t i = seed;; i++)
        put_piece(cache, (uint8_t)(i % 3), i * 7 % 16, MIB / 4);
}

CleanTest(disk_cache, a_killed_process_leaves_no_wrong_byte)
{
    uint32_t whole = 0;
    enter();
    struct stk_disk_cache *cache = open_cache(64 * MIB);
    for (unsigned kill_number = 0; kill_number < 60; kill_number++) {
        pid_t writers[2];
        for (unsigned i = 0; i < 2; i++)
            if ((writers[i] = fork()) == 0)
                keep_putting(kill_number * 5 + i);
        const struct timespec pause = { .tv_nsec = 1000000 + kill_number * 200000 };
        (void)nanosleep(&pause, NULL);
        for (uint64_t i = 0; i < 48; i++)
            whole += has_piece(cache, (uint8_t)(i % 3), i / 3, MIB / 4) ? 1 : 0;
        for (unsigned i = 0; i < 2; i++) {
            cr_assert_eq(kill(writers[i], SIGKILL), 0);
            cr_assert_eq(waitpid(writers[i], NULL, 0), writers[i]);
        }
        for (uint64_t i = 0; i < 48; i++)
            whole += has_piece(cache, (uint8_t)(i % 3), i / 3, MIB / 4) ? 1 : 0;
    }
    cr_assert_gt(whole, 100);
    cr_assert_eq(stk_disk_cache_count(cache).damaged, 0, "a file has its name when it is complete");
    stk_disk_cache_close(cache);
    leave();
}

/* ---- folders that are refused --------------------------------------------------- */

static void expect_refused(int code, const char *says)
{
    struct stk_disk_cache *cache = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(stk_disk_cache_open(&cache, folder, MIB, &error), code, "%s", error.message);
    cr_assert_not_null(strstr(error.message, says), "%s", error.message);
    cr_assert_not_null(strstr(error.message, folder), "%s", error.message);
    cr_assert_null(cache);
}

CleanTest(disk_cache, a_folder_that_others_may_write_to_is_refused)
{
    enter();
    cr_assert_eq(mkdir(folder, 0700), 0);
    cr_assert_eq(chmod(folder, 0777), 0);
    expect_refused(STOKER_EACCES, "mode 777");
    cr_assert_eq(chmod(folder, 0770), 0);
    stk_disk_cache_close(open_cache(MIB));
    if (geteuid() == 0) {
        cr_assert_eq(chown(folder, 12345, 12345), 0);
        expect_refused(STOKER_EACCES, "user 12345");
        cr_assert_eq(chown(folder, 0, 0), 0);
    }
    (void)snprintf(folder, sizeof(folder), "%s/none/cache", directory.path);
    expect_refused(STOKER_ENOENT, "cache_dir");
    (void)snprintf(folder, sizeof(folder), "%s/cache", directory.path);
    leave();
}

CleanTest(disk_cache, memory_that_runs_out_leaves_a_cache_or_an_error)
{
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    enter();
    stk_disk_cache_close(open_cache(MIB));
    while (stk_sweep_next(&sweep)) {
        struct stk_disk_cache *cache = NULL;
        sweep.rc =
            stk_disk_cache_open(&cache, folder, 3 * (SUM_BYTES + HEADER_BYTES), &sweep.error);
        for (uint64_t i = 0; sweep.rc == STOKER_OK && i < 4; i++)
            put_piece(cache, 1, i, SUM_BYTES);
        stk_disk_cache_close(cache);
    }
    leave();
}
