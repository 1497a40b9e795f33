/* kept_block.c - see kept_block.h. */
#include "loader/dataset/kept_block.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "loader/base/memory/memory.h"
#include "loader/dataset/dataset.h"
#include "loader/storage/blocks.h"

struct stk_kept_block {
    pthread_mutex_t lock;
    uint8_t *bytes; /* NULL = none is kept */
    uint32_t file;
    uint64_t number;
};

int stk_kept_block_make(struct stk_kept_block **out, const stoker_dataset *dataset,
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
    struct stk_kept_block *kept = stk_calloc(1, sizeof(*kept));
    if (kept == NULL)
        return stk_refuse_spec(error, STOKER_ENOMEM, "%s: the kept block", dataset->ops->name);
    pthread_mutex_init(&kept->lock, NULL);
    *out = kept;
    return STOKER_OK;
}

void stk_kept_block_free(struct stk_kept_block **pointer)
{
    struct stk_kept_block *kept = *pointer;
    *pointer = NULL;
    if (kept == NULL)
        return;
    pthread_mutex_destroy(&kept->lock);
    stk_free(kept->bytes);
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

/* Keep a block instead of the one that is kept. */
static int keep(struct stk_kept_block *kept, const stoker_file *file, uint32_t file_number,
                uint64_t number, stk_stored_read *read, struct stk_place *place,
                stoker_error *error)
{
    const stoker_block *block = &file->blocks->each[number];
    const bool packed = block->codec != STOKER_BLOCK_CODEC_NONE;
    place->offset = block->offset;
    stk_free(kept->bytes);
    kept->bytes = stk_calloc((size_t)stk_block_bytes(file->blocks, number), 1);
    uint8_t *stored = packed ? stk_calloc(block->stored_bytes, 1) : kept->bytes;
    int rc = kept->bytes == NULL || stored == NULL
                 ? stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_READ, place, "a block")
                 : read(file, file_number, stored, block->stored_bytes, place, error);
    place->offset = block->offset;
    if (rc == STOKER_OK)
        rc = unpack(file, number, stored, kept->bytes, place, error);
    if (packed)
        stk_free(stored);
    if (rc != STOKER_OK) {
        stk_free(kept->bytes);
        kept->bytes = NULL;
    }
    kept->file = file_number;
    kept->number = number;
    return rc;
}

int stk_kept_block_read(struct stk_kept_block *kept, const stoker_file *file, uint32_t file_number,
                        void *to, size_t bytes, stk_stored_read *read, struct stk_place *place,
                        stoker_error *error)
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
        if (kept->bytes == NULL || kept->file != file_number || kept->number != number)
            rc = keep(kept, file, file_number, number, read, place, error);
        if (rc == STOKER_OK)
            memcpy((uint8_t *)to + bytes - (end - at), kept->bytes + (at - first), count);
        at += count;
    }
    pthread_mutex_unlock(&kept->lock);
    return rc;
}
