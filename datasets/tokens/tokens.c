/* tokens.c - "tokens:FILES?length=1024&fields=inputs,targets": windows of consecutive tokens.
 *
 *   file     | tokens of the other side | usable tokens .....................| rest |
 *   windows                             | 0 ......|
 *                                           stride | 1 ......|
 *   train    all but the last tokens of the stream, test: the last ones, if test= is given
 *
 * A window lies in one file. Where a sample lies follows from its number: no table of samples is
 * made.
 */
#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/formats.h"
#include "datasets/parameters.h"
#include "datasets/tokens/stream.h"
#include "datasets/tokens/window.h"
#include "loader/base/rng.h"

enum {
    LENGTH_MAX = 1 << 26,
    LENGTH_DEFAULT = 1024,
    FOUND_BYTES = 512,
    TEXT = STK_PARAMETER_BYTES_MAX
};

/* The windows of one file. */
struct span {
    uint64_t begin; /* the first token that windows may use, from the file's first */
    uint64_t first; /* number of its first window */
    uint64_t count; /* windows */
};

struct set {
    struct stk_tokens tokens;
    struct stk_window window;
    struct span *spans; /* [file_count] */
    uint64_t stride;    /* tokens */
    uint64_t count;     /* windows in all files */
    uint64_t fingerprint;
    char found[FOUND_BYTES];
};

struct opening {
    struct set *set;
    const stoker_dataset_options *options;
    stoker_error *error;
    uint64_t length, stride, multiple, documents_max, map;
    stoker_dtype dtype, stored;
    char fields[TEXT], layout[TEXT], eos[TEXT], bos[TEXT], test[TEXT], split[TEXT];
    uint64_t begin, end; /* the tokens of this side, numbers in the stream */
    uint64_t dropped;    /* such tokens that no window reads */
};

/* ---- callbacks ------------------------------------------------------------------ */

static uint32_t span_of(const struct set *set, uint64_t id)
{
    uint32_t low = 0, high = set->tokens.file_count; /* the window's file is in [low, high) */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (set->spans[middle].first <= id)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static uint64_t first_token(const void *self, uint64_t id)
{
    const struct set *set = self;
    const uint32_t file = span_of(set, id);
    const struct span *span = &set->spans[file];
    return set->tokens.files[file].first + span->begin + (id - span->first) * set->stride;
}

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct set *set = self;
    const uint64_t bytes = stk_window_tokens(&set->window) * set->tokens.token_bytes;
    const struct stk_token_file *file = &set->tokens.files[0];
    const bool dense = stk_window_is_raw(&set->window) && set->tokens.file_count == 1 &&
                       set->stride == set->window.length;
    *out = (stoker_dataset_info){
        .struct_size = sizeof(*out),
        .count = set->count,
        .field_count = set->window.field_count,
        .part_count = 1,
        .file_count = set->tokens.open_count,
        .encoded_bytes_max = bytes,
        .has_paths = set->tokens.open_count < set->tokens.file_count,
        .directory = AT_FDCWD,
        .dense = dense && file->mapped == NULL,
        .rows = dense && file->mapped != NULL
                    ? file->mapped + file->offset + set->spans[0].begin * set->tokens.token_bytes
                    : NULL,
        .fingerprint = set->fingerprint,
        .description = set->found,
    };
    return STOKER_OK;
}

static int describe_field(const void *self, uint32_t field, stoker_field_info *out)
{
    const struct set *set = self;
    stk_window_describe(&set->window, field, out);
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    (void)error;
    const struct set *set = self;
    const uint32_t width = set->tokens.token_bytes;
    const uint32_t bytes = (uint32_t)stk_window_tokens(&set->window) * width;
    const stoker_codec *codec = stk_window_is_raw(&set->window) ? NULL : &set->window.codec;
    uint32_t file = 0;
    for (uint32_t i = 0; i < count; i++) { /* neighbors mostly lie in one file */
        assert(ids[i] < set->count);
        if (ids[i] - set->spans[file].first >= set->spans[file].count)
            file = span_of(set, ids[i]);
        const struct span *span = &set->spans[file];
        const uint64_t token = span->begin + (ids[i] - span->first) * set->stride;
        parts[i] = (stoker_part){
            .extent = { .offset = set->tokens.files[file].offset + token * width,
                        .bytes = bytes,
                        .file = file },
            .codec = codec,
        };
        if (set->tokens.files[file].mapped != NULL) {
            parts[i].extent.memory = set->tokens.files[file].mapped + parts[i].extent.offset;
        } else if (file >= set->tokens.open_count) {
            parts[i].extent.path = set->tokens.files[file].path;
            parts[i].extent.file = 0;
            parts[i].flags = STOKER_PART_RANGE;
        }
    }
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t file, stoker_file *out)
{
    const struct set *set = self;
    *out = stk_source_file(&set->tokens.files[file].source);
    return STOKER_OK;
}

static void destroy(void *self)
{
    struct set *set = self;
    stk_tokens_close(&set->tokens);
    stk_free(set->spans);
    stk_free(set);
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(ops),
                                        .name = "tokens",
                                        .describe = describe,
                                        .field = describe_field,
                                        .locate = locate,
                                        .file = file_of,
                                        .destroy = destroy };

/* ---- parameters ----------------------------------------------------------------- */

static int read_token(const struct opening *opening, const char *key, const char *text,
                      int64_t *out)
{
    char *end = NULL;
    *out = STK_TOKENS_NONE;
    if (text[0] == '\0')
        return STOKER_OK;
    *out = (int64_t)strtoull(text, &end, 10);
    return strspn(text, "0123456789") == strlen(text) && strlen(text) <= 18
               ? STOKER_OK
               : stk_refuse_spec(opening->error, STOKER_ESPEC,
                                 "tokens: %s: \"%s\" is no token: a number", key, text);
}

static int read_layout(const struct opening *opening, enum stk_token_layout *out)
{
    static const char *const names[] = { "auto", "llmc", "raw", "megatron", "npy" };
    *out = STK_TOKENS_ANY;
    if (opening->layout[0] == '\0')
        return STOKER_OK;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(opening->layout, names[i]) == 0) {
            *out = (enum stk_token_layout)i;
            return STOKER_OK;
        }
    return stk_refuse_spec(opening->error, STOKER_ESPEC,
                           "tokens: layout: \"%s\" is not auto, llmc, raw, megatron or npy",
                           opening->layout);
}

static bool is_integer(stoker_dtype dtype)
{
    return dtype == STOKER_DTYPE_UINT8 || dtype == STOKER_DTYPE_INT8 ||
           dtype == STOKER_DTYPE_UINT16 || dtype == STOKER_DTYPE_INT16 ||
           dtype == STOKER_DTYPE_UINT32 || dtype == STOKER_DTYPE_INT32 ||
           dtype == STOKER_DTYPE_UINT64 || dtype == STOKER_DTYPE_INT64;
}

static int read_parameters(struct opening *opening, const char *text)
{
    const struct stk_parameter table[] = {
        { .key = "length",
          .number = &opening->length,
          .least = 1,
          .most = LENGTH_MAX,
          .is_size = true },
        { .key = "stride", .number = &opening->stride, .least = 1, .most = UINT64_C(1) << 40 },
        { .key = "fields", .text = opening->fields },
        { .key = "dtype", .dtype = &opening->dtype },
        { .key = "stored", .dtype = &opening->stored },
        { .key = "layout", .text = opening->layout },
        { .key = "eos", .text = opening->eos },
        { .key = "bos", .text = opening->bos },
        { .key = "multiple", .number = &opening->multiple, .least = 1, .most = UINT64_C(1) << 32 },
        { .key = "documents_max",
          .number = &opening->documents_max,
          .least = 1,
          .most = LENGTH_MAX },
        { .key = "map", .number = &opening->map, .most = 1 },
        { .key = "test", .text = opening->test },
        { .key = "split", .text = opening->split },
    };
    int rc = stk_parameters_read(text, table, sizeof(table) / sizeof(table[0]), "tokens",
                                 opening->error);
    if (rc != STOKER_OK)
        return rc;
    if (opening->stored != STOKER_DTYPE_NONE && !is_integer(opening->stored))
        return stk_refuse_spec(opening->error, STOKER_ESPEC,
                               "tokens: stored: tokens are integers, not %s",
                               stoker_dtype_name(opening->stored));
    opening->stride = opening->stride == 0 ? opening->length : opening->stride;
    opening->documents_max = opening->documents_max == 0 ? opening->length : opening->documents_max;
    const char *what = stk_window_parse(&opening->set->window,
                                        opening->fields[0] == '\0' ? "tokens" : opening->fields);
    return what == NULL ? STOKER_OK
                        : stk_refuse_spec(opening->error, STOKER_ESPEC,
                                          "tokens: fields: \"%s\": %s", opening->fields, what);
}

/* ---- the sides of a split ------------------------------------------------------- */

/* test=0.01 is a share of the tokens, test=1000000 a number of them. */
static int test_tokens(const struct opening *opening, uint64_t *out)
{
    const char *text = opening->test;
    const uint64_t count = opening->set->tokens.count;
    const bool is_count = strspn(text, "0123456789") == strlen(text) && strlen(text) <= 18;
    char *end = NULL;
    *out = 0;
    if (text[0] == '\0')
        return STOKER_OK;
    if (is_count) {
        *out = strtoull(text, &end, 10);
    } else {
        /* 0.DIGITS, read as a fraction of integers: the same number on every machine. */
        uint64_t digits = 0, unit = 1;
        const char *at = strncmp(text, "0.", 2) == 0 ? text + 2 : text + (text[0] == '.' ? 1 : 0);
        if (at == text || strspn(at, "0123456789") != strlen(at) || strlen(at) > 9 || at[0] == '\0')
            return stk_refuse_spec(
                opening->error, STOKER_ESPEC,
                "tokens: test: \"%s\" is neither a share of the tokens like 0.01 nor a number of "
                "tokens",
                text);
        for (; *at != '\0'; at++, unit *= 10)
            digits = digits * 10 + (uint64_t)(*at - '0');
        *out = count / unit * digits + count % unit * digits / unit;
    }
    return *out > 0 && *out < count ? STOKER_OK
                                    : stk_refuse_spec(opening->error, STOKER_EINVAL,
                                                      "tokens: test: %s makes %" PRIu64
                                                      " of %" PRIu64 " tokens the test side",
                                                      text, *out, count);
}

static int choose_side(struct opening *opening)
{
    const char *given = opening->split;
    const char *asked = opening->options->split;
    if (given[0] != '\0' && asked != NULL && strcmp(given, asked) != 0)
        return stk_refuse_spec(opening->error, STOKER_EINVAL,
                               "tokens: split \"%s\", but the spec asks for \"%s\"", asked, given);
    const char *side = given[0] != '\0' ? given : asked == NULL ? "train" : asked;
    const bool is_test = strcmp(side, "test") == 0;
    if (!is_test && strcmp(side, "train") != 0)
        return stk_refuse_spec(opening->error, STOKER_EINVAL,
                               "tokens: split \"%s\": there are train and test", side);
    if (is_test && opening->test[0] == '\0')
        return stk_refuse_spec(
            opening->error, STOKER_EINVAL,
            "tokens: the split \"test\" needs test=: a share or a number of tokens, the last ones");
    uint64_t tests = 0;
    const int rc = test_tokens(opening, &tests);
    if (rc != STOKER_OK)
        return rc;
    const uint64_t count = opening->set->tokens.count;
    opening->begin = is_test ? count - tests : 0;
    opening->end = is_test ? count : count - tests;
    return STOKER_OK;
}

/* ---- windows -------------------------------------------------------------------- */

/* Count the windows in the tokens [begin, end) of a file. */
static uint64_t windows_in(const struct opening *opening, uint64_t begin, uint64_t end)
{
    const uint64_t needed = stk_window_tokens(&opening->set->window);
    if (end - begin < needed)
        return 0;
    const uint64_t count = (end - begin - needed) / opening->stride + 1;
    return count - count % opening->multiple;
}

static uint64_t within(uint64_t number, uint64_t low, uint64_t high)
{
    return number < low ? low : number > high ? high : number;
}

static int cut_windows(struct opening *opening)
{
    struct set *set = opening->set;
    set->spans = stk_calloc(set->tokens.file_count, sizeof(set->spans[0]));
    if (set->spans == NULL)
        return stk_refuse_spec(opening->error, STOKER_ENOMEM, "tokens: the windows");
    for (uint32_t i = 0; i < set->tokens.file_count; i++) {
        const struct stk_token_file *file = &set->tokens.files[i];
        const uint64_t last = file->first + file->count;
        const uint64_t begin = within(opening->begin, file->first, last);
        const uint64_t end = within(opening->end, begin, last);
        struct span *span = &set->spans[i];
        *span = (struct span){ .begin = begin - file->first,
                               .first = set->count,
                               .count = windows_in(opening, begin, end) };
        const uint64_t step =
            set->stride < opening->length ? set->stride : stk_window_tokens(&set->window);
        const uint64_t used =
            span->count == 0 ? 0 : (span->count - 1) * step + stk_window_tokens(&set->window);
        opening->dropped += end - begin - (used < end - begin ? used : end - begin);
        set->count += span->count;
    }
    if (set->count == 0)
        return stk_refuse_spec(opening->error, STOKER_EEMPTY,
                               "tokens: no file has a window of %" PRIu64 " tokens%s; %s",
                               stk_window_tokens(&set->window),
                               opening->multiple > 1 ? ", or not as many as multiple= asks for"
                                                     : "",
                               set->tokens.found);
    return STOKER_OK;
}

/* ---- open ----------------------------------------------------------------------- */

static int choose_dtype(struct opening *opening)
{
    struct stk_window *window = &opening->set->window;
    const stoker_dtype from = opening->set->tokens.dtype;
    window->dtype = opening->dtype == STOKER_DTYPE_NONE ? from : opening->dtype;
    const stoker_dtype to = window->dtype;
    window->checked = (from == STOKER_DTYPE_UINT32 && to == STOKER_DTYPE_INT32) ||
                      (from == STOKER_DTYPE_UINT64 && to == STOKER_DTYPE_INT64);
    window->convert = stk_elements_choose(window->checked ? to : from, to);
    return window->convert != NULL &&
                   (to == from || to == STOKER_DTYPE_INT32 || to == STOKER_DTYPE_INT64)
               ? STOKER_OK
               : stk_refuse_spec(
                     opening->error, STOKER_ETYPE,
                     "tokens: dtype: %s cannot become %s; int32 and int64 can be asked for",
                     stoker_dtype_name(from), stoker_dtype_name(window->dtype));
}

/* Documents are indexed only if a field needs more than the tokens of a window. */
static int find_documents(struct opening *opening)
{
    struct stk_tokens *tokens = &opening->set->tokens;
    const struct stk_window *window = &opening->set->window;
    const bool marked = tokens->eos != STK_TOKENS_NONE || tokens->bos != STK_TOKENS_NONE;
    if (!stk_window_needs_documents(window) ||
        (marked && !stk_window_has(window, STK_WINDOW_DOCUMENT_IDS)))
        return STOKER_OK;
    return stk_tokens_find_documents(tokens, opening->options->max_bytes, opening->error);
}

static void describe_found(const struct opening *opening)
{
    struct set *set = opening->set;
    (void)snprintf(set->found, sizeof(set->found),
                   "%s; %" PRIu64 " windows, %" PRIu64 " tokens at the ends of files in none",
                   set->tokens.found, set->count, opening->dropped);
    set->fingerprint = stk_mix64(opening->begin ^ stk_mix64(opening->end)) ^
                       stk_mix64(set->stride ^ opening->multiple << 32) ^
                       (uint64_t)set->tokens.eos ^ stk_mix64((uint64_t)set->tokens.bos);
}

static int open_set(struct opening *opening, const struct stk_tokens_wish *wish)
{
    struct set *set = opening->set;
    set->window.tokens = &set->tokens;
    set->window.length = (uint32_t)opening->length;
    set->window.documents_max = (uint32_t)opening->documents_max;
    set->window.first = first_token;
    set->window.self = set;
    set->stride = opening->stride;
    stk_window_init(&set->window);
    int rc = stk_tokens_open(&set->tokens, wish, opening->error);
    if (rc == STOKER_OK)
        rc = choose_dtype(opening);
    if (rc == STOKER_OK)
        rc = choose_side(opening);
    if (rc == STOKER_OK)
        rc = cut_windows(opening);
    if (rc == STOKER_OK)
        rc = find_documents(opening);
    if (rc == STOKER_OK && opening->map != 0)
        rc = stk_tokens_map(&set->tokens, opening->error);
    if (rc == STOKER_OK)
        describe_found(opening);
    return rc;
}

static int open_spec(struct opening *opening, const char *rest)
{
    const stoker_storage *storage = opening->options->storage;
    const struct stk_spec spec = stk_spec_split(storage, rest, '?');
    struct stk_tokens_wish wish = {
        .storage = storage, .names = rest, .name_bytes = spec.name_bytes, .format = "tokens"
    };
    int rc = read_parameters(opening, spec.after == NULL ? "" : spec.after);
    if (rc == STOKER_OK)
        rc = read_layout(opening, &wish.layout);
    if (rc == STOKER_OK)
        rc = read_token(opening, "eos", opening->eos, &wish.eos);
    if (rc == STOKER_OK)
        rc = read_token(opening, "bos", opening->bos, &wish.bos);
    wish.raw_dtype = opening->stored;
    return rc == STOKER_OK ? open_set(opening, &wish) : rc;
}

static int open_tokens(stoker_dataset **out, const char *rest,
                       const stoker_dataset_options *options, stoker_error *error)
{
    struct opening *opening = stk_calloc(1, sizeof(*opening));
    struct set *set = stk_calloc(1, sizeof(*set));
    struct opening failed = { .error = error };
    if (opening == NULL || set == NULL) {
        stk_free(opening);
        stk_free(set);
        return stk_refuse_spec(failed.error, STOKER_ENOMEM, "tokens: opening");
    }
    opening->set = set;
    opening->options = options;
    opening->error = error;
    opening->length = LENGTH_DEFAULT;
    opening->multiple = 1;
    int rc = open_spec(opening, rest);
    if (rc == STOKER_OK)
        rc = stoker_dataset_create(out, &ops, set, error);
    if (rc != STOKER_OK)
        destroy(set);
    stk_free(opening);
    return rc;
}

/* The sides are the ends of the stream, not a choice of windows. */
static bool keeps(const char *rest, const char *key)
{
    (void)rest;
    return strcmp(key, "test") == 0 || strcmp(key, "split") == 0;
}

const struct stk_format stk_format_tokens = {
    .name = "tokens",
    .about = "tokens:FILES?length=1024\twindows of token files",
    .open = open_tokens,
    .keeps = keeps,
    .cheap_rows = true
};
