/* part_file.h - samples that one rank has encoded, kept until they lie in a shard.
 *
 *   0        header; written last
 *   4096     the stored bytes of each record, one after the other
 *   then     an entry per record
 *
 * Samples of several fields have a record per part; a sample that is bad has none. Every byte is covered by a checksum, so
 * a part that lost bytes in a power loss is noticed: a part need not be waited for on its way to the disk. Numbers lie as
 * in memory: all ranks of a packing are of one kind of machine.
 */
#ifndef PACK_PART_FILE_H
#define PACK_PART_FILE_H

#include "datasets/pack/output.h"
#include "datasets/pack/sample.h"

/* Samples first .. first + count - 1 of the source. */
struct pack_part_place {
    uint64_t set_id; /* the plan's */
    uint32_t number;
    uint64_t first;
    uint64_t count;
};

struct pack_part_entry {
    uint64_t id; /* the source's; ascending */
    uint64_t offset;
    stoker_label label;
    uint32_t bytes;
    uint32_t sum; /* CRC-32C of them */
    uint32_t codec;
    uint32_t reserved;
};

/* ---- writing ---- */

struct pack_part {
    struct pack_part_place place;
    struct pack_output output;
    struct pack_room entries;
    uint64_t at; /* bytes written */
};

bool pack_part_begin(struct pack_part *part, const char *folder,
                     const struct pack_part_place *place, struct pack_failure *failure);

/* Append a record; `entry` gives id, label and codec. */
bool pack_part_add(struct pack_part *part, const struct pack_part_entry *entry, const void *bytes,
                   size_t size, struct pack_failure *failure);

/* Give the file its name. */
bool pack_part_commit(struct pack_part *part, struct pack_failure *failure);
void pack_part_drop(struct pack_part *part); /* after commit, too; all zero is allowed */

/* ---- reading ---- */

struct pack_part_reader {
    struct pack_part_place place;
    char path[PACK_PATH_BYTES];
    int fd; /* -1 = closed */
    struct pack_part_entry *entries;
    uint64_t entry_count;
};

/* Opens the part of that place and checks header and entries. False: it is not there, not complete, or damaged. */
bool pack_part_open(struct pack_part_reader *reader, const char *folder,
                    const struct pack_part_place *place);

/* Index of the first entry of sample `id` or of a later one; entry_count = none. */
uint64_t pack_part_find(const struct pack_part_reader *reader, uint64_t id);

/* Read the bytes of entries first .. first + count - 1, which lie one after the other, to the start of `room`, and check
 * them. A damaged part is removed, so that the next run packs it again. */
bool pack_part_read(const struct pack_part_reader *reader, uint64_t first, uint64_t count,
                    struct pack_room *room, struct pack_failure *failure);
void pack_part_close(struct pack_part_reader *reader);

/* The file's name. Returns name. */
enum { PACK_PART_NAME_BYTES = 32 };
const char *pack_part_name(char name[PACK_PART_NAME_BYTES], uint32_t number);

#endif
