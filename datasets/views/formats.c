/* formats.c - the specs of views: what they wrap is in parentheses.
 *
 *   concat:(SPEC)+(SPEC)    repeat:3:(SPEC)    select:FILE:(SPEC)    weighted:FILE:(SPEC)    mix_format.c: mix
 */
#include "datasets/formats.h"

#include <string.h>

#include <stoker/views.h>

#include "datasets/views/numbers.h"
#include "datasets/views/spec.h"
#include "loader/base/error.h"
#include "loader/base/memory.h"

static int refuse(stoker_error *error, int code, const char *format, const char *what,
                  const char *at)
{
    const struct stk_place place = STK_NOWHERE;
    (void)stk_error_set(error, code, STOKER_STAGE_OPEN, &place, "%s: %s, not \"%.60s\"", format,
                        what, at);
    return code;
}

static int no_memory(stoker_error *error, const char *format)
{
    const struct stk_place place = STK_NOWHERE;
    return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPEN, &place, "%s: the spec", format);
}

/* ---- concat ----------------------------------------------------------------------------- */

/* Check the whole text, and count its operands. */
static int count_operands(const char *rest, uint32_t *count, stoker_error *error)
{
    struct stk_spec_text operand;
    *count = 0;
    for (;;) {
        if (!stk_spec_operand(&rest, &operand))
            return refuse(error, STOKER_ESPEC, "concat", "write concat:(SPEC)+(SPEC)", rest);
        if (++*count > STK_SPEC_OPERANDS_MAX)
            return refuse(error, STOKER_ELIMIT, "concat", "at most 4096 data sets", rest);
        if (rest[0] == '\0')
            return STOKER_OK;
        if (rest[0] != '+')
            return refuse(error, STOKER_ESPEC, "concat",
                          "'+' and a data set in parentheses must follow", rest);
        rest++;
    }
}

static int open_all(stoker_dataset **datasets, const char *rest,
                    const stoker_dataset_options *options, stoker_error *error)
{
    struct stk_spec_text operand;
    int rc = STOKER_OK;
    for (uint32_t i = 0; rc == STOKER_OK && stk_spec_operand(&rest, &operand); i++) {
        rc = stk_spec_open(&datasets[i], operand, "concat", options, error);
        rest += rest[0] == '+' ? 1 : 0;
    }
    return rc;
}

static int open_concat(stoker_dataset **out, const char *rest,
                       const stoker_dataset_options *options, stoker_error *error)
{
    uint32_t count = 0;
    int rc = count_operands(rest, &count, error);
    if (rc != STOKER_OK)
        return rc;
    stoker_dataset **datasets = stk_calloc(count, sizeof(datasets[0]));
    if (datasets == NULL)
        return no_memory(error, "concat");
    rc = open_all(datasets, rest, options, error);
    if (rc == STOKER_OK)
        rc = stoker_dataset_concat(out, datasets, count, error);
    for (uint32_t i = 0; i < count; i++)
        stoker_dataset_close(&datasets[i]);
    stk_free(datasets);
    return rc;
}

/* ---- WORD:(SPEC) ------------------------------------------------------------------------- */

/* Split "WORD:(SPEC)", and open SPEC. WORD must not be empty. */
static int open_behind(stoker_dataset **out, struct stk_spec_text *word, const char *rest,
                       const char *format, const char *usage, const stoker_dataset_options *options,
                       stoker_error *error)
{
    struct stk_spec_text operand;
    const char *colon = strstr(rest, ":(");
    const char *behind = colon == NULL ? "" : colon + 1;
    if (colon == NULL || colon == rest || !stk_spec_operand(&behind, &operand) || behind[0] != '\0')
        return refuse(error, STOKER_ESPEC, format, usage, rest);
    *word = (struct stk_spec_text){ .at = rest, .bytes = (size_t)(colon - rest) };
    return stk_spec_open(out, operand, format, options, error);
}

static bool read_times(struct stk_spec_text word, uint64_t *times)
{
    *times = 0;
    for (size_t i = 0; i < word.bytes; i++)
        if (word.at[i] < '0' || word.at[i] > '9' || *times > (UINT64_MAX - 9) / 10)
            return false;
        else
            *times = *times * 10 + (uint64_t)(word.at[i] - '0');
    return *times > 0;
}

static int open_repeat(stoker_dataset **out, const char *rest,
                       const stoker_dataset_options *options, stoker_error *error)
{
    struct stk_spec_text word = { .at = NULL };
    stoker_dataset *dataset = NULL;
    uint64_t times;
    int rc =
        open_behind(&dataset, &word, rest, "repeat", "write repeat:TIMES:(SPEC)", options, error);
    if (rc != STOKER_OK)
        return rc;
    rc = read_times(word, &times) ? stoker_dataset_repeat(out, dataset, times, error)
                                  : refuse(error, STOKER_ESPEC, "repeat",
                                           "TIMES is a decimal number of at least 1", rest);
    stoker_dataset_close(&dataset);
    return rc;
}

/* ---- FILE:(SPEC) ------------------------------------------------------------------------- */

static int read_file(struct stk_numbers *numbers, struct stk_spec_text word,
                     enum stk_numbers_kind kind, const char *format,
                     const stoker_dataset_options *options, stoker_error *error)
{
    char *path = stk_calloc(word.bytes + 1, 1);
    if (path == NULL)
        return no_memory(error, format);
    memcpy(path, word.at, word.bytes);
    const int rc = stk_numbers_read(numbers, path, kind, options->max_bytes, error);
    stk_free(path);
    return rc;
}

static int open_select(stoker_dataset **out, const char *rest,
                       const stoker_dataset_options *options, stoker_error *error)
{
    struct stk_spec_text word = { .at = NULL };
    struct stk_numbers numbers = { .count = 0 };
    stoker_dataset *dataset = NULL;
    int rc =
        open_behind(&dataset, &word, rest, "select", "write select:FILE:(SPEC)", options, error);
    if (rc != STOKER_OK)
        return rc;
    rc = read_file(&numbers, word, STK_NUMBERS_IDS, "select", options, error);
    if (rc == STOKER_OK)
        rc = stoker_dataset_select(out, dataset, numbers.ids, numbers.count, error);
    stk_numbers_free(&numbers);
    stoker_dataset_close(&dataset);
    return rc;
}

static int open_weighted(stoker_dataset **out, const char *rest,
                         const stoker_dataset_options *options, stoker_error *error)
{
    struct stk_spec_text word = { .at = NULL };
    struct stk_numbers numbers = { .count = 0 };
    stoker_dataset *dataset = NULL;
    int rc = open_behind(&dataset, &word, rest, "weighted", "write weighted:FILE:(SPEC)", options,
                         error);
    if (rc != STOKER_OK)
        return rc;
    rc = read_file(&numbers, word, STK_NUMBERS_WEIGHTS, "weighted", options, error);
    if (rc == STOKER_OK)
        rc = stoker_dataset_weight(out, dataset, numbers.weights, numbers.count, error);
    stk_numbers_free(&numbers);
    stoker_dataset_close(&dataset);
    return rc;
}

const struct stk_format stk_format_concat = { .name = "concat", .open = open_concat };
const struct stk_format stk_format_repeat = { .name = "repeat", .open = open_repeat };
const struct stk_format stk_format_select = { .name = "select", .open = open_select };
const struct stk_format stk_format_weighted = { .name = "weighted", .open = open_weighted };
