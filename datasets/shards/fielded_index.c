/* fielded_index.c - read and verify the indexes of a set of version 2: fields, parts, labels, names of classes. */
#include "datasets/shards/fielded_set.h"

#include <string.h>

#include "loader/base/bytes.h"
#include "loader/base/crc32c.h"
#include "loader/base/memory.h"

/* Check the sizes in the headers against max_bytes before allocating. */
static int take_memory(struct stk_fielded *set, const struct stk_fielded_opening *opening)
{
    const uint64_t each =
        (uint64_t)set->part_count * sizeof(struct stk_fielded_part) + sizeof(stoker_label);
    if (set->count > opening->bytes_max / each)
        return stk_opening_refuse(opening->base, STOKER_ELIMIT,
                                  "their indexes take more than max_bytes");
    if (stk_region_map(&set->region, (size_t)(set->count * each)) != STOKER_OK)
        return stk_opening_refuse(opening->base, STOKER_ENOMEM, "the indexes");
    set->parts = set->region.base;
    set->labels = (stoker_label *)(void *)(set->parts + set->count * set->part_count);
    set->decoders = stk_calloc(set->field_count, sizeof(*set->decoders));
    set->field_of = stk_calloc(set->part_count, sizeof(*set->field_of));
    return set->decoders != NULL && set->field_of != NULL
               ? STOKER_OK
               : stk_opening_refuse(opening->base, STOKER_ENOMEM, "the fields");
}

/* The fields, from the first index; every part must have exactly one. */
static int load_fields(struct stk_fielded *set, const struct stk_fielded_opening *opening,
                       const uint8_t *index)
{
    const struct stk_fielded_file *file = &set->files[0];
    memset(set->field_of, 0xFF, set->part_count * sizeof(*set->field_of));
    for (uint32_t i = 0; i < set->field_count; i++) {
        struct stk_fields_field *field = &set->decoders[i].field;
        const char *what = NULL;
        int rc = stk_fields_field_load(field, index + (size_t)i * STK_SHARD_FIELD_BYTES,
                                       &file->header, &what);
        if (rc == STOKER_OK && field->part != STOKER_NO_PART &&
            set->field_of[field->part] != UINT32_MAX) {
            rc = STOKER_EFORMAT;
            what = "two fields of one part";
        }
        if (rc != STOKER_OK)
            return stk_fielded_refuse(opening, file, rc,
                                      file->header.index_at + (uint64_t)i * STK_SHARD_FIELD_BYTES,
                                      what);
        if (field->part != STOKER_NO_PART)
            set->field_of[field->part] = i;
        else
            set->class_count = field->class_count;
    }
    for (uint32_t p = 0; p < set->part_count; p++)
        if (set->field_of[p] == UINT32_MAX)
            return stk_fielded_refuse(opening, file, STOKER_EFORMAT, file->header.index_at,
                                      "the index has a part that fills no field");
    return STOKER_OK;
}

static int load_parts(struct stk_fielded *set, const struct stk_fielded_opening *opening,
                      uint32_t number, const uint8_t *index, uint64_t first)
{
    const struct stk_fielded_file *file = &set->files[number];
    const struct stk_fields_header *header = &file->header;
    const uint64_t at = stk_fields_entries_at(header);
    uint64_t free_at = STK_SHARD_BLOCK_BYTES;
    for (uint64_t i = 0; i < header->count * set->part_count; i++) {
        struct stk_field_decoder *decoder = &set->decoders[set->field_of[i % set->part_count]];
        struct stk_fields_part part;
        const char *what = NULL;
        const uint64_t entry_at = at + i * STK_SHARD_PART_BYTES;
        const int rc =
            stk_fields_part_load(&part, index + entry_at, header, &decoder->field, &free_at, &what);
        if (rc != STOKER_OK)
            return stk_fielded_refuse(opening, file, rc, header->index_at + entry_at, what);
        decoder->any_zstd = decoder->any_zstd || part.codec == STK_SHARD_ZSTD;
        decoder->any_image = decoder->any_image || stk_kind_is_image(part.codec);
        set->parts[first * set->part_count + i] = (struct stk_fielded_part){ .offset = part.offset,
                                                                             .bytes = part.bytes,
                                                                             .sum = part.sum,
                                                                             .file = number,
                                                                             .codec = part.codec };
    }
    return STOKER_OK;
}

static int load_labels(struct stk_fielded *set, const struct stk_fielded_opening *opening,
                       uint32_t number, const uint8_t *index, uint64_t first)
{
    const struct stk_fielded_file *file = &set->files[number];
    const uint64_t at = stk_fields_labels_at(&file->header);
    const uint32_t classes = set->class_count;
    const struct stk_fields_field *label = NULL;
    for (uint32_t i = 0; i < set->field_count; i++)
        if (set->decoders[i].field.part == STOKER_NO_PART)
            label = &set->decoders[i].field;
    for (uint64_t i = 0; i < file->header.count; i++) {
        const uint64_t bits = stk_load_le64(index + at + i * STK_SHARD_LABEL_BYTES);
        const uint32_t low = (uint32_t)bits;
        stoker_label *out = &set->labels[first + i];
        const bool floats = label != NULL && label->dtype == STOKER_DTYPE_FLOAT32;
        if (floats)
            memcpy(&out->value, &low, sizeof(low));
        else
            out->index = (int64_t)bits;
        if ((label == NULL && bits != 0) || (floats && bits > UINT32_MAX) ||
            (label != NULL && !floats && classes != 0 && bits >= classes))
            return stk_fielded_refuse(opening, file, STOKER_EFORMAT,
                                      file->header.index_at + at + i * STK_SHARD_LABEL_BYTES,
                                      "the index has a label that is no class");
    }
    return STOKER_OK;
}

/* One name per class of the label, each ended by a 0. */
static int load_names(struct stk_fielded *set, const struct stk_fielded_opening *opening)
{
    const struct stk_fields_header *header = &set->files[0].header;
    const char *at = (const char *)set->index + stk_fields_names_at(header);
    const char *end = at + header->names_bytes;
    uint32_t found = 0;
    if (header->names_bytes == 0)
        return STOKER_OK;
    set->names = stk_calloc((size_t)set->class_count + 1, sizeof(*set->names));
    if (set->names == NULL)
        return stk_opening_refuse(opening->base, STOKER_ENOMEM, "the names of the classes");
    for (; found < set->class_count && at < end; found++) {
        const size_t left = (size_t)(end - at);
        const size_t length = strnlen(at, left);
        if (length == 0 || length == left)
            break;
        set->names[found] = at;
        at += length + 1;
    }
    return found == set->class_count && at == end
               ? STOKER_OK
               : stk_opening_refuse(opening->base, STOKER_EFORMAT,
                                    "the names of the classes are not as many as the header says");
}

/* Read and verify the index of one shard, whose first sample is number `first` of all. */
static int load_index(struct stk_fielded *set, const struct stk_fielded_opening *opening,
                      uint32_t number, uint64_t first)
{
    const struct stk_fielded_file *file = &set->files[number];
    const struct stk_fields_header *header = &file->header;
    const size_t bytes = (size_t)(header->file_bytes - header->index_at);
    const uint64_t names_at = stk_fields_names_at(header);
    uint8_t *index = stk_calloc(bytes, 1);
    if (index == NULL)
        return stk_fielded_refuse(opening, file, STOKER_ENOMEM, header->index_at, "the index");
    int rc = stk_source_read(&file->source, index, bytes, header->index_at, opening->base->error);
    if (rc == STOKER_OK && stk_crc32c(0, index, bytes) != header->index_sum)
        rc = stk_fielded_refuse(opening, file, STOKER_ECORRUPT, header->index_at,
                                "the index does not match its checksum");
    if (rc == STOKER_OK && number == 0)
        rc = load_fields(set, opening, index);
    else if (rc == STOKER_OK &&
             (memcmp(index, set->index, stk_fields_entries_at(header)) != 0 ||
              memcmp(index + names_at, set->index + stk_fields_names_at(&set->files[0].header),
                     header->names_bytes) != 0))
        rc = stk_fielded_mismatch(opening, &set->files[0], file,
                                  "the fields, or the names of the classes");
    if (rc == STOKER_OK)
        rc = load_parts(set, opening, number, index, first);
    if (rc == STOKER_OK)
        rc = load_labels(set, opening, number, index, first);
    if (number == 0)
        set->index = index; /* freed with the set */
    else
        stk_free(index);
    return rc;
}

int stk_fielded_load_indexes(struct stk_fielded *set, const struct stk_fielded_opening *opening)
{
    uint64_t first = 0;
    int rc = take_memory(set, opening);
    for (uint32_t i = 0; rc == STOKER_OK && i < set->list.count; i++) {
        rc = load_index(set, opening, i, first);
        first += set->files[i].header.count;
    }
    return rc == STOKER_OK ? load_names(set, opening) : rc;
}
