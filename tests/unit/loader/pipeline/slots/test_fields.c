/* How the fields of a batch lie in a slot. */
#include <criterion/criterion.h>
#include <stoker/error.h>

#include "loader/base/memory/memory.h"
#include "loader/pipeline/slots/fields.h"

Test(fields, lie_one_after_the_other_on_cache_lines)
{
    static const struct stk_field_size sizes[] = {
        { .row_bytes = 784 },
        { .row_bytes = 8 },
        { .row_bytes = 1000, .entry_bytes = 4 },
        { .row_bytes = 1 },
        { .row_bytes = 17, .entry_bytes = 1 },
    };
    struct stk_slot_fields fields;
    cr_assert_eq(stk_slot_fields_init(&fields, sizes, 5, 3), 0);
    size_t end = 0;
    size_t lengths = 0;
    for (uint32_t i = 0; i < 5; i++) {
        const struct stk_slot_field *field = &fields.each[i];
        cr_assert_eq(field->at % STK_CACHE_LINE, 0);
        cr_assert_geq(field->at, end);
        cr_assert_lt(field->at, end + STK_CACHE_LINE);
        cr_assert_eq(field->stride_bytes, sizes[i].row_bytes);
        end = field->at + 3 * sizes[i].row_bytes;
        if (field->entry_bytes > 0) {
            cr_assert_eq(field->lengths_at, lengths);
            lengths += 3;
        }
    }
    cr_assert_eq(fields.each[0].at, 0);
    cr_assert_eq(fields.lengths, 6);
    cr_assert_eq(fields.bytes % STK_CACHE_LINE, 0);
    cr_assert_geq(fields.bytes, end);
    uint8_t memory[1];
    uint64_t numbers[6];
    cr_assert_eq(stk_slot_field_row(&fields.each[1], memory, 2) - memory,
                 (ptrdiff_t)fields.each[1].at + 16);
    cr_assert_eq(stk_slot_field_lengths(&fields.each[4], numbers), &numbers[3]);
    stk_slot_fields_destroy(&fields);
    cr_assert_null(fields.each);
}

Test(fields, that_cannot_be_counted_are_refused)
{
    static const struct stk_field_size sizes[] = { { .row_bytes = SIZE_MAX / 4 - 100 },
                                                   { .row_bytes = SIZE_MAX / 4 - 100 },
                                                   { .row_bytes = SIZE_MAX / 3 } };
    struct stk_slot_fields fields;
    cr_assert_eq(stk_slot_fields_init(&fields, sizes, 1, 1), 0);
    stk_slot_fields_destroy(&fields);
    cr_assert_eq(stk_slot_fields_init(&fields, sizes, 3, 1), STOKER_ENOMEM);
    cr_assert_eq(stk_slot_fields_init(&fields, sizes, 1, 8), STOKER_ENOMEM);
    cr_assert_null(fields.each);
}
