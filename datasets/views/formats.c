/* formats.c - the specs of views, with the wrapped specs in parentheses.
 *
 *   concat:(SPEC)+(SPEC)    select:FILE:(SPEC)    mix_format.c: mix
 */
#include "datasets/formats.h"

#include <string.h>

#include <stoker/views.h>

#include "datasets/views/spec.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

/* ---- concat ----------------------------------------------------------------------------- */

/* Check the whole text, and count its operands. */
static int count_operands(const char *rest, uint32_t *count, stoker_error *error)
{
    struct stk_spec_text operand;
    *count = 0;
    for (;;) {
        if (!stk_spec_operand(&rest, &operand))
            return stk_refuse_spec(error, STOKER_ESPEC,
                                   "concat: write concat:(SPEC)+(SPEC), not \"%.60s\"", rest);
        if (++*count > STK_SPEC_OPERANDS_MAX)
            return stk_refuse_spec(error, STOKER_ELIMIT, "concat: at most 4096 data sets");
        if (rest[0] == '\0')
            return STOKER_OK;
        if (rest[0] != '+')
            return stk_refuse_spec(
                error, STOKER_ESPEC,
                "concat: '+' and a data set in parentheses must follow, not \"%.60s\"", rest);
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
        return stk_refuse_spec(error, STOKER_ENOMEM, "concat: the spec");
    rc = open_all(datasets, rest, options, error);
    if (rc == STOKER_OK)
        rc = stoker_dataset_concat(out, datasets, count, error);
    for (uint32_t i = 0; i < count; i++)
        stoker_dataset_close(&datasets[i]);
    stk_free(datasets);
    return rc;
}

/* ---- select ----------------------------------------------------------------------------- */

static int open_select(stoker_dataset **out, const char *rest,
                       const stoker_dataset_options *options, stoker_error *error)
{
    struct stk_spec_text operand;
    stoker_dataset *dataset = NULL;
    uint64_t *ids = NULL;
    uint64_t count = 0;
    const char *colon = strstr(rest, ":(");
    const char *behind = colon == NULL ? "" : colon + 1;
    if (colon == NULL || colon == rest || !stk_spec_operand(&behind, &operand) || behind[0] != '\0')
        return stk_refuse_spec(error, STOKER_ESPEC,
                               "select: write select:FILE:(SPEC), not \"%.60s\"", rest);
    char *path = stk_calloc((size_t)(colon - rest) + 1, 1);
    if (path == NULL)
        return stk_refuse_spec(error, STOKER_ENOMEM, "select: the spec");
    memcpy(path, rest, (size_t)(colon - rest));
    int rc = stk_spec_open(&dataset, operand, "select", options, error);
    if (rc == STOKER_OK)
        rc = stk_id_file_read(&ids, &count, options->storage, path, options->max_bytes, error);
    if (rc == STOKER_OK)
        rc = stoker_dataset_select(out, dataset, ids, count, error);
    stk_free(ids);
    stk_free(path);
    stoker_dataset_close(&dataset);
    return rc;
}

const struct stk_format stk_format_concat = {
    .name = "concat",
    .about = "concat:(SPEC)+(SPEC)\tseveral, one after the other",
    .open = open_concat
};
const struct stk_format stk_format_select = {
    .name = "select",
    .about = "select:FILE:(SPEC)\tthe samples whose numbers FILE lists",
    .open = open_select
};
