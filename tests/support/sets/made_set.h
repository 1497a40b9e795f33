/* made_set.h - a data set of a user's own, each sample of the kind that the test asks for.
 *
 *   RAW      lies in the file as its row        MEMORY   lies in memory as its row
 *   ENCODED  lies in the file, each byte + 1    DRAWN    has no bytes: made from its id
 *   SHORT    raw, but a byte too short          BROKEN   its codec always fails, in words that clear a terminal
 *   STUB     the same, in memory
 *
 * Row byte `at` of sample i is stk_set_byte(i, at), whatever the kind.
 */
#ifndef STK_TEST_MADE_SET_H
#define STK_TEST_MADE_SET_H

#include "support/files/reader_file.h"
#include "support/runs/scenario.h"

enum stk_made_kind {
    STK_MADE_RAW,
    STK_MADE_ENCODED,
    STK_MADE_SHORT,
    STK_MADE_STUB,
    STK_MADE_MEMORY,
    STK_MADE_DRAWN,
    STK_MADE_BROKEN
};

typedef enum stk_made_kind stk_made_kind_of(uint64_t id);

/* Good samples of every kind in turn. */
static inline enum stk_made_kind stk_made_every_kind(uint64_t id)
{
    static const enum stk_made_kind kinds[] = { STK_MADE_RAW, STK_MADE_ENCODED, STK_MADE_MEMORY,
                                                STK_MADE_DRAWN };
    return kinds[id % 4];
}

/* The same, but each tenth is broken. */
static inline enum stk_made_kind stk_made_some_broken(uint64_t id)
{
    return id % 10 == 4 ? STK_MADE_BROKEN : stk_made_every_kind(id);
}

struct stk_made_set {
    stoker_dataset *dataset;
    uint32_t count;
    uint32_t row_bytes;
    stk_made_kind_of *kind_of;
    bool lost;          /* locate fails for the last sample */
    bool hides_files;   /* describe says that there are none */
    uint64_t bytes_max; /* if not 0: what describe says instead of the truth */
    FILE *file;
    uint8_t *rows; /* all of them, in memory */
    stoker_dataset_info info;
};

static inline int stk_made_decode(const void *self, void *scratch, const stoker_encoded *in,
                                  const stoker_decoded *out, stoker_error *error)
{
    uint8_t *row = out->rows[0].data;
    const size_t row_bytes = out->rows[0].bytes_max;
    (void)scratch;
    (void)error;
    (void)self;
    if (in->size > 0 && in->size != row_bytes)
        return STOKER_EFORMAT;
    for (uint32_t at = 0; at < row_bytes; at++)
        row[at] = in->size > 0 ? (uint8_t)(in->bytes[at] - 1U) : stk_set_byte(in->sample, at);
    return STOKER_OK;
}

static inline int stk_made_break(const void *self, void *scratch, const stoker_encoded *in,
                                 const stoker_decoded *out, stoker_error *error)
{
    void *row = out->rows[0].data;
    const size_t row_bytes = out->rows[0].bytes_max;
    (void)self;
    (void)scratch;
    memset(row, 0xEE, row_bytes);
    (void)snprintf(error->message, sizeof(error->message),
                   "sample %u is broken\x1b[2J, and %0300d is why", (unsigned)in->sample, 0);
    return STOKER_ECORRUPT;
}

static const stoker_codec stk_made_codec = { .struct_size = sizeof(stoker_codec),
                                             .name = "made",
                                             .decode = stk_made_decode };
static const stoker_codec stk_made_breaker = { .struct_size = sizeof(stoker_codec),
                                               .name = "breaker",
                                               .decode = stk_made_break };

static inline int stk_made_describe(const void *self, stoker_dataset_info *out)
{
    const struct stk_made_set *set = self;
    *out = set->info;
    return STOKER_OK;
}

static inline int stk_made_locate(const void *self, const uint64_t *ids, uint32_t count,
                                  stoker_part *out, stoker_error *error)
{
    const struct stk_made_set *set = self;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t id = ids[i];
        const enum stk_made_kind kind = set->kind_of(id);
        if (set->lost && id + 1 == set->count) {
            *error = (stoker_error){ .code = STOKER_EFORMAT,
                                     .stage = STOKER_STAGE_LOCATE,
                                     .message = "it is\nlost" };
            return STOKER_EFORMAT;
        }
        out[i] = (stoker_part){ .tag = 0 };
        out[i].codec = kind == STK_MADE_ENCODED || kind == STK_MADE_DRAWN ? &stk_made_codec
                       : kind == STK_MADE_BROKEN                          ? &stk_made_breaker
                                                                          : NULL;
        if (kind == STK_MADE_MEMORY || kind == STK_MADE_STUB)
            out[i].extent.memory = set->rows + id * set->row_bytes;
        if (kind != STK_MADE_DRAWN) {
            out[i].extent.offset = id * set->row_bytes;
            out[i].extent.bytes =
                set->row_bytes - (kind == STK_MADE_SHORT || kind == STK_MADE_STUB);
        }
    }
    return STOKER_OK;
}

static inline int stk_made_values(const void *self, uint32_t field, const uint64_t *ids,
                                  uint32_t count, void *out)
{
    (void)self;
    (void)field;
    for (uint32_t i = 0; i < count; i++)
        ((int64_t *)out)[i] = stk_set_label(ids[i]);
    return STOKER_OK;
}

static inline int stk_made_file(const void *self, uint32_t file, stoker_file *out)
{
    const struct stk_made_set *set = self;
    (void)file;
    *out = (stoker_file){ .path = "made.bin",
                          .fd = fileno(set->file),
                          .size = (uint64_t)set->count * set->row_bytes };
    return STOKER_OK;
}

static const stoker_dataset_ops stk_made_ops = { .struct_size = sizeof(stoker_dataset_ops),
                                                 .name = "made",
                                                 .describe = stk_made_describe,
                                                 .locate = stk_made_locate,
                                                 .values = stk_made_values,
                                                 .file = stk_made_file };

static inline bool stk_made_write(struct stk_made_set *set)
{
    set->file = tmpfile();
    set->rows = malloc((size_t)set->count * set->row_bytes);
    if (set->file == NULL || set->rows == NULL)
        return false;
    for (uint32_t id = 0; id < set->count; id++)
        for (uint32_t at = 0; at < set->row_bytes; at++) {
            const uint8_t byte = stk_set_byte(id, at);
            set->rows[(size_t)id * set->row_bytes + at] = byte;
            (void)putc(set->kind_of(id) == STK_MADE_ENCODED ? (uint8_t)(byte + 1U) : byte,
                       set->file);
        }
    return fflush(set->file) == 0;
}

/* The caller has set count, row_bytes, kind_of and, if wanted, what is wrong. */
static inline bool stk_made_set_open(struct stk_made_set *set)
{
    set->info = (stoker_dataset_info){ .struct_size = sizeof(stoker_dataset_info),
                                       .count = set->count,
                                       .dtype = STOKER_DTYPE_UINT8,
                                       .rank = 1,
                                       .shape = { set->row_bytes },
                                       .label_dtype = STOKER_DTYPE_INT64,
                                       .file_count = set->hides_files ? 0 : 1,
                                       .encoded_bytes_max = set->row_bytes };
    if (set->bytes_max != 0)
        set->info.encoded_bytes_max = (uint32_t)set->bytes_max;
    return stk_made_write(set) &&
           stoker_dataset_create(&set->dataset, &stk_made_ops, set, NULL) == STOKER_OK;
}

static inline void stk_made_set_close(struct stk_made_set *set)
{
    stoker_dataset_close(&set->dataset);
    fclose(set->file);
    free(set->rows);
}

/* Returns true if every row matches its id. */
static inline bool stk_made_set_matches(const struct stk_made_set *set, const stoker_batch *batch)
{
    const uint8_t *images = batch->images.data;
    const int64_t *labels = batch->labels.data;
    for (uint32_t row = 0; row < batch->count; row++) {
        if (labels[row] != stk_set_label(batch->ids[row]))
            return false;
        if (memcmp(images + (size_t)row * set->row_bytes,
                   set->rows + batch->ids[row] * set->row_bytes, set->row_bytes) != 0)
            return false;
    }
    return true;
}

#endif
