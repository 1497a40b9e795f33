/* stoker/field.h - the fields of a batch: one array each, by name.
 *
 * A field whose first axis has the same length in every sample is one dense array [count, ...]. If
 * that length varies (text, tokens, boxes), the rows of a batch lie one after the other, or are
 * padded to one length:
 *
 *   PACKED   values [total, ...]           row i is values[offsets[i] .. offsets[i + 1])
 *   padded   values [count, longest, ...] row i is values[i][0 .. offsets[i + 1] - offsets[i]); the
 *            rest is pad_value
 *   JOINED   values [ends + 1]             places in the rows of field 0 laid end to end, see STOKER_FIELD_FORM_JOINED
 */
#ifndef STOKER_FIELD_H
#define STOKER_FIELD_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/export.h>
#include <stoker/tensor.h>

STOKER_BEGIN_DECLS

/* One field of a batch, borrowed with it. Its size never changes: new members take the place of
 * reserved ones. */
typedef struct stoker_field {
    const char *name; /* as in the data set, which owns it */
    /* Its memory has a fixed place and a fixed capacity, batch_size rows of the longest length: the
     * same for every batch in the same memory, as a captured CUDA graph wants. */
    stoker_tensor values;
    /* If it varies: count + 1 numbers, offsets[0] = 0, in host memory; else NULL. */
    const int64_t *offsets;
    const int64_t *device_offsets; /* the same numbers where `values` lies */
    uint64_t reserved[4];
} stoker_field;

/* How rows of different lengths lie in a batch. */
typedef enum stoker_field_form {
    STOKER_FIELD_FORM_PACKED = 0,          /* one after the other */
    STOKER_FIELD_FORM_PADDED = 1,          /* to the longest row of the batch */
    STOKER_FIELD_FORM_PADDED_MULTIPLE = 2, /* to the longest row, rounded up to a multiple */
    STOKER_FIELD_FORM_PADDED_MAX =
        3, /* to the longest length that the data set allows: one shape for all batches */
    /* Of a field of rising places in the row of field 0, like cu_seqlens of tokens: the places in
     * all rows laid end to end, as attention of variable length takes them. With rows of L
     * elements: 0, then of row i each place p > 0 as i * L + p, then (i + 1) * L if the row ends
     * before. Values that do not rise, or lie beyond L, are left out. values[offsets[i]] is i * L.
     * Integers of one axis, delivered as int32 or int64; field 0 has one length. */
    STOKER_FIELD_FORM_JOINED = 4
} stoker_field_form;

enum { STOKER_FIELD_MULTIPLE_MAX = 65536 };

/* What a loader does with one field. Start from STOKER_FIELD_OPTIONS_INIT. */
typedef struct stoker_field_options {
    size_t struct_size; /* set by STOKER_FIELD_OPTIONS_INIT */
    const char *name;   /* names a field of the data set */
    /* Element type as delivered: a wider integer type, or FLOAT32, FLOAT16, BFLOAT16, FLOAT64
     * (values are not scaled). Default NONE = as stored. Field 0 has options.dtype instead. */
    stoker_dtype dtype;
    stoker_field_form form; /* fields that vary only; default STOKER_FIELD_FORM_PACKED */
    uint32_t multiple;      /* for PADDED_MULTIPLE only, 1..65536; default 8 */
    double pad_value; /* for forms that pad: a value of the element type, not scaled; default 0 */
    /* Masks beside an image with a transform: what they get where it has no pixel, by padding,
     * rotation and cutout; a value of the type as stored, for example 255 for a loss that ignores
     * it. Default 0. */
    double fill_value;
} stoker_field_options;

#define STOKER_FIELD_OPTIONS_DEFAULTS                                                              \
    STOKER_DEFAULT(struct_size, sizeof(stoker_field_options))                                      \
    STOKER_DEFAULT(multiple, 8)

STOKER_MAKER(stoker_field_options, STOKER_FIELD_OPTIONS_DEFAULTS)
#define STOKER_FIELD_OPTIONS_INIT                                                                  \
    STOKER_INITIALIZER(stoker_field_options, STOKER_FIELD_OPTIONS_DEFAULTS)
STOKER_API int stoker_field_options_init_sized(stoker_field_options *out, size_t struct_size);

STOKER_END_DECLS
#endif
