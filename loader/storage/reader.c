/* reader.c - see reader.h. */
#include "loader/storage/reader.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "loader/base/clock.h"
#include "loader/base/memory/memory.h"

enum {
    GROUP_BYTES = 128 << 10, /* that one reap reads by calls of read(), at least */
    TURN_NS = 50000          /* wait in one of several rings before asking the next one */
};

/* The files of one storage, and what reads them. */
struct lane {
    const stoker_storage *storage; /* NULL = files with a descriptor */
    const stoker_reader *reader;   /* NULL = calls read() of the storage */
    void *ring;
    uint32_t in_flight; /* reads that the reader was given and has not finished */
};

struct lanes {
    const stoker_file *files;
    uint32_t file_count;
    bool paths_are_local; /* paths are relative to setup.directory, not to a file's directory */
    /* Reads that wait for read() of their storage: a ring buffer. */
    stoker_read **waiting;
    uint32_t waiting_first, waiting_count, capacity;
    char reason[STK_LINE_BYTES]; /* why the latest read by a call of read() failed */
    uint32_t count;
    struct lane each[];
};

/* ---- open and close ------------------------------------------------------------- */

/* Returns the storage that reads a file, or NULL for a file with a descriptor. */
static const stoker_storage *storage_of(const stoker_file *file)
{
    return file->fd < 0 ? file->storage : NULL;
}

static struct lane *find_lane(struct lanes *lanes, const stoker_storage *storage)
{
    for (uint32_t i = 0; i < lanes->count; i++)
        if (lanes->each[i].storage == storage)
            return &lanes->each[i];
    return NULL;
}

static void add_lane(struct lanes *lanes, const stoker_storage *storage,
                     const stoker_reader *reader)
{
    if (find_lane(lanes, storage) == NULL)
        lanes->each[lanes->count++] = (struct lane){ .storage = storage, .reader = reader };
}

static int open_lane(struct lane *lane, const struct stk_storage_reader *self,
                     const stoker_reader_setup *setup, stoker_error *error)
{
    if (lane->reader == NULL)
        return STOKER_OK;
    int rc = lane->reader->open(lane->reader->self, &lane->ring, setup, error);
    if (rc < 0 && lane->reader == self->files && self->spare != NULL) {
        lane->reader = self->spare;
        rc = lane->reader->open(lane->reader->self, &lane->ring, setup, error);
    }
    return rc;
}

static int lanes_close(void *ring, int64_t wait_ns)
{
    struct lanes *lanes = ring;
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < lanes->count; i++)
        if (lanes->each[i].reader != NULL &&
            lanes->each[i].reader->close(lanes->each[i].ring, wait_ns) != STOKER_OK)
            rc = STOKER_BUSY;
    if (rc != STOKER_OK) /* leaked, like the reader's own ring */
        return rc;
    stk_free(lanes->waiting);
    stk_free(lanes);
    return STOKER_OK;
}

static int no_memory(stoker_error *error)
{
    const struct stk_place place = STK_NOWHERE;
    return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_READ, &place, "reader of storages");
}

static int lanes_open(void *self, void **ring, const stoker_reader_setup *setup,
                      stoker_error *error)
{
    const struct stk_storage_reader *reader = self;
    struct lanes *lanes =
        stk_calloc(1, sizeof(*lanes) + (setup->file_count + (size_t)1) * sizeof(lanes->each[0]));
    if (lanes == NULL)
        return no_memory(error);
    lanes->waiting = stk_calloc(setup->depth, sizeof(lanes->waiting[0]));
    if (lanes->waiting == NULL) {
        stk_free(lanes);
        return no_memory(error);
    }
    lanes->files = setup->files;
    lanes->file_count = setup->file_count;
    lanes->paths_are_local = setup->directory != STOKER_DIRECTORY_OF_FILE;
    lanes->capacity = setup->depth;
    add_lane(lanes, NULL, reader->files);
    for (uint32_t i = 0; i < setup->file_count; i++) {
        const stoker_storage *storage = storage_of(&setup->files[i]);
        if (storage != NULL)
            add_lane(lanes, storage, storage->ops.reader);
    }
    for (uint32_t i = 0; i < lanes->count; i++) {
        const int rc = open_lane(&lanes->each[i], reader, setup, error);
        if (rc == STOKER_OK)
            continue;
        lanes->count = i; /* those that are open */
        (void)lanes_close(lanes, 0);
        return rc;
    }
    *ring = lanes;
    return STOKER_OK;
}

/* ---- submit --------------------------------------------------------------------- */

static struct lane *lane_of(struct lanes *lanes, const stoker_read *read)
{
    const bool local = read->path != NULL && lanes->paths_are_local;
    assert(local || read->file < lanes->file_count);
    return find_lane(lanes, local ? NULL : storage_of(&lanes->files[read->file]));
}

static void wait_for_call(struct lanes *lanes, stoker_read *const *reads, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        lanes->waiting[(lanes->waiting_first + lanes->waiting_count++) % lanes->capacity] =
            reads[i];
}

/* Consecutive reads of the same lane are submitted together. */
static int lanes_submit(void *ring, stoker_read *const *reads, uint32_t count)
{
    struct lanes *lanes = ring;
    for (uint32_t from = 0, to; from < count; from = to) {
        struct lane *lane = lane_of(lanes, reads[from]);
        for (to = from + 1; to < count && lane_of(lanes, reads[to]) == lane; to++)
            ;
        assert(lane != NULL);
        if (lane->reader == NULL) {
            wait_for_call(lanes, reads + from, to - from);
            continue;
        }
        const int rc = lane->reader->submit(lane->ring, reads + from, to - from);
        if (rc != STOKER_OK)
            return rc;
        lane->in_flight += to - from;
    }
    return STOKER_OK;
}

/* ---- reap ----------------------------------------------------------------------- */

/* Read in this thread, by calling the storage's read(). */
static void call_read(struct lanes *lanes, stoker_read *read)
{
    const stoker_file *file = &lanes->files[read->file];
    const stoker_storage *storage = file->storage;
    char joined[PATH_MAX];
    const bool whole = read->path != NULL;
    if (whole && !stk_storage_join(joined, file->path, read->path)) {
        read->result = -ENAMETOOLONG;
        return;
    }
    stoker_error said;
    stk_error_clear(&said);
    read->result = storage->ops.read(storage->self, whole ? joined : file->path,
                                     whole ? read->version : file->version, read->offset,
                                     read->buffer, read->bytes, &said);
    if (read->result >= 0)
        return;
    stk_storage_reason(lanes->reason, sizeof(lanes->reason), storage,
                       read->result < -INT_MAX ? EIO : (int)-read->result, &said);
    read->reason = lanes->reason;
}

/* Returns after a failed read: there is only one lanes->reason. */
static uint32_t call_waiting(struct lanes *lanes, stoker_read **done, uint32_t max)
{
    uint32_t count = 0;
    uint64_t bytes = 0;
    bool failed = false;
    while (count < max && lanes->waiting_count > 0 && bytes < GROUP_BYTES && !failed) {
        stoker_read *read = lanes->waiting[lanes->waiting_first];
        lanes->waiting_first = (lanes->waiting_first + 1) % lanes->capacity;
        lanes->waiting_count--;
        call_read(lanes, read);
        failed = read->result < 0;
        bytes += read->bytes;
        done[count++] = read;
    }
    return count;
}

static int reap_lane(struct lane *lane, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    const int got = lane->reader->reap(lane->ring, done, max, wait_ns);
    if (got > 0)
        lane->in_flight -= (uint32_t)got;
    return got;
}

/* Collect what the readers have finished. Waits in each for up to wait_ns while nothing has
 * arrived. */
static int reap_readers(struct lanes *lanes, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < lanes->count && count < max; i++) {
        struct lane *lane = &lanes->each[i];
        if (lane->in_flight == 0)
            continue;
        const int got = reap_lane(lane, done + count, max - count, count == 0 ? wait_ns : 0);
        if (got < 0)
            return got;
        count += (uint32_t)got;
    }
    return (int)count;
}

static uint32_t busy_count(const struct lanes *lanes)
{
    uint32_t busy = 0;
    for (uint32_t i = 0; i < lanes->count; i++)
        busy += lanes->each[i].in_flight > 0 ? 1 : 0;
    return busy;
}

static int lanes_reap(void *ring, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    struct lanes *lanes = ring;
    const uint64_t begin_ns = stk_now_ns();
    int got = reap_readers(lanes, done, max, 0);
    if (got != 0 || lanes->waiting_count > 0)
        return got < 0 ? got : got + (int)call_waiting(lanes, done + got, max - (uint32_t)got);
    const uint32_t busy = busy_count(lanes);
    if (busy < 2)
        return busy == 0 ? 0 : reap_readers(lanes, done, max, wait_ns);
    while (got == 0 && (wait_ns < 0 || stk_now_ns() - begin_ns < (uint64_t)wait_ns))
        got = reap_readers(lanes, done, max, TURN_NS);
    return got;
}

void stk_storage_reader_init(struct stk_storage_reader *self, stoker_reader *out,
                             const stoker_reader *files, const stoker_reader *spare)
{
    *self = (struct stk_storage_reader){ .files = files, .spare = spare };
    *out = (stoker_reader){ .struct_size = sizeof(*out),
                            .name = "storage",
                            .self = self,
                            .open = lanes_open,
                            .submit = lanes_submit,
                            .reap = lanes_reap,
                            .close = lanes_close };
}
