/* stoker/field.h - the fields of a batch, one array each, and how a loader delivers them.
 *
 * A field whose first axis has the same length in every sample is a dense array [count, ...]. If
 * that length varies (text, tokens, boxes), rows are concatenated or padded:
 *
 *   PACKED   values [total, ...]          row i is values[offsets[i] .. offsets[i + 1])
 *   padded   values [count, longest, ...] row i is values[i][0 .. offsets[i + 1] - offsets[i]),
 *                                         followed by pad_value
 *   JOINED   values [ends + 1]            boundaries in the concatenated rows of field 0: see
 *                                         STOKER_FIELD_FORM_JOINED
 */
#ifndef STOKER_FIELD_H
#define STOKER_FIELD_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/export.h>
#include <stoker/tensor.h>

STOKER_BEGIN_DECLS

/* One field of a batch, borrowed with it. Its size never changes: new members replace reserved
 * ones. */
typedef struct stoker_field {
    const char *name; /* owned by the data set */
    /* The capacity is batch_size rows of the longest length, at an address that is the same for
     * every batch in the same slot, as captured CUDA graphs require. */
    stoker_tensor values;
    /* If the field varies, count + 1 offsets in host memory, offsets[0] = 0; else NULL. */
    const int64_t *offsets;
    const int64_t *device_offsets; /* the same offsets in the memory of `values` */
    uint64_t reserved[4];          /* 0 */
} stoker_field;

/* How a batch stores rows of different lengths. */
typedef enum stoker_field_form {
    STOKER_FIELD_FORM_PACKED = 0,          /* concatenate */
    STOKER_FIELD_FORM_PADDED = 1,          /* pad to the longest row of the batch */
    STOKER_FIELD_FORM_PADDED_MULTIPLE = 2, /* the same, rounded up to a multiple of `multiple` */
    STOKER_FIELD_FORM_PADDED_MAX = 3,      /* pad to the data set's longest row: one shape */
    /* For ascending boundaries in the row of field 0, such as cu_seqlens of tokens: boundaries in
     * the concatenated rows, for attention of variable length. With rows of L elements: 0, then for
     * each row i its boundaries p > 0 as i * L + p, and (i + 1) * L unless the last one is L.
     * Values that do not ascend, or exceed L, are skipped. values[offsets[i]] is i * L. Requires
     * integers with one axis, delivered as int32 or int64, and a field 0 that does not vary. */
    STOKER_FIELD_FORM_JOINED = 4
} stoker_field_form;

enum { STOKER_FIELD_MULTIPLE_MAX = 65536 };

/* How a loader delivers one field. Start from STOKER_FIELD_OPTIONS_INIT. */
typedef struct stoker_field_options {
    size_t struct_size; /* set by STOKER_FIELD_OPTIONS_INIT */
    const char *name;   /* a field of the data set. Required */
    /* Delivered element type: a wider integer type, or FLOAT32, FLOAT16, BFLOAT16 or FLOAT64, not
     * scaled. Default NONE = as stored. For field 0 use options.dtype. */
    stoker_dtype dtype;
    stoker_field_form form; /* of a field that varies; default STOKER_FIELD_FORM_PACKED */
    uint32_t multiple;      /* of PADDED_MULTIPLE, 1..65536; default 8 */
    double pad_value;       /* for padded forms, in the delivered type, not scaled; default 0 */
    /* For masks of transformed images: the value of padding, of cutout and of the corners that a
     * rotation uncovers, in the stored type; for example a class that the loss ignores, 255.
     * Default 0. */
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
