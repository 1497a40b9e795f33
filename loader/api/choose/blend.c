/* blend.c - see blend.h. */
#include "loader/api/choose/blend.h"

#include <stdarg.h>
#include <stdio.h>

#include <stoker/stoker.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

__attribute__((format(printf, 3, 4))) static int refuse(stoker_error *error, int code,
                                                        const char *format, ...)
{
    const struct stk_place nowhere = STK_NOWHERE;
    char line[STK_LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    return stk_error_set(error, code, STOKER_STAGE_OPTIONS, &nowhere, "blend.%s", line);
}

/* ---- numbers ---- */

static int check_alpha(const char *name, float alpha, stoker_error *error)
{
    return alpha == 0.0F || (alpha >= 0.01F && alpha <= 100.0F)
               ? 0
               : refuse(error, STOKER_EINVAL, "%s %g is neither 0 nor in 0.01..100", name,
                        (double)alpha);
}

static int check_share(const char *name, float share, stoker_error *error)
{
    return share >= 0.0F && share <= 1.0F
               ? 0
               : refuse(error, STOKER_EINVAL, "%s %g is not in 0..1", name, (double)share);
}

int stk_blend_check(const stoker_blend *mixing, stoker_error *error)
{
    int rc = check_alpha("mixup_alpha", mixing->mixup_alpha, error);
    if (rc == 0)
        rc = check_alpha("cutmix_alpha", mixing->cutmix_alpha, error);
    if (rc == 0)
        rc = check_share("probability", mixing->probability, error);
    if (rc == 0)
        rc = check_share("cutmix_share", mixing->cutmix_share, error);
    for (size_t i = 0; rc == 0 && i < sizeof(mixing->reserved) / sizeof(mixing->reserved[0]); i++)
        if (mixing->reserved[i] != 0)
            rc = refuse(error, STOKER_EINVAL,
                        "reserved[%zu] is not 0: it asks for something that this version lacks", i);
    return rc;
}

/* ---- what is mixed ---- */

static bool is_mask(const stoker_loader *loader, uint32_t field)
{
    return loader->pipeline.dataset->fields[field].info.kind == STOKER_FIELD_KIND_MASK;
}

static int plan_mixup(struct stk_mix_array *images, const stoker_loader *loader,
                      stoker_error *error)
{
    const stoker_dataset *dataset = loader->pipeline.dataset;
    const stoker_tensor *values = &loader->outputs.each[0].view.values;
    if (dataset->fields[0].info.varies)
        return refuse(error, STOKER_ENOTSUP, "mixup_alpha: the length of field \"%s\" varies",
                      dataset->fields[0].info.name);
    if (!stk_mix_type_of(values->dtype, &images->type))
        return refuse(error, STOKER_ETYPE,
                      "mixup_alpha: %s cannot be blended; deliver uint8, float16, bfloat16 or "
                      "float32",
                      stoker_dtype_name(values->dtype));
    for (uint32_t i = 1; i < dataset->info.field_count; i++)
        if (is_mask(loader, i))
            return refuse(error, STOKER_ENOTSUP,
                          "mixup_alpha: the mask \"%s\" cannot be blended; cutmix cuts it",
                          dataset->fields[i].info.name);
    images->elements = 1;
    for (uint32_t axis = 1; axis < values->rank; axis++)
        images->elements *= (size_t)values->shape[axis];
    return 0;
}

static int plan_cutmix(struct stk_blend_plan *plan, const stoker_loader *loader,
                       stoker_error *error)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    const bool planes = loader->options.layout == STOKER_LAYOUT_NCHW;
    struct stk_mix_array *images = &plan->arrays[0];
    if (!pipeline->dataset->info.is_image)
        return refuse(error, STOKER_EINVAL, "cutmix_alpha needs images");
    images->height = plan->height = (uint32_t)pipeline->shape[0];
    images->width = plan->width = (uint32_t)pipeline->shape[1];
    images->planes = planes ? (uint32_t)pipeline->shape[2] : 1;
    images->pixel_bytes =
        stoker_dtype_bytes(loader->options.dtype) * (planes ? 1 : (size_t)pipeline->shape[2]);
    return 0;
}

/* Masks are cut as stored: options.fields changes their type afterwards. */
static int add_mask(struct stk_blend_plan *plan, const stoker_loader *loader, uint32_t field,
                    stoker_error *error)
{
    const struct stk_output *output = &loader->outputs.each[field];
    const uint64_t *shape = output->view.values.shape;
    if (output->varies || shape[1] != plan->height || shape[2] != plan->width)
        return refuse(error, STOKER_ENOTSUP,
                      "cutmix_alpha: the mask \"%s\" has another height or width than field 0",
                      output->view.name);
    plan->arrays[plan->array_count++] = (struct stk_mix_array){
        .field = field,
        .height = plan->height,
        .width = plan->width,
        .planes = 1,
        .pixel_bytes =
            output->elements / ((size_t)plan->height * plan->width) * output->retype.from_bytes,
    };
    return 0;
}

int stk_blend_plan(struct stk_blend_plan *plan, const stoker_loader *loader, stoker_error *error)
{
    const stoker_blend *options = &loader->options.blend;
    const struct stk_outputs *outputs = &loader->outputs;
    const uint32_t count = loader->pipeline.dataset->info.field_count;
    *plan = (struct stk_blend_plan){ .on = stk_blend_wanted(options) };
    if (!plan->on)
        return 0;
    plan->options = *options;
    plan->seed = loader->options.seed;
    plan->label = outputs->mixed.label_b != STK_NO_FIELD ? outputs->label : STK_NO_FIELD;
    plan->label_b = outputs->mixed.label_b;
    plan->partner = outputs->mixed.partner;
    plan->lambda = outputs->mixed.lambda;
    plan->arrays = stk_calloc(count, sizeof(plan->arrays[0]));
    if (plan->arrays == NULL)
        return STOKER_ENOMEM;
    plan->arrays[plan->array_count++].on_device = loader->device_convert.on;
    int rc = options->mixup_alpha > 0.0F ? plan_mixup(&plan->arrays[0], loader, error) : 0;
    if (rc == 0 && options->cutmix_alpha > 0.0F)
        rc = plan_cutmix(plan, loader, error);
    for (uint32_t i = 1; rc == 0 && options->cutmix_alpha > 0.0F && i < count; i++)
        if (is_mask(loader, i))
            rc = add_mask(plan, loader, i, error);
    return rc;
}
