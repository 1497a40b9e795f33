/* kept_blocks.c - see kept_blocks.h. */
#include "loader/dataset/kept_blocks.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "loader/base/memory/memory.h"
#include "loader/dataset/dataset.h"
#include "loader/storage/blocks.h"

enum { KEPT_MAX = 64, KEPT_BYTES_MAX = 64 << 20 };

struct kept {
    uint8_t *bytes;
    uint64_t size;
    uint32_t file;
    uint64_t number;
};

struct stk_kept_blocks {
    pthread_mutex_t lock;
    struct kept each[KEPT_MAX]; /* [count], the one that was used last at the end */
    uint32_t count;
    uint64_t bytes; /* of all blocks */
};

int stk_kept_blocks_make(struct stk_kept_blocks **out, const stoker_dataset *dataset,
                         stoker_error *error)
{
    bool has_blocks = false;
    for (uint32_t i = 0; i < dataset->info.file_count; i++) {
        stoker_file file = { .fd = -1 };
        if (dataset->ops->file(dataset->self, i, &file) != STOKER_OK)
            continue; /* reported when it is read */
        const int rc = stk_blocks_check(&file, error);
        if (rc != STOKER_OK)
            return rc;
        has_blocks = has_blocks || file.blocks != NULL;
    }
    if (!has_blocks)
        return STOKER_OK;
    struct stk_kept_blocks *kept = stk_calloc(1, sizeof(*kept));
    if (kept == NULL)
        return stk_refuse_spec(error, STOKER_ENOMEM, "%s: the kept blocks", dataset->ops->name);
    pthread_mutex_init(&kept->lock, NULL);
    *out = kept;
    return STOKER_OK;
}

void stk_kept_blocks_free(struct stk_kept_blocks **pointer)
{
    struct stk_kept_blocks *kept = *pointer;
    *pointer = NULL;
    if (kept == NULL)
        return;
    pthread_mutex_destroy(&kept->lock);
    for (uint32_t i = 0; i < kept->count; i++)
        stk_free(kept->each[i].bytes);
    stk_free(kept);
}

/* Read a block and unpack it to `to`. `stored` has room for its stored bytes. */
static int unpack(const stoker_file *file, uint64_t number, const void *stored, void *to,
                  const struct stk_place *place, stoker_error *error)
{
    void *scratch = NULL;
    stoker_error said = { .message = "" };
    int rc = stk_block_scratch_open(&scratch);
    if (rc == STOKER_OK)
        rc = stk_block_unpack(file->blocks, number, scratch, stored, to, &said);
    stk_block_scratch_close(scratch);
    return rc == STOKER_OK
               ? rc
               : stk_error_set(error, rc, STOKER_STAGE_READ, place, "block %" PRIu64 ", %s: %s",
                               number, stk_block_codec_name(file->blocks->each[number].codec),
                               rc == STOKER_ENOMEM ? "unpacking" : said.message);
}

/* Free those that were used longest ago until there is room for another one. */
static void make_room(struct stk_kept_blocks *kept, uint64_t size)
{
    uint32_t gone = 0;
    for (; gone < kept->count &&
           (kept->count - gone == KEPT_MAX || kept->bytes + size > KEPT_BYTES_MAX);
         gone++) {
        stk_free(kept->each[gone].bytes);
        kept->bytes -= kept->each[gone].size;
    }
    kept->count -= gone;
    memmove(kept->each, kept->each + gone, kept->count * sizeof(kept->each[0]));
}

/* Move a block to the end, as the one that was used last. Returns false if it is not kept. */
static bool find(struct stk_kept_blocks *kept, uint32_t file, uint64_t number)
{
    for (uint32_t i = kept->count; i-- > 0;) {
        const struct kept found = kept->each[i];
        if (found.file != file || found.number != number)
            continue;
        memmove(&kept->each[i], &kept->each[i + 1], (kept->count - 1 - i) * sizeof(kept->each[0]));
        kept->each[kept->count - 1] = found;
        return true;
    }
    return false;
}

/* Read a block and keep it. */
static int keep(struct stk_kept_blocks *kept, const stoker_file *file, uint32_t file_number,
                uint64_t number, stk_stored_read *read, struct stk_place *place,
                stoker_error *error)
{
    const stoker_block *block = &file->blocks->each[number];
    const bool packed = block->codec != STOKER_BLOCK_CODEC_NONE;
    const uint64_t size = stk_block_bytes(file->blocks, number);
    make_room(kept, size);
    uint8_t *bytes = stk_calloc((size_t)size, 1);
    uint8_t *stored = packed ? stk_calloc(block->stored_bytes, 1) : bytes;
    place->offset = block->offset;
    if (bytes == NULL || stored == NULL) {
        stk_free(bytes);
        if (packed)
            stk_free(stored);
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_READ, place, "a block");
    }
    int rc = read(file, file_number, stored, block->stored_bytes, place, error);
    place->offset = block->offset;
    if (rc == STOKER_OK)
        rc = unpack(file, number, stored, bytes, place, error);
    if (packed)
        stk_free(stored);
    if (rc != STOKER_OK) {
        stk_free(bytes);
        return rc;
    }
    kept->each[kept->count++] =
        (struct kept){ .bytes = bytes, .size = size, .file = file_number, .number = number };
    kept->bytes += size;
    return rc;
}

int stk_kept_blocks_read(struct stk_kept_blocks *kept, const stoker_file *file,
                         uint32_t file_number, void *to, size_t bytes, stk_stored_read *read,
                         struct stk_place *place, stoker_error *error)
{
    const stoker_blocks *blocks = file->blocks;
    const uint64_t unpacked = stk_blocks_unpacked_bytes(blocks);
    uint64_t at = place->offset;
    int rc = STOKER_OK;
    if (at > unpacked || bytes > unpacked - at)
        return stk_error_set(error, STOKER_ETRUNCATED, STOKER_STAGE_READ, place,
                             "the file has %" PRIu64 " bytes unpacked", unpacked);
    pthread_mutex_lock(&kept->lock);
    for (uint64_t end = at + bytes; rc == STOKER_OK && at < end;) {
        const uint64_t number = stk_blocks_find(blocks, at);
        const uint64_t first = blocks->each[number].first_byte;
        const uint64_t left = blocks->each[number + 1].first_byte - at;
        const uint64_t count = end - at < left ? end - at : left;
        if (!find(kept, file_number, number))
            rc = keep(kept, file, file_number, number, read, place, error);
        if (rc == STOKER_OK)
            memcpy((uint8_t *)to + bytes - (end - at),
                   kept->each[kept->count - 1].bytes + (at - first), count);
        at += count;
    }
    pthread_mutex_unlock(&kept->lock);
    return rc;
}
