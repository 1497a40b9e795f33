/* test_cold.c - what lies on storage is asked for all at once, not group by group.
 *
 * A file is thrown out of the page cache, reads of it are submitted, and nobody reaps: all of them
 * must come to the page cache nevertheless. The first group reads a pipe to which nobody writes, so
 * that storage cannot be done with it before the reader looks.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

#include "loader/reader/readers.h"
#include "loader/reader/setup.h"
#include "support/files/reader_file.h"
#include "support/leaks.h"

enum { PIPE, DISK };

enum {
    READS = 16,
    PIPE_READS = 2,
    READ_BYTES = 64 << 10, /* PIPE_READS of them are a group */
    STRIDE = 1 << 20,
    FILE_BYTES = READS * STRIDE,
    PATIENCE = 30000, /* milliseconds */
    WAIT_NS = 2000000000
};

_Static_assert(PIPE_READS *READ_BYTES == STK_READ_GROUP_BYTES, "the first group");
_Static_assert(READS *READ_BYTES > 4 * STK_READ_GROUP_BYTES, "several groups");

/* Returns true if the page cache holds the read's first byte. */
static bool is_cached(uint8_t *map, uint32_t read)
{
    unsigned char resident = 0;
    cr_assert_eq(mincore(map + (size_t)read * STRIDE, 1, &resident), 0);
    return resident & 1;
}

static uint32_t cached_count(uint8_t *map)
{
    uint32_t count = 0;
    for (uint32_t i = PIPE_READS; i < READS; i++)
        count += is_cached(map, i);
    return count;
}

static FILE *make_cold_file(void)
{
    FILE *file = stk_test_file(FILE_BYTES);
    cr_assert_not_null(file);
    cr_assert_eq(fsync(fileno(file)), 0);
    cr_assert_eq(posix_fadvise(fileno(file), 0, 0, POSIX_FADV_RANDOM), 0); /* nothing read ahead */
    cr_assert_eq(posix_fadvise(fileno(file), 0, 0, POSIX_FADV_DONTNEED), 0);
    return file;
}

static void submit_all(void *ring, stoker_read *reads, uint8_t *buffers)
{
    stoker_read *pointers[READS];
    for (uint32_t i = 0; i < READS; i++) {
        reads[i] = (stoker_read){ .buffer = buffers + (size_t)i * READ_BYTES,
                                  .offset = (uint64_t)i * STRIDE,
                                  .bytes = READ_BYTES,
                                  .file = i < PIPE_READS ? PIPE : DISK };
        pointers[i] = &reads[i];
    }
    cr_assert_eq(stk_reader_uring.submit(ring, pointers, READS), 0);
}

static void reap_all(void *ring)
{
    stoker_read *done[READS];
    for (int left = READS; left > 0;) {
        const int count = stk_reader_uring.reap(ring, done, READS, WAIT_NS);
        cr_assert_gt(count, 0);
        for (int i = 0; i < count; i++) {
            cr_assert_eq(done[i]->result, done[i]->file == DISK ? READ_BYTES : 0);
            cr_assert(done[i]->file == PIPE ||
                      stk_test_bytes_match(done[i]->buffer, done[i]->offset, READ_BYTES));
        }
        left -= count;
    }
}

CleanTest(reader_cold, all_reads_are_begun_before_anybody_reaps)
{
    if (!stk_test_reader_works(&stk_reader_uring))
        cr_skip_test("NOT TESTED: no io_uring here");
    FILE *file = make_cold_file();
    uint8_t *map = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fileno(file), 0);
    cr_assert_neq(map, MAP_FAILED);
    if (cached_count(map) > 0)
        cr_skip_test("NOT TESTED: this file system keeps what was written");
    static uint8_t buffers[READS * READ_BYTES];
    stoker_read reads[READS];
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    const stoker_file files[] = { [PIPE] = { .fd = ends[0], .size = FILE_BYTES },
                                  [DISK] = { .fd = fileno(file), .size = FILE_BYTES } };
    const stoker_reader_setup setup = { .files = files, .file_count = 2, .depth = READS };
    void *ring = NULL;
    cr_assert_eq(stk_reader_uring.open(NULL, &ring, &setup, NULL), 0);

    submit_all(ring, reads, buffers);
    for (int ms = 0; ms < PATIENCE && cached_count(map) < READS - PIPE_READS; ms++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    cr_expect_eq(cached_count(map), READS - PIPE_READS);
    close(ends[1]); /* the pipe is at its end */
    reap_all(ring);
    close(ends[0]);
    cr_assert_eq(stk_reader_uring.close(ring, WAIT_NS), 0);
    munmap(map, FILE_BYTES);
    fclose(file);
}
