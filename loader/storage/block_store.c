/* block_store.c - see block_store.h. */
#include "loader/storage/block_store.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/cpu/thread.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/storage/blocks.h"

#define NONE UINT32_MAX

enum state { EMPTY, LOADING, READY };

struct block {
    const void *ring;  /* that loads it */
    uint64_t served;   /* bytes; goes on if the block was cut */
    uint64_t load;     /* READY: the number of its load, for its age */
    uint32_t users;    /* reads that wait for it */
    uint32_t failures; /* loads that failed */
    uint32_t slot;     /* LOADING, READY: of the unpacked bytes */
    int16_t os_errno;  /* of the latest failure */
    uint8_t state;     /* enum state */
    bool cut;          /* its memory was taken before all its bytes were served */
};

struct stk_block_store {
    const stoker_file *files;
    uint32_t file_count;
    uint32_t *first; /* [file_count + 1]: number of each file's first block */
    struct stk_region memory;
    size_t slot_bytes;
    uint32_t slot_count;
    pthread_mutex_t lock; /* guards what follows */
    struct block *blocks; /* [first[file_count]] */
    uint32_t *owner;      /* [slot_count]: the READY block in it, or NONE */
    uint32_t *free;       /* [free_count] slots */
    uint32_t free_count;
    uint32_t stuck_count; /* slots of reads that never end */
    bool starved;         /* a ring waits for memory */
    uint32_t failed;      /* the block that `why` is about */
    char why[STK_LINE_BYTES];
    struct stk_block_counts counts;
    _Atomic uint32_t changes; /* a futex */
};

/* ---- make and free -------------------------------------------------------------- */

/* Set the slots' length and the number of slots that hold all blocks; false: too many blocks. */
static bool measure(struct stk_block_store *store, uint64_t *most)
{
    uint64_t longest = 1;
    uint64_t count = 0;
    for (uint32_t f = 0; f < store->file_count; f++) {
        const stoker_blocks *blocks = store->files[f].blocks;
        store->first[f] = (uint32_t)count;
        for (uint64_t i = 0; blocks != NULL && i < blocks->count; i++) {
            const uint64_t bytes = stk_block_bytes(blocks, i);
            const uint64_t stored = blocks->each[i].stored_bytes;
            longest = bytes > longest ? bytes : longest;
            longest = stored > longest ? stored : longest;
        }
        count += blocks != NULL ? blocks->count : 0;
        if (count >= NONE)
            return false;
    }
    store->first[store->file_count] = (uint32_t)count;
    store->slot_bytes = (longest + STK_CACHE_LINE - 1) / STK_CACHE_LINE * STK_CACHE_LINE;
    *most = 2 * count;
    return true;
}

/* A worker loads at least one block at a time, and one of them has room for its stored bytes. */
static int choose_slots(struct stk_block_store *store, uint64_t bytes_max, bool strict,
                        uint32_t workers, uint64_t most, stoker_error *error)
{
    const uint64_t least = (uint64_t)workers + 1;
    uint64_t count = bytes_max / store->slot_bytes;
    if (count < least && strict)
        return stk_refuse_option(
            error, STOKER_EINVAL,
            "block_memory_bytes is %" PRIu64 ": %" PRIu32 " workers need at least %" PRIu64
            ", %" PRIu64 " blocks of up to %zu bytes",
            bytes_max, workers, least * store->slot_bytes, least, store->slot_bytes);
    count = count > most ? most : count;
    count = count < least ? least : count;
    store->slot_count = count < NONE ? (uint32_t)count : NONE - 1;
    return STOKER_OK;
}

static int allocate(struct stk_block_store *store)
{
    store->blocks = stk_calloc(store->first[store->file_count], sizeof(store->blocks[0]));
    store->owner = stk_calloc(store->slot_count, sizeof(store->owner[0]));
    store->free = stk_calloc(store->slot_count, sizeof(store->free[0]));
    if (store->blocks == NULL || store->owner == NULL || store->free == NULL)
        return STOKER_ENOMEM;
    for (uint32_t i = 0; i < store->slot_count; i++) {
        store->owner[i] = NONE;
        store->free[store->free_count++] = store->slot_count - 1 - i;
    }
    return stk_region_map(&store->memory, store->slot_count * store->slot_bytes);
}

int stk_block_store_make(struct stk_block_store **out, const stoker_file *files,
                         uint32_t file_count, uint64_t bytes_max, bool strict, uint32_t workers,
                         stoker_error *error)
{
    uint64_t most = 0;
    struct stk_block_store *store = stk_calloc(1, sizeof(*store));
    if (store == NULL)
        return STOKER_ENOMEM;
    store->files = files;
    store->file_count = file_count;
    store->failed = NONE;
    store->first = stk_calloc((size_t)file_count + 1, sizeof(store->first[0]));
    int rc = store->first == NULL ? STOKER_ENOMEM : STOKER_OK;
    if (rc == STOKER_OK && !measure(store, &most))
        rc = stk_refuse_option(error, STOKER_ELIMIT, "the files have 2^32 blocks or more");
    if (rc == STOKER_OK)
        rc = choose_slots(store, bytes_max, strict, workers, most, error);
    if (rc == STOKER_OK && (rc = allocate(store)) != STOKER_OK)
        (void)stk_refuse_option(error, rc, "%" PRIu64 " bytes for blocks (block_memory_bytes)",
                                (uint64_t)store->slot_count * store->slot_bytes);
    pthread_mutex_init(&store->lock, NULL);
    if (rc != STOKER_OK)
        stk_block_store_free(&store);
    else
        *out = store;
    return rc;
}

void stk_block_store_free(struct stk_block_store **pointer)
{
    struct stk_block_store *store = *pointer;
    *pointer = NULL;
    if (store == NULL)
        return;
    pthread_mutex_destroy(&store->lock);
    stk_region_unmap(&store->memory);
    stk_free(store->first);
    stk_free(store->blocks);
    stk_free(store->owner);
    stk_free(store->free);
    stk_free(store);
}

struct stk_block_counts stk_block_store_counts(const struct stk_block_store *store)
{
    struct stk_block_store *writable = (struct stk_block_store *)store; /* its lock */
    pthread_mutex_lock(&writable->lock);
    struct stk_block_counts counts = store->counts;
    pthread_mutex_unlock(&writable->lock);
    counts.memory_bytes = store->memory.bytes;
    return counts;
}

/* ---- slots; the caller holds the lock ------------------------------------------- */

static uint8_t *slot_at(const struct stk_block_store *store, uint32_t slot)
{
    return (uint8_t *)store->memory.base + (size_t)slot * store->slot_bytes;
}

static uint32_t slot_of(const struct stk_block_store *store, const uint8_t *bytes)
{
    return (uint32_t)((size_t)(bytes - (uint8_t *)store->memory.base) / store->slot_bytes);
}

static void give_slot(struct stk_block_store *store, uint32_t slot)
{
    store->owner[slot] = NONE;
    store->free[store->free_count++] = slot;
}

static void empty(struct stk_block_store *store, struct block *block)
{
    block->state = EMPTY;
    give_slot(store, block->slot);
}

/* Empty the oldest READY block without users. Returns false if there is none. */
static bool evict(struct stk_block_store *store)
{
    struct block *oldest = NULL;
    for (uint32_t i = 0; i < store->slot_count; i++) {
        struct block *block = store->owner[i] == NONE ? NULL : &store->blocks[store->owner[i]];
        if (block != NULL && block->users == 0 && (oldest == NULL || block->load < oldest->load))
            oldest = block;
    }
    if (oldest == NULL)
        return false;
    oldest->cut = true;
    empty(store, oldest);
    return true;
}

/* Returns true if `count` slots are free, with what that evicts. */
static bool make_room(struct stk_block_store *store, uint32_t count, bool may_evict)
{
    while (store->free_count < count)
        if (!may_evict || !evict(store)) {
            store->starved = true;
            return false;
        }
    return true;
}

static void unlock_and_wake(struct stk_block_store *store, bool wake)
{
    if (wake)
        atomic_fetch_add(&store->changes, 1U);
    pthread_mutex_unlock(&store->lock);
    if (wake)
        stk_futex_wake(&store->changes, UINT32_MAX);
}

uint32_t stk_block_store_changes(const struct stk_block_store *store)
{
    return atomic_load(&store->changes);
}

void stk_block_store_wait(struct stk_block_store *store, uint32_t changes, int64_t wait_ns)
{
    stk_futex_wait(&store->changes, changes, wait_ns);
}

/* ---- users ---------------------------------------------------------------------- */

uint32_t stk_block_store_find(const struct stk_block_store *store, const stoker_read *read)
{
    return store->first[read->file] +
           (uint32_t)stk_blocks_find(store->files[read->file].blocks, read->offset);
}

static const stoker_file *file_of(const struct stk_block_store *store, uint32_t file,
                                  uint32_t block, uint64_t *number)
{
    *number = block - store->first[file];
    return &store->files[file];
}

void stk_block_store_join(struct stk_block_store *store, struct stk_block_wait *waits,
                          uint32_t count)
{
    pthread_mutex_lock(&store->lock);
    for (uint32_t i = 0; i < count; i++) {
        struct block *block = &store->blocks[waits[i].block];
        block->users++;
        waits[i].failures = block->failures;
    }
    pthread_mutex_unlock(&store->lock);
}

void stk_block_store_leave(struct stk_block_store *store, const struct stk_block_wait *waits,
                           uint32_t count, bool served)
{
    bool freed = false;
    pthread_mutex_lock(&store->lock);
    for (uint32_t i = 0; i < count; i++) {
        const stoker_read *read = waits[i].read;
        struct block *block = &store->blocks[waits[i].block];
        uint64_t number;
        const stoker_file *file = file_of(store, read->file, waits[i].block, &number);
        assert(block->users > 0);
        block->users--;
        block->served += served ? (uint64_t)read->result : 0;
        if (block->state != READY || block->users > 0)
            continue;
        freed = true;
        if (block->served >= stk_block_bytes(file->blocks, number))
            empty(store, block);
    }
    const bool wake = freed && store->starved;
    store->starved = store->starved && !wake;
    unlock_and_wake(store, wake);
}

void stk_block_store_look(struct stk_block_store *store, struct stk_block_wait *waits,
                          uint32_t count)
{
    pthread_mutex_lock(&store->lock);
    for (uint32_t i = 0; i < count; i++) {
        const struct block *block = &store->blocks[waits[i].block];
        waits[i].bytes = block->state == READY ? slot_at(store, block->slot) : NULL;
        waits[i].failed = block->failures != waits[i].failures;
    }
    pthread_mutex_unlock(&store->lock);
}

int stk_block_store_why(struct stk_block_store *store, uint32_t block, char *why, size_t why_bytes)
{
    pthread_mutex_lock(&store->lock);
    const int os_errno = store->blocks[block].os_errno;
    if (store->failed == block)
        (void)snprintf(why, why_bytes, "%s", store->why);
    else
        (void)snprintf(why, why_bytes, "its block could not be read: %s", strerror(os_errno));
    pthread_mutex_unlock(&store->lock);
    return os_errno;
}

/* ---- loads ---------------------------------------------------------------------- */

static void fill_load(struct stk_block_store *store, const struct stk_block_wait *wait,
                      struct stk_block_load *out, bool packed)
{
    struct block *block = &store->blocks[wait->block];
    block->slot = store->free[--store->free_count];
    out->bytes = slot_at(store, block->slot);
    out->stored = packed ? slot_at(store, store->free[--store->free_count]) : out->bytes;
    out->block = wait->block;
    out->done_bytes = 0;
    out->active = true;
}

bool stk_block_store_begin(struct stk_block_store *store, const void *ring, bool may_evict,
                           const struct stk_block_wait *wait, struct stk_block_load *out,
                           bool *foreign)
{
    struct block *block = &store->blocks[wait->block];
    uint64_t number;
    const stoker_file *file = file_of(store, wait->read->file, wait->block, &number);
    const bool packed = file->blocks->each[number].codec != STOKER_BLOCK_CODEC_NONE;
    pthread_mutex_lock(&store->lock);
    const uint32_t slots = packed ? 2 : 1;
    const bool wanted = block->state == EMPTY && block->failures == wait->failures;
    const bool begins = wanted && make_room(store, slots, may_evict);
    if (begins) {
        fill_load(store, wait, out, packed);
        out->file = file;
        out->number = number;
        block->state = LOADING;
        block->ring = ring;
    }
    if (wanted && store->slot_count - store->stuck_count < slots) {
        block->failures++; /* the memory never becomes free */
        block->os_errno = EIO;
    }
    *foreign =
        !begins && (block->state == EMPTY || (block->state == LOADING && block->ring != ring));
    pthread_mutex_unlock(&store->lock);
    return begins;
}

static void note_failure(struct stk_block_store *store, const struct stk_block_load *load,
                         int os_errno, const char *why)
{
    const stoker_block *stored = &load->file->blocks->each[load->number];
    struct block *block = &store->blocks[load->block];
    block->failures++;
    block->os_errno = (int16_t)os_errno;
    store->failed = load->block;
    (void)snprintf(store->why, sizeof(store->why), "block %" PRIu64 ", %s at %" PRIu64 ": %s",
                   load->number, stk_block_codec_name(stored->codec), stored->offset, why);
}

static void note_success(struct stk_block_store *store, const struct stk_block_load *load)
{
    struct block *block = &store->blocks[load->block];
    block->state = READY;
    if (!block->cut) /* else the rest is still to be served */
        block->served = 0;
    block->load = store->counts.loads++;
    store->owner[block->slot] = load->block;
    store->counts.again += block->cut ? 1 : 0;
    store->counts.stored_bytes += load->file->blocks->each[load->number].stored_bytes;
    block->cut = false;
}

void stk_block_store_end(struct stk_block_store *store, struct stk_block_load *load, int os_errno,
                         const char *why, bool stuck)
{
    struct block *block = &store->blocks[load->block];
    pthread_mutex_lock(&store->lock);
    assert(load->active && block->state == LOADING);
    load->active = false;
    if (load->stored != load->bytes && !stuck)
        give_slot(store, slot_of(store, load->stored));
    if (os_errno == 0) {
        note_success(store, load);
    } else {
        block->state = EMPTY;
        if (!stuck)
            give_slot(store, block->slot);
        if (why != NULL)
            note_failure(store, load, os_errno, why);
    }
    store->stuck_count += !stuck ? 0 : load->stored != load->bytes ? 2 : 1;
    store->starved = false;
    unlock_and_wake(store, true);
}
