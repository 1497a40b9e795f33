/* fielded_files.c - the shards of a set of version 2: their names and headers, which must belong together. */
#include "datasets/shards/fielded_set.h"

#include "loader/base/memory.h"

int stk_fielded_refuse(const struct stk_fielded_opening *opening,
                       const struct stk_fielded_file *file, int code, uint64_t offset,
                       const char *what)
{
    const struct stk_place place = stk_at(file->source.path, offset);
    return stk_error_set(opening->base->error, code, STOKER_STAGE_OPEN, &place, "%s", what);
}

static int open_file(const struct stk_fielded_opening *opening, struct stk_fielded_file *file,
                     const char *path)
{
    uint8_t block[STK_SHARD_BLOCK_BYTES] = { 0 };
    const char *what = NULL;
    file->source = (struct stk_source)STK_SOURCE_CLOSED;
    int rc = stk_source_open(&file->source, path, opening->base->error);
    if (rc != STOKER_OK)
        return rc;
    const uint64_t size = file->source.size;
    rc = stk_source_read(&file->source, block, size < sizeof(block) ? (size_t)size : sizeof(block),
                         0, opening->base->error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_fields_header_load(&file->header, block, size, &what);
    return rc == STOKER_OK ? rc : stk_fielded_refuse(opening, file, rc, 0, what);
}

/* Why b cannot follow a; NULL = it can. */
static const char *gap(const struct stk_fields_header *a, const struct stk_fields_header *b,
                       bool partial)
{
    if (a->field_count != b->field_count || a->part_count != b->part_count ||
        a->names_bytes != b->names_bytes)
        return "the fields";
    if (partial)
        return NULL;
    if (a->set_id != b->set_id)
        return "the sets they were packed in";
    if ((a->flags & STK_SHARD_LAST) != 0 || b->number != a->number + 1 ||
        b->first != a->first + a->count || b->source_first != a->source_first + a->source_count)
        return "the numbers: shards are missing, or named out of order";
    return NULL;
}

int stk_fielded_mismatch(const struct stk_fielded_opening *opening,
                         const struct stk_fielded_file *a, const struct stk_fielded_file *b,
                         const char *what)
{
    const struct stk_place place = stk_at(b->source.path, STOKER_NO_OFFSET);
    return stk_error_set(opening->base->error, STOKER_EMISMATCH, STOKER_STAGE_OPEN, &place,
                         "it and %s disagree about %s", a->source.path, what);
}

static int check_ends(const struct stk_fielded *set, const struct stk_fielded_opening *opening)
{
    const struct stk_fields_header *first = &set->files[0].header;
    const struct stk_fields_header *last = &set->files[set->list.count - 1].header;
    if (opening->partial)
        return STOKER_OK;
    if (first->number != 0 || first->first != 0)
        return stk_opening_refuse(opening->base, STOKER_EMISMATCH,
                                  "the first one is missing; partial=1 allows it");
    return (last->flags & STK_SHARD_LAST) != 0
               ? STOKER_OK
               : stk_opening_refuse(
                     opening->base, STOKER_EMISMATCH,
                     "the last one is missing (packing did not end?); partial=1 allows it");
}

int stk_fielded_open_files(struct stk_fielded *set, const struct stk_fielded_opening *opening)
{
    int rc = stk_shard_list_make(&set->list, opening->base->path, opening->base->error);
    if (rc != STOKER_OK)
        return rc;
    set->files = stk_calloc(set->list.count, sizeof(*set->files));
    if (set->files == NULL)
        return stk_opening_refuse(opening->base, STOKER_ENOMEM, "opening");
    for (uint32_t i = 0; rc == STOKER_OK && i < set->list.count; i++) {
        struct stk_fielded_file *file = &set->files[i];
        rc = open_file(opening, file, set->list.paths[i]);
        if (rc != STOKER_OK)
            return rc;
        const char *what = i == 0 ? NULL : gap(&file[-1].header, &file->header, opening->partial);
        if (what != NULL)
            return stk_fielded_mismatch(opening, &file[-1], file, what);
        if (__builtin_add_overflow(set->count, file->header.count, &set->count))
            return stk_opening_refuse(opening->base, STOKER_ELIMIT, "too many samples");
        if (file->header.longest_bytes > set->longest_bytes)
            set->longest_bytes = file->header.longest_bytes;
    }
    set->field_count = set->files[0].header.field_count;
    set->part_count = set->files[0].header.part_count;
    return check_ends(set, opening);
}
