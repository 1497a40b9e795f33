/* index.c - read and verify the indexes of a set: fields, parts, words, names of classes. */
#include <string.h>

#include "datasets/shards/set.h"
#include "loader/base/crc32c/crc32c.h"

/* Check the sizes in the headers against max_bytes before allocating. */
static int allocate(struct stk_shard_set *set, const struct stk_shard_opening *opening)
{
    const uint32_t word_count = set->field_count - set->part_count;
    const uint64_t names_bytes = set->files[0].header.names_bytes;
    const uint64_t each =
        (uint64_t)set->part_count * sizeof(struct stk_shard_record) + word_count * sizeof(uint64_t);
    const uint64_t table_count = set->block_count + set->list.count;
    const uint64_t fixed = 3 * names_bytes + table_count * sizeof(set->blocks[0]) +
                           set->block_count * sizeof(set->block_first[0]);
    if (set->block_count > opening->bytes_max / sizeof(set->blocks[0]) / 2 || /* or it overflows */
        fixed > opening->bytes_max || set->count > (opening->bytes_max - fixed) / each)
        return stk_opening_refuse(&opening->base, STOKER_ELIMIT,
                                  "their indexes take more than max_bytes");
    if (stk_region_map(&set->region, (size_t)(set->count * each)) != STOKER_OK)
        return stk_opening_refuse(&opening->base, STOKER_ENOMEM, "the indexes");
    set->records = set->region.base;
    set->words = (uint64_t *)(void *)(set->records + set->count * set->part_count);
    set->decoders = stk_calloc(set->field_count, sizeof(*set->decoders));
    set->fields = stk_calloc(set->field_count, STK_SHARD_FIELD_BYTES);
    set->decoder_of = stk_calloc(set->part_count, sizeof(set->decoder_of[0]));
    set->word_of = stk_calloc(set->field_count, sizeof(*set->word_of));
    set->names = names_bytes == 0 ? NULL : stk_calloc((size_t)names_bytes, 1);
    if (set->block_count > 0) {
        set->blocks = stk_calloc(table_count, sizeof(set->blocks[0]));
        set->block_first = stk_calloc(set->block_count, sizeof(set->block_first[0]));
        if (set->blocks == NULL || set->block_first == NULL)
            return stk_opening_refuse(&opening->base, STOKER_ENOMEM, "the blocks");
    }
    return set->decoders != NULL && set->fields != NULL && set->decoder_of != NULL &&
                   set->word_of != NULL && (set->names != NULL || names_bytes == 0)
               ? STOKER_OK
               : stk_opening_refuse(&opening->base, STOKER_ENOMEM, "the fields");
}

static int load_field(struct stk_shard_set *set, uint32_t number, uint32_t *words,
                      const char **what)
{
    const struct stk_shard_header *header = &set->files[0].header;
    struct stk_shard_field *field = &set->decoders[number].field;
    const int rc = stk_shard_field_load(field, set->fields + (size_t)number * STK_SHARD_FIELD_BYTES,
                                        header, what);
    if (rc != STOKER_OK)
        return rc;
    if (field->part == STOKER_NO_PART) {
        set->word_of[number] = (*words)++;
        if (strcmp(field->name, "label") == 0 && field->dtype == STOKER_DTYPE_INT64)
            set->label = (int32_t)number;
        return STOKER_OK;
    }
    *what = "two fields of one part";
    if (set->decoder_of[field->part] != NULL)
        return STOKER_EFORMAT;
    set->decoder_of[field->part] = &set->decoders[number];
    return STOKER_OK;
}

/* Each part has exactly one field; the other fields are words. */
static int load_fields(struct stk_shard_set *set, const struct stk_shard_opening *opening,
                       const uint8_t *index)
{
    const struct stk_shard_file *file = &set->files[0];
    uint32_t words = 0;
    set->label = -1;
    memcpy(set->fields, index, (size_t)set->field_count * STK_SHARD_FIELD_BYTES);
    for (uint32_t i = 0; i < set->field_count; i++) {
        const char *what = NULL;
        const int rc = load_field(set, i, &words, &what);
        if (rc != STOKER_OK)
            return stk_shard_refuse(opening, file, rc,
                                    file->header.index_at + (uint64_t)i * STK_SHARD_FIELD_BYTES,
                                    what);
    }
    if (words != set->field_count - set->part_count)
        return stk_shard_refuse(opening, file, STOKER_EFORMAT, file->header.index_at,
                                "the index has a part that fills no field");
    if (set->names != NULL)
        memcpy(set->names, index + stk_shard_names_at(&file->header), file->header.names_bytes);
    return STOKER_OK;
}

/* Where the tables of a file begin: `before` blocks lie in those before it. */
static stoker_block *blocks_of(const struct stk_shard_set *set, uint32_t number, uint64_t before)
{
    return set->blocks + before + number;
}

static int load_blocks(struct stk_shard_set *set, const struct stk_shard_opening *opening,
                       uint32_t number, const uint8_t *index, uint64_t before)
{
    static const stoker_block_codec codec_of[STK_SHARD_CODECS] = {
        [STK_SHARD_LZ4] = STOKER_BLOCK_CODEC_LZ4, [STK_SHARD_ZSTD] = STOKER_BLOCK_CODEC_ZSTD
    };
    struct stk_shard_file *file = &set->files[number];
    const struct stk_shard_header *header = &file->header;
    uint64_t at = stk_shard_blocks_at(header);
    uint64_t free_at = STK_SHARD_PAGE_BYTES;
    uint64_t bytes = 0;
    if (header->block_count == 0)
        return STOKER_OK;
    stoker_block *each = blocks_of(set, number, before);
    file->blocks = (stoker_blocks){ .each = each, .count = header->block_count };
    for (uint64_t i = 0; i < header->block_count; i++, at += STK_SHARD_BLOCK_BYTES) {
        struct stk_shard_block block;
        const char *what = NULL;
        each[i].first_byte = bytes;
        const int rc = stk_shard_block_load(&block, index + at, header, &free_at, &bytes, &what);
        if (rc != STOKER_OK)
            return stk_shard_refuse(opening, file, rc, header->index_at + at, what);
        each[i].offset = block.offset;
        each[i].stored_bytes = block.stored_bytes;
        each[i].codec = codec_of[block.codec];
        each[i].sum = block.sum;
        each[i].has_sum = true;
    }
    each[header->block_count].first_byte = bytes;
    return bytes == header->block_bytes
               ? STOKER_OK
               : stk_shard_refuse(opening, file, STOKER_EFORMAT, header->index_at,
                                  "the blocks do not unpack to the header's bytes");
}

/* Each sample lies in one block, and each block has samples. *block: that of the sample before. */
static bool is_in_block(const struct stk_shard_set *set, uint32_t number, uint64_t before,
                        uint64_t id, uint64_t end, uint64_t *block)
{
    const struct stk_shard_file *file = &set->files[number];
    const stoker_block *each = file->blocks.each;
    const uint64_t begin = set->records[id * set->part_count].offset;
    const bool is_first = id == 0 || set->records[(id - 1) * set->part_count].file != number;
    if (is_first || (*block + 1 < file->blocks.count && begin >= each[*block + 1].first_byte)) {
        *block += is_first ? 0 : 1;
        set->block_first[before + *block] = id;
    }
    return end <= each[*block + 1].first_byte;
}

static int load_parts(struct stk_shard_set *set, const struct stk_shard_opening *opening,
                      uint32_t number, const uint8_t *index, uint64_t first, uint64_t before)
{
    const struct stk_shard_file *file = &set->files[number];
    const struct stk_shard_header *header = &file->header;
    struct stk_shard_record *to = set->records + first * set->part_count;
    uint64_t at = stk_shard_parts_at(header);
    uint64_t free_at = stk_shard_parts_begin(header);
    uint64_t block = 0;
    for (uint64_t i = 0; i < header->count; i++) {
        for (uint32_t p = 0; p < set->part_count; p++, at += STK_SHARD_PART_BYTES) {
            struct stk_shard_decoder *decoder = set->decoder_of[p];
            struct stk_shard_part part;
            const char *what = NULL;
            const int rc =
                stk_shard_part_load(&part, index + at, header, &decoder->field, &free_at, &what);
            if (rc != STOKER_OK)
                return stk_shard_refuse(opening, file, rc, header->index_at + at, what);
            decoder->codecs |= 1U << part.codec;
            *to++ = (struct stk_shard_record){ .offset = part.offset,
                                               .bytes = (uint32_t)part.bytes,
                                               .sum = part.sum,
                                               .file = number,
                                               .codec = part.codec };
        }
        if (header->block_count > 0 &&
            !is_in_block(set, number, before, first + i, free_at, &block))
            return stk_shard_refuse(opening, file, STOKER_EFORMAT, header->index_at + at,
                                    "a sample that does not lie in one block");
    }
    return header->block_count == 0 || block + 1 == header->block_count
               ? STOKER_OK
               : stk_shard_refuse(opening, file, STOKER_EFORMAT, header->index_at,
                                  "a block without samples");
}

static int load_words(struct stk_shard_set *set, const struct stk_shard_opening *opening,
                      uint32_t number, const uint8_t *index, uint64_t first)
{
    const struct stk_shard_file *file = &set->files[number];
    uint64_t at = stk_shard_words_at(&file->header);
    for (uint64_t i = first; i < first + file->header.count; i++)
        for (uint32_t f = 0; f < set->field_count; f++) {
            const struct stk_shard_field *field = &set->decoders[f].field;
            if (field->part != STOKER_NO_PART)
                continue;
            if (!stk_shard_word_load(&set->words[set->word_of[f] * set->count + i], index + at,
                                     field))
                return stk_shard_refuse(opening, file, STOKER_EFORMAT, file->header.index_at + at,
                                        "the index has a value that its field cannot have");
            at += STK_SHARD_WORD_BYTES;
        }
    return STOKER_OK;
}

/* One name per class of the label, each ended by a 0. */
static int load_names(struct stk_shard_set *set, const struct stk_shard_opening *opening)
{
    const size_t bytes = (size_t)set->files[0].header.names_bytes;
    const uint32_t classes = set->label < 0 ? 0 : set->decoders[set->label].field.class_count;
    uint32_t found = 0;
    size_t at = 0;
    if (bytes == 0)
        return STOKER_OK;
    set->name_at = stk_calloc((size_t)classes + 1, sizeof(*set->name_at));
    if (set->name_at == NULL)
        return stk_opening_refuse(&opening->base, STOKER_ENOMEM, "the names of the classes");
    for (; found < classes && at < bytes; found++) {
        const size_t length = strnlen(set->names + at, bytes - at);
        if (length == 0 || length == bytes - at)
            break;
        set->name_at[found] = (uint32_t)at;
        at += length + 1;
    }
    return found == classes && at == bytes
               ? STOKER_OK
               : stk_opening_refuse(&opening->base, STOKER_EFORMAT,
                                    "the names of the classes are not as many as the header says");
}

static int load_index(struct stk_shard_set *set, const struct stk_shard_opening *opening,
                      uint32_t number, uint64_t first, uint64_t before)
{
    const struct stk_shard_file *file = &set->files[number];
    const struct stk_shard_header *header = &file->header;
    const size_t bytes = (size_t)(header->file_bytes - header->index_at);
    uint8_t *index = stk_calloc(bytes, 1);
    if (index == NULL)
        return stk_shard_refuse(opening, file, STOKER_ENOMEM, header->index_at, "the index");
    int rc = stk_source_read(&file->source, index, bytes, header->index_at, opening->base.error);
    if (rc == STOKER_OK && stk_crc32c(0, index, bytes) != header->index_sum)
        rc = stk_shard_refuse(opening, file, STOKER_ECORRUPT, header->index_at,
                              "the index does not match its checksum");
    if (rc == STOKER_OK && number == 0)
        rc = load_fields(set, opening, index);
    else if (rc == STOKER_OK &&
             memcmp(index, set->fields, (size_t)set->field_count * STK_SHARD_FIELD_BYTES) != 0)
        rc = stk_shard_mismatch(opening, &set->files[0], file, "the fields");
    else if (rc == STOKER_OK && set->names != NULL &&
             memcmp(index + stk_shard_names_at(header), set->names, header->names_bytes) != 0)
        rc = stk_shard_mismatch(opening, &set->files[0], file, "the names of the classes");
    if (rc == STOKER_OK)
        rc = load_blocks(set, opening, number, index, before);
    if (rc == STOKER_OK)
        rc = load_parts(set, opening, number, index, first, before);
    if (rc == STOKER_OK)
        rc = load_words(set, opening, number, index, first);
    stk_free(index);
    return rc;
}

int stk_shard_load_indexes(struct stk_shard_set *set, const struct stk_shard_opening *opening)
{
    uint64_t first = 0;
    uint64_t before = 0; /* blocks */
    bool without = false;
    int rc = allocate(set, opening);
    for (uint32_t i = 0; rc == STOKER_OK && i < set->list.count; i++) {
        const struct stk_shard_header *header = &set->files[i].header;
        rc = load_index(set, opening, i, first, before);
        first += header->count;
        before += header->block_count;
        without = without || (header->count > 0 && header->block_count == 0);
    }
    set->block_count = without ? 0 : set->block_count;
    return rc == STOKER_OK ? load_names(set, opening) : rc;
}
