/* outputs.c - see outputs.h. */
#include "loader/api/outputs.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <stoker/stoker.h>

#include "loader/api/loader.h"
#include "loader/base/error.h"
#include "loader/base/struct_size.h"
#include "loader/pipeline/batch/blend.h"

enum { MIXED_FIELDS = 3 }; /* that options.blend adds, at most */

/* ---- options.fields ---- */

__attribute__((format(printf, 4, 5))) static int refuse(stoker_error *error, int code,
                                                        const char *name, const char *format, ...)
{
    const struct stk_place nowhere = STK_NOWHERE;
    char line[STK_LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    return stk_error_set(error, code, STOKER_STAGE_OPTIONS, &nowhere, "options.fields, \"%s\": %s",
                         name, line);
}

/* Element `index` of the caller's array, whose elements may be of an older version. */
static const stoker_field_options *given_at(const stoker_loader_options *options, uint32_t index)
{
    const size_t size = options->fields->struct_size;
    return (const stoker_field_options *)(const void *)((const char *)options->fields +
                                                        index * size);
}

/* The options of each field of the data set: found[0..field_count). */
static int find_given(const stoker_loader *loader, stoker_field_options *found, stoker_error *error)
{
    const stoker_loader_options *options = &loader->options;
    const stoker_dataset *dataset = loader->pipeline.dataset;
    for (uint32_t i = 0; i < dataset->info.field_count; i++)
        found[i] = (stoker_field_options)STOKER_FIELD_OPTIONS_INIT;
    if (options->fields == NULL && options->field_count > 0)
        return refuse(error, STOKER_EINVAL, "", "field_count %" PRIu32 " without fields",
                      options->field_count);
    for (uint32_t i = 0; i < options->field_count; i++) {
        const stoker_field_options *given = given_at(options, i);
        if (given->struct_size != options->fields->struct_size ||
            !stk_struct_fits(given, STK_SIZE_UP_TO(stoker_field_options, fill_value),
                             sizeof(*given)))
            return refuse(error, STOKER_EINVAL, "?", STK_STRUCT_REFUSAL, "stoker_field_options",
                          given->struct_size, sizeof(*given), "STOKER_FIELD_OPTIONS_INIT");
        const int32_t field = stoker_dataset_find_field(dataset, given->name);
        if (field < 0)
            return refuse(error, STOKER_EINVAL, given->name == NULL ? "" : given->name,
                          "the data set has no such field");
        if (found[field].name != NULL)
            return refuse(error, STOKER_EINVAL, given->name, "given twice");
        stk_struct_read(&found[field], sizeof(found[field]), given, given->struct_size);
    }
    return 0;
}

/* ---- one field ---- */

static bool is_float(stoker_dtype dtype)
{
    return dtype == STOKER_DTYPE_FLOAT16 || dtype == STOKER_DTYPE_BFLOAT16 ||
           dtype == STOKER_DTYPE_FLOAT32 || dtype == STOKER_DTYPE_FLOAT64;
}

/* Write a number as an element. Returns false if the type cannot hold it. */
static bool write_element(uint8_t *at, stoker_dtype dtype, double value)
{
    const size_t bytes = stoker_dtype_bytes(dtype);
    if (is_float(dtype)) {
        stk_elements_fn *convert = stk_elements_choose(STOKER_DTYPE_FLOAT64, dtype);
        convert(&value, at, 1);
        return true;
    }
    const bool is_signed = dtype == STOKER_DTYPE_INT8 || dtype == STOKER_DTYPE_INT16 ||
                           dtype == STOKER_DTYPE_INT32 || dtype == STOKER_DTYPE_INT64;
    const int bits = dtype == STOKER_DTYPE_BOOL ? 1 : (int)bytes * 8 - (is_signed ? 1 : 0);
    const double most = ldexp(1.0, bits);
    if (!(value >= (is_signed ? -most : 0.0)) || !(value < most) || value != floor(value))
        return false;
    const uint64_t number = value < 0.0 ? (uint64_t)(int64_t)value : (uint64_t)value;
    memcpy(at, &number, bytes); /* little-endian: the low bytes */
    return true;
}

static const stoker_field_options default_field = STOKER_FIELD_OPTIONS_INIT;

/* Elements of a row of field 0 along its first axis; 0 = it varies, or has none. */
static uint64_t first_row_length(const stoker_dataset *dataset)
{
    const stoker_field_info *first = &dataset->fields[0].info;
    return first->varies || first->rank == 0 ? 0 : first->shape[0];
}

/* The places of a batch laid end to end. */
static int plan_join(struct stk_output *output, const stoker_field_info *info,
                     const stoker_loader *loader, stoker_error *error)
{
    const stoker_dtype dtype = output->view.values.dtype;
    const uint64_t length = first_row_length(loader->pipeline.dataset);
    if (info->rank != 1 || (dtype != STOKER_DTYPE_INT32 && dtype != STOKER_DTYPE_INT64))
        return refuse(error, STOKER_EINVAL, info->name,
                      "form JOINED is for places: one axis, delivered as int32 or int64");
    if (length == 0)
        return refuse(error, STOKER_EINVAL, info->name,
                      "form JOINED needs a field 0 of one length");
    if (length > (uint64_t)INT32_MAX / loader->options.batch_size && dtype == STOKER_DTYPE_INT32)
        return refuse(error, STOKER_ELIMIT, info->name,
                      "form JOINED: %" PRIu32 " rows of %" PRIu64 " are more than int32 counts",
                      loader->options.batch_size, length);
    output->pack.row_length = length;
    return 0;
}

static int plan_pack(struct stk_output *output, const stoker_field_info *info,
                     const stoker_loader *loader, const stoker_field_options *given,
                     stoker_error *error)
{
    if ((unsigned)given->form > STOKER_FIELD_FORM_JOINED)
        return refuse(error, STOKER_EINVAL, info->name,
                      "form %d is not PACKED, PADDED, PADDED_MULTIPLE, PADDED_MAX or JOINED",
                      (int)given->form);
    if (!info->varies && given->form != STOKER_FIELD_FORM_PACKED)
        return refuse(error, STOKER_EINVAL, info->name, "form %s a field that does not vary",
                      given->form == STOKER_FIELD_FORM_JOINED ? "joins" : "pads");
    if (given->multiple != default_field.multiple &&
        given->form != STOKER_FIELD_FORM_PADDED_MULTIPLE)
        return refuse(error, STOKER_EINVAL, info->name, "multiple is for form PADDED_MULTIPLE");
    if (given->pad_value != 0.0 &&
        (given->form == STOKER_FIELD_FORM_PACKED || given->form == STOKER_FIELD_FORM_JOINED))
        return refuse(error, STOKER_EINVAL, info->name, "pad_value is for a form that pads");
    if (!info->varies)
        return 0;
    if (given->multiple < 1 || given->multiple > STOKER_FIELD_MULTIPLE_MAX)
        return refuse(error, STOKER_EINVAL, info->name, "multiple %" PRIu32 " is not in 1..%d",
                      given->multiple, STOKER_FIELD_MULTIPLE_MAX);
    output->pack = (struct stk_pack){ .form = given->form,
                                      .length_max = info->shape[0],
                                      .multiple = given->multiple,
                                      .entry_bytes = output->elements * output->retype.to_bytes };
    output->pack.pad_bytes = stoker_dtype_bytes(output->view.values.dtype);
    if (!write_element(output->pack.pad, output->view.values.dtype, given->pad_value))
        return refuse(error, STOKER_EINVAL, info->name, "%s cannot hold pad_value %g",
                      stoker_dtype_name(output->view.values.dtype), given->pad_value);
    return given->form == STOKER_FIELD_FORM_JOINED ? plan_join(output, info, loader, error) : 0;
}

/* Shape of one sample of field `index` as delivered, in shape[1..]. */
static void plan_shape(const stoker_loader *loader, uint32_t index, stoker_tensor *values)
{
    const stoker_field_info *info = &loader->pipeline.dataset->fields[index].info;
    const uint64_t *delivered = loader->pipeline.shape; /* field 0, channels last */
    values->rank = info->rank + 1;
    memcpy(&values->shape[1], index == 0 ? delivered : info->shape,
           info->rank * sizeof(values->shape[0]));
    if (info->kind == STOKER_FIELD_KIND_MASK && loader->facts.transforms) {
        values->shape[1] = delivered[0];
        values->shape[2] = delivered[1];
    }
    if (index == 0 && loader->options.layout == STOKER_LAYOUT_NCHW) {
        values->shape[1] = delivered[2]; /* checked at create: height, width, channels */
        values->shape[2] = delivered[0];
        values->shape[3] = delivered[1];
    }
}

/* Elements of a row; if the field varies, of one step along its first axis. */
static size_t elements_of(const stoker_tensor *values, bool varies)
{
    size_t elements = 1;
    for (uint32_t axis = varies ? 2 : 1; axis < values->rank; axis++)
        elements *= (size_t)values->shape[axis]; /* checked with the data set: it fits */
    return elements;
}

static size_t greater(size_t a, size_t b)
{
    return a > b ? a : b;
}

static int plan_type(struct stk_output *output, const stoker_field_info *info, stoker_dtype dtype,
                     stoker_error *error)
{
    stk_elements_fn *convert = stk_elements_choose(info->dtype, dtype);
    output->view.values.dtype = dtype;
    output->retype = (struct stk_retype){ .convert = dtype == info->dtype ? NULL : convert,
                                          .from_bytes = stoker_dtype_bytes(info->dtype),
                                          .to_bytes = stoker_dtype_bytes(dtype) };
    if (convert != NULL)
        return 0;
    return refuse(error, STOKER_ETYPE, info->name, "dtype: %s cannot be converted to %s",
                  stoker_dtype_name(info->dtype), stoker_dtype_name(dtype));
}

/* Let rows of field 0 that vary be scaled: workers convert only rows of one length. */
static void plan_scale(struct stk_output *output, const stoker_loader *loader, stoker_dtype from)
{
    const struct stk_convert_plan *plan = &loader->pipeline.convert;
    struct stk_retype *retype = &output->retype;
    bool changes = false;
    for (uint32_t i = 0; i < plan->period; i++)
        changes = changes || plan->factor[i] != 1.0F || plan->bias[i] != 0.0F;
    if (!changes || !is_float(plan->to))
        return;
    retype->to_float = stk_elements_choose(from, STOKER_DTYPE_FLOAT32);
    retype->convert = stk_elements_choose(STOKER_DTYPE_FLOAT32, plan->to);
    retype->factor = plan->factor;
    retype->bias = plan->bias;
    retype->period = plan->period;
}

/* Room for a row in either type: workers write it as stored. */
static int plan_size(const struct stk_output *output, struct stk_field_size *size)
{
    const struct stk_retype *retype = &output->retype;
    const size_t entry_bytes = output->elements * greater(retype->from_bytes, retype->to_bytes);
    const uint64_t entries = output->varies ? stk_pack_length_max(&output->pack) : 1;
    size->entry_bytes = output->varies ? entry_bytes : 0;
    return __builtin_mul_overflow(entry_bytes, entries, &size->row_bytes) ||
                   size->row_bytes > SIZE_MAX / 4
               ? STOKER_ENOMEM
               : 0;
}

/* fills: it is a mask whose image is transformed. */
static int plan_fill(struct stk_output *output, const stoker_field_info *info, bool fills,
                     const stoker_field_options *given, stoker_error *error)
{
    if (!fills && given->fill_value != 0.0)
        return refuse(error, STOKER_EINVAL, info->name,
                      "fill_value fills only masks whose image has a transform");
    if (!fills)
        return 0;
    return write_element(output->fill, info->dtype, given->fill_value)
               ? 0
               : refuse(error, STOKER_EINVAL, info->name, "%s cannot hold fill_value %g",
                        stoker_dtype_name(info->dtype), given->fill_value);
}

static int plan_field(struct stk_outputs *outputs, const stoker_loader *loader, uint32_t index,
                      const stoker_field_options *given, stoker_error *error)
{
    const stoker_field_info *info = &loader->pipeline.dataset->fields[index].info;
    struct stk_output *output = &outputs->each[index];
    const bool by_rows = index == 0 && !info->varies; /* rows of images: workers convert them */
    stoker_dtype dtype = given->dtype != STOKER_DTYPE_NONE ? given->dtype : info->dtype;
    if (index == 0 && given->dtype != STOKER_DTYPE_NONE)
        return refuse(error, STOKER_EINVAL, info->name, "the type of field 0 is options.dtype");
    if (index == 0)
        dtype = loader->options.dtype;
    output->view.name = info->name;
    output->varies = info->varies;
    plan_shape(loader, index, &output->view.values);
    output->elements = elements_of(&output->view.values, info->varies);
    int rc = plan_type(output, info, dtype, error);
    if (rc == 0 && index == 0 && info->varies)
        plan_scale(output, loader, info->dtype);
    if (rc == 0)
        rc = plan_pack(output, info, loader, given, error);
    if (rc == 0)
        rc =
            plan_fill(output, info,
                      index > 0 && info->kind == STOKER_FIELD_KIND_MASK && loader->facts.transforms,
                      given, error);
    if (rc == 0)
        rc = plan_size(output, &outputs->sizes[index]);
    if (by_rows) {
        output->retype.convert = NULL;
        outputs->sizes[index].row_bytes = loader->pipeline.convert.to_bytes;
    }
    outputs->finish.needed =
        outputs->finish.needed || info->varies || output->retype.convert != NULL;
    return rc;
}

/* ---- the fields of options.blend ---- */

/* A field of one number per sample. */
static uint32_t add_number(struct stk_outputs *outputs, const char *name, stoker_dtype dtype)
{
    const size_t bytes = stoker_dtype_bytes(dtype);
    const uint32_t index = outputs->count++;
    outputs->each[index] =
        (struct stk_output){ .view = { .name = name, .values = { .dtype = dtype, .rank = 1 } },
                             .retype = { .from_bytes = bytes, .to_bytes = bytes },
                             .elements = 1 };
    outputs->sizes[index] = (struct stk_field_size){ .row_bytes = bytes };
    outputs->row_bytes += bytes;
    return index;
}

static void add_mixed(struct stk_outputs *outputs)
{
    outputs->mixed.label_b = STK_NO_FIELD;
    if (outputs->label != STK_NO_FIELD) {
        const uint32_t index = outputs->mixed.label_b = outputs->count++;
        outputs->each[index] = outputs->each[outputs->label];
        outputs->each[index].view.name = "label_b";
        outputs->sizes[index] = outputs->sizes[outputs->label];
        outputs->row_bytes += outputs->sizes[index].row_bytes;
    }
    outputs->mixed.partner = add_number(outputs, "partner", STOKER_DTYPE_INT64);
    outputs->mixed.lambda = add_number(outputs, "lambda", STOKER_DTYPE_FLOAT32);
}

/* The data set has room for these fields, and none of their names. */
static int check_mixed(const stoker_dataset *dataset, stoker_error *error)
{
    static const char *const names[] = { "label_b", "partner", "lambda" };
    const struct stk_place nowhere = STK_NOWHERE;
    for (uint32_t i = 0; i < MIXED_FIELDS; i++)
        if (stoker_dataset_find_field(dataset, names[i]) >= 0)
            return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                                 "blend adds a field \"%s\", which the data set has already",
                                 names[i]);
    if (dataset->info.field_count + MIXED_FIELDS <= STOKER_FIELDS_MAX)
        return 0;
    return stk_error_set(error, STOKER_ELIMIT, STOKER_STAGE_OPTIONS, &nowhere,
                         "blend adds %d fields to the data set's %" PRIu32 ": more than %d",
                         MIXED_FIELDS, dataset->info.field_count, STOKER_FIELDS_MAX);
}

int stk_outputs_init(struct stk_outputs *outputs, const stoker_loader *loader, stoker_error *error)
{
    const stoker_dataset *dataset = loader->pipeline.dataset;
    const uint32_t count = dataset->info.field_count;
    const bool mixes = stk_blend_wanted(&loader->options.blend);
    const size_t most = count + (mixes ? MIXED_FIELDS : 0);
    *outputs = (struct stk_outputs){ .count = count };
    outputs->label = dataset->label >= 0 ? (uint32_t)dataset->label : STK_NO_FIELD;
    outputs->each = stk_calloc(most, sizeof(outputs->each[0]));
    outputs->sizes = stk_calloc(most, sizeof(outputs->sizes[0]));
    stoker_field_options *given = stk_calloc(count, sizeof(given[0]));
    int rc = STOKER_ENOMEM;
    if (outputs->each != NULL && outputs->sizes != NULL && given != NULL)
        rc = find_given(loader, given, error);
    if (rc == 0 && mixes)
        rc = check_mixed(dataset, error);
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        rc = plan_field(outputs, loader, i, &given[i], error);
        outputs->row_bytes += i == 0 ? loader->row_bytes : outputs->sizes[i].row_bytes;
    }
    if (rc == 0 && mixes)
        add_mixed(outputs);
    stk_free(given);
    outputs->finish.outputs = outputs->each;
    if (rc < 0)
        stk_outputs_destroy(outputs);
    return rc;
}

void stk_outputs_destroy(struct stk_outputs *outputs)
{
    stk_free(outputs->each);
    stk_free(outputs->sizes);
    *outputs = (struct stk_outputs){ .label = STK_NO_FIELD };
}

/* ---- the fields of a batch ---- */

void stk_outputs_place(const struct stk_outputs *outputs, const struct stk_slots *slots,
                       uint8_t *memory, void *images, const int64_t *host, stoker_field *fields)
{
    for (uint32_t i = 0; i < outputs->count; i++) {
        const struct stk_slot_field *field = &slots->fields.each[i];
        fields[i] = outputs->each[i].view;
        fields[i].values.data = i == 0 ? images : memory + field->at;
        if (!outputs->each[i].varies)
            continue;
        fields[i].device_offsets = (const int64_t *)(const void *)(memory + field->offsets_at);
        fields[i].offsets = fields[i].device_offsets;
        if (host != NULL) {
            fields[i].offsets = host;
            host += slots->batch_size + STK_OFFSETS_MORE;
        }
    }
}

void stk_outputs_describe(const struct stk_outputs *outputs, uint32_t batch_size, uint32_t rows,
                          stoker_field *fields)
{
    for (uint32_t i = 0; i < outputs->count; i++) {
        stoker_tensor *values = &fields[i].values;
        values->shape[0] = rows;
        if (!outputs->each[i].varies)
            continue;
        const uint64_t packed = (uint64_t)fields[i].offsets[batch_size + 1];
        if (stk_pack_pads(&outputs->each[i].pack)) {
            values->shape[1] = packed;
            continue;
        }
        /* The sample's first axis is the batch's. */
        const stoker_tensor *sample = &outputs->each[i].view.values;
        values->rank = sample->rank - 1;
        values->shape[0] = packed;
        memcpy(&values->shape[1], &sample->shape[2], (sample->rank - 2) * sizeof(values->shape[0]));
    }
}
