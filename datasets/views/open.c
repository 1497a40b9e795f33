/* open.c - the views that a spec's parameters ask for.
 *
 *   folder:DIR?test=0.1&weighted=balanced ──▶ open folder:DIR ──▶ split ──▶ balance
 *
 * With test=, the split (of the options or the spec) names a side of it, and the format opens its
 * first split. Without, the format gets the split.
 */
#include <stdlib.h>
#include <string.h>

#include <stoker/views.h>

#include "datasets/number.h"
#include "datasets/views/spec.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/dataset/format.h"

/* While a spec is opened. */
struct opening {
    struct stk_spec_wish wish;
    stoker_dataset_options options; /* for the plain data set */
    const char *side;               /* "train", "test"; NULL = none asked for */
    stoker_error *error;
    char plain[]; /* the spec without the parameters of views */
};

static int refuse_value(const struct opening *opening, int code, const char *value,
                        const char *what)
{
    return stk_refuse_spec(opening->error, code, "\"%.64s\": %s", value, what);
}

/* Choose the split of the spec or of the options, which must agree if both give one. The format
 * gets it, unless the spec has test=. */
static int choose_split(struct opening *opening)
{
    const char *asked = opening->options.split;
    const char *given = opening->wish.split;
    if (given[0] != '\0' && asked != NULL && strcmp(asked, given) != 0)
        return refuse_value(opening, STOKER_EINVAL, asked, "the spec asks for another split");
    const char *split = given[0] != '\0' ? given : asked;
    if (opening->wish.test[0] == '\0') {
        opening->options.split = split;
        return STOKER_OK;
    }
    opening->options.split = NULL;
    opening->side = split == NULL ? "train" : split;
    if (strcmp(opening->side, "train") != 0 && strcmp(opening->side, "test") != 0)
        return refuse_value(opening, STOKER_EINVAL, opening->side,
                            "with test= in the spec, the splits are train and test");
    return STOKER_OK;
}

/* A decimal number, with a dot in every locale. */
static int read_share(const struct opening *opening, double *out)
{
    const char *text = opening->wish.test;
    if (stk_number_parse(text, strlen(text), out) != STK_NUMBER)
        return refuse_value(opening, STOKER_ESPEC, text,
                            "test is a share of the samples, like 0.1");
    if (!(*out > 0.0 && *out < 1.0))
        return refuse_value(opening, STOKER_EINVAL, text, "test is above 0 and below 1");
    return STOKER_OK;
}

static int read_split(const struct opening *opening, stoker_split *split)
{
    const struct stk_spec_wish *wish = &opening->wish;
    char *end = NULL;
    *split = (stoker_split)STOKER_SPLIT_INIT;
    int rc = read_share(opening, &split->test);
    if (rc != STOKER_OK)
        return rc;
    split->side = strcmp(opening->side, "test") == 0 ? STOKER_SIDE_TEST : STOKER_SIDE_TRAIN;
    const bool is_flag = wish->stratified[0] == '\0' || strcmp(wish->stratified, "0") == 0 ||
                         strcmp(wish->stratified, "1") == 0;
    if (!is_flag)
        return refuse_value(opening, STOKER_ESPEC, wish->stratified, "stratified is 0 or 1");
    split->stratified = wish->stratified[0] == '1';
    if (wish->seed[0] == '\0')
        return STOKER_OK;
    const size_t digits = strspn(wish->seed, "0123456789");
    split->seed = strtoull(wish->seed, &end, 10);
    return digits <= 19 && wish->seed[digits] == '\0'
               ? STOKER_OK
               : refuse_value(opening, STOKER_ESPEC, wish->seed,
                              "seed is a decimal number of up to 19 digits");
}

/* Put a view around *dataset, and drop the data set itself. */
static int wrap_split(const struct opening *opening, stoker_dataset **dataset)
{
    stoker_split split;
    stoker_dataset *view = NULL;
    int rc = read_split(opening, &split);
    if (rc == STOKER_OK)
        rc = stoker_dataset_split(&view, *dataset, &split, opening->error);
    stoker_dataset_close(dataset);
    *dataset = view;
    return rc;
}

static int wrap_balance(const struct opening *opening, stoker_dataset **dataset)
{
    stoker_dataset *view = NULL;
    int rc =
        strcmp(opening->wish.weighted, "balanced") == 0
            ? stoker_dataset_balance(&view, *dataset, opening->error)
            : refuse_value(
                  opening, STOKER_ESPEC, opening->wish.weighted,
                  "weighted is \"balanced\"; weights of your own are the loader's order.weights");
    stoker_dataset_close(dataset);
    *dataset = view;
    return rc;
}

static int open_wrapped(stoker_dataset **out, struct opening *opening, stk_open_plain *open_plain)
{
    stoker_dataset *dataset = NULL;
    const struct stk_spec_wish *wish = &opening->wish;
    int rc = choose_split(opening);
    if (rc == STOKER_OK && wish->test[0] == '\0' && wish->stratified[0] != '\0')
        rc = refuse_value(opening, STOKER_ESPEC, wish->stratified,
                          wish->format_reads_test
                              ? "stratified: this format reads test= itself, and cannot do that"
                              : "stratified needs test=");
    if (rc == STOKER_OK && wish->test[0] == '\0' && wish->seed[0] != '\0' &&
        !wish->format_reads_seed)
        rc = refuse_value(opening, STOKER_ESPEC, wish->seed, "seed needs test=");
    if (rc == STOKER_OK)
        rc = open_plain(&dataset, opening->plain, &opening->options, opening->error);
    if (rc == STOKER_OK && wish->test[0] != '\0')
        rc = wrap_split(opening, &dataset);
    if (rc == STOKER_OK && wish->weighted[0] != '\0')
        rc = wrap_balance(opening, &dataset);
    if (rc == STOKER_OK)
        *out = dataset;
    return rc;
}

static int refuse_spec(stoker_error *error, int code, const char *what)
{
    return stk_refuse_spec(error, code, "%s", what);
}

int stk_views_open(stoker_dataset **out, const char *spec, const struct stk_format *format,
                   const char *rest, const stoker_dataset_options *options,
                   stk_open_plain *open_plain, stoker_error *error)
{
    if (strchr(spec, '?') == NULL && strchr(spec, '(') == NULL)
        return open_plain(out, spec, options, error);
    if (stk_spec_depth(spec) > STK_SPEC_NESTED_MAX)
        return refuse_spec(error, STOKER_ELIMIT,
                           "the spec: more than 16 parentheses in each other");
    const size_t bytes = strlen(spec) + 1;
    struct opening *opening = stk_calloc(1, sizeof(*opening) + bytes);
    if (opening == NULL)
        return refuse_spec(error, STOKER_ENOMEM, "the spec");
    opening->options = *options;
    opening->error = error;
    int rc = stk_spec_take(&opening->wish, opening->plain, options->storage, spec,
                           format == NULL ? NULL : format->keeps, rest, error);
    if (rc == STOKER_OK)
        rc = open_wrapped(out, opening, open_plain);
    stk_free(opening);
    return rc;
}

int stk_spec_open(stoker_dataset **out, struct stk_spec_text operand, const char *format,
                  const stoker_dataset_options *options, stoker_error *error)
{
    char *spec = stk_calloc(operand.bytes + 1, 1);
    if (spec == NULL)
        return stk_refuse_spec(error, STOKER_ENOMEM, "%s: the spec", format);
    memcpy(spec, operand.at, operand.bytes);
    const int rc = stoker_dataset_open(out, spec, options, error);
    stk_free(spec);
    return rc;
}
