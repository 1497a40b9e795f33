/* mix_format.c - the spec of a mix: a weight before each data set in parentheses.
 *
 *   mix:0.7*(SPEC)+0.3*(SPEC)?epoch_samples=N
 */
#include <string.h>

#include <stoker/mix.h>

#include "datasets/formats.h"
#include "datasets/number.h"
#include "datasets/parameters.h"
#include "datasets/views/spec.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/sampler/sampler.h"

/* While a spec is opened. */
struct opening {
    const stoker_dataset_options *options;
    stoker_error *error;
    stoker_dataset **datasets;
    double *weights;
    uint32_t count;
};

static int no_memory(const struct opening *opening)
{
    return stk_refuse_spec(opening->error, STOKER_ENOMEM, "mix: the spec");
}

/* Cut "WEIGHT*(SPEC)" off the beginning of *rest. */
static int take_term(const struct opening *opening, const char **rest, double *weight,
                     struct stk_spec_text *operand)
{
    const char *star = strchr(*rest, '*');
    const char *behind = star == NULL ? "" : star + 1;
    if (star == NULL || star > *rest + strcspn(*rest, "(") || !stk_spec_operand(&behind, operand))
        return stk_refuse_spec(opening->error, STOKER_ESPEC,
                               "mix: write mix:WEIGHT*(SPEC)+WEIGHT*(SPEC), not \"%.60s\"", *rest);
    if (stk_number_parse(*rest, (size_t)(star - *rest), weight) != STK_NUMBER)
        return stk_refuse_spec(opening->error, STOKER_ESPEC,
                               "mix: a weight is a decimal number, like 0.7, not \"%.60s\"", *rest);
    *rest = behind;
    return STOKER_OK;
}

/* Go through all terms, and open them if there is room. *rest is then at the end, or at the '?'
 * before parameters. */
static int take_terms(struct opening *opening, const char **rest)
{
    for (uint32_t i = 0;; i++, ++*rest) {
        struct stk_spec_text operand = { .at = NULL };
        double weight = 0.0;
        int rc = take_term(opening, rest, &weight, &operand);
        if (rc == STOKER_OK && opening->datasets != NULL) {
            opening->weights[i] = weight;
            rc = stk_spec_open(&opening->datasets[i], operand, "mix", opening->options,
                               opening->error);
        }
        if (rc != STOKER_OK)
            return rc;
        if (i + 1 > STOKER_MIX_SOURCES_MAX)
            return stk_refuse_spec(opening->error, STOKER_ELIMIT,
                                   "mix: at most 4096 data sets, not \"%.60s\"", *rest);
        opening->count = i + 1;
        if (*rest[0] == '\0' || *rest[0] == '?')
            return STOKER_OK;
        if (*rest[0] != '+')
            return stk_refuse_spec(opening->error, STOKER_ESPEC,
                                   "mix: '+' and WEIGHT*(SPEC) must follow, not \"%.60s\"", *rest);
    }
}

static int read_parameters(const struct opening *opening, const char *rest, stoker_mix *mix)
{
    const struct stk_parameter table[] = { { .key = "epoch_samples",
                                             .number = &mix->epoch_samples,
                                             .least = 1,
                                             .most = STK_SAMPLER_COUNT_MAX } };
    return rest[0] == '\0' ? STOKER_OK
                           : stk_parameters_read(rest + 1, table, 1, "mix", opening->error);
}

static int open_terms(stoker_dataset **out, struct opening *opening, const char *rest)
{
    const char *at = rest;
    stoker_mix mix = STOKER_MIX_INIT;
    int rc = take_terms(opening, &at);
    if (rc == STOKER_OK)
        rc = read_parameters(opening, at, &mix);
    if (rc != STOKER_OK)
        return rc;
    opening->datasets = stk_calloc(opening->count, sizeof(opening->datasets[0]));
    opening->weights = stk_calloc(opening->count, sizeof(opening->weights[0]));
    mix.weights = opening->weights;
    at = rest;
    rc = opening->datasets == NULL || opening->weights == NULL ? no_memory(opening)
                                                               : take_terms(opening, &at);
    return rc == STOKER_OK
               ? stoker_dataset_mix(out, opening->datasets, opening->count, &mix, opening->error)
               : rc;
}

static int open_mix(stoker_dataset **out, const char *rest, const stoker_dataset_options *options,
                    stoker_error *error)
{
    struct opening opening = { .options = options, .error = error };
    const int rc = open_terms(out, &opening, rest);
    for (uint32_t i = 0; opening.datasets != NULL && i < opening.count; i++)
        stoker_dataset_close(&opening.datasets[i]);
    stk_free(opening.datasets);
    stk_free(opening.weights);
    return rc;
}

const struct stk_format stk_format_mix = {
    .name = "mix",
    .about = "mix:0.7*(SPEC)+0.3*(SPEC)\tseveral, each with its share",
    .open = open_mix
};
