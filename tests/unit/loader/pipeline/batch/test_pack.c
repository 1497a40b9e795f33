/* test_pack.c - rows of different lengths, packed and padded, against a plain copy: all forms,
 * types and lengths. */
#include "loader/base/rng.h"
#include "loader/pipeline/batch/join_rows.h"
#include "support/leaks.h"

enum { ROWS = 9, LENGTH_MAX = 13, ENTRY_MAX = 24, PAGES = 8192 };

struct sample {
    uint8_t written[ROWS][LENGTH_MAX * ENTRY_MAX];
    uint64_t lengths[ROWS];
};

static _Alignas(64) uint8_t memory[PAGES];

static void make(struct sample *sample, const struct stk_slot_fields *fields, uint32_t rows,
                 uint64_t seed)
{
    const struct stk_slot_field *field = &fields->each[1];
    for (size_t i = 0; i < sizeof(memory); i++)
        memory[i] = (uint8_t)(stk_mix64(seed + i) >> 7);
    for (uint32_t row = 0; row < rows; row++) {
        sample->lengths[row] = seed % 3 == 0 ? 0 : stk_mix64(seed * 31 + row) % (LENGTH_MAX + 1);
        memcpy(sample->written[row], stk_slot_field_row(field, memory, row),
               sample->lengths[row] * field->entry_bytes);
    }
}

static uint64_t longest_of(const struct sample *sample, uint32_t rows)
{
    uint64_t longest = 0;
    for (uint32_t row = 0; row < rows; row++)
        longest = sample->lengths[row] > longest ? sample->lengths[row] : longest;
    return longest;
}

static uint64_t expected_width(const struct stk_pack *pack, uint64_t longest)
{
    if (pack->form == STOKER_FIELD_FORM_PADDED)
        return longest;
    if (pack->form == STOKER_FIELD_FORM_PADDED_MULTIPLE)
        return (longest + pack->multiple - 1) / pack->multiple * pack->multiple;
    return LENGTH_MAX;
}

static void expect_row(const struct stk_pack *pack, const struct stk_slot_field *field,
                       const struct sample *sample, uint32_t row, const uint8_t *at, uint64_t width)
{
    const size_t used = sample->lengths[row] * field->entry_bytes;
    cr_assert_eq(memcmp(at, sample->written[row], used), 0, "row %u", row);
    for (size_t i = used; i < width * field->entry_bytes; i += pack->pad_bytes)
        cr_assert_eq(memcmp(at + i, pack->pad, pack->pad_bytes), 0, "row %u byte %zu", row, i);
}

static void check(const struct stk_pack *pack, size_t entry_bytes, uint32_t rows, uint64_t seed)
{
    const struct stk_field_size sizes[] = {
        { .row_bytes = 3 },
        { .row_bytes = stk_pack_length_max(pack) * entry_bytes, .entry_bytes = entry_bytes },
        { .row_bytes = 5 },
    };
    struct stk_slot_fields fields;
    static struct sample sample;
    static uint8_t before[PAGES];
    cr_assert_eq(stk_slot_fields_init(&fields, sizes, 3, ROWS), 0);
    cr_assert_leq(fields.bytes, sizeof(memory));
    const struct stk_slot_field *field = &fields.each[1];
    make(&sample, &fields, rows, seed);
    memcpy(before, memory, sizeof(memory));
    const uint64_t said = stk_pack_rows(pack, field, memory, sample.lengths, rows);
    const int64_t *offsets = (const int64_t *)(const void *)(memory + field->offsets_at);
    const bool pads = pack->form != STOKER_FIELD_FORM_PACKED;
    const uint64_t width = pads ? expected_width(pack, longest_of(&sample, rows)) : 0;
    int64_t total = 0;
    cr_assert_eq(offsets[0], 0);
    for (uint32_t row = 0; row < rows; row++) {
        const uint64_t at = pads ? row * width : (uint64_t)total;
        expect_row(pack, field, &sample, row, memory + field->at + at * entry_bytes, width);
        total += (int64_t)sample.lengths[row];
        cr_assert_eq(offsets[row + 1], total);
    }
    cr_assert_eq(said, pads ? width : (uint64_t)total);
    /* The neighbors stay as they were. */
    cr_assert_eq(memcmp(memory, before, field->at), 0);
    const size_t end = fields.each[2].at;
    cr_assert_eq(memcmp(memory + end, before + end, field->offsets_at - end), 0);
    stk_slot_fields_destroy(&fields);
}

CleanTest(pack, every_form_matches_a_plain_copy)
{
    static const size_t elements[] = { 1, 2, 4, 8 };
    for (int form = STOKER_FIELD_FORM_PACKED; form <= STOKER_FIELD_FORM_PADDED_MAX; form++)
        for (size_t e = 0; e < 4; e++)
            for (uint32_t multiple = 1; multiple <= 8; multiple++)
                for (uint32_t rows = 0; rows <= ROWS; rows++)
                    for (uint64_t seed = 0; seed < 6; seed++) {
                        struct stk_pack pack = { .form = (stoker_field_form)form,
                                                 .length_max = LENGTH_MAX,
                                                 .multiple = multiple,
                                                 .entry_bytes = elements[e] * (1 + seed % 3),
                                                 .pad_bytes = elements[e] };
                        for (size_t i = 0; i < sizeof(pack.pad); i++)
                            pack.pad[i] = seed % 2 == 0 ? 0xAB : (uint8_t)(i + seed);
                        check(&pack, pack.entry_bytes, rows, seed);
                    }
}

/* A batch that ends in an error is packed as well: whatever a lost row left behind must do no
 * harm. */
CleanTest(pack, a_length_that_cannot_be_counts_as_none)
{
    const struct stk_field_size size = { .row_bytes = LENGTH_MAX, .entry_bytes = 1 };
    const struct stk_pack pack = {
        .length_max = LENGTH_MAX, .multiple = 1, .entry_bytes = 1, .pad_bytes = 1
    };
    const uint64_t lengths[] = { 3, UINT64_MAX, LENGTH_MAX + 1, 2 };
    struct stk_slot_fields fields;
    cr_assert_eq(stk_slot_fields_init(&fields, &size, 1, 4), 0);
    cr_assert_eq(stk_pack_rows(&pack, &fields.each[0], memory, lengths, 4), 5U);
    stk_slot_fields_destroy(&fields);
}

/* Wider, narrower and equally wide, in place, over several blocks. */
CleanTest(pack, types_change_in_place)
{
    static const struct {
        stoker_dtype from, to;
    } pairs[] = { { STOKER_DTYPE_UINT16, STOKER_DTYPE_INT64 },
                  { STOKER_DTYPE_FLOAT64, STOKER_DTYPE_FLOAT16 },
                  { STOKER_DTYPE_INT32, STOKER_DTYPE_FLOAT32 },
                  { STOKER_DTYPE_UINT8, STOKER_DTYPE_INT16 } };
    static const size_t counts[] = { 0, 1, 7, 511, 512, 513, 1500 };
    static _Alignas(64) uint8_t place[3 * 1500 * 8], before[3 * 1500 * 8], expected[3 * 1500 * 8];
    for (size_t p = 0; p < sizeof(pairs) / sizeof(pairs[0]); p++)
        for (size_t c = 1; c < sizeof(counts) / sizeof(counts[0]); c++) {
            const size_t count = counts[c];
            const struct stk_retype retype = {
                .convert = stk_elements_choose(pairs[p].from, pairs[p].to),
                .from_bytes = stoker_dtype_bytes(pairs[p].from),
                .to_bytes = stoker_dtype_bytes(pairs[p].to),
            };
            const size_t widest =
                retype.from_bytes > retype.to_bytes ? retype.from_bytes : retype.to_bytes;
            const struct stk_slot_field field = { .stride_bytes = count * widest };
            for (size_t i = 0; i < sizeof(place); i++)
                place[i] = (uint8_t)(stk_mix64(i + p) >> 9 & 63U); /* plain numbers, no NaN */
            memcpy(before, place, sizeof(place));
            for (uint32_t row = 0; row < 3; row++)
                retype.convert(before + row * field.stride_bytes,
                               expected + row * count * retype.to_bytes, count);
            stk_retype_rows(&retype, &field, place, count, 3, NULL);
            cr_assert_eq(memcmp(place, expected, 3 * count * retype.to_bytes), 0,
                         "pair %zu, %zu elements", p, count);
        }
}

/* Rows of places laid end to end against the rule, with rows that end early, places that do not
 * rise and places beyond the row. */
CleanTest(pack, places_are_joined)
{
    enum { LENGTH = 20, MOST = 8, BATCH = 6 };
    for (size_t width = 4; width <= 8; width += 4)
        for (uint64_t seed = 0; seed < 400; seed++) {
            const struct stk_pack pack = { .form = STOKER_FIELD_FORM_JOINED,
                                           .length_max = MOST,
                                           .row_length = LENGTH,
                                           .multiple = 1,
                                           .entry_bytes = width,
                                           .pad_bytes = width };
            const struct stk_field_size sizes[] = {
                { .row_bytes = stk_pack_length_max(&pack) * width, .entry_bytes = width },
                { .row_bytes = 64 },
            };
            const uint32_t rows = (uint32_t)(seed % (BATCH + 1));
            struct stk_slot_fields fields;
            uint64_t lengths[BATCH];
            int64_t expected[BATCH * (MOST + 2) + 1] = { 0 }, starts[BATCH + 1] = { 0 };
            uint64_t count = 1;
            cr_assert_eq(stk_slot_fields_init(&fields, sizes, 2, BATCH), 0);
            memset(memory, 0x5A, sizeof(memory));
            for (uint32_t row = 0; row < rows; row++) {
                int64_t last = 0;
                lengths[row] = stk_mix64(seed * 7 + row) % (MOST + 1);
                for (uint64_t i = 0; i < lengths[row]; i++) {
                    /* As documents have them, or anything. */
                    const int64_t place = seed % 2 == 0 ? (int64_t)(i * (2 + row % 2))
                                                        : (int64_t)(stk_mix64(seed + i) % 31) - 4;
                    memcpy(stk_slot_field_row(&fields.each[0], memory, row) + i * width, &place,
                           width);
                    if (place > last && place <= LENGTH)
                        expected[count++] = row * LENGTH + (last = place);
                }
                if (last < LENGTH)
                    expected[count++] = (row + 1) * LENGTH;
                starts[row + 1] = (int64_t)count - 1;
            }
            count = rows == 0 ? 0 : count;
            cr_assert_eq(stk_pack_rows(&pack, &fields.each[0], memory, lengths, rows), count);
            for (uint64_t i = 0; i < count; i++) {
                int64_t found = 0;
                memcpy(&found, memory + fields.each[0].at + i * width, width);
                cr_assert_eq(found, expected[i], "%d of seed %d", (int)i, (int)seed);
            }
            cr_assert_arr_eq(memory + fields.each[0].offsets_at, starts,
                             (rows + 1) * sizeof(starts[0]));
            cr_assert_eq(memory[fields.each[1].at], 0x5A);
            stk_slot_fields_destroy(&fields);
        }
}
