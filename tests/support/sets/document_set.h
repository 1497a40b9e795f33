/* document_set.h - a data set of documents: uint16 tokens, each of which says where it is.
 *
 *   token t of document d     (31 x d + t) % 65536
 *
 *   FILE     raw parts of one file, one after the other        CODED   the same, but only a codec may read them
 *   MEMORY   raw parts in memory                               MADE    made one by one
 */
#ifndef STK_TEST_DOCUMENT_SET_H
#define STK_TEST_DOCUMENT_SET_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stoker/stoker.h>

enum stk_document_kind {
    STK_DOCUMENTS_FILE,
    STK_DOCUMENTS_MEMORY,
    STK_DOCUMENTS_CODED,
    STK_DOCUMENTS_MADE,
    STK_DOCUMENT_KINDS
};

struct stk_document_set {
    enum stk_document_kind kind;
    uint64_t count;
    uint64_t *starts; /* [count + 1], in tokens */
    uint16_t *tokens;
    uint64_t longest;
    char path[64]; /* the file of FILE and CODED */
    int fd;
    stoker_codec codec;
};

static inline uint16_t stk_document_token(uint64_t document, uint64_t at)
{
    return (uint16_t)(31 * document + at);
}

static inline int stk_document_describe(const void *self, stoker_dataset_info *out)
{
    const struct stk_document_set *set = self;
    const bool files = set->kind == STK_DOCUMENTS_FILE || set->kind == STK_DOCUMENTS_CODED;
    out->count = set->count;
    out->field_count = 1;
    out->part_count = set->kind == STK_DOCUMENTS_MADE ? 0 : 1;
    out->file_count = files ? 1 : 0;
    out->encoded_bytes_max = files ? (uint32_t)(set->longest * sizeof(uint16_t)) : 0;
    return STOKER_OK;
}

static inline int stk_document_field(const void *self, uint32_t field, stoker_field_info *out)
{
    const struct stk_document_set *set = self;
    (void)field;
    out->name = "tokens";
    out->dtype = STOKER_DTYPE_UINT16;
    out->rank = 1;
    out->shape[0] = set->longest;
    out->varies = true;
    out->part = set->kind == STK_DOCUMENTS_MADE ? STOKER_NO_PART : 0;
    return STOKER_OK;
}

static inline int stk_document_locate(const void *self, const uint64_t *ids, uint32_t count,
                                      stoker_part *parts, stoker_error *error)
{
    const struct stk_document_set *set = self;
    (void)error;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t first = set->starts[ids[i]];
        parts[i] =
            (stoker_part){ .extent = { .bytes =
                                           (uint32_t)(2 * (set->starts[ids[i] + 1] - first)) } };
        if (set->kind == STK_DOCUMENTS_MEMORY)
            parts[i].extent.memory = set->tokens + first;
        else
            parts[i].extent.offset = 2 * first;
        if (set->kind == STK_DOCUMENTS_CODED)
            parts[i].codec = &set->codec;
    }
    return STOKER_OK;
}

static inline int stk_document_lengths(const void *self, uint32_t field, const uint64_t *ids,
                                       uint32_t count, uint64_t *out)
{
    const struct stk_document_set *set = self;
    (void)field;
    for (uint32_t i = 0; i < count; i++)
        out[i] = set->starts[ids[i] + 1] - set->starts[ids[i]];
    return STOKER_OK;
}

static inline int stk_document_file(const void *self, uint32_t file, stoker_file *out)
{
    const struct stk_document_set *set = self;
    (void)file;
    *out = (stoker_file){ .path = set->path, .fd = set->fd, .size = 2 * set->starts[set->count] };
    return STOKER_OK;
}

static inline int stk_document_make(const void *self, uint64_t id, stoker_row *rows,
                                    stoker_rng *rng, stoker_error *error)
{
    const struct stk_document_set *set = self;
    (void)rng;
    (void)error;
    rows[0].length = set->starts[id + 1] - set->starts[id];
    if (rows[0].length > 0)
        memcpy(rows[0].data, set->tokens + set->starts[id], 2 * rows[0].length);
    return STOKER_OK;
}

static inline int stk_document_decode(const void *self, void *scratch, const stoker_encoded *in,
                                      const stoker_decoded *out, stoker_error *error)
{
    stoker_row *rows = out->rows;
    (void)self;
    (void)scratch;
    (void)error;
    if (in->size > 0)
        memcpy(rows[0].data, in->bytes, in->size);
    rows[0].length = in->size / 2;
    return STOKER_OK;
}

static inline void stk_document_destroy(void *self)
{
    struct stk_document_set *set = self;
    if (set->fd >= 0) {
        close(set->fd);
        unlink(set->path);
    }
    free(set->starts);
    free(set->tokens);
    free(set);
}

static const stoker_dataset_ops stk_document_ops = { .struct_size = sizeof(stoker_dataset_ops),
                                                     .name = "documents",
                                                     .describe = stk_document_describe,
                                                     .field = stk_document_field,
                                                     .locate = stk_document_locate,
                                                     .file = stk_document_file,
                                                     .destroy = stk_document_destroy,
                                                     .lengths = stk_document_lengths };
/* Lengths of raw parts follow from their bytes. */
static const stoker_dataset_ops stk_document_ops_raw = { .struct_size = sizeof(stoker_dataset_ops),
                                                         .name = "documents",
                                                         .describe = stk_document_describe,
                                                         .field = stk_document_field,
                                                         .locate = stk_document_locate,
                                                         .file = stk_document_file,
                                                         .destroy = stk_document_destroy };
static const stoker_dataset_ops stk_document_ops_made = { .struct_size = sizeof(stoker_dataset_ops),
                                                          .name = "documents",
                                                          .describe = stk_document_describe,
                                                          .field = stk_document_field,
                                                          .make = stk_document_make,
                                                          .destroy = stk_document_destroy,
                                                          .lengths = stk_document_lengths };

static inline void stk_document_write_file(struct stk_document_set *set)
{
    strcpy(set->path, "/tmp/stoker-documents-XXXXXX");
    set->fd = mkstemp(set->path);
    cr_assert_geq(set->fd, 0);
    const size_t bytes = 2 * set->starts[set->count];
    cr_assert_eq(write(set->fd, set->tokens, bytes), (ssize_t)bytes);
    set->codec = (stoker_codec){ .struct_size = sizeof(stoker_codec),
                                 .name = "coded",
                                 .flags = STOKER_CODEC_FIELDS,
                                 .decode = stk_document_decode };
}

/* Documents of these lengths. The data set is closed as any. */
static inline stoker_dataset *stk_documents_of(enum stk_document_kind kind, const uint64_t *lengths,
                                               uint64_t count)
{
    struct stk_document_set *set = calloc(1, sizeof(*set));
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    *set = (struct stk_document_set){ .kind = kind, .count = count, .fd = -1, .longest = 1 };
    set->starts = calloc(count + 1, sizeof(set->starts[0]));
    for (uint64_t i = 0; i < count; i++) {
        set->starts[i + 1] = set->starts[i] + lengths[i];
        set->longest = lengths[i] > set->longest ? lengths[i] : set->longest;
    }
    set->tokens = calloc(set->starts[count] + 1, sizeof(set->tokens[0]));
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t at = 0; at < lengths[i]; at++)
            set->tokens[set->starts[i] + at] = stk_document_token(i, at);
    if (kind == STK_DOCUMENTS_FILE || kind == STK_DOCUMENTS_CODED)
        stk_document_write_file(set);
    const stoker_dataset_ops *ops = kind == STK_DOCUMENTS_MADE    ? &stk_document_ops_made
                                    : kind == STK_DOCUMENTS_CODED ? &stk_document_ops
                                                                  : &stk_document_ops_raw;
    cr_assert_eq(stoker_dataset_create(&dataset, ops, set, &error), STOKER_OK, "%s", error.message);
    return dataset;
}

#endif
