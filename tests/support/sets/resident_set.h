/* resident_set.h - a data set of a user's own whose rows all lie in memory, which says so in
 * info.rows or leaves it to locate(), as the test wishes.
 *
 * Row byte `at` of sample i is stk_set_byte(i, at), its label stk_set_label(i).
 */
#ifndef STK_TEST_RESIDENT_SET_H
#define STK_TEST_RESIDENT_SET_H

#include <stdatomic.h>

#include "support/runs/scenario.h"

struct stk_resident_set {
    stoker_dataset *dataset;
    uint32_t count;
    uint32_t row_bytes;
    stoker_dtype label_dtype;
    bool tells_rows;      /* info.rows is set */
    uint32_t label_turns; /* hashes that each label costs: makes a batch slow to make */
    uint8_t *rows;
    stoker_dataset_ops ops;
    _Atomic uint64_t located; /* samples that locate() was asked for */
};

static inline float stk_resident_value(uint64_t id)
{
    return 0.5F + (float)stk_set_label(id);
}

static inline int stk_resident_describe(const void *self, stoker_dataset_info *out)
{
    const struct stk_resident_set *set = self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(stoker_dataset_info),
                                  .count = set->count,
                                  .dtype = STOKER_DTYPE_UINT8,
                                  .rank = 1,
                                  .shape = { set->row_bytes },
                                  .label_dtype = set->label_dtype,
                                  .rows = set->tells_rows ? set->rows : NULL };
    return STOKER_OK;
}

static inline int stk_resident_locate(const void *self, const uint64_t *ids, uint32_t count,
                                      stoker_part *out, stoker_error *error)
{
    const struct stk_resident_set *set = self;
    (void)error;
    for (uint32_t i = 0; i < count; i++) {
        out[i] = (stoker_part){ .extent.memory = set->rows + ids[i] * set->row_bytes,
                                .extent.bytes = set->row_bytes };
    }
    /* The test's own count, no part of what the set shows. */
    atomic_fetch_add(&((struct stk_resident_set *)self)->located, count);
    return STOKER_OK;
}

static inline int stk_resident_values(const void *self, uint32_t field, const uint64_t *ids,
                                      uint32_t count, void *out)
{
    (void)field;
    const struct stk_resident_set *set = self;
    volatile uint64_t turned = 1;
    for (uint32_t turn = 0; turn < set->label_turns * count; turn++)
        turned = stk_mix64(turned);
    for (uint32_t i = 0; i < count; i++)
        if (set->label_dtype == STOKER_DTYPE_INT64)
            ((int64_t *)out)[i] = stk_set_label(ids[i]);
        else
            ((float *)out)[i] = stk_resident_value(ids[i]);
    return STOKER_OK;
}

/* The caller has set count, row_bytes, label_dtype and what describe() is to report. */
static inline bool stk_resident_set_open(struct stk_resident_set *set)
{
    set->ops = (stoker_dataset_ops){ .struct_size = sizeof(stoker_dataset_ops),
                                     .name = "resident",
                                     .describe = stk_resident_describe,
                                     .locate = stk_resident_locate,
                                     .values = stk_resident_values };
    set->rows = malloc((size_t)set->count * set->row_bytes);
    if (set->rows == NULL)
        return false;
    for (uint32_t id = 0; id < set->count; id++)
        for (uint32_t at = 0; at < set->row_bytes; at++)
            set->rows[(size_t)id * set->row_bytes + at] = stk_set_byte(id, at);
    return stoker_dataset_create(&set->dataset, &set->ops, set, NULL) == STOKER_OK;
}

static inline void stk_resident_set_close(struct stk_resident_set *set)
{
    stoker_dataset_close(&set->dataset);
    free(set->rows);
}

/* Returns true if a batch as stored, with labels of int64, matches its ids. */
static inline bool stk_resident_set_matches(const struct stk_resident_set *set,
                                            const stoker_batch *batch)
{
    const uint8_t *images = batch->images.data;
    const int64_t *labels = batch->labels.data;
    for (uint32_t row = 0; row < batch->count; row++)
        if (batch->ids[row] >= set->count || labels[row] != stk_set_label(batch->ids[row]) ||
            memcmp(images + (size_t)row * set->row_bytes,
                   set->rows + batch->ids[row] * set->row_bytes, set->row_bytes) != 0)
            return false;
    return true;
}

#endif
