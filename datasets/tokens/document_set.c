/* document_set.c - "documents:FILES?eos=50256": a sample is a document of a stream of tokens.
 *
 *   stream    | document 0 | document 1 | ...      see stream.h
 *
 * For packed:, which places documents in rows, and for batches of documents as they are. The index
 * of documents is made at opening. Documents of files that stay open are raw parts; those of the
 * others are read by the codec.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "datasets/formats.h"
#include "datasets/parameters.h"
#include "datasets/tokens/stream.h"
#include "loader/base/error.h"
#include "loader/base/rng.h"

enum { FOUND_BYTES = 384 };

struct set {
    struct stk_tokens tokens;
    uint64_t longest;   /* tokens of the longest document */
    stoker_codec codec; /* reads documents of the others */
    char found[FOUND_BYTES];
};

/* ---- callbacks ------------------------------------------------------------------ */

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct set *set = self;
    const struct stk_tokens *tokens = &set->tokens;
    *out = (stoker_dataset_info){
        .struct_size = sizeof(*out),
        .count = tokens->document_count,
        .field_count = 1,
        .part_count = 1,
        .file_count = set->tokens.open_count,
        .encoded_bytes_max = set->longest * tokens->token_bytes,
        .fingerprint = stk_mix64((uint64_t)tokens->eos) + stk_mix64(~(uint64_t)tokens->bos) +
                       tokens->document_count,
        .description = set->found,
    };
    return STOKER_OK;
}

static int describe_field(const void *self, uint32_t field, stoker_field_info *out)
{
    const struct set *set = self;
    (void)field;
    *out = (stoker_field_info){ .struct_size = sizeof(*out),
                                .name = "tokens",
                                .kind = STOKER_FIELD_KIND_ARRAY,
                                .dtype = set->tokens.dtype,
                                .rank = 1,
                                .shape = { set->longest },
                                .varies = true };
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    (void)error;
    const struct set *set = self;
    const uint32_t width = set->tokens.token_bytes;
    for (uint32_t i = 0; i < count; i++) {
        const struct stk_token_range range = stk_tokens_document(&set->tokens, ids[i]);
        const uint64_t offset = set->tokens.files[range.file].offset + range.offset * width;
        if (range.file < set->tokens.open_count)
            parts[i] = (stoker_part){
                .extent = { .offset = offset, .bytes = range.length * width, .file = range.file }
            };
        else
            parts[i] = (stoker_part){ .codec = &set->codec };
    }
    return STOKER_OK;
}

static int lengths(const void *self, uint32_t field, const uint64_t *ids, uint32_t count,
                   uint64_t *out)
{
    const struct set *set = self;
    const uint64_t *starts = set->tokens.starts;
    (void)field;
    for (uint32_t i = 0; i < count; i++)
        out[i] = starts[ids[i] + 1] - starts[ids[i]];
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t file, stoker_file *out)
{
    *out = stk_source_file(&((const struct set *)self)->tokens.files[file].source);
    return STOKER_OK;
}

static void destroy(void *self)
{
    struct set *set = self;
    stk_tokens_close(&set->tokens);
    stk_free(set);
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(ops),
                                        .name = "documents",
                                        .describe = describe,
                                        .field = describe_field,
                                        .locate = locate,
                                        .file = file_of,
                                        .destroy = destroy,
                                        .lengths = lengths };

/* ---- documents of files that are not kept open ---------------------------------- */

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    const struct set *set = self;
    (void)scratch;
    const struct stk_token_range range = stk_tokens_document(&set->tokens, in->sample);
    out->rows[0].length = range.length;
    return stk_tokens_read(&set->tokens, &range, out->rows[0].data, error);
}

/* ---- opening -------------------------------------------------------------------- */

static int read_layout(enum stk_token_layout *out, const char *name, stoker_error *error)
{
    static const char *const names[] = { "auto", "llmc", "raw", "megatron", "npy" };
    *out = STK_TOKENS_ANY;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum stk_token_layout)i;
            return STOKER_OK;
        }
    return name[0] == '\0'
               ? STOKER_OK
               : stk_refuse_spec(
                     error, STOKER_ESPEC,
                     "documents: layout: \"%.60s\" is not auto, llmc, raw, megatron or npy", name);
}

static int read_spec(struct stk_tokens_wish *wish, const stoker_storage *storage, const char *rest,
                     stoker_error *error)
{
    const struct stk_spec spec = stk_spec_split(storage, rest, '?');
    char layout[STK_PARAMETER_BYTES_MAX] = "";
    uint64_t eos = UINT64_MAX;
    uint64_t bos = UINT64_MAX;
    const struct stk_parameter table[] = {
        { .key = "eos", .number = &eos, .most = INT64_MAX },
        { .key = "bos", .number = &bos, .most = INT64_MAX },
        { .key = "stored", .dtype = &wish->raw_dtype },
        { .key = "layout", .text = layout },
    };
    *wish = (struct stk_tokens_wish){
        .storage = storage, .names = rest, .name_bytes = spec.name_bytes, .format = "documents"
    };
    const int rc = stk_parameters_read(spec.after == NULL ? "" : spec.after, table,
                                       sizeof(table) / sizeof(table[0]), "documents", error);
    wish->eos = eos == UINT64_MAX ? STK_TOKENS_NONE : (int64_t)eos;
    wish->bos = bos == UINT64_MAX ? STK_TOKENS_NONE : (int64_t)bos;
    return rc == STOKER_OK ? read_layout(&wish->layout, layout, error) : rc;
}

static int measure(struct set *set, stoker_error *error)
{
    const struct stk_tokens *tokens = &set->tokens;
    for (uint64_t i = 0; i < tokens->document_count; i++) {
        const uint64_t length = tokens->starts[i + 1] - tokens->starts[i];
        set->longest = length > set->longest ? length : set->longest;
    }
    if (set->longest > UINT32_MAX / tokens->token_bytes - 1)
        return stk_refuse_spec(error, STOKER_ELIMIT,
                               "documents: one has %" PRIu64
                               " tokens, which are 4 GiB or more; are eos or bos right?",
                               set->longest);
    set->codec = (stoker_codec){ .struct_size = sizeof(set->codec),
                                 .name = "tokens",
                                 .self = set,
                                 .flags = STOKER_CODEC_FIELDS,
                                 .decode = decode };
    (void)snprintf(set->found, sizeof(set->found),
                   "%s; %" PRIu64 " documents, the longest has %" PRIu64 " tokens", tokens->found,
                   tokens->document_count, set->longest);
    return STOKER_OK;
}

static int open_documents(stoker_dataset **out, const char *rest,
                          const stoker_dataset_options *options, stoker_error *error)
{
    struct stk_tokens_wish wish;
    struct set *set = stk_calloc(1, sizeof(*set));
    if (set == NULL)
        return stk_refuse_spec(error, STOKER_ENOMEM, "documents: opening");
    int rc = read_spec(&wish, options->storage, rest, error);
    if (rc == STOKER_OK)
        rc = stk_tokens_open(&set->tokens, &wish, error);
    if (rc == STOKER_OK)
        rc = stk_tokens_find_documents(&set->tokens, options->max_bytes, error);
    if (rc == STOKER_OK)
        rc = measure(set, error);
    if (rc == STOKER_OK)
        rc = stoker_dataset_create(out, &ops, set, error);
    if (rc != STOKER_OK)
        destroy(set);
    return rc;
}

const struct stk_format stk_format_documents = {
    .name = "documents",
    .about = "documents:FILES?eos=ID\tdocuments of token files",
    .open = open_documents,
    .cheap_rows = true
};
