/* files.c - the shards of a set: open them, and check that their headers belong together. */
#include "datasets/shards/set.h"

int stk_shard_refuse(const struct stk_shard_opening *opening, const struct stk_shard_file *file,
                     int code, uint64_t offset, const char *what)
{
    const struct stk_place place = stk_at(file->source.path, offset);
    return stk_error_set(opening->base.error, code, STOKER_STAGE_OPEN, &place, "%s", what);
}

int stk_shard_mismatch(const struct stk_shard_opening *opening, const struct stk_shard_file *a,
                       const struct stk_shard_file *b, const char *what)
{
    const struct stk_place place = stk_at(b->source.path, STOKER_NO_OFFSET);
    return stk_error_set(opening->base.error, STOKER_EMISMATCH, STOKER_STAGE_OPEN, &place,
                         "it and %s disagree about %s", a->source.path, what);
}

static int open_file(const struct stk_shard_opening *opening, struct stk_shard_file *file,
                     const char *path)
{
    uint8_t block[STK_SHARD_PAGE_BYTES] = { 0 };
    const char *what = NULL;
    *file = (struct stk_shard_file){ .source = STK_SOURCE_CLOSED };
    int rc = stk_source_open(&file->source, opening->base.storage, path, opening->base.error);
    if (rc != STOKER_OK)
        return rc;
    const uint64_t size = file->source.size;
    rc = stk_source_read(&file->source, block, size < sizeof(block) ? (size_t)size : sizeof(block),
                         0, opening->base.error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_shard_header_load(&file->header, block, size, &what);
    return rc == STOKER_OK ? rc : stk_shard_refuse(opening, file, rc, 0, what);
}

/* Returns NULL, or what keeps b from following a. */
static const char *difference(const struct stk_shard_header *a, const struct stk_shard_header *b,
                              bool partial)
{
    if (a->field_count != b->field_count || a->part_count != b->part_count ||
        a->names_bytes != b->names_bytes)
        return "the fields";
    if (partial)
        return NULL;
    if (a->set_id != b->set_id || a->shard_count != b->shard_count)
        return "the sets they were packed in";
    if (b->number != a->number + 1)
        return "the numbers: shards are missing, or named out of order";
    return b->source_first != a->source_first + a->source_count
               ? "the samples they begin and end with"
               : NULL;
}

static int check_ends(const struct stk_shard_set *set, const struct stk_shard_opening *opening)
{
    const struct stk_shard_header *first = &set->files[0].header;
    const struct stk_shard_header *last = &set->files[set->list.count - 1].header;
    if (set->count == 0)
        return stk_opening_refuse(&opening->base, STOKER_EEMPTY, "they have no samples");
    if (opening->partial != 0)
        return STOKER_OK;
    if (first->number != 0 || first->source_first != 0)
        return stk_opening_refuse(&opening->base, STOKER_EMISMATCH,
                                  "the first one is missing; partial=1 allows it");
    return last->number + 1 == last->shard_count
               ? STOKER_OK
               : stk_opening_refuse(
                     &opening->base, STOKER_EMISMATCH,
                     "the last one is missing (packing did not end?); partial=1 allows it");
}

/* The first shard says how many there are. */
static int number_files(struct stk_shard_set *set, const struct stk_shard_opening *opening)
{
    const struct stk_shard_file first = set->files[0];
    const uint32_t count = first.header.shard_count;
    struct stk_shard_file *files = NULL;
    int rc = count <= STK_SHARDS_MAX ? STOKER_ENOMEM : STOKER_ELIMIT;
    if (rc == STOKER_ENOMEM)
        files = stk_calloc(count > 0 ? count : 1, sizeof(*files));
    if (files == NULL)
        return stk_opening_refuse(&opening->base, rc, "opening");
    stk_free(set->files);
    set->files = files;
    set->files[0] = first;
    rc = stk_shard_list_number(&set->list, opening->base.path, count);
    return rc == STOKER_OK ? rc : stk_opening_refuse(&opening->base, rc, "opening");
}

int stk_shard_open_files(struct stk_shard_set *set, const struct stk_shard_opening *opening)
{
    int rc = stk_shard_list_make(&set->list, opening->base.storage, opening->base.path,
                                 opening->base.error);
    if (rc != STOKER_OK)
        return rc;
    set->files = stk_calloc(set->list.count, sizeof(*set->files));
    if (set->files == NULL)
        return stk_opening_refuse(&opening->base, STOKER_ENOMEM, "opening");
    set->longest_bytes = 1;
    for (uint32_t i = 0; i < set->list.count; i++) {
        struct stk_shard_file *file = &set->files[i];
        rc = open_file(opening, file, set->list.paths[i]);
        if (rc == STOKER_OK && i == 0 && set->list.numbered)
            rc = number_files(set, opening);
        if (rc != STOKER_OK)
            return rc;
        file = &set->files[i];
        const char *what =
            i == 0 ? NULL : difference(&file[-1].header, &file->header, opening->partial != 0);
        if (what != NULL)
            return stk_shard_mismatch(opening, &file[-1], file, what);
        if (__builtin_add_overflow(set->count, file->header.count, &set->count))
            return stk_opening_refuse(&opening->base, STOKER_ELIMIT, "too many samples");
        set->block_count += file->header.block_count;
        if (file->header.longest_bytes > set->longest_bytes)
            set->longest_bytes = (uint32_t)file->header.longest_bytes;
    }
    set->field_count = set->files[0].header.field_count;
    set->part_count = set->files[0].header.part_count;
    return check_ends(set, opening);
}
