/* join_rows.c - see join_rows.h. */
#include "loader/pipeline/batch/join_rows.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

static uint64_t round_up(uint64_t length, uint64_t multiple)
{
    return (length + multiple - 1) / multiple * multiple;
}

uint64_t stk_pack_length_max(const struct stk_pack *pack)
{
    if (pack->form == STOKER_FIELD_FORM_JOINED) /* a row's end more, and the first 0 */
        return pack->length_max + 2;
    return pack->form == STOKER_FIELD_FORM_PADDED_MULTIPLE
               ? round_up(pack->length_max, pack->multiple)
               : pack->length_max;
}

/* Entries of a padded row. */
static uint64_t padded_length(const struct stk_pack *pack, uint64_t longest)
{
    switch (pack->form) {
    case STOKER_FIELD_FORM_PADDED:
        return longest;
    case STOKER_FIELD_FORM_PADDED_MULTIPLE:
        return round_up(longest, pack->multiple);
    default:
        return pack->length_max;
    }
}

/* Fill [at, end) with the element; both are multiples of it. */
static void fill_padding(const struct stk_pack *pack, uint8_t *at, const uint8_t *end)
{
    bool uniform = true; /* as 0, and every byte, is */
    for (size_t i = 1; i < pack->pad_bytes; i++)
        uniform = uniform && pack->pad[i] == pack->pad[0];
    if (uniform) {
        memset(at, pack->pad[0], (size_t)(end - at));
        return;
    }
    for (; at < end; at += pack->pad_bytes)
        memcpy(at, pack->pad, pack->pad_bytes);
}

enum { BLOCK = 512, ELEMENT_BYTES_MAX = 8 };

/* Elements first .. first + count - 1 of a row. */
static void convert_block(const struct stk_retype *retype, const uint8_t *block, uint8_t *out,
                          size_t first, size_t count)
{
    float values[BLOCK];
    if (retype->to_float == NULL) {
        retype->convert(block, out, count);
        return;
    }
    retype->to_float(block, values, count);
    uint32_t place = (uint32_t)(first % retype->period);
    for (size_t i = 0; i < count; i++) {
        values[i] = fmaf(values[i], retype->factor[place], retype->bias[place]);
        place = place + 1 < retype->period ? place + 1 : 0;
    }
    retype->convert(values, out, count);
}

void stk_retype_elements(const struct stk_retype *retype, uint8_t *at, size_t count)
{
    _Alignas(64) uint8_t block[BLOCK * ELEMENT_BYTES_MAX];
    const bool grows = retype->to_bytes > retype->from_bytes; /* then from the end */
    for (size_t done = 0; done < count;) {
        const size_t some = count - done < BLOCK ? count - done : BLOCK;
        const size_t first = grows ? count - done - some : done;
        memcpy(block, at + first * retype->from_bytes, some * retype->from_bytes);
        convert_block(retype, block, at + first * retype->to_bytes, first, some);
        done += some;
    }
}

void stk_retype_rows(const struct stk_retype *retype, const struct stk_slot_field *field,
                     uint8_t *memory, size_t elements, uint32_t rows, const uint8_t *fresh)
{
    const size_t row_bytes = elements * retype->to_bytes;
    for (uint32_t row = 0; row < rows; row++) {
        uint8_t *at = stk_slot_field_row(field, memory, row);
        if (fresh != NULL && fresh[row] == 0)
            continue;
        stk_retype_elements(retype, at, elements);
        if (row_bytes < field->stride_bytes)
            memmove(memory + field->at + row * row_bytes, at, row_bytes);
    }
}

static int64_t load_offset(const uint8_t *at, size_t entry_bytes)
{
    int64_t wide;
    int32_t narrow;
    if (entry_bytes == sizeof(wide)) {
        memcpy(&wide, at, sizeof(wide));
        return wide;
    }
    memcpy(&narrow, at, sizeof(narrow));
    return narrow;
}

static void store_offset(uint8_t *at, size_t entry_bytes, uint64_t value)
{
    memcpy(at, &value, entry_bytes); /* little-endian: the low bytes */
}

/* Join one row: its numbers that rise become places in the batch. Returns the entries in use, of
 * which there were `used`. Each number is read before the one in front of it is written, since that
 * may take its place. */
static uint64_t join_row(const struct stk_pack *pack, uint8_t *base, const uint8_t *from,
                         uint64_t length, uint64_t begin, uint64_t used)
{
    const size_t bytes = pack->entry_bytes;
    uint64_t last = 0;
    int64_t next = length > 0 ? load_offset(from, bytes) : 0;
    for (uint64_t i = 0; i < length; i++) {
        const int64_t place = next;
        next = i + 1 < length ? load_offset(from + (i + 1) * bytes, bytes) : 0;
        if (place <= (int64_t)last || (uint64_t)place > pack->row_length)
            continue;
        last = (uint64_t)place;
        store_offset(base + used++ * bytes, bytes, begin + last);
    }
    if (last < pack->row_length)
        store_offset(base + used++ * bytes, bytes, begin + pack->row_length);
    return used;
}

static uint64_t join_rows(const struct stk_pack *pack, const struct stk_slot_field *field,
                          uint8_t *memory, const uint64_t *lengths, uint32_t rows)
{
    int64_t *offsets = (int64_t *)(void *)(memory + field->offsets_at);
    uint8_t *base = memory + field->at;
    uint64_t used = 1;
    offsets[0] = 0;
    for (uint32_t row = 0; row < rows; row++) {
        /* A row's own room has two entries more than it uses, so that the rows before never reach
         * its second number. */
        const uint64_t length = lengths[row] <= pack->length_max ? lengths[row] : 0;
        used = join_row(pack, base, base + row * field->stride_bytes, length,
                        row * pack->row_length, used);
        offsets[row + 1] = (int64_t)used - 1;
    }
    if (rows > 0)
        store_offset(base, pack->entry_bytes, 0);
    return rows > 0 ? used : 0;
}

uint64_t stk_pack_rows(const struct stk_pack *pack, const struct stk_slot_field *field,
                       uint8_t *memory, const uint64_t *lengths, uint32_t rows)
{
    int64_t *offsets = (int64_t *)(void *)(memory + field->offsets_at);
    uint8_t *base = memory + field->at;
    uint64_t total = 0, longest = 0;
    if (pack->form == STOKER_FIELD_FORM_JOINED)
        return join_rows(pack, field, memory, lengths, rows);
    offsets[0] = 0;
    for (uint32_t row = 0; row < rows; row++) {
        /* A lost row of a batch that ends in an error may have any length. */
        const uint64_t length = lengths[row] <= pack->length_max ? lengths[row] : 0;
        total += length;
        longest = length > longest ? length : longest;
        offsets[row + 1] = (int64_t)total;
    }
    const bool pads = stk_pack_pads(pack);
    const uint64_t width = pads ? padded_length(pack, longest) : 0;
    assert(width * pack->entry_bytes <= field->stride_bytes);
    for (uint32_t row = 0; row < rows; row++) {
        const size_t used = (size_t)(offsets[row + 1] - offsets[row]) * pack->entry_bytes;
        const size_t at = (pads ? row * width : (uint64_t)offsets[row]) * pack->entry_bytes;
        if (at != row * field->stride_bytes)
            memmove(base + at, base + row * field->stride_bytes, used);
        if (pads)
            fill_padding(pack, base + at + used, base + at + width * pack->entry_bytes);
    }
    return pads ? width : total;
}
