/* file.c - see file.h. */
#include "datasets/shards/file.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "loader/base/crc32c.h"
#include "loader/base/fault.h"
#include "loader/base/memory.h"

static_assert(sizeof(struct stk_shard_record) == STK_SHARD_ENTRY_BYTES,
              "an index is read in place of its records");

static int refuse(const struct stk_shard_file *file, int code, uint64_t offset, const char *what,
                  stoker_error *error)
{
    const struct stk_place place = stk_at(file->source.path, offset);
    return stk_error_set(error, code, STOKER_STAGE_OPEN, &place, "%s", what);
}

int stk_shard_file_open(struct stk_shard_file *file, const char *path, stoker_error *error)
{
    uint8_t block[STK_SHARD_BLOCK_BYTES];
    const char *what = NULL;
    *file = (struct stk_shard_file){ .source = STK_SOURCE_CLOSED };
    int rc = stk_source_open(&file->source, path, error);
    if (rc != STOKER_OK)
        return rc;
    const uint64_t size = file->source.size;
    const size_t bytes = size < sizeof(block) ? (size_t)size : sizeof(block);
    memset(block, 0, sizeof(block));
    rc = stk_source_read(&file->source, block, bytes, 0, error);
    if (rc == STOKER_OK) {
        rc = stk_shard_header_load(&file->header, block, size, &what);
        if (rc != STOKER_OK)
            (void)refuse(file, rc, 0, what, error);
    }
    if (rc != STOKER_OK)
        stk_shard_file_close(file);
    return rc;
}

int stk_shard_file_map(struct stk_shard_file *file, stoker_error *error)
{
    void *mapped = stk_fault_hit(STK_FAULT_MEMORY)
                       ? MAP_FAILED
                       : mmap(NULL, (size_t)file->header.file_bytes, PROT_READ, MAP_SHARED,
                              file->source.fd, 0);
    if (mapped == MAP_FAILED)
        return refuse(file, STOKER_ENOMEM, 0, "mapping it", error);
    file->mapped = mapped;
    return STOKER_OK;
}

void stk_shard_file_close(struct stk_shard_file *file)
{
    if (file->mapped != NULL)
        munmap((void *)file->mapped, (size_t)file->header.file_bytes);
    if (file->source.path != NULL)
        stk_source_close(&file->source);
    *file = (struct stk_shard_file){ .source = STK_SOURCE_CLOSED };
}

/* Entries become records, each in its place. */
static int convert(const struct stk_shard_file *file, uint32_t number,
                   struct stk_shard_record *records, stoker_error *error)
{
    const uint64_t row_bytes = stk_shard_row_bytes(&file->header);
    uint64_t free_at = STK_SHARD_BLOCK_BYTES;
    for (uint64_t i = 0; i < file->header.count; i++) {
        uint8_t bytes[STK_SHARD_ENTRY_BYTES];
        struct stk_shard_entry entry;
        const char *what = NULL;
        memcpy(bytes, &records[i], sizeof(bytes));
        const int rc =
            stk_shard_entry_load(&entry, bytes, &file->header, row_bytes, &free_at, &what);
        if (rc != STOKER_OK)
            return refuse(file, rc, file->header.index_at + i * STK_SHARD_ENTRY_BYTES, what, error);
        records[i] = (struct stk_shard_record){ .offset = entry.offset,
                                                .label = entry.label,
                                                .bytes = entry.bytes,
                                                .sum = entry.sum,
                                                .file = number,
                                                .codec = (uint32_t)entry.codec };
    }
    return STOKER_OK;
}

int stk_shard_file_index(const struct stk_shard_file *file, uint32_t number,
                         struct stk_shard_record *records, char *names, stoker_error *error)
{
    const struct stk_shard_header *header = &file->header;
    const size_t bytes = (size_t)header->count * STK_SHARD_ENTRY_BYTES;
    const size_t rest_bytes = (size_t)(header->file_bytes - header->index_at) - bytes;
    assert(rest_bytes >= header->names_bytes);
    uint8_t *rest = stk_calloc(rest_bytes + 1, 1);
    if (rest == NULL)
        return refuse(file, STOKER_ENOMEM, header->index_at, "the index", error);
    int rc = stk_source_read(&file->source, records, bytes, header->index_at, error);
    if (rc == STOKER_OK)
        rc = stk_source_read(&file->source, rest, rest_bytes, header->index_at + bytes, error);
    if (rc == STOKER_OK) {
        const uint32_t sum = stk_crc32c(stk_crc32c(0, records, bytes), rest, rest_bytes);
        if (sum != header->index_sum)
            rc = refuse(file, STOKER_ECORRUPT, header->index_at,
                        "the index does not match its checksum", error);
    }
    if (rc == STOKER_OK)
        rc = convert(file, number, records, error);
    if (rc == STOKER_OK && header->names_bytes > 0)
        memcpy(names, rest, header->names_bytes);
    stk_free(rest);
    return rc;
}
