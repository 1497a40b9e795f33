/* window.c - see window.h.
 *
 * The starts of documents come from the index, if there is one, else from the window's own tokens:
 * an eos ends a document and a bos begins one.
 */
#include "datasets/tokens/window.h"

#include <assert.h>
#include <string.h>

#include "loader/codec/refuse.h"

enum { STRETCH_TOKENS = 4096 };

static const char *const field_names[STK_WINDOW_FIELDS] = { "tokens",     "inputs",
                                                            "targets",    "positions",
                                                            "documents",  "document_ids",
                                                            "cu_seqlens", "max_seqlen" };

/* ---- the list of fields --------------------------------------------------------- */

bool stk_window_has(const struct stk_window *window, enum stk_window_field field)
{
    for (uint32_t i = 0; i < window->field_count; i++)
        if (window->fields[i] == field)
            return true;
    return false;
}

static uint32_t field_named(const char *name, size_t bytes)
{
    uint32_t field = 0;
    while (field < STK_WINDOW_FIELDS &&
           (strlen(field_names[field]) != bytes || memcmp(field_names[field], name, bytes) != 0))
        field++;
    return field;
}

const char *stk_window_parse(struct stk_window *window, const char *fields)
{
    window->field_count = 0;
    for (const char *at = fields;; at++) {
        const size_t bytes = strcspn(at, ",");
        const uint32_t field = field_named(at, bytes);
        if (field == STK_WINDOW_FIELDS)
            return "there are tokens, inputs, targets, positions, documents, document_ids, "
                   "cu_seqlens, max_seqlen";
        if (stk_window_has(window, (enum stk_window_field)field))
            return "a field is given twice";
        window->fields[window->field_count++] = (enum stk_window_field)field;
        at += bytes;
        if (*at == '\0')
            break;
    }
    return window->fields[0] <= STK_WINDOW_TARGETS
               ? NULL
               : "the first field must be tokens, inputs or targets";
}

bool stk_window_needs_documents(const struct stk_window *window)
{
    for (uint32_t i = 0; i < window->field_count; i++)
        if (window->fields[i] >= STK_WINDOW_POSITIONS)
            return true;
    return false;
}

bool stk_window_is_raw(const struct stk_window *window)
{
    return window->field_count == 1 && window->fields[0] != STK_WINDOW_TARGETS &&
           window->dtype == window->tokens->dtype;
}

void stk_window_describe(const struct stk_window *window, uint32_t field, stoker_field_info *out)
{
    const enum stk_window_field which = window->fields[field];
    *out = (stoker_field_info){ .struct_size = sizeof(*out),
                                .name = field_names[which],
                                .dtype = STOKER_DTYPE_INT32,
                                .rank = 1,
                                .shape = { window->length } };
    if (which <= STK_WINDOW_TARGETS)
        out->dtype = window->dtype;
    if (which == STK_WINDOW_DOCUMENT_IDS)
        out->dtype = STOKER_DTYPE_INT64;
    out->varies = which == STK_WINDOW_CU_SEQLENS;
    if (out->varies)
        out->shape[0] = (uint64_t)window->documents_max + 1;
    if (which == STK_WINDOW_MAX_SEQLEN)
        out->rank = 0;
}

/* ---- where documents begin ------------------------------------------------------ */

/* The parts of documents in a window, one after the other. */
struct parts {
    const struct stk_window *window;
    const uint8_t *tokens;
    uint64_t first;    /* number of the first token in the stream; only with an index */
    uint64_t document; /* number of the part's document; only with an index */
    uint32_t begin, end;
};

#define IS(type, value) ((value) != STK_TOKENS_NONE && token == (type)(value))

/* Returns the first place behind `from` at which a document begins, or the length. */
#define SCAN(type)                                                                                 \
    for (uint32_t i = from; i < parts->window->length; i++) {                                      \
        type token;                                                                                \
        memcpy(&token, parts->tokens + i * sizeof(token), sizeof(token));                          \
        if (i > from && IS(type, tokens->bos))                                                     \
            return i;                                                                              \
        if (i + 1 < parts->window->length && IS(type, tokens->eos))                                \
            return i + 1;                                                                          \
    }                                                                                              \
    return parts->window->length;

static uint32_t scan(const struct parts *parts, uint32_t from)
{
    const struct stk_tokens *tokens = parts->window->tokens;
    switch (tokens->token_bytes) {
    case 1:
        SCAN(uint8_t)
    case 2:
        SCAN(uint16_t)
    case 4:
        SCAN(uint32_t)
    default:
        SCAN(uint64_t)
    }
}

/* The end of the document that has the part. */
static uint32_t look_up(const struct parts *parts)
{
    const struct stk_tokens *tokens = parts->window->tokens;
    const uint64_t left = tokens->starts[parts->document + 1] - parts->first;
    return left < parts->window->length ? (uint32_t)left : parts->window->length;
}

static struct parts parts_begin(const struct stk_window *window, const stoker_encoded *in)
{
    struct parts parts = { .window = window, .tokens = in->bytes };
    if (window->tokens->starts != NULL) {
        parts.first = window->first(window->self, in->sample);
        parts.document = stk_tokens_document_of(window->tokens, parts.first);
    }
    return parts;
}

/* Step to the next part. Returns false at the end of the window. */
static bool parts_next(struct parts *parts)
{
    const struct stk_tokens *tokens = parts->window->tokens;
    const bool indexed = tokens->starts != NULL;
    if (parts->end == parts->window->length)
        return false;
    parts->begin = parts->end;
    while (indexed && tokens->starts[parts->document + 1] <= parts->first + parts->begin)
        parts->document++; /* over empty ones, too */
    parts->end = indexed ? look_up(parts) : scan(parts, parts->begin);
    return true;
}

/* ---- fields --------------------------------------------------------------------- */

static void fill_positions(const struct parts *part, int32_t *out)
{
    for (uint32_t i = part->begin; i < part->end; i++)
        out[i] = (int32_t)(i - part->begin);
}

static void fill_documents(const struct parts *part, int32_t number, int32_t *out)
{
    for (uint32_t i = part->begin; i < part->end; i++)
        out[i] = number;
}

static void fill_document_ids(const struct parts *part, int64_t *out)
{
    for (uint32_t i = part->begin; i < part->end; i++)
        out[i] = (int64_t)part->document;
}

/* Fill one field that follows from the parts of documents. */
static int fill_document_field(const struct stk_window *window, enum stk_window_field field,
                               const stoker_encoded *in, stoker_row *row, stoker_error *error)
{
    uint32_t count = 0, longest = 0;
    struct parts part = parts_begin(window, in);
    int32_t *numbers = row->data;
    for (; parts_next(&part); count++) {
        const uint32_t length = part.end - part.begin;
        if (field == STK_WINDOW_POSITIONS)
            fill_positions(&part, numbers);
        else if (field == STK_WINDOW_DOCUMENTS)
            fill_documents(&part, (int32_t)count, numbers);
        else if (field == STK_WINDOW_DOCUMENT_IDS)
            fill_document_ids(&part, row->data);
        else if (field == STK_WINDOW_CU_SEQLENS && count == window->documents_max)
            return stk_refuse(
                error, STOKER_ELIMIT,
                "the window has parts of more than %u documents; documents_max allows more",
                window->documents_max);
        else if (field == STK_WINDOW_CU_SEQLENS)
            numbers[count] = (int32_t)part.begin;
        longest = length > longest ? length : longest;
    }
    if (field == STK_WINDOW_CU_SEQLENS) {
        numbers[count] = (int32_t)window->length;
        row->length = (uint64_t)count + 1;
    }
    if (field == STK_WINDOW_MAX_SEQLEN)
        numbers[0] = (int32_t)longest;
    return STOKER_OK;
}

/* Convert tokens. Returns false if one of them does not fit: it has become negative. */
static bool convert_tokens(const struct stk_window *window, const uint8_t *from, void *to,
                           size_t count)
{
    const int32_t *narrow = to;
    const int64_t *wide = to;
    int64_t bits = 0;
    window->convert(from, to, count);
    if (window->checked && window->dtype == STOKER_DTYPE_INT32)
        for (size_t i = 0; i < count; i++)
            bits |= narrow[i];
    else if (window->checked)
        for (size_t i = 0; i < count; i++)
            bits |= wide[i];
    return bits >= 0;
}

static int make_field(const struct stk_window *window, enum stk_window_field field,
                      const stoker_encoded *in, stoker_row *row, stoker_error *error)
{
    const uint32_t skipped = field == STK_WINDOW_TARGETS ? window->tokens->token_bytes : 0;
    if (in->size != stk_window_tokens(window) * window->tokens->token_bytes)
        return stk_refuse(error, STOKER_EFORMAT, "%zu bytes for a window", in->size);
    if (field > STK_WINDOW_TARGETS)
        return fill_document_field(window, field, in, row, error);
    if (convert_tokens(window, in->bytes + skipped, row->data, window->length))
        return STOKER_OK;
    return stk_refuse(error, STOKER_EFORMAT, "a token does not fit %s",
                      stoker_dtype_name(window->dtype));
}

/* ---- runs of windows ------------------------------------------------------------ */

/* Windows that follow each other without a gap are one stretch of tokens, and so are their rows. */
static bool is_stretch(const struct stk_window *window, const stoker_decoded *out)
{
    return out->step == (size_t)window->length * window->tokens->token_bytes;
}

/* Tokens to inputs and targets at once, while those just read are in the first cache. */
static bool convert_both(const struct stk_window *window, const uint8_t *from, size_t count,
                         uint8_t *inputs, uint8_t *targets)
{
    const size_t width = window->tokens->token_bytes, wide = stoker_dtype_bytes(window->dtype);
    bool fits = true;
    for (size_t done = 0; done < count; done += STRETCH_TOKENS) {
        const size_t some = count - done < STRETCH_TOKENS ? count - done : STRETCH_TOKENS;
        const uint8_t *at = from + done * width;
        fits = convert_tokens(window, at, inputs + done * wide, some) && fits;
        fits = convert_tokens(window, at + width, targets + done * wide, some) && fits;
    }
    return fits;
}

/* One field of all windows. */
static int make_field_run(const struct stk_window *window, enum stk_window_field field,
                          const stoker_encoded *first, const stoker_decoded *out,
                          const stoker_row *row)
{
    stoker_error ignored; /* the window is made again, alone */
    const uint32_t skipped = field == STK_WINDOW_TARGETS ? window->tokens->token_bytes : 0;
    int rc = STOKER_OK;
    if (field <= STK_WINDOW_TARGETS && is_stretch(window, out))
        return convert_tokens(window, first->bytes + skipped, row->data,
                              (size_t)out->sample_count * window->length)
                   ? STOKER_OK
                   : STOKER_EFORMAT;
    for (uint32_t i = 0; i < out->sample_count && rc == STOKER_OK; i++) {
        const stoker_encoded in = { .bytes = first->bytes + i * out->step,
                                    .size = first->size,
                                    .sample = first->sample + i };
        stoker_row one = *row;
        one.data = (uint8_t *)row->data + i * row->bytes_max;
        rc = make_field(window, field, &in, &one, &ignored);
    }
    return rc;
}

static int decode_run(const struct stk_window *window, const stoker_encoded *in,
                      const stoker_decoded *out)
{
    const stoker_row *rows = out->rows;
    const bool both = out->field_count >= 2 && is_stretch(window, out) &&
                      window->fields[0] == STK_WINDOW_INPUTS &&
                      window->fields[1] == STK_WINDOW_TARGETS;
    int rc = STOKER_OK;
    if (in->size != stk_window_tokens(window) * window->tokens->token_bytes)
        return STOKER_EFORMAT;
    if (both && !convert_both(window, in->bytes, (size_t)out->sample_count * window->length,
                              rows[0].data, rows[1].data))
        return STOKER_EFORMAT;
    for (uint32_t i = both ? 2 : 0; i < out->field_count && rc == STOKER_OK; i++)
        rc = make_field_run(window, window->fields[i], in, out, &rows[i]);
    return rc;
}

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    const struct stk_window *window = self;
    (void)scratch;
    assert(out->field_count == window->field_count);
    if (out->sample_count > 1)
        return decode_run(window, in, out);
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < out->field_count && rc == STOKER_OK; i++)
        rc = make_field(window, window->fields[i], in, &out->rows[i], error);
    return rc;
}

void stk_window_init(struct stk_window *window)
{
    window->codec = (stoker_codec){ .struct_size = sizeof(window->codec),
                                    .name = "tokens",
                                    .self = window,
                                    .flags = STOKER_CODEC_FIELDS | STOKER_CODEC_RUNS,
                                    .decode = decode };
}
