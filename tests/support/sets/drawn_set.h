/* drawn_set.h - a data set whose make() draws all fields, as one that reads by itself would: it
 * blocks now and then.
 *
 *   "row"   8 x uint8, drawn          "text"  0..9 bytes, whose number is drawn, too          "label"  int64, the id
 */
#ifndef STK_TEST_DRAWN_SET_H
#define STK_TEST_DRAWN_SET_H

#include <stdio.h>
#include <stoker/stoker.h>
#include <string.h>
#include <time.h>

enum { STK_DRAWN_COUNT = 41, STK_DRAWN_TEXT = 9 };

/* What goes wrong; UINT64_MAX = no sample. */
struct stk_drawn_set {
    uint64_t broken; /* make() fails for it, with this code: */
    int code;
    uint32_t *failures; /* as often; NULL = always */
    uint64_t overlong;  /* its text is longer than allowed */
};

static inline int stk_drawn_describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(*out),
                                  .count = STK_DRAWN_COUNT,
                                  .field_count = 3 };
    return STOKER_OK;
}

static inline int stk_drawn_field(const void *self, uint32_t field, stoker_field_info *out)
{
    static const stoker_field_info fields[] = {
        { .name = "row", .dtype = STOKER_DTYPE_UINT8, .rank = 1, .shape = { 8 } },
        { .name = "text",
          .kind = STOKER_FIELD_KIND_BYTES,
          .dtype = STOKER_DTYPE_UINT8,
          .rank = 1,
          .shape = { STK_DRAWN_TEXT },
          .varies = true },
        { .name = "label", .dtype = STOKER_DTYPE_INT64 },
    };
    (void)self;
    *out = fields[field];
    out->struct_size = sizeof(*out);
    out->part = STOKER_NO_PART;
    return STOKER_OK;
}

static inline int stk_drawn_make(const void *self, uint64_t id, stoker_row *rows, stoker_rng *rng,
                                 stoker_error *error)
{
    const struct stk_drawn_set *set = self;
    const uint64_t drawn = stoker_rng_u64(rng);
    const uint64_t length = stoker_rng_below(rng, STK_DRAWN_TEXT + 1);
    const int64_t label = (int64_t)id;
    nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
    if (id == set->broken && (set->failures == NULL || *set->failures > 0)) {
        (void)snprintf(error->message, sizeof(error->message), "it is gone");
        if (set->failures != NULL)
            (*set->failures)--;
        return set->code;
    }
    memcpy(rows[0].data, &drawn, sizeof(drawn));
    memset(rows[1].data, (int)(drawn & 0xFF), length);
    rows[1].length = id == set->overlong ? STK_DRAWN_TEXT + 1 : length;
    memcpy(rows[2].data, &label, sizeof(label));
    return STOKER_OK;
}

/* *set must outlive the data set. Returns NULL if it cannot be made. */
static inline stoker_dataset *stk_drawn_open(struct stk_drawn_set *set)
{
    static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                            .name = "drawn",
                                            .describe = stk_drawn_describe,
                                            .field = stk_drawn_field,
                                            .make = stk_drawn_make };
    stoker_dataset *dataset = NULL;
    *set =
        (struct stk_drawn_set){ .broken = UINT64_MAX, .code = STOKER_EIO, .overlong = UINT64_MAX };
    (void)stoker_dataset_create(&dataset, &ops, set, NULL);
    return dataset;
}

#endif
