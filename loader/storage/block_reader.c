/* block_reader.c - see block_reader.h. */
#include "loader/storage/block_reader.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/storage/blocks.h"

enum { TURN_NS = 200000 }; /* wait for the ring below before looking at others' blocks */

struct ring {
    const struct stk_block_reader *reader;
    struct stk_block_store *store;
    void *below;
    const stoker_file *files;
    uint32_t depth;
    struct stk_block_wait *waits; /* [depth], wait_count of them in use */
    uint32_t wait_count;
    struct stk_block_load *loads; /* [depth], load_count of them active */
    uint32_t load_count;
    uint32_t below_count;  /* reads that the ring below has: loads and others */
    uint32_t ended;        /* loads that have ended, so that reads may be served */
    bool waits_for_others; /* a read waits for another ring's load, or for memory */
    stoker_read **batch;   /* [depth] reads to submit below */
    void *scratch;
    char reason[STK_LINE_BYTES]; /* of the reads that the latest reap returned as failed */
};

/* ---- open and close ------------------------------------------------------------- */

static void free_ring(struct ring *ring)
{
    if (ring->waits != NULL)
        stk_block_store_leave(ring->store, ring->waits, ring->wait_count, false);
    stk_block_scratch_close(ring->scratch);
    stk_free(ring->waits);
    stk_free(ring->loads);
    stk_free(ring->batch);
    stk_free(ring);
}

/* Hand the loads back, so that other rings may load the blocks. */
static int blocks_close(void *opened, int64_t wait_ns)
{
    struct ring *ring = opened;
    const int rc = ring->reader->below.close(ring->below, wait_ns);
    for (uint32_t i = 0; i < ring->depth; i++)
        if (ring->loads[i].active)
            stk_block_store_end(ring->store, &ring->loads[i], ECANCELED, NULL, rc != STOKER_OK);
    if (rc == STOKER_OK) {
        free_ring(ring);
        return rc;
    }
    stk_block_store_leave(ring->store, ring->waits, ring->wait_count, false);
    return rc; /* leaked: the ring below still writes to its reads */
}

static int blocks_open(void *self, void **out, const stoker_reader_setup *setup,
                       stoker_error *error)
{
    const struct stk_block_reader *reader = self;
    struct ring *ring = stk_calloc(1, sizeof(*ring));
    if (ring == NULL)
        return STOKER_ENOMEM;
    ring->reader = reader;
    ring->store = reader->store;
    ring->files = setup->files;
    ring->depth = setup->depth;
    ring->waits = stk_calloc(setup->depth, sizeof(ring->waits[0]));
    ring->loads = stk_calloc(setup->depth, sizeof(ring->loads[0]));
    ring->batch = stk_calloc(setup->depth, sizeof(ring->batch[0]));
    int rc = ring->waits == NULL || ring->loads == NULL || ring->batch == NULL
                 ? STOKER_ENOMEM
                 : stk_block_scratch_open(&ring->scratch);
    if (rc != STOKER_OK)
        (void)stk_refuse_option(error, rc, "out of memory for the reads of blocks");
    else
        rc = reader->below.open(reader->below.self, &ring->below, setup, error);
    if (rc != STOKER_OK)
        free_ring(ring);
    else
        *out = ring;
    return rc;
}

/* ---- loads ---------------------------------------------------------------------- */

/* Prepare the read of the stored bytes that are missing. */
static stoker_read *load_read(struct stk_block_load *load, uint32_t file)
{
    const stoker_block *block = &load->file->blocks->each[load->number];
    load->read = (stoker_read){ .buffer = load->stored + load->done_bytes,
                                .offset = block->offset + load->done_bytes,
                                .bytes = block->stored_bytes - load->done_bytes,
                                .file = file };
    return &load->read;
}

static int submit_below(struct ring *ring, stoker_read *const *reads, uint32_t count)
{
    if (count == 0)
        return STOKER_OK;
    ring->below_count += count;
    return ring->reader->below.submit(ring->below, reads, count);
}

static struct stk_block_load *unused_load(struct ring *ring)
{
    for (uint32_t i = 0; i < ring->depth; i++)
        if (!ring->loads[i].active)
            return &ring->loads[i];
    return NULL;
}

/* Load the EMPTY blocks that reads wait for, the first of them first. */
static int begin_loads(struct ring *ring)
{
    uint32_t count = 0;
    ring->waits_for_others = false;
    for (uint32_t i = 0; i < ring->wait_count; i++) {
        struct stk_block_wait *wait = &ring->waits[i];
        if (i > 0 && wait->block == wait[-1].block && wait->failures == wait[-1].failures)
            continue;
        struct stk_block_load *load = unused_load(ring);
        bool foreign = false;
        if (load == NULL) /* every read waits for a load of its own */
            break;
        if (stk_block_store_begin(ring->store, ring, ring->load_count == 0, wait, load, &foreign)) {
            ring->batch[count++] = load_read(load, wait->read->file);
            ring->load_count++;
        }
        ring->waits_for_others = ring->waits_for_others || foreign;
    }
    return submit_below(ring, ring->batch, count);
}

static void end_load(struct ring *ring, struct stk_block_load *load, int os_errno, const char *why)
{
    stk_block_store_end(ring->store, load, os_errno, why, false);
    ring->ended++;
    ring->load_count--;
}

static void unpack(struct ring *ring, struct stk_block_load *load)
{
    stoker_error said = { .message = "" };
    const int rc = stk_block_unpack(load->file->blocks, load->number, ring->scratch, load->stored,
                                    load->bytes, &said);
    end_load(ring, load, rc == STOKER_OK ? 0 : EBADMSG, said.message);
}

/* A read of a load has ended. Returns < 0 if the ring below broke. */
static int advance_load(struct ring *ring, struct stk_block_load *load)
{
    const stoker_read *read = &load->read;
    const uint32_t bytes = load->file->blocks->each[load->number].stored_bytes;
    char why[128];
    if (read->result < 0) {
        const int os_errno = read->result < -INT16_MAX ? EIO : (int)-read->result;
        end_load(ring, load, os_errno, read->reason != NULL ? read->reason : strerror(os_errno));
        return STOKER_OK;
    }
    if (read->result == 0 || (uint64_t)read->result > read->bytes) {
        (void)snprintf(why, sizeof(why),
                       read->result == 0 ? "the file ends after %u of its %u bytes"
                                         : "the reader reports more than %u of its %u bytes",
                       load->done_bytes, bytes);
        end_load(ring, load, read->result == 0 ? EBADMSG : EIO, why);
        return STOKER_OK;
    }
    load->done_bytes += (uint32_t)read->result;
    if (load->done_bytes == bytes) {
        unpack(ring, load);
        return STOKER_OK;
    }
    stoker_read *rest = load_read(load, read->file);
    return submit_below(ring, &rest, 1);
}

/* ---- submit --------------------------------------------------------------------- */

static bool is_of_block(const struct ring *ring, const stoker_read *read)
{
    return read->path == NULL && ring->files[read->file].blocks != NULL;
}

static void add_wait(struct ring *ring, stoker_read *read)
{
    struct stk_block_wait *wait = &ring->waits[ring->wait_count++];
    assert(ring->wait_count <= ring->depth);
    *wait = (struct stk_block_wait){ .read = read };
    /* Behind the end there is no block: the last one answers with 0 bytes. */
    const stoker_blocks *blocks = ring->files[read->file].blocks;
    stoker_read in_file = *read;
    if (read->offset >= stk_blocks_unpacked_bytes(blocks))
        in_file.offset = stk_blocks_unpacked_bytes(blocks) - 1;
    wait->block = stk_block_store_find(ring->store, &in_file);
}

static int blocks_submit(void *opened, stoker_read *const *reads, uint32_t count)
{
    struct ring *ring = opened;
    const uint32_t before = ring->wait_count;
    uint32_t others = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (is_of_block(ring, reads[i]))
            add_wait(ring, reads[i]);
        else
            ring->batch[others++] = reads[i];
    }
    stk_block_store_join(ring->store, ring->waits + before, ring->wait_count - before);
    const int rc = submit_below(ring, ring->batch, others);
    return rc != STOKER_OK ? rc : begin_loads(ring);
}

/* ---- reap ----------------------------------------------------------------------- */

/* Copy the bytes of a READY block. */
static void copy(const struct ring *ring, const struct stk_block_wait *wait)
{
    stoker_read *read = wait->read;
    const stoker_blocks *blocks = ring->files[read->file].blocks;
    if (read->offset >= stk_blocks_unpacked_bytes(blocks)) {
        read->result = 0;
        return;
    }
    const uint64_t number = stk_blocks_find(blocks, read->offset);
    const uint64_t left = blocks->each[number + 1].first_byte - read->offset;
    const uint64_t bytes = read->bytes < left ? read->bytes : left;
    memcpy(read->buffer, wait->bytes + (read->offset - blocks->each[number].first_byte), bytes);
    read->result = (int64_t)bytes;
}

/* Fail the reads of the first block whose load has failed, which share ring->reason. Returns their
 * number. */
static uint32_t fail_reads(struct ring *ring, stoker_read **done, uint32_t max)
{
    uint32_t left = 0;
    uint32_t count = 0;
    uint32_t block = 0;
    int os_errno = 0;
    for (uint32_t i = 0; i < ring->wait_count; i++) {
        struct stk_block_wait *wait = &ring->waits[i];
        if (!wait->failed || wait->bytes != NULL || count == max ||
            (count > 0 && wait->block != block)) {
            ring->waits[left++] = *wait;
            continue;
        }
        if (count == 0) {
            block = wait->block;
            os_errno = stk_block_store_why(ring->store, block, ring->reason, sizeof(ring->reason));
        }
        wait->read->result = -os_errno;
        wait->read->reason = ring->reason;
        stk_block_store_leave(ring->store, wait, 1, false);
        done[count++] = wait->read;
    }
    ring->wait_count = left;
    return count;
}

/* Serve the reads of READY blocks. Returns their number. */
static uint32_t serve_reads(struct ring *ring, stoker_read **done, uint32_t max)
{
    uint32_t count = 0;
    if (ring->wait_count == 0)
        return 0;
    stk_block_store_look(ring->store, ring->waits, ring->wait_count);
    for (uint32_t i = 0; i < ring->wait_count && count < max; i++) {
        if (ring->waits[i].bytes == NULL)
            continue;
        copy(ring, &ring->waits[i]);
        done[count] = ring->waits[i].read;
        const struct stk_block_wait served = ring->waits[i];
        ring->waits[i] = ring->waits[count]; /* the served ones come first */
        ring->waits[count++] = served;
    }
    stk_block_store_leave(ring->store, ring->waits, count, true);
    ring->wait_count -= count;
    memmove(ring->waits, ring->waits + count, ring->wait_count * sizeof(ring->waits[0]));
    return count;
}

/* Reap the ring below: keeps its own loads, returns the number of other reads, or < 0. */
static int reap_below(struct ring *ring, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    if (ring->below_count == 0 || max == 0)
        return 0;
    const int got = ring->reader->below.reap(ring->below, done, max, wait_ns);
    int others = 0;
    if (got < 0 || (uint32_t)got > ring->below_count)
        return STOKER_EIO;
    ring->below_count -= (uint32_t)got;
    for (int i = 0; i < got; i++) {
        const uintptr_t at = (uintptr_t)done[i] - (uintptr_t)ring->loads;
        if (at >= ring->depth * sizeof(ring->loads[0]))
            done[others++] = done[i];
        else if (advance_load(ring, &ring->loads[at / sizeof(ring->loads[0])]) != STOKER_OK)
            return STOKER_EIO;
    }
    return others;
}

/* Do everything that needs no waiting. */
static int reap_now(struct ring *ring, stoker_read **done, uint32_t max)
{
    uint32_t count = 0;
    uint32_t ended;
    int got;
    do {
        ended = ring->ended;
        count += serve_reads(ring, done + count, max - count);
        got = reap_below(ring, done + count, max - count, 0);
        if (got < 0)
            return got;
        count += (uint32_t)got;
    } while (ring->ended != ended && got == 0); /* reasons last until the next reap below */
    count += fail_reads(ring, done + count, max - count);
    return begin_loads(ring) == STOKER_OK ? (int)count : STOKER_EIO;
}

static int blocks_reap(void *opened, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    struct ring *ring = opened;
    const uint64_t begin_ns = stk_now_ns();
    for (int64_t left_ns = wait_ns;;) {
        const uint32_t changes = stk_block_store_changes(ring->store);
        int got = reap_now(ring, done, max);
        if (got != 0 || (wait_ns >= 0 && left_ns <= 0))
            return got;
        const bool turns = ring->waits_for_others && (left_ns < 0 || left_ns > TURN_NS);
        if (ring->below_count > 0)
            got = reap_below(ring, done, max, turns ? TURN_NS : left_ns);
        else if (ring->wait_count > 0)
            stk_block_store_wait(ring->store, changes, left_ns);
        else
            return 0;
        if (got != 0)
            return got;
        if (wait_ns >= 0)
            left_ns = wait_ns - (int64_t)(stk_now_ns() - begin_ns);
    }
}

void stk_block_reader_init(struct stk_block_reader *self, stoker_reader *reader)
{
    self->below = *reader;
    *reader = (stoker_reader){ .struct_size = sizeof(*reader),
                               .name = "blocks",
                               .self = self,
                               .open = blocks_open,
                               .submit = blocks_submit,
                               .reap = blocks_reap,
                               .close = blocks_close };
}
