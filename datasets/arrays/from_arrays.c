/* from_arrays.c - stoker_dataset_from_arrays(): check the caller's arrays, then describe them as a
 * set. */
#include <assert.h>
#include <stoker/arrays.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "datasets/arrays/set.h"
#include "loader/base/struct_size.h"

stoker_arrays_options stk_arrays_options_read(const stoker_arrays_options *given)
{
    stoker_arrays_options options = STOKER_ARRAYS_OPTIONS_INIT;
    if (given != NULL)
        stk_struct_read(&options, sizeof(options), given, given->struct_size);
    return options;
}

/* Array number `index`: the caller's structs may be shorter or longer than ours. */
static const void *array_at(const stoker_array *arrays, uint32_t index)
{
    return (const uint8_t *)arrays + index * arrays->struct_size;
}

static stoker_array read_array(const stoker_array *arrays, uint32_t index)
{
    stoker_array array = STOKER_ARRAY_INIT;
    stk_struct_read(&array, sizeof(array), array_at(arrays, index), arrays->struct_size);
    return array;
}

/* All arrays, whose sizes are equal, and the options. */
static bool sizes_fit(const stoker_array *arrays, uint32_t count,
                      const stoker_arrays_options *options)
{
    for (uint32_t i = 0; i < count; i++) {
        const stoker_array *array = array_at(arrays, i);
        if (!stk_struct_fits(array, STK_SIZE_UP_TO(stoker_array, class_names), sizeof(*array)) ||
            array->struct_size != arrays->struct_size)
            return false;
    }
    return options == NULL ||
           stk_struct_fits(options, STK_SIZE_UP_TO(stoker_arrays_options, fingerprint),
                           sizeof(*options));
}

__attribute__((format(printf, 4, 5))) static int refuse_array(stoker_error *error, int code,
                                                              const char *name, const char *format,
                                                              ...)
{
    char what[STK_LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    return stk_refuse_spec(error, code, "array \"%.63s\": %s", name == NULL ? "" : name, what);
}

/* Bytes of one sample, or of one entry if samples vary: all axes but the first then. */
static int measure(struct stk_array *out, const stoker_array *given, stoker_error *error)
{
    const uint32_t first = given->offsets == NULL ? 0 : 1;
    uint64_t bytes = stoker_dtype_bytes(given->dtype);
    if (given->rank >= STOKER_RANK_MAX || bytes == 0 || (first == 1 && given->rank == 0))
        return refuse_array(error, STOKER_EINVAL, given->name,
                            "it needs an element type and up to %d axes, with offsets at least one",
                            STOKER_RANK_MAX - 1);
    for (uint32_t axis = first; axis < given->rank; axis++) {
        if (given->shape[axis] == 0)
            return refuse_array(error, STOKER_EINVAL, given->name, "axis %u of its shape is 0",
                                axis);
        if (__builtin_mul_overflow(bytes, given->shape[axis], &bytes) ||
            bytes > STK_ARRAY_ROW_BYTES_MAX)
            return refuse_array(error, STOKER_ELIMIT, given->name, "a sample has more than 1 GiB");
        out->shape[axis] = given->shape[axis];
    }
    out->row_bytes = bytes;
    return STOKER_OK;
}

/* Offsets never decrease; the longest sample has at least one entry. */
static int check_offsets(struct stk_array *out, const stoker_array *given, uint64_t count,
                         stoker_error *error)
{
    int64_t most = 1;
    if (given->offsets[0] < 0)
        return refuse_array(error, STOKER_EINVAL, given->name, "offset 0 is %" PRId64,
                            given->offsets[0]);
    for (uint64_t i = 0; i < count; i++) {
        if (given->offsets[i + 1] < given->offsets[i])
            return refuse_array(error, STOKER_EINVAL, given->name,
                                "offset %" PRIu64 " is %" PRId64 ", less than %" PRId64
                                " before it",
                                i + 1, given->offsets[i + 1], given->offsets[i]);
        const int64_t entries = given->offsets[i + 1] - given->offsets[i];
        most = entries > most ? entries : most;
    }
    if ((uint64_t)most > STK_ARRAY_ROW_BYTES_MAX / out->row_bytes)
        return refuse_array(error, STOKER_ELIMIT, given->name, "a sample has more than 1 GiB");
    out->offsets = given->offsets;
    out->shape[0] = (uint64_t)most;
    return STOKER_OK;
}

static int take_array(struct stk_array *out, const stoker_array *given, uint64_t count,
                      stoker_error *error)
{
    if (given->name == NULL || strlen(given->name) >= sizeof(out->name))
        return refuse_array(error, STOKER_EINVAL, given->name, "it needs a name of 1 to %d bytes",
                            STOKER_FIELD_NAME_BYTES - 1);
    if (given->data == NULL)
        return refuse_array(error, STOKER_EINVAL, given->name, "its data are NULL");
    memcpy(out->name, given->name, strlen(given->name) + 1);
    out->kind = given->kind;
    out->dtype = given->dtype;
    out->rank = given->rank;
    out->memory = given->data;
    out->class_count = given->class_count;
    out->class_names = given->class_names;
    int rc = measure(out, given, error);
    if (rc == STOKER_OK && given->offsets != NULL)
        rc = check_offsets(out, given, count, error);
    if (rc == STOKER_OK && given->offsets == NULL && count > SIZE_MAX / 2 / out->row_bytes)
        rc = refuse_array(error, STOKER_EINVAL, given->name,
                          "%" PRIu64 " samples do not fit in memory", count);
    return rc;
}

int stk_array_set_read(struct stk_array_set **out, const stoker_array *arrays, uint32_t array_count,
                       uint64_t count, const stoker_arrays_options *options, stoker_error *error)
{
    if (!sizes_fit(arrays, array_count, options))
        return refuse_array(
            error, STOKER_EINVAL, "",
            "struct_size is not set, or a struct has members that this version does not "
            "know: start from STOKER_ARRAY_INIT and STOKER_ARRAYS_OPTIONS_INIT");
    const char *name = array_count == 0 ? "" : arrays->name;
    if (count == 0)
        return refuse_array(error, STOKER_EEMPTY, name, "0 samples");
    struct stk_array_set *set = stk_array_set_new("arrays", array_count, 0);
    if (set == NULL)
        return refuse_array(error, STOKER_ENOMEM, name, "opening");
    set->count = count;
    set->fingerprint = stk_arrays_options_read(options).fingerprint;
    int rc = STOKER_OK;
    for (uint32_t i = 0; rc == STOKER_OK && i < array_count; i++) {
        const stoker_array given = read_array(arrays, i);
        rc = take_array(&set->arrays[i], &given, count, error);
    }
    if (rc == STOKER_OK)
        *out = set;
    else
        stk_array_set_free(set);
    return rc;
}

int stoker_dataset_from_arrays(stoker_dataset **out, const stoker_array *arrays,
                               uint32_t array_count, uint64_t count,
                               const stoker_arrays_options *options, stoker_error *error)
{
    struct stk_array_set *set = NULL;
    if (out == NULL || arrays == NULL || array_count == 0 || array_count > STOKER_FIELDS_MAX)
        return refuse_array(error, STOKER_EINVAL, "", "1 to %d arrays are needed",
                            STOKER_FIELDS_MAX);
    int rc = stk_array_set_read(&set, arrays, array_count, count, options, error);
    if (rc != STOKER_OK)
        return rc;
    assert(set != NULL);
    const stoker_arrays_options chosen = stk_arrays_options_read(options);
    set->release = chosen.destroy;
    set->context = chosen.context;
    rc = stk_array_set_make(out, set, &stk_array_ops_memory, error);
    if (rc != STOKER_OK)
        stk_array_set_free(set);
    return rc;
}
