/* build.h - how the layer functions (layers.c) add to the list of layers (model.c).
 *
 *   begin ──▶ draft: a layer and its parameters, checked step by step ──▶ append
 *                 └── fail: the model keeps the error, the draft is dropped
 */
#ifndef STK_TRAINER_BUILD_H
#define STK_TRAINER_BUILD_H

#include "trainer/model/model.h"

struct stk_draft {
    struct stk_layer layer;
    struct stk_parameter parameters[STK_PARAMETERS_PER_LAYER];
    struct stk_parameter statistics[STK_STATISTICS_PER_LAYER];
    uint32_t parameter_count, statistic_count;
};

/* Starts a layer of that kind with the model's next input; its output has the shape of its input.
 * Returns 0 or the model's first error; STOKER_EINVAL if model is NULL. */
int stk_model_begin(stoker_model *model, struct stk_draft *draft, enum stk_layer_kind kind,
                    const char *name);

/* Stores "layer 'NAME' (KIND) ..." as the model's error, and returns code. */
int stk_model_fail(stoker_model *model, const struct stk_draft *draft, int code, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));

/* Adds a tensor "NAME.suffix" with PyTorch's shape. Returns its index in the model. */
int32_t stk_draft_parameter(const stoker_model *model, struct stk_draft *draft,
                            enum stk_parameter_role role, const char *suffix, uint32_t rank,
                            const uint32_t *torch_shape);
int32_t stk_draft_statistic(const stoker_model *model, struct stk_draft *draft, const char *suffix,
                            uint32_t elements);

/* Checks the limits, then adds the layer and its parameters; on failure nothing is added. */
int stk_model_append(stoker_model *model, const struct stk_draft *draft);

/* Index of the layer of that name, or UINT32_MAX. */
uint32_t stk_model_find(const stoker_model *model, const char *name);

#endif
