/* test_bytes.c - io_uring and pread deliver the same, right bytes.
 *
 * Every reader goes through the same cases. Where this system has no io_uring its
 * part is left out, and says so.
 */
#include <errno.h>
#include <fcntl.h>

#include "loader/reader/readers.h"
#include "support/files/reader_file.h"
#include "support/leaks.h"

enum { FILE_BYTES = 20011, DEPTH_MAX = 1024, WAIT_NS = 2000000000 };

static const stoker_reader *const readers[] = { &stk_reader_uring, &stk_reader_pread };

/* The n-th reader that works here, NULL after the last. */
static const stoker_reader *working_reader(size_t n)
{
    for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
        if (!stk_test_reader_works(readers[i])) {
            cr_assert_neq(readers[i], &stk_reader_pread);
            cr_log_info("no %s here: not tested", readers[i]->name);
        } else if (n-- == 0) {
            return readers[i];
        }
    }
    return NULL;
}

static void *open_ring(const stoker_reader *reader, const stoker_file *files, uint32_t file_count,
                       uint32_t depth)
{
    const stoker_reader_setup setup = { .files = files, .file_count = file_count, .depth = depth };
    stoker_error error = { 0 };
    void *ring = NULL;
    cr_assert_eq(reader->open(reader->self, &ring, &setup, &error), 0, "%s: %s", reader->name,
                 error.message);
    return ring;
}

/* One read from start to end; its result. */
static int64_t read_one(const stoker_reader *reader, void *ring, stoker_read *read)
{
    stoker_read *done = NULL;
    read->result = INT32_MIN;
    cr_assert_eq(reader->submit(ring, &read, 1), 0);
    cr_assert_eq(reader->reap(ring, &done, 1, WAIT_NS), 1);
    cr_assert_eq(done, read);
    return read->result;
}

CleanTest(reader_bytes, each_size_and_alignment_arrives)
{
    FILE *file = stk_test_file(FILE_BYTES);
    cr_assert_not_null(file);
    const stoker_file files[] = { { .path = "file", .fd = fileno(file), .size = FILE_BYTES } };
    const stoker_reader *reader;
    for (size_t n = 0; (reader = working_reader(n)) != NULL; n++) {
        void *ring = open_ring(reader, files, 1, 4);
        static uint8_t bytes[5000];
        for (uint32_t size = 1; size <= 4100; size++) {
            stoker_read read = { .buffer = bytes + size % 7,
                                 .offset = (size * 977U) % FILE_BYTES,
                                 .bytes = size };
            const int64_t expected = stk_test_expected(FILE_BYTES, read.offset, size);
            bytes[size % 7 + (uint32_t)expected] = 0xAA;
            cr_assert_eq(read_one(reader, ring, &read), expected);
            cr_assert(stk_test_bytes_match(read.buffer, read.offset, expected));
            cr_assert_eq(bytes[size % 7 + (uint32_t)expected], 0xAA); /* and not one more */
        }
        cr_assert_eq(reader->close(ring, WAIT_NS), 0);
    }
    fclose(file);
}

CleanTest(reader_bytes, ends_of_files_and_bad_descriptors_are_results)
{
    FILE *file = stk_test_file(FILE_BYTES);
    const int directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* A number that nothing opened later, the ring itself included, will get. */
    const int closed = fcntl(directory, F_DUPFD_CLOEXEC, 200);
    cr_assert_not_null(file);
    cr_assert_geq(directory, 0);
    cr_assert_geq(closed, 0);
    cr_assert_eq(close(closed), 0);
    const stoker_file files[] = { { .path = "file", .fd = fileno(file), .size = FILE_BYTES },
                                  { .path = "closed", .fd = closed, .size = 1 },
                                  { .path = "directory", .fd = directory, .size = 1 } };
    const struct {
        uint32_t file;
        uint64_t offset;
        int32_t result;
    } cases[] = {
        { 0, FILE_BYTES - 100, 100 },
        { 0, FILE_BYTES - 99, 99 },
        { 0, FILE_BYTES - 1, 1 },
        { 0, FILE_BYTES, 0 },
        { 0, FILE_BYTES + 1, 0 },
        { 0, (uint64_t)1 << 40, 0 },
        { 1, 0, -EBADF },
        { 2, 0, -EISDIR },
        { 0, 0, 100 },
    };
    const stoker_reader *reader;
    for (size_t n = 0; (reader = working_reader(n)) != NULL; n++)
        /* With the bad descriptors in the table, and without them. */
        for (uint32_t file_count = 1; file_count <= 3; file_count += 2) {
            void *ring = open_ring(reader, files, file_count, 2);
            for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                if (cases[i].file >= file_count)
                    continue;
                uint8_t bytes[100] = { 0 };
                stoker_read read = { .buffer = bytes,
                                     .offset = cases[i].offset,
                                     .bytes = sizeof(bytes),
                                     .file = cases[i].file };
                cr_assert_eq(read_one(reader, ring, &read), cases[i].result, "%s, case %zu: %lld",
                             reader->name, i, (long long)read.result);
                cr_assert(stk_test_bytes_match(bytes, read.offset, cases[i].result));
            }
            cr_assert_eq(reader->close(ring, WAIT_NS), 0);
        }
    close(directory);
    fclose(file);
}

/* A directory alone in the table is registered with io_uring and fails at the read. */
CleanTest(reader_bytes, a_directory_is_eisdir_by_index_too)
{
    const int directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const stoker_file files[] = { { .path = "directory", .fd = directory, .size = 1 } };
    const stoker_reader *reader;
    for (size_t n = 0; (reader = working_reader(n)) != NULL; n++) {
        void *ring = open_ring(reader, files, 1, 1);
        uint8_t byte = 0;
        stoker_read read = { .buffer = &byte, .bytes = 1 };
        cr_assert_eq(read_one(reader, ring, &read), -EISDIR);
        cr_assert_eq(reader->close(ring, WAIT_NS), 0);
    }
    close(directory);
}

struct flight {
    stoker_read reads[DEPTH_MAX];
    stoker_read *pointers[DEPTH_MAX];
    stoker_read *done[DEPTH_MAX];
    uint8_t bytes[DEPTH_MAX][64];
    bool seen[DEPTH_MAX];
};

static struct flight flight;

static void draw_reads(uint32_t count, uint64_t round)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct stk_random draw = stk_philox(42, round, i);
        flight.reads[i] = (stoker_read){ .buffer = flight.bytes[i],
                                         .offset = draw.word[0] % (FILE_BYTES + 10),
                                         .bytes = 1 + draw.word[1] % 64,
                                         .file = draw.word[2] % 2,
                                         .result = INT32_MIN,
                                         .tag = i };
        flight.pointers[i] = &flight.reads[i];
        flight.seen[i] = false;
    }
}

static void check_read(const stoker_read *read)
{
    cr_assert(!flight.seen[read->tag]);
    flight.seen[read->tag] = true;
    cr_assert_eq(read->result, stk_test_expected(FILE_BYTES, read->offset, read->bytes));
    cr_assert(stk_test_bytes_match(read->buffer, read->offset, read->result));
}

/* Submit `depth` reads in two parts, reap them `max` at a time. */
static void fly(const stoker_reader *reader, void *ring, uint32_t depth, uint32_t max,
                uint64_t round)
{
    draw_reads(depth, round);
    const uint32_t first = depth / 3;
    cr_assert_eq(reader->submit(ring, flight.pointers, first), 0);
    cr_assert_eq(reader->submit(ring, flight.pointers + first, depth - first), 0);
    for (uint32_t reaped = 0; reaped < depth;) {
        const int got = reader->reap(ring, flight.done, max, -1);
        cr_assert_gt(got, 0);
        cr_assert_leq((uint32_t)got, max);
        for (int i = 0; i < got; i++)
            check_read(flight.done[i]);
        reaped += (uint32_t)got;
    }
    cr_assert_eq(reader->reap(ring, flight.done, max, 0), 0);
}

CleanTest(reader_bytes, each_depth_delivers_each_read_once)
{
    FILE *file = stk_test_file(FILE_BYTES);
    cr_assert_not_null(file);
    const stoker_file files[] = { { .path = "file", .fd = fileno(file), .size = FILE_BYTES },
                                  { .path = "again", .fd = fileno(file), .size = FILE_BYTES } };
    static const uint32_t depths[] = { 1, 2, 3, 31, 64, 65, 100, 1000, DEPTH_MAX };
    static const uint32_t maxima[] = { 1, 7, 64, 65, DEPTH_MAX };
    const stoker_reader *reader;
    for (size_t n = 0; (reader = working_reader(n)) != NULL; n++)
        for (size_t d = 0; d < sizeof(depths) / sizeof(depths[0]); d++) {
            void *ring = open_ring(reader, files, 2, depths[d]);
            for (size_t m = 0; m < sizeof(maxima) / sizeof(maxima[0]); m++)
                fly(reader, ring, depths[d], maxima[m], d * 100 + m);
            cr_assert_eq(reader->close(ring, WAIT_NS), 0);
        }
    fclose(file);
}

/* A slot is used again as soon as its read is reaped, while others are still out. */
CleanTest(reader_bytes, a_window_that_is_kept_full_loses_nothing)
{
    enum { DEPTH = 48, READS = 20000 };
    FILE *file = stk_test_file(FILE_BYTES);
    cr_assert_not_null(file);
    const stoker_file files[] = { { .path = "file", .fd = fileno(file), .size = FILE_BYTES },
                                  { .path = "again", .fd = fileno(file), .size = FILE_BYTES } };
    const stoker_reader *reader;
    for (size_t n = 0; (reader = working_reader(n)) != NULL; n++) {
        void *ring = open_ring(reader, files, 2, DEPTH);
        draw_reads(DEPTH, n);
        cr_assert_eq(reader->submit(ring, flight.pointers, DEPTH), 0);
        uint32_t in_flight = DEPTH;
        uint32_t submitted = DEPTH;
        while (in_flight > 0) {
            const uint32_t max = 1 + (uint32_t)(stk_mix64(submitted) % DEPTH);
            const int got = reader->reap(ring, flight.done, max, WAIT_NS);
            cr_assert_gt(got, 0);
            for (int i = 0; i < got; i++) {
                check_read(flight.done[i]);
                flight.seen[flight.done[i]->tag] = false;
                flight.done[i]->offset = stk_mix64(submitted + (uint64_t)i) % FILE_BYTES;
            }
            in_flight -= (uint32_t)got;
            if (submitted < READS) {
                cr_assert_eq(reader->submit(ring, flight.done, (uint32_t)got), 0);
                submitted += (uint32_t)got;
                in_flight += (uint32_t)got;
            }
        }
        cr_assert_eq(reader->close(ring, WAIT_NS), 0);
    }
    fclose(file);
}

/* The kernel copies no more than is summed or decoded while it is still at hand. */
CleanTest(reader_bytes, long_reads_come_a_group_at_a_time)
{
    enum { READS = 8, READ_BYTES = 100000, LONG_FILE_BYTES = 300000 };
    static uint8_t bytes[READS][READ_BYTES];
    FILE *file = stk_test_file(LONG_FILE_BYTES);
    cr_assert_not_null(file);
    const stoker_file files[] = { { .path = "file", .fd = fileno(file), .size = LONG_FILE_BYTES } };
    const stoker_reader *reader;
    for (size_t n = 0; (reader = working_reader(n)) != NULL; n++)
        for (int to_take = READS; to_take >= 0; to_take--) { /* the others are lost to close */
            stoker_read reads[READS];
            stoker_read *pointers[READS], *done[READS];
            void *ring = open_ring(reader, files, 1, READS);
            for (uint32_t i = 0; i < READS; i++) {
                reads[i] =
                    (stoker_read){ .buffer = bytes[i], .offset = i * 20011, .bytes = READ_BYTES };
                pointers[i] = &reads[i];
            }
            memset(bytes, 0, sizeof(bytes));
            cr_assert_eq(reader->submit(ring, pointers, READS), 0);
            for (int got, taken = 0; taken < to_take; taken += got) {
                got = reader->reap(ring, done, (uint32_t)(to_take - taken), -1);
                cr_assert_gt(got, 0);
                if (reader == &stk_reader_pread) /* a ring may find more finished */
                    cr_assert_leq(got, 2);
                for (int i = 0; i < got; i++) {
                    cr_assert_eq(done[i]->result, READ_BYTES);
                    cr_assert(stk_test_bytes_match(done[i]->buffer, done[i]->offset, READ_BYTES));
                    done[i]->result = 0; /* and none comes twice */
                }
            }
            cr_assert_eq(reader->close(ring, WAIT_NS), 0);
        }
    fclose(file);
}

CleanTest(reader_bytes, more_than_depth_is_refused)
{
    FILE *file = stk_test_file(FILE_BYTES);
    cr_assert_not_null(file);
    const stoker_file files[] = { { .path = "file", .fd = fileno(file), .size = FILE_BYTES },
                                  { .path = "again", .fd = fileno(file), .size = FILE_BYTES } };
    static const stoker_reader *const all[] = { &stk_reader_uring, &stk_reader_pread,
                                                &stk_reader_null };
    for (size_t n = 0; n < sizeof(all) / sizeof(all[0]); n++) {
        if (!stk_test_reader_works(all[n]))
            continue;
        void *ring = open_ring(all[n], files, 2, 5);
        draw_reads(6, n);
        cr_assert_eq(all[n]->submit(ring, flight.pointers, 6), STOKER_EINVAL);
        cr_assert_eq(all[n]->submit(ring, flight.pointers, 4), 0);
        cr_assert_eq(all[n]->submit(ring, flight.pointers + 4, 2), STOKER_EINVAL);
        for (int reaped = 0; reaped < 4;)
            reaped += all[n]->reap(ring, flight.done, 4, WAIT_NS);
        cr_assert_eq(all[n]->close(ring, WAIT_NS), 0);
    }
    fclose(file);
}

CleanTest(reader_bytes, null_completes_all_and_writes_nothing)
{
    const stoker_file files[] = { { .path = "no file", .fd = -1 } };
    void *ring = open_ring(&stk_reader_null, files, 1, 3);
    uint8_t bytes[10] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
    for (int round = 0; round < 5; round++) {
        stoker_read reads[3] = { { .buffer = bytes, .bytes = 10, .tag = 0 },
                                 { .buffer = bytes, .bytes = 1, .tag = 1 },
                                 { .buffer = bytes, .bytes = UINT32_MAX, .tag = 2 } };
        stoker_read *pointers[3] = { &reads[0], &reads[1], &reads[2] };
        stoker_read *done[3] = { NULL };
        cr_assert_eq(stk_reader_null.submit(ring, pointers, 3), 0);
        cr_assert_eq(stk_reader_null.reap(ring, done, 2, -1), 2);
        cr_assert_eq(stk_reader_null.reap(ring, done + 2, 2, -1), 1);
        cr_assert_eq(stk_reader_null.reap(ring, done, 2, -1), 0);
        cr_assert_eq(done[0]->result, 10);
        cr_assert_eq(done[1]->result, 1);
        cr_assert_eq(done[2]->result, 1 << 30); /* the longest single read */
    }
    for (uint8_t i = 0; i < 10; i++)
        cr_assert_eq(bytes[i], i + 1);
    cr_assert_eq(stk_reader_null.close(ring, 0), 0);
}
