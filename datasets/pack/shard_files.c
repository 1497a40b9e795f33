/* shard_files.c - see shard_files.h. */
#include "datasets/pack/shard_files.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/crc32c.h"

enum { COPY_BYTES = 64 << 10 };

const char *pack_shard_name(char name[PACK_SHARD_NAME_BYTES], uint32_t number)
{
    (void)snprintf(name, PACK_SHARD_NAME_BYTES, "shard-%06u.stk", number);
    return name;
}

bool pack_read_at(int fd, void *to, size_t size, uint64_t offset)
{
    size_t done = 0;
    while (done < size) {
        const ssize_t got = pread(fd, (uint8_t *)to + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

bool pack_index_is_whole(int fd, uint64_t index_at, uint64_t file_bytes, uint32_t index_sum)
{
    uint8_t bytes[COPY_BYTES];
    uint32_t sum = 0;
    uint64_t at = index_at;
    while (at < file_bytes) {
        const uint64_t left = file_bytes - at;
        const size_t size = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
        if (!pack_read_at(fd, bytes, size, at))
            return false;
        sum = stk_crc32c(sum, bytes, size);
        at += size;
    }
    return sum == index_sum;
}

uint32_t pack_spans_sum(const struct pack_span *spans, uint32_t count, uint64_t zeros)
{
    static const uint8_t block[STK_SHARD_BLOCK_BYTES];
    uint32_t sum = 0;
    assert(zeros < sizeof(block));
    for (uint32_t i = 0; i < count; i++)
        sum = stk_crc32c(sum, spans[i].at, spans[i].bytes);
    return stk_crc32c(sum, block, (size_t)zeros);
}

bool pack_shard_end(struct pack_output *output, uint64_t gap, const struct pack_span *spans,
                    uint32_t count, uint64_t zeros, const uint8_t header[STK_SHARD_BLOCK_BYTES],
                    struct pack_failure *failure)
{
    if (!pack_output_zeros(output, gap, failure))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!pack_output_write(output, spans[i].at, spans[i].bytes, failure))
            return false;
    return pack_output_zeros(output, zeros, failure) && pack_output_rewind(output, failure) &&
           pack_output_write(output, header, STK_SHARD_BLOCK_BYTES, failure) &&
           pack_output_commit(output, true, failure);
}

static bool is_ours(const char *name, uint32_t count)
{
    char due[PACK_SHARD_NAME_BYTES];
    unsigned number = 0;
    return sscanf(name, "shard-%6u", &number) == 1 && number < count &&
           strcmp(pack_shard_name(due, number), name) == 0;
}

bool pack_shards_alone(const char *folder, uint32_t count, struct pack_failure *failure)
{
    DIR *stream = opendir(folder);
    bool alone = true;
    if (stream == NULL)
        return pack_fail(failure, folder, errno, "listing");
    const struct dirent *entry;
    while (alone && (entry = readdir(stream)) != NULL) {
        const size_t length = strlen(entry->d_name);
        if (entry->d_name[0] == '.' || length < 4 ||
            strcmp(entry->d_name + length - 4, ".stk") != 0)
            continue;
        alone = is_ours(entry->d_name, count) ||
                pack_fail(failure, entry->d_name, 0,
                          "not of this packing; remove it, or pack elsewhere");
    }
    closedir(stream);
    return alone;
}

bool pack_class_names(const struct pack_plan *plan, struct pack_room *names)
{
    if (plan->info->label_dtype == STOKER_DTYPE_NONE)
        return true;
    for (uint32_t i = 0; i < plan->info->class_count; i++) {
        const char *name = stoker_dataset_class_name(plan->source, i);
        const size_t bytes = name == NULL ? 0 : strlen(name) + 1;
        if (bytes < 2 || names->used + bytes > STK_SHARD_NAMES_MAX) {
            names->used = 0;
            return true;
        }
        if (!pack_room_for(names, bytes))
            return false;
        memcpy(names->at + names->used, name, bytes);
        names->used += bytes;
    }
    return true;
}
