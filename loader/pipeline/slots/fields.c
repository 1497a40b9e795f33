/* fields.c - see fields.h. */
#include "loader/pipeline/slots/fields.h"

#include <assert.h>
#include <stoker/error.h>

#include "loader/base/memory/memory.h"

/* Add the rows of one field to *bytes, rounded up to a cache line. Returns 0 or STOKER_ENOMEM. */
static int add_rows(size_t *bytes, size_t row_bytes, uint32_t batch_size)
{
    size_t rows;
    if (__builtin_mul_overflow(row_bytes, (size_t)batch_size, &rows) || rows > SIZE_MAX / 4 ||
        *bytes > SIZE_MAX / 4)
        return STOKER_ENOMEM;
    *bytes += (rows + STK_CACHE_LINE - 1) / STK_CACHE_LINE * STK_CACHE_LINE;
    return 0;
}

int stk_slot_fields_init(struct stk_slot_fields *fields, const struct stk_field_size *sizes,
                         uint32_t count, uint32_t batch_size)
{
    assert(count >= 1);
    *fields = (struct stk_slot_fields){ .count = count };
    fields->each = stk_calloc(count, sizeof(fields->each[0]));
    int rc = fields->each == NULL ? STOKER_ENOMEM : 0;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        assert(sizes[i].row_bytes >= 1);
        fields->each[i] = (struct stk_slot_field){
            .at = fields->bytes,
            .stride_bytes = sizes[i].row_bytes,
            .entry_bytes = sizes[i].entry_bytes,
            .lengths_at = fields->lengths,
        };
        if (sizes[i].entry_bytes > 0)
            fields->lengths += batch_size;
        rc = add_rows(&fields->bytes, sizes[i].row_bytes, batch_size);
    }
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        if (sizes[i].entry_bytes == 0)
            continue;
        fields->each[i].offsets_at = fields->bytes;
        rc = add_rows(&fields->bytes, sizeof(int64_t), batch_size + STK_OFFSETS_MORE);
    }
    if (rc < 0)
        stk_slot_fields_destroy(fields);
    return rc;
}

void stk_slot_fields_destroy(struct stk_slot_fields *fields)
{
    stk_free(fields->each);
    *fields = (struct stk_slot_fields){ 0 };
}
