/* stoker/arrays.h - make a data set of arrays in memory, without callbacks and without a copy.
 *
 *   stoker_array arrays[2] = { STOKER_ARRAY_INIT, STOKER_ARRAY_INIT };
 *   arrays[0].name = "row";   arrays[0].data = x; arrays[0].dtype = STOKER_DTYPE_FLOAT32;
 *   arrays[0].rank = 1;       arrays[0].shape[0] = 13;
 *   arrays[1].name = "label"; arrays[1].data = y; arrays[1].dtype = STOKER_DTYPE_INT32;
 *   stoker_dataset_from_arrays(&dataset, arrays, 2, 506, NULL, &error);
 *
 *   data      [ sample 0 | sample 1 | sample 2 | ... ]      dense, last axis fastest, host byte order
 *
 *   varying   data     [ 0 0 0 | 1 | 2 2 | ... ]            entries along the first axis of a sample
 *             offsets  [ 0, 3, 4, 6, ... ]                  sample i: offsets[i] .. offsets[i + 1]
 */
#ifndef STOKER_ARRAYS_H
#define STOKER_ARRAYS_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>
#include <stoker/error.h>

STOKER_BEGIN_DECLS

/* One field of every sample. Start from STOKER_ARRAY_INIT, then set name, data, dtype and the
 * axes. */
typedef struct stoker_array {
    size_t struct_size; /* set by STOKER_ARRAY_INIT; the same in all arrays of one call */
    const char *name;   /* field name: see stoker_field_info; copied. No default */
    const void *data;   /* the samples; borrowed: see stoker_arrays_options.destroy. No default */
    stoker_dtype dtype; /* element type of data. No default */
    stoker_field_kind kind; /* default STOKER_FIELD_KIND_ARRAY */
    uint32_t rank;          /* axes of one sample, 0..STOKER_RANK_MAX - 1; default 0: a number */
    /* Lengths of one sample's axes; images and masks are height, width, channels. shape[0] is
     * ignored with offsets. */
    uint64_t shape[STOKER_RANK_MAX];
    /* If samples differ in the length of the first axis: count + 1 offsets in data, in entries of
     * that axis, never decreasing; borrowed like data. Default NULL = all samples have shape. */
    const int64_t *offsets;
    uint32_t class_count; /* values are 0..class_count - 1. Default 0 = no classes, or unknown */
    /* class_count names, borrowed like data; of the field "label", else of the first field with
     * classes. Default NULL = none. */
    const char *const *class_names;
} stoker_array;

typedef struct stoker_arrays_options {
    size_t struct_size; /* set by STOKER_ARRAYS_OPTIONS_INIT */
    /* Called with `context`, in any thread, once the last owner of the data set has closed it: free
     * the arrays then. Not called if the call fails. Default NULL. */
    void (*destroy)(void *context);
    void *context;        /* default NULL */
    uint64_t fingerprint; /* see stoker_dataset_info; default 0 = none */
} stoker_arrays_options;

#define STOKER_ARRAY_DEFAULTS          STOKER_DEFAULT(struct_size, sizeof(stoker_array))
#define STOKER_ARRAYS_OPTIONS_DEFAULTS STOKER_DEFAULT(struct_size, sizeof(stoker_arrays_options))

STOKER_MAKER(stoker_array, STOKER_ARRAY_DEFAULTS)
#define STOKER_ARRAY_INIT STOKER_INITIALIZER(stoker_array, STOKER_ARRAY_DEFAULTS)
STOKER_API int stoker_array_init_sized(stoker_array *out, size_t struct_size);

STOKER_MAKER(stoker_arrays_options, STOKER_ARRAYS_OPTIONS_DEFAULTS)
#define STOKER_ARRAYS_OPTIONS_INIT                                                                 \
    STOKER_INITIALIZER(stoker_arrays_options, STOKER_ARRAYS_OPTIONS_DEFAULTS)
STOKER_API int stoker_arrays_options_init_sized(stoker_arrays_options *out, size_t struct_size);

/* Make a data set of `count` >= 1 samples from array_count arrays, 1 to STOKER_FIELDS_MAX; field i
 * is arrays[i]. The data are not copied, and must not change while the data set is open. An array
 * "label" of one integer of up to 32 bits per sample becomes int64, like the labels of all data
 * sets; other arrays keep their types. options may be NULL. Fastest with the largest array first
 * and without offsets: then a loader gathers rows without a call per sample.
 *
 * On success the caller owns *out; on failure it is untouched. Errors: STOKER_EINVAL (an argument,
 * shape, name or offset is invalid; the message names the array), STOKER_EEMPTY, STOKER_ELIMIT (a
 * sample of an array has more than 1 GiB), STOKER_ENOMEM. */
STOKER_API int stoker_dataset_from_arrays(stoker_dataset **out, const stoker_array *arrays,
                                          uint32_t array_count, uint64_t count,
                                          const stoker_arrays_options *options,
                                          stoker_error *error);

STOKER_END_DECLS
#endif
