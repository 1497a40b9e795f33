/* spec.c -
 * packed:LENGTH:(SPEC)?block=65536&long=split&fields=tokens,positions&dtype=int32 */
#include "datasets/formats.h"

#include <stdlib.h>
#include <string.h>

#include <stoker/views.h>

#include "datasets/parameters.h"
#include "datasets/views/packed/fit.h"
#include "datasets/views/spec.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

/* Values that are words, and what the text of each parameter is. */
struct texts {
    char long_documents[STK_PARAMETER_BYTES_MAX];
    char fields[STK_PARAMETER_BYTES_MAX];
    char padding[STK_PARAMETER_BYTES_MAX];
    char ignored[STK_PARAMETER_BYTES_MAX];
    char field[STK_PARAMETER_BYTES_MAX];
};

struct word {
    const char *name;
    uint32_t value;
};

static const struct word ways[] = { { "refuse", STOKER_PACKING_LONG_REFUSE },
                                    { "split", STOKER_PACKING_LONG_SPLIT },
                                    { "crop", STOKER_PACKING_LONG_CROP } };

static const struct word field_names[] = {
    { "tokens", STOKER_PACKED_TOKENS },        { "inputs", STOKER_PACKED_INPUTS },
    { "targets", STOKER_PACKED_TARGETS },      { "positions", STOKER_PACKED_POSITIONS },
    { "documents", STOKER_PACKED_DOCUMENTS },  { "cu_seqlens", STOKER_PACKED_CU_SEQLENS },
    { "max_seqlen", STOKER_PACKED_MAX_SEQLEN }
};

static int refuse_packing(stoker_error *error, const char *what, const char *at)
{
    return stk_refuse_spec(error, STOKER_ESPEC, "packed: %s, not \"%.60s\"", what, at);
}

/* ---- values
 * ------------------------------------------------------------------------------------ */

static const struct word *find_word(const struct word *words, size_t count,
                                    struct stk_spec_text text)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(words[i].name) == text.bytes && memcmp(words[i].name, text.at, text.bytes) == 0)
            return &words[i];
    return NULL;
}

static int read_fields(uint32_t *out, const char *text, stoker_error *error)
{
    uint32_t fields = 0;
    for (const char *at = text;;) {
        const struct stk_spec_text name = { .at = at, .bytes = strcspn(at, ",") };
        const struct word *word =
            find_word(field_names, sizeof(field_names) / sizeof(field_names[0]), name);
        if (word == NULL)
            return refuse_packing(
                error,
                "fields are a list of tokens, inputs, targets, positions, documents, "
                "cu_seqlens and max_seqlen",
                text);
        fields |= word->value;
        at += name.bytes;
        if (at[0] == '\0')
            break;
        at++;
    }
    *out = fields;
    return STOKER_OK;
}

/* A decimal number of 62 bits, perhaps below 0. */
static bool read_integer(int64_t *out, const char *text)
{
    const bool negative = text[0] == '-';
    const char *digits = text + (negative ? 1 : 0);
    const size_t count = strlen(digits);
    if (count == 0 || count > 18 || strspn(digits, "0123456789") != count)
        return false;
    const int64_t value = strtoll(digits, NULL, 10);
    *out = negative ? -value : value;
    return true;
}

static int read_texts(stoker_packing *packing, const struct texts *texts, stoker_error *error)
{
    if (texts->long_documents[0] != '\0') {
        const struct word *way =
            find_word(ways, sizeof(ways) / sizeof(ways[0]),
                      (struct stk_spec_text){ .at = texts->long_documents,
                                              .bytes = strlen(texts->long_documents) });
        if (way == NULL)
            return refuse_packing(error, "long is refuse, split or crop", texts->long_documents);
        packing->long_documents = (stoker_long_documents)way->value;
    }
    if (texts->padding[0] != '\0' && !read_integer(&packing->padding, texts->padding))
        return refuse_packing(error, "padding is an integer of up to 18 digits", texts->padding);
    if (texts->ignored[0] != '\0' && !read_integer(&packing->ignored, texts->ignored))
        return refuse_packing(error, "ignored is an integer of up to 18 digits", texts->ignored);
    if (texts->field[0] != '\0')
        packing->field = texts->field;
    return texts->fields[0] == '\0' ? STOKER_OK
                                    : read_fields(&packing->fields, texts->fields, error);
}

static int read_parameters(stoker_packing *packing, struct texts *texts, const char *text,
                           stoker_error *error)
{
    const struct stk_parameter table[] = {
        { .key = "block", .number = &packing->block, .most = UINT32_MAX },
        { .key = "dtype", .dtype = &packing->dtype },
        { .key = "long", .text = texts->long_documents },
        { .key = "fields", .text = texts->fields },
        { .key = "padding", .text = texts->padding },
        { .key = "ignored", .text = texts->ignored },
        { .key = "field", .text = texts->field },
    };
    const int rc =
        stk_parameters_read(text, table, sizeof(table) / sizeof(table[0]), "packed", error);
    return rc == STOKER_OK ? read_texts(packing, texts, error) : rc;
}

/* ---- the spec
 * ------------------------------------------------------------------------------------ */

/* The number before ":(". */
static bool read_length(uint64_t *out, const char *rest, const char *colon)
{
    *out = 0;
    for (; rest < colon; rest++) {
        if (rest[0] < '0' || rest[0] > '9' || *out > STK_FIT_LENGTH_MAX)
            return false;
        *out = *out * 10 + (uint64_t)(rest[0] - '0');
    }
    return *out > 0;
}

static int open_documents(stoker_dataset **out, struct stk_spec_text operand,
                          const stoker_dataset_options *options, stoker_error *error)
{
    char *spec = stk_calloc(operand.bytes + 1, 1);
    if (spec == NULL)
        return stk_refuse_spec(error, STOKER_ENOMEM, "packed: the spec");
    memcpy(spec, operand.at, operand.bytes);
    const int rc = stoker_dataset_open(out, spec, options, error);
    stk_free(spec);
    return rc;
}

static int open_packed(stoker_dataset **out, const char *rest,
                       const stoker_dataset_options *options, stoker_error *error)
{
    stoker_packing packing = STOKER_PACKING_INIT;
    struct texts texts = { .field = "" };
    struct stk_spec_text operand;
    stoker_dataset *documents = NULL;
    const char *colon = strstr(rest, ":(");
    const char *behind = colon == NULL ? "" : colon + 1;
    if (colon == NULL || !read_length(&packing.length, rest, colon) ||
        !stk_spec_operand(&behind, &operand) || (behind[0] != '\0' && behind[0] != '?'))
        return refuse_packing(
            error, "write packed:LENGTH:(SPEC), or packed:LENGTH:(SPEC)?block=N&...", rest);
    int rc = behind[0] == '\0' ? STOKER_OK : read_parameters(&packing, &texts, behind + 1, error);
    if (rc == STOKER_OK)
        rc = open_documents(&documents, operand, options, error);
    if (rc == STOKER_OK)
        rc = stoker_dataset_pack(out, documents, &packing, error);
    stoker_dataset_close(&documents);
    return rc;
}

const struct stk_format stk_format_packed = {
    .name = "packed",
    .about = "packed:2048:(SPEC)\trows of one length, packed from samples",
    .open = open_packed
};
