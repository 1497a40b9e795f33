/* label_column.c - see label_column.h. */
#include "datasets/label_column.h"

#include <stoker/error.h>

#include "loader/base/memory/memory.h"

static int64_t widest(uint64_t count, int64_t (*label)(const void *self, uint64_t id),
                      const void *self)
{
    int64_t most = 0;
    for (uint64_t id = 0; id < count; id++) {
        const int64_t value = label(self, id);
        if (value < 0)
            return INT64_MAX;
        most = value > most ? value : most;
    }
    return most;
}

int stk_label_column_make(struct stk_label_column *column, uint64_t count,
                          int64_t (*label)(const void *self, uint64_t id), const void *self)
{
    const int64_t most = widest(count, label, self);
    *column = (struct stk_label_column){ .narrow = NULL };
    if (most > UINT16_MAX)
        return STOKER_OK;
    void *memory = stk_calloc((size_t)count, most > UINT8_MAX ? sizeof(uint16_t) : sizeof(uint8_t));
    if (memory == NULL)
        return STOKER_ENOMEM;
    if (most > UINT8_MAX) {
        column->wide = memory;
        for (uint64_t id = 0; id < count; id++)
            column->wide[id] = (uint16_t)label(self, id);
    } else {
        column->narrow = memory;
        for (uint64_t id = 0; id < count; id++)
            column->narrow[id] = (uint8_t)label(self, id);
    }
    return STOKER_OK;
}

void stk_label_column_free(struct stk_label_column *column)
{
    stk_free(column->narrow);
    stk_free(column->wide);
    *column = (struct stk_label_column){ .narrow = NULL };
}

bool stk_label_column_take(const struct stk_label_column *column, const uint64_t *ids,
                           uint32_t count, int64_t *out)
{
    if (column->narrow != NULL) {
        for (uint32_t i = 0; i < count; i++)
            out[i] = column->narrow[ids[i]];
    } else if (column->wide != NULL) {
        for (uint32_t i = 0; i < count; i++)
            out[i] = column->wide[ids[i]];
    }
    return column->narrow != NULL || column->wide != NULL;
}
