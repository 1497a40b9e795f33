/* part_file.c - see part_file.h. */
#include "datasets/pack/part_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "datasets/pack/shard_files.h"
#include "loader/base/crc32c.h"

enum { RECORDS_AT = 4096 };

static const char MAGIC[8] = "STKPART1";

struct header {
    char magic[8];
    struct pack_part_place place;
    uint64_t entries_at;
    uint64_t entry_count;
    uint32_t entries_sum;
    uint32_t sum; /* CRC-32C of the bytes before it */
};

const char *pack_part_name(char name[PACK_PART_NAME_BYTES], uint32_t number)
{
    (void)snprintf(name, PACK_PART_NAME_BYTES, "part-%06u", number);
    return name;
}

/* ---- writing -------------------------------------------------------------------- */

bool pack_part_begin(struct pack_part *part, const char *folder,
                     const struct pack_part_place *place, struct pack_failure *failure)
{
    char name[PACK_PART_NAME_BYTES];
    part->place = *place;
    part->entries.used = 0;
    part->at = RECORDS_AT;
    return pack_output_begin(&part->output, folder, pack_part_name(name, place->number), failure) &&
           pack_output_zeros(&part->output, RECORDS_AT, failure);
}

bool pack_part_add(struct pack_part *part, const struct pack_part_entry *entry, const void *bytes,
                   size_t size, struct pack_failure *failure)
{
    struct pack_part_entry stored;
    memset(&stored, 0, sizeof(stored)); /* padding, too: all of it is written */
    stored.id = entry->id;
    stored.offset = part->at;
    stored.label = entry->label;
    stored.bytes = (uint32_t)size;
    stored.sum = stk_crc32c(0, bytes, size);
    stored.codec = entry->codec;
    if (!pack_room_for(&part->entries, sizeof(stored)))
        return pack_fail(failure, part->output.path, ENOMEM, "the entries");
    memcpy(part->entries.at + part->entries.used, &stored, sizeof(stored));
    part->entries.used += sizeof(stored);
    part->at += size;
    return pack_output_write(&part->output, bytes, size, failure);
}

bool pack_part_commit(struct pack_part *part, struct pack_failure *failure)
{
    struct header header;
    memset(&header, 0, sizeof(header));
    memcpy(header.magic, MAGIC, sizeof(MAGIC));
    header.place.set_id = part->place.set_id;
    header.place.number = part->place.number;
    header.place.first = part->place.first;
    header.place.count = part->place.count;
    header.entries_at = part->at;
    header.entry_count = part->entries.used / sizeof(struct pack_part_entry);
    header.entries_sum = stk_crc32c(0, part->entries.at, part->entries.used);
    header.sum = stk_crc32c(0, &header, offsetof(struct header, sum));
    return pack_output_write(&part->output, part->entries.at, part->entries.used, failure) &&
           pack_output_rewind(&part->output, failure) &&
           pack_output_write(&part->output, &header, sizeof(header), failure) &&
           pack_output_commit(&part->output, false, failure);
}

void pack_part_drop(struct pack_part *part)
{
    pack_output_drop(&part->output);
    pack_room_free(&part->entries);
}

/* ---- reading -------------------------------------------------------------------- */

static bool same_place(const struct pack_part_place *a, const struct pack_part_place *b)
{
    return a->set_id == b->set_id && a->number == b->number && a->first == b->first &&
           a->count == b->count;
}

/* The entries are believed only as far as they lie inside of the file, in order. */
static bool are_in_order(const struct pack_part_reader *reader, uint64_t end)
{
    const struct pack_part_place *place = &reader->place;
    uint64_t at = RECORDS_AT;
    uint64_t id = place->first;
    for (uint64_t i = 0; i < reader->entry_count; i++) {
        const struct pack_part_entry *entry = &reader->entries[i];
        if (entry->offset != at || entry->id < id || entry->id >= place->first + place->count)
            return false;
        at += entry->bytes;
        id = entry->id;
    }
    return at == end;
}

static bool load(struct pack_part_reader *reader, const struct pack_part_place *place)
{
    struct header header;
    struct stat status;
    if (fstat(reader->fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        !pack_read_at(reader->fd, &header, sizeof(header), 0) ||
        memcmp(header.magic, MAGIC, sizeof(MAGIC)) != 0 ||
        header.sum != stk_crc32c(0, &header, offsetof(struct header, sum)) ||
        !same_place(&header.place, place))
        return false;
    const uint64_t size = (uint64_t)status.st_size;
    if (header.entries_at < RECORDS_AT || header.entries_at > size ||
        size - header.entries_at != header.entry_count * sizeof(struct pack_part_entry))
        return false;
    const size_t bytes = (size_t)(size - header.entries_at);
    reader->entry_count = header.entry_count;
    reader->entries = malloc(bytes == 0 ? 1 : bytes);
    return reader->entries != NULL &&
           pack_read_at(reader->fd, reader->entries, bytes, header.entries_at) &&
           stk_crc32c(0, reader->entries, bytes) == header.entries_sum &&
           are_in_order(reader, header.entries_at);
}

bool pack_part_open(struct pack_part_reader *reader, const char *folder,
                    const struct pack_part_place *place)
{
    char name[PACK_PART_NAME_BYTES];
    *reader = (struct pack_part_reader){ .place = *place, .fd = -1 };
    const int length = snprintf(reader->path, sizeof(reader->path), "%s/%s", folder,
                                pack_part_name(name, place->number));
    if (length < 0 || (size_t)length >= sizeof(reader->path))
        return false;
    reader->fd = open(reader->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (reader->fd >= 0 && load(reader, place))
        return true;
    pack_part_close(reader);
    return false;
}

uint64_t pack_part_find(const struct pack_part_reader *reader, uint64_t id)
{
    uint64_t low = 0;
    uint64_t high = reader->entry_count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (reader->entries[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool pack_part_read(const struct pack_part_reader *reader, uint64_t first, uint64_t count,
                    struct pack_room *room, struct pack_failure *failure)
{
    uint64_t bytes = 0;
    assert(first + count <= reader->entry_count);
    for (uint64_t i = first; i < first + count; i++)
        bytes += reader->entries[i].bytes;
    room->used = 0;
    if (count == 0)
        return true;
    if (!pack_room_for(room, (size_t)bytes))
        return pack_fail(failure, reader->path, ENOMEM, "reading");
    bool good = pack_read_at(reader->fd, room->at, (size_t)bytes, reader->entries[first].offset);
    for (uint64_t i = first; good && i < first + count; i++) {
        const struct pack_part_entry *entry = &reader->entries[i];
        good = stk_crc32c(0, room->at + (entry->offset - reader->entries[first].offset),
                          entry->bytes) == entry->sum;
    }
    if (good)
        return true;
    (void)unlink(reader->path);
    return pack_fail(failure, reader->path, 0,
                     "it is damaged and was removed; start again to pack it again");
}

void pack_part_close(struct pack_part_reader *reader)
{
    if (reader->fd >= 0)
        close(reader->fd);
    free(reader->entries);
    reader->fd = -1;
    reader->entries = NULL;
    reader->entry_count = 0;
}
