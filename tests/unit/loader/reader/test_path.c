/* test_path.c - whole files by name: every reader opens, reads and closes them alike, and
 * no file's bytes ever arrive under another's name.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "loader/base/fault.h"
#include "loader/reader/chain.h"
#include "loader/reader/readers.h"
#include "support/files/dataset_files.h"
#include "support/files/reader_file.h"
#include "support/leaks.h"
#include "support/runs/emulator.h"
#include "support/seccomp.h"

enum { FILES = 300, BYTES_MAX = 3000, WAIT_NS = 2000000000, DEPTH_MAX = 256, UNTOUCHED = 0xEE };

static const stoker_reader *const readers[] = { &stk_reader_uring, &stk_reader_pread };
enum { READERS = sizeof(readers) / sizeof(readers[0]) };

/* ---- a tree of files, each with bytes of its own ---- */

struct tree {
    struct stk_directory directory;
    int fd;
};

static uint32_t size_of(uint32_t file)
{
    return file % 17 == 0 ? 0 : (uint32_t)(stk_mix64(file) % BYTES_MAX);
}

static uint8_t byte_of(uint32_t file, uint64_t at)
{
    return stk_test_byte((uint64_t)file * 1000003U + at);
}

static const char *name_of(char name[64], uint32_t file)
{
    (void)snprintf(name, 64, "%c/%u.bin", 'a' + (int)(file % 3), file);
    return name;
}

static void write_file(const struct tree *tree, uint32_t file)
{
    static uint8_t bytes[BYTES_MAX];
    char name[64];
    for (uint32_t at = 0; at < size_of(file); at++)
        bytes[at] = byte_of(file, at);
    stk_file_write(&tree->directory, name_of(name, file), bytes, size_of(file));
}

static struct tree make_tree(void)
{
    struct tree tree = { .directory = stk_directory_make() };
    tree.fd = open(tree.directory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_geq(tree.fd, 0);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(mkdirat(tree.fd, (const char[]){ (char)('a' + i), 0 }, 0755), 0);
    for (uint32_t file = 0; file < FILES; file++)
        write_file(&tree, file);
    return tree;
}

static void remove_tree(const struct tree *tree)
{
    close(tree->fd);
    stk_directory_remove(&tree->directory);
}

static uint32_t open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    uint32_t count = 0;
    cr_assert_not_null(directory);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

/* ---- reads ---- */

struct flight {
    stoker_read reads[DEPTH_MAX];
    stoker_read *pointers[DEPTH_MAX];
    stoker_read *done[DEPTH_MAX];
    char names[DEPTH_MAX][64];
    uint8_t bytes[DEPTH_MAX][BYTES_MAX + 64];
};

static struct flight flight;

static void *open_ring(const stoker_reader *reader, int directory, uint32_t depth)
{
    const stoker_reader_setup setup = { .directory = directory,
                                        .depth = depth,
                                        .scratch = flight.bytes,
                                        .scratch_bytes = sizeof(flight.bytes) };
    stoker_error error = { 0 };
    void *ring = NULL;
    cr_assert_eq(reader->open(reader->self, &ring, &setup, &error), 0, "%s: %s", reader->name,
                 error.message);
    return ring;
}

/* Ask for a whole file and one byte more, as the loader does. */
static void draw(uint32_t at, uint32_t file)
{
    memset(flight.bytes[at], UNTOUCHED, sizeof(flight.bytes[at]));
    flight.reads[at] = (stoker_read){ .buffer = flight.bytes[at],
                                      .path = name_of(flight.names[at], file),
                                      .bytes = size_of(file) + 1,
                                      .result = INT32_MIN,
                                      .tag = file };
    flight.pointers[at] = &flight.reads[at];
}

static void check(const stoker_read *read, bool missing)
{
    const uint8_t *bytes = read->buffer;
    const uint32_t size = missing ? 0 : size_of(read->tag);
    cr_assert_eq(read->result, missing ? -ENOENT : (int32_t)size, "file %u: %lld", read->tag,
                 (long long)read->result);
    for (uint32_t at = 0; at < size; at++)
        cr_assert_eq(bytes[at], byte_of(read->tag, at), "file %u, byte %u", read->tag, at);
    for (uint32_t at = size; at < BYTES_MAX + 64; at++)
        cr_assert_eq(bytes[at], UNTOUCHED);
}

static bool none_missing(uint32_t file)
{
    (void)file;
    return false;
}

static bool third_missing(uint32_t file)
{
    return file % 3 == 1;
}

/* Keep the window full until `total` files in a random order have come. */
static void read_many(const stoker_reader *reader, void *ring, uint32_t depth, uint32_t total,
                      bool (*missing)(uint32_t))
{
    uint32_t drawn = 0;
    for (; drawn < depth; drawn++)
        draw(drawn, (uint32_t)(stk_mix64(drawn) % FILES));
    cr_assert_eq(reader->submit(ring, flight.pointers, depth), 0);
    for (uint32_t in_flight = depth; in_flight > 0;) {
        const uint32_t max = 1 + (uint32_t)(stk_mix64(drawn + in_flight) % depth);
        const int got = reader->reap(ring, flight.done, max, WAIT_NS);
        cr_assert_gt(got, 0, "%s, depth %u", reader->name, depth);
        cr_assert_leq((uint32_t)got, max);
        in_flight -= (uint32_t)got;
        for (int i = 0; i < got; i++)
            check(flight.done[i], missing(flight.done[i]->tag));
        if (drawn >= total)
            continue;
        for (int i = 0; i < got; i++)
            draw((uint32_t)(flight.done[i] - flight.reads), (uint32_t)(stk_mix64(drawn++) % FILES));
        cr_assert_eq(reader->submit(ring, flight.done, (uint32_t)got), 0);
        in_flight += (uint32_t)got;
    }
    cr_assert_eq(reader->reap(ring, flight.done, 1, 0), 0);
}

static void read_all_depths(const struct tree *tree, bool (*missing)(uint32_t))
{
    static const uint32_t depths[] = { 1, 2, 3, 7, 64, 100, DEPTH_MAX };
    for (size_t n = 0; n < READERS; n++) {
        if (!stk_test_reader_works(readers[n]))
            continue;
        for (size_t d = 0; d < sizeof(depths) / sizeof(depths[0]); d++) {
            void *ring = open_ring(readers[n], tree->fd, depths[d]);
            read_many(readers[n], ring, depths[d], depths[d] < 7 ? 300 : 2000, missing);
            cr_assert_eq(readers[n]->close(ring, WAIT_NS), 0);
        }
    }
}

CleanTest(reader_path, each_depth_delivers_each_file)
{
    const uint32_t before = open_descriptors();
    const struct tree tree = make_tree();
    read_all_depths(&tree, none_missing);
    remove_tree(&tree);
    cr_assert_eq(open_descriptors(), before);
}

/* A read whose open failed must not be served from the slot of the file before it. */
CleanTest(reader_path, a_missing_file_has_nobody_elses_bytes)
{
    const struct tree tree = make_tree();
    char name[64];
    for (uint32_t file = 1; file < FILES; file += 3)
        cr_assert_eq(unlinkat(tree.fd, name_of(name, file), 0), 0);
    read_all_depths(&tree, third_missing);
    remove_tree(&tree);
}

/* Files and whole files in one submit, and the longest read at every offset. */
CleanTest(reader_path, goes_beside_reads_of_open_files)
{
    enum { FILE_BYTES = 9000, READS = 60 };
    const struct tree tree = make_tree();
    FILE *file = stk_test_file(FILE_BYTES);
    cr_assert_not_null(file);
    const stoker_file files[] = { { .path = "file", .fd = fileno(file), .size = FILE_BYTES } };
    const int directories[] = { tree.fd, AT_FDCWD };
    for (size_t n = 0; n < READERS * 2; n++) {
        const stoker_reader *reader = readers[n / 2];
        if (!stk_test_reader_works(reader))
            continue;
        const stoker_reader_setup setup = {
            .files = files, .file_count = 1, .directory = directories[n % 2], .depth = READS
        };
        void *ring = NULL;
        char paths[READS][400];
        cr_assert_eq(reader->open(reader->self, &ring, &setup, NULL), 0);
        for (uint32_t i = 0; i < READS; i++) {
            draw(i, i);
            flight.reads[i].offset = i % 5;
            if (i % 2 == 0) {
                flight.reads[i].path = NULL;
                flight.reads[i].bytes = 100;
            } else if (n % 2 == 1) {
                (void)snprintf(paths[i], sizeof(paths[i]), "%s/%s", tree.directory.path,
                               flight.names[i]);
                flight.reads[i].path = paths[i];
            }
        }
        cr_assert_eq(reader->submit(ring, flight.pointers, READS), 0);
        for (int reaped = 0; reaped < READS;) {
            const int got = reader->reap(ring, flight.done, READS, WAIT_NS);
            cr_assert_gt(got, 0);
            reaped += got;
        }
        for (uint32_t i = 0; i < READS; i++) {
            const stoker_read *read = &flight.reads[i];
            const uint8_t *bytes = read->buffer;
            const uint32_t rest = size_of(i) > i % 5 ? size_of(i) - i % 5 : 0;
            cr_assert_eq(read->result, i % 2 == 0 ? 100 : (int32_t)rest);
            for (uint32_t at = 0; at < (uint32_t)read->result; at++)
                cr_assert_eq(bytes[at],
                             i % 2 == 0 ? stk_test_byte(i % 5 + at) : byte_of(i, i % 5 + at));
        }
        cr_assert_eq(reader->close(ring, WAIT_NS), 0);
    }
    fclose(file);
    remove_tree(&tree);
}

/* ---- what cannot be opened ---- */

static int64_t read_in(const stoker_reader *reader, void *ring, const char *path)
{
    static uint8_t bytes[BYTES_MAX];
    stoker_read read = { .buffer = bytes, .path = path, .bytes = sizeof(bytes) };
    stoker_read *pointer = &read;
    cr_assert_eq(reader->submit(ring, &pointer, 1), 0);
    cr_assert_eq(reader->reap(ring, &pointer, 1, WAIT_NS), 1);
    return read.result;
}

static int64_t read_path(const stoker_reader *reader, int directory, const char *path)
{
    void *ring = open_ring(reader, directory, 2);
    const int64_t result = read_in(reader, ring, path);
    cr_assert_eq(reader->close(ring, WAIT_NS), 0);
    return result;
}

CleanTest(reader_path, errors_are_results_and_links_stay_in_the_tree)
{
    if (!stk_test_has_openat2())
        cr_skip_test("no openat2 here: no link is followed");
    const struct tree tree = make_tree();
    char outside[300];
    char too_long[300];
    (void)snprintf(outside, sizeof(outside), "%s/a/3.bin", tree.directory.path);
    memset(too_long, 'x', sizeof(too_long) - 1);
    too_long[sizeof(too_long) - 1] = '\0';
    cr_assert_eq(symlinkat("../b/4.bin", tree.fd, "a/inside"), 0);
    cr_assert_eq(symlinkat("/etc/passwd", tree.fd, "a/passwd"), 0);
    cr_assert_eq(symlinkat("../../../../../../../etc/passwd", tree.fd, "a/up"), 0);
    cr_assert_eq(symlinkat("/etc", tree.fd, "etc"), 0);
    cr_assert_eq(symlinkat("loop", tree.fd, "loop"), 0);
    const struct {
        const char *path;
        int32_t result;
    } cases[] = {
        { "a/3.bin", (int32_t)size_of(3) },
        { "a/inside", (int32_t)size_of(4) },
        { "a/../b/4.bin", (int32_t)size_of(4) },
        { "a/passwd", -EXDEV },
        { "a/up", -EXDEV },
        { "etc/passwd", -EXDEV },
        { "../x", -EXDEV },
        { outside, -EXDEV }, /* no absolute path, even one that leads inside */
        { "loop", -ELOOP },
        { "a/none", -ENOENT },
        { "none/3.bin", -ENOENT },
        { "a/3.bin/x", -ENOTDIR },
        { "a", -EISDIR },
        { "", -ENOENT },
        { too_long, -ENAMETOOLONG },
    };
    for (size_t n = 0; n < READERS; n++) {
        if (!stk_test_reader_works(readers[n]))
            continue;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            const int64_t result = read_path(readers[n], tree.fd, cases[i].path);
            cr_assert_eq(result, cases[i].result, "%s: %s: %lld", readers[n]->name, cases[i].path,
                         (long long)result);
        }
        /* One ring, before it knows that there are links and after. */
        void *ring = open_ring(readers[n], tree.fd, 2);
        for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
            const size_t at = i % (sizeof(cases) / sizeof(cases[0]));
            cr_assert_eq(read_in(readers[n], ring, cases[at].path), cases[at].result, "%s: %s",
                         readers[n]->name, cases[at].path);
        }
        cr_assert_eq(readers[n]->close(ring, WAIT_NS), 0);
        cr_assert_eq(read_path(readers[n], AT_FDCWD, outside), (int32_t)size_of(3));
    }
    remove_tree(&tree);
}

/* Something on the machine is renamed all the time: then Linux often cannot decide at once where
 * ".." leads. */
static pid_t rename_until_killed(const struct tree *tree)
{
    const pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* if an assertion ends the test */
    while (child == 0)
        if (renameat(tree->fd, "c/2.bin", tree->fd, "c/two.bin") != 0 ||
            renameat(tree->fd, "c/two.bin", tree->fd, "c/2.bin") != 0)
            _exit(1);
    return child;
}

CleanTest(reader_path, renames_elsewhere_do_not_matter)
{
    enum { OPENS = 2000 };
    if (!stk_test_has_openat2())
        cr_skip_test("no openat2 here: no link is followed");
    const struct tree tree = make_tree();
    cr_assert_eq(symlinkat("../b/4.bin", tree.fd, "a/inside"), 0);
    const pid_t renames = rename_until_killed(&tree);
    for (size_t n = 0; n < READERS; n++) {
        if (!stk_test_reader_works(readers[n]))
            continue;
        void *ring = open_ring(readers[n], tree.fd, 2);
        for (int i = 0; i < OPENS; i++)
            cr_assert_eq(read_in(readers[n], ring, "a/inside"), (int32_t)size_of(4));
        cr_assert_eq(readers[n]->close(ring, WAIT_NS), 0);
    }
    cr_assert_eq(kill(renames, SIGKILL), 0);
    cr_assert_eq(waitpid(renames, NULL, 0), renames);
    remove_tree(&tree);
}

/* A kernel that never decides: the tries have an end. */
CleanTest(reader_path, an_open_is_tried_again_but_not_for_ever)
{
    const struct tree tree = make_tree();
    if (stk_seccomp_refuse(SYS_openat2, EAGAIN) != 0)
        cr_skip_test("no seccomp filters here");
    cr_assert_eq(read_path(&stk_reader_pread, tree.fd, "a/3.bin"), -EAGAIN);
    remove_tree(&tree);
}

CleanTest(reader_path, an_open_without_a_decision_is_noticed)
{
    struct stk_chain chain = { .results = {
                                   [STK_CHAIN_OPEN] = -EAGAIN, [STK_CHAIN_READ] = -ECANCELED } };
    cr_assert(stk_chain_undecided(&chain));
    chain.results[STK_CHAIN_OPEN] = -ECANCELED; /* the chain broke, and the loader starts another */
    cr_assert_not(stk_chain_undecided(&chain));
}

/* ---- less than everything ---- */

/* io_uring's table of files is bound by the same limit as descriptors: fewer slots, same bytes. */
CleanTest(reader_path, io_uring_needs_no_descriptors)
{
    if (!stk_test_reader_works(&stk_reader_uring))
        cr_skip_test("no io_uring here");
    const struct tree tree = make_tree();
    struct rlimit limit;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const int next = dup(tree.fd);
    cr_assert_geq(next, 0);
    close(next);
    limit.rlim_cur = (rlim_t)next + 1; /* room for the ring, and for nothing else */
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    void *ring = open_ring(&stk_reader_uring, tree.fd, 64);
    cr_assert_eq(dup(tree.fd), -1);
    cr_assert_eq(errno, EMFILE);
    read_many(&stk_reader_uring, ring, 64, 2000, none_missing);

    const struct stoker_reader *plain = &stk_reader_pread;
    cr_assert_eq(read_path(plain, tree.fd, "a/3.bin"), -EMFILE); /* a result, like any other */
    limit.rlim_cur++;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_assert_eq(read_path(plain, tree.fd, "a/3.bin"), (int32_t)size_of(3));
    cr_assert_eq(stk_reader_uring.close(ring, WAIT_NS), 0);
    remove_tree(&tree);
}

/* A ring without a table of its own reads whole files by system calls. */
CleanTest(reader_path, without_slots_the_bytes_are_the_same)
{
    if (!stk_test_reader_works(&stk_reader_uring))
        cr_skip_test("no io_uring here");
    const struct tree tree = make_tree();
    const uint32_t before = open_descriptors();
    if (stk_seccomp_refuse_operation(SYS_io_uring_register, 2, ENOMEM) != 0)
        cr_skip_test("no seccomp filters here");
    for (uint32_t depth = 1; depth <= DEPTH_MAX; depth *= 4) {
        void *ring = open_ring(&stk_reader_uring, tree.fd, depth);
        read_many(&stk_reader_uring, ring, depth, 1000, none_missing);
        cr_assert_eq(stk_reader_uring.close(ring, WAIT_NS), 0);
    }
    cr_assert_eq(read_path(&stk_reader_uring, tree.fd, "../x"), -EXDEV);
    cr_assert_eq(open_descriptors(), before);
    remove_tree(&tree);
}

/* An old kernel, or a sandbox that does not know the call: links are not followed at all. */
CleanTest(reader_path, without_openat2_no_link_is_followed)
{
    static const int errors[] = { ENOSYS, EPERM };
    const struct tree tree = make_tree();
    cr_assert_eq(symlinkat("../b/4.bin", tree.fd, "a/inside"), 0);
    cr_assert_eq(symlinkat("/etc/passwd", tree.fd, "a/passwd"), 0);
    cr_assert_eq(symlinkat("/etc", tree.fd, "a/etc"), 0);
    cr_assert_eq(symlinkat("b", tree.fd, "way"), 0);
    cr_assert_eq(symlinkat("..", tree.fd, "a/up"), 0);
    char too_long[NAME_MAX + 6] = "a/";
    memset(too_long + 2, 'x', NAME_MAX + 1);
    const uint32_t before = open_descriptors();
    const bool has_openat2 = stk_test_has_openat2();
    for (int i = 0; i < (has_openat2 ? 2 : 1); i++) {
        if (has_openat2 && stk_seccomp_refuse(SYS_openat2, errors[i]) != 0)
            cr_skip_test("no seccomp filters here");
        const stoker_reader *plain = &stk_reader_pread;
        cr_assert_eq(read_path(plain, tree.fd, "a/etc/passwd"), -ELOOP); /* in the middle */
        cr_assert_eq(read_path(plain, tree.fd, "way/4.bin"), -ELOOP);
        cr_assert_eq(read_path(plain, tree.fd, "a/up/a/3.bin"), -ELOOP);
        cr_assert_eq(read_path(plain, tree.fd, ".//a/.//3.bin"), (int32_t)size_of(3));
        cr_assert_eq(read_path(plain, tree.fd, "a/3.bin/"), -ENOTDIR);
        cr_assert_eq(read_path(plain, tree.fd, "a/3.bin/x"), -ENOTDIR);
        cr_assert_eq(read_path(plain, tree.fd, "c/3.bin"), -ENOENT);
        cr_assert_eq(read_path(plain, tree.fd, too_long), -ENAMETOOLONG);
        cr_assert_eq(read_path(plain, tree.fd, ""), -ENOENT);
        cr_assert_eq(read_path(plain, tree.fd, "a/3.bin"), (int32_t)size_of(3));
        cr_assert_eq(read_path(plain, tree.fd, "a/inside"), -ELOOP);
        cr_assert_eq(read_path(plain, tree.fd, "a/passwd"), -ELOOP);
        cr_assert_eq(read_path(plain, tree.fd, "/etc/passwd"), -EXDEV);
        cr_assert_eq(read_path(plain, tree.fd, ".."), -EXDEV);
        cr_assert_eq(read_path(plain, tree.fd, "a/../../x"), -EXDEV);
        cr_assert_eq(read_path(plain, tree.fd, "a/.."), -EXDEV);
        cr_assert_eq(read_path(plain, tree.fd, "a/..b"), -ENOENT); /* a name like any other */
    }
    cr_assert_eq(open_descriptors(), before);
    remove_tree(&tree);
}

static void drop_from_cache(const struct tree *tree)
{
    for (uint32_t file = 0; file < FILES; file++) {
        char name[64];
        const int fd = openat(tree->fd, name_of(name, file), O_RDONLY | O_CLOEXEC);
        cr_assert_geq(fd, 0);
        cr_assert_eq(fdatasync(fd), 0);
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
}

/* Where files are cold, pread opens a few ahead: never many, each for its own read, and none is
 * left when the ring closes in the middle. */
CleanTest(reader_path, files_opened_ahead_are_few_and_closed)
{
    enum { AHEAD_MAX = 16, DEPTH = 100 };
    const struct tree tree = make_tree();
    for (uint32_t stop = 0; stop <= DEPTH; stop += 20) {
        const uint32_t before = open_descriptors();
        void *ring = open_ring(&stk_reader_pread, tree.fd, DEPTH);
        drop_from_cache(&tree);
        for (uint32_t i = 0; i < DEPTH; i++)
            draw(i, i);
        for (uint32_t i = 3; i < DEPTH; i += 9) /* names that are not there among them */
            flight.reads[i].path = "a/missing";
        cr_assert_eq(stk_reader_pread.submit(ring, flight.pointers, DEPTH), 0);
        for (uint32_t done = 0; done < stop; done++) {
            cr_assert_eq(stk_reader_pread.reap(ring, flight.done, 1, -1), 1);
            cr_assert_eq(flight.done[0]->tag, done);
            check(flight.done[0], done % 9 == 3);
            cr_assert_leq(open_descriptors(), before + AHEAD_MAX);
        }
        cr_assert_eq(stk_reader_pread.close(ring, WAIT_NS), 0);
        cr_assert_eq(open_descriptors(), before);
    }
    remove_tree(&tree);
}

/* A pipe that nobody writes to replaces a file, by a name that the kernel knows already or
 * not: nobody waits for it, and it gives no bytes. */
CleanTest(reader_path, a_pipe_is_not_waited_for)
{
    const struct tree tree = make_tree();
    cr_assert_eq(mkfifoat(tree.fd, "a/pipe", 0644), 0);
    cr_assert_eq(symlinkat("pipe", tree.fd, "a/link"), 0);
    for (size_t n = 0; n < READERS; n++) {
        if (!stk_test_reader_works(readers[n]))
            continue;
        cr_assert_leq(read_path(readers[n], tree.fd, "a/pipe"), 0, "%s", readers[n]->name);
        cr_assert_leq(read_path(readers[n], tree.fd, "a/link"), 0, "%s", readers[n]->name);
        cr_assert_eq(read_path(readers[n], tree.fd, "a/3.bin"), (int32_t)size_of(3));
    }
    remove_tree(&tree);
}

/* A socket cannot be opened, and a device that always has bytes is longer than any file. */
CleanTest(reader_path, sockets_and_devices_are_reported)
{
    const struct tree tree = make_tree();
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    cr_assert_lt(strlen(tree.directory.path) + strlen("/a/socket"), sizeof(address.sun_path));
    strcat(strcpy(address.sun_path, tree.directory.path), "/a/socket");
    cr_assert_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    for (size_t n = 0; n < READERS; n++) {
        if (!stk_test_reader_works(readers[n]))
            continue;
        cr_assert_eq(read_path(readers[n], tree.fd, "a/socket"), -ENXIO, "%s", readers[n]->name);
        cr_assert_eq(read_path(readers[n], AT_FDCWD, "/dev/null"), 0, "%s", readers[n]->name);
    }
    close(fd);
    remove_tree(&tree);
}

CleanTest(reader_path, a_file_system_without_nowait_is_noticed)
{
    struct stk_chain chain = { .results = { [STK_CHAIN_OPEN] = 0, [STK_CHAIN_READ] = -EAGAIN } };
    cr_assert(stk_chain_would_wait(&chain));
    chain.results[STK_CHAIN_OPEN] = -EAGAIN;
    cr_assert_not(stk_chain_would_wait(&chain));
    chain.results[STK_CHAIN_OPEN] = 0;
    chain.results[STK_CHAIN_READ] = -ECANCELED;
    cr_assert_not(stk_chain_would_wait(&chain));
}

CleanTest(reader_path, a_ring_closes_with_files_on_their_way)
{
    const struct tree tree = make_tree();
    for (size_t n = 0; n < READERS; n++) {
        if (!stk_test_reader_works(readers[n]))
            continue;
        for (uint32_t depth = 1; depth <= DEPTH_MAX; depth *= 2) {
            const int64_t live_before = stk_fault_live_bytes();
            void *ring = open_ring(readers[n], tree.fd, depth);
            for (uint32_t i = 0; i < depth; i++)
                draw(i, i % FILES);
            cr_assert_eq(readers[n]->submit(ring, flight.pointers, depth), 0);
            cr_assert_eq(readers[n]->close(ring, WAIT_NS), 0);
            cr_assert_eq(stk_fault_live_bytes(), live_before);
        }
    }
    remove_tree(&tree);
}

CleanTest(reader_path, null_says_what_it_should_have_been)
{
    void *ring = open_ring(&stk_reader_null, AT_FDCWD, 1);
    uint8_t byte = UNTOUCHED;
    stoker_read read = { .buffer = &byte, .path = "no such file", .bytes = 1 + 1000 };
    stoker_read *pointer = &read;
    cr_assert_eq(stk_reader_null.submit(ring, &pointer, 1), 0);
    cr_assert_eq(stk_reader_null.reap(ring, &pointer, 1, -1), 1);
    cr_assert_eq(read.result, 1000);
    cr_assert_eq(byte, UNTOUCHED);
    cr_assert_eq(stk_reader_null.close(ring, 0), 0);
}
