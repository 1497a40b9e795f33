/* test_reader.c - four threads with a ring each read the same file, and every byte is
 * right; a thread's ring may lie where another's was. A plain program, so that ThreadSanitizer
 * can watch it.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "loader/base/memory/memory.h"
#include "loader/reader/readers.h"
#include "support/files/reader_file.h"

enum {
    THREADS = 4,
    READS = 20000, /* per thread */
    RINGS = 8,     /* one after the other */
    DEPTH = 32,
    READ_BYTES_MAX = 300,
    FILE_BYTES = 100003,
    WAIT_NS = 2000000000
};

struct worker {
    pthread_t thread;
    const stoker_reader *reader;
    stoker_reader_setup setup;
    uint64_t number;
    uint64_t right; /* reads that ended with the right bytes */
    stoker_read reads[DEPTH];
    uint8_t bytes[DEPTH][READ_BYTES_MAX];
};

static void draw(struct worker *worker, stoker_read *read, uint64_t nth)
{
    const struct stk_random random = stk_philox(7, worker->number, nth);
    read->offset = random.word[0] % FILE_BYTES;
    read->bytes = 1 + random.word[1] % READ_BYTES_MAX;
    read->result = INT32_MIN;
}

static bool is_right(const stoker_read *read)
{
    return read->result == stk_test_expected(FILE_BYTES, read->offset, read->bytes) &&
           stk_test_bytes_match(read->buffer, read->offset, read->result);
}

/* Keep the window full; returns when `READS` reads were submitted and reaped. */
static void read_all(struct worker *worker, void *ring)
{
    stoker_read *window[DEPTH];
    uint64_t submitted = 0;
    uint64_t reaped = 0;
    uint32_t idle = DEPTH;
    for (uint32_t i = 0; i < DEPTH; i++) {
        worker->reads[i] = (stoker_read){ .buffer = worker->bytes[i] };
        window[i] = &worker->reads[i];
    }
    while (reaped < READS) {
        const uint64_t left = READS - submitted;
        const uint32_t count = left < idle ? (uint32_t)left : idle;
        for (uint32_t i = 0; i < count; i++)
            draw(worker, window[i], submitted + i);
        if (worker->reader->submit(ring, window, count) != 0)
            return;
        submitted += count;
        const int got = worker->reader->reap(ring, window, DEPTH, WAIT_NS);
        if (got <= 0)
            return;
        for (int i = 0; i < got; i++)
            worker->right += is_right(window[i]);
        idle = (uint32_t)got;
        reaped += (uint64_t)got;
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    void *ring = NULL;
    if (worker->reader->open(worker->reader->self, &ring, &worker->setup, NULL) != 0)
        return NULL;
    read_all(worker, ring);
    if (worker->reader->close(ring, WAIT_NS) != 0)
        worker->right = 0;
    return NULL;
}

/* Returns true if every read of every thread was correct. */
static bool run(const stoker_reader *reader, const stoker_file *file)
{
    struct worker *workers = stk_calloc(THREADS, sizeof(*workers));
    if (workers == NULL)
        return false;
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i].reader = reader;
        workers[i].number = i;
        workers[i].setup = (stoker_reader_setup){ .files = file,
                                                  .file_count = 1,
                                                  .depth = DEPTH,
                                                  .scratch = workers[i].bytes,
                                                  .scratch_bytes = sizeof(workers[i].bytes) };
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return false; /* leaves the others running: the program ends */
    }
    uint64_t right = 0;
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        right += workers[i].right;
    }
    stk_free(workers);
    printf("%s: %llu of %d reads right\n", reader->name, (unsigned long long)right,
           THREADS * READS);
    return right == (uint64_t)THREADS * READS;
}

struct turn {
    const stoker_file *file;
    _Atomic uint32_t number; /* whose it is; relaxed, so that it orders nothing */
};

struct opener {
    pthread_t thread;
    struct turn *turn;
    uint32_t number;
    bool opened;
};

/* In turns that order nothing, so that only the kernel orders one thread's ring and the
 * next one's, which most likely is given the same memory. */
static void *open_and_close(void *argument)
{
    struct opener *opener = argument;
    struct turn *turn = opener->turn;
    while (atomic_load_explicit(&turn->number, memory_order_relaxed) != opener->number)
        sched_yield();
    const stoker_reader_setup setup = { .files = turn->file, .file_count = 1, .depth = DEPTH };
    void *ring = NULL;
    opener->opened = stk_reader_uring.open(NULL, &ring, &setup, NULL) == 0 &&
                     stk_reader_uring.close(ring, WAIT_NS) == 0;
    atomic_fetch_add_explicit(&turn->number, 1, memory_order_relaxed);
    return NULL;
}

static bool run_in_turns(const stoker_file *file)
{
    struct turn turn = { .file = file };
    struct opener openers[RINGS];
    bool right = true;
    for (uint32_t i = 0; i < RINGS; i++) {
        openers[i] = (struct opener){ .turn = &turn, .number = i };
        if (pthread_create(&openers[i].thread, NULL, open_and_close, &openers[i]) != 0)
            return false;
    }
    for (uint32_t i = 0; i < RINGS; i++) {
        pthread_join(openers[i].thread, NULL);
        right = right && openers[i].opened;
    }
    return right;
}

int main(void)
{
    FILE *stream = stk_test_file(FILE_BYTES);
    if (stream == NULL)
        return 77;
    const stoker_file file = { .path = "file", .fd = fileno(stream), .size = FILE_BYTES };
    bool right = run(&stk_reader_pread, &file);
    if (stk_test_reader_works(&stk_reader_uring))
        right = run(&stk_reader_uring, &file) && run_in_turns(&file) && right;
    else
        printf("uring: not here\n");
    fclose(stream);
    return right ? 0 : 1;
}
