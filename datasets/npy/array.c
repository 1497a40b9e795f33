/* array.c - see array.h. */
#include "datasets/npy/array.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "loader/codec/big_endian.h"

enum {
    COPIED_BYTES_MAX = 64
}; /* arrays with no more per sample are copied: a read each would cost more */

enum { CLASSES_MAX = 65536, LABELS_AT_ONCE = 1024 };

/* ---- kind ----------------------------------------------------------------------- */

static bool begins_with(const char *name, const char *word)
{
    return strncmp(name, word, strlen(word)) == 0;
}

/* Images are uint8 with two axes, or three, the last of 1 to 4. The first array, and others with
 * such a name, may be images; "mask" and "seg" are masks. */
static void choose_kind(struct stk_array *array, bool first)
{
    const bool two = array->rank == 2;
    const bool pixels = two || (array->rank == 3 && array->shape[2] <= 4);
    if (array->dtype != STOKER_DTYPE_UINT8 || !pixels)
        return;
    if (begins_with(array->name, "mask") || begins_with(array->name, "seg"))
        array->kind = STOKER_FIELD_KIND_MASK;
    else if (first || begins_with(array->name, "image"))
        array->kind = STOKER_FIELD_KIND_IMAGE;
    if (array->kind != STOKER_FIELD_KIND_ARRAY && two)
        array->shape[array->rank++] = 1;
}

/* ---- one label ------------------------------------------------------------------ */

/* False: larger than any int64_t. */
static bool load_integer(const uint8_t *at, const struct stk_npy_header *header, int64_t *out)
{
    const uint64_t bits = stk_npy_bits(header, at);
    *out = (int64_t)bits;
    return header->kind == 'i' || bits <= INT64_MAX;
}

static float float_of_half(uint64_t half)
{
    const uint64_t fraction = half & 1023;
    const uint64_t exponent = half >> 10 & 31;
    float value = (float)fraction * 0x1p-24F;
    if (exponent == 31)
        value = fraction == 0 ? INFINITY : NAN;
    else if (exponent > 0)
        value = (float)(1024 + fraction) * 0x1p-24F * (float)(1ULL << (exponent - 1));
    return (half & 0x8000) != 0 ? -value : value;
}

/* False: no finite float. */
static bool load_float(const uint8_t *at, const struct stk_npy_header *header, float *out)
{
    const uint64_t bits = stk_npy_bits(header, at);
    const uint32_t low = (uint32_t)bits;
    double wide = 0.0;
    if (header->element_bytes == 2) {
        *out = float_of_half(bits);
    } else if (header->element_bytes == 4) {
        memcpy(out, &low, sizeof(low));
    } else {
        memcpy(&wide, &bits, sizeof(bits));
        *out = (float)wide;
    }
    return isfinite(*out);
}

/* Labels 0..n-1 make n classes; a negative or a huge one is no class number. */
static uint32_t classes_of(const int64_t *labels, uint64_t count)
{
    int64_t largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (labels[i] < 0)
            return 0;
        if (labels[i] > largest)
            largest = labels[i];
    }
    return largest < CLASSES_MAX ? (uint32_t)largest + 1 : 0;
}

/* ---- all of them ---------------------------------------------------------------- */

static int convert(const struct stk_npy_input *input, const struct stk_npy_header *header, void *to,
                   stoker_error *error)
{
    uint8_t stored[LABELS_AT_ONCE * 8];
    const uint64_t count = header->lengths[0];
    int64_t *indexes = to;
    float *values = to;
    for (uint64_t done = 0; done < count;) {
        const uint64_t left = count - done;
        const uint64_t batch = left < LABELS_AT_ONCE ? left : LABELS_AT_ONCE;
        const uint64_t offset = header->header_bytes + done * header->element_bytes;
        const int rc =
            stk_npy_read(input, stored, (size_t)(batch * header->element_bytes), offset, error);
        if (rc != STOKER_OK)
            return rc;
        for (uint64_t i = 0; i < batch; i++) {
            const uint8_t *at = stored + i * header->element_bytes;
            const bool good = header->kind == 'f' ? load_float(at, header, &values[done + i])
                                                  : load_integer(at, header, &indexes[done + i]);
            if (!good)
                return stk_npy_refuse(
                    input, STOKER_EFORMAT, offset + i * header->element_bytes,
                    "NPY: a label is no finite number that a float or int64 holds", error);
        }
        done += batch;
    }
    return STOKER_OK;
}

/* Fill *out with the labels, as int64 or float32 in *region, which may take max_bytes. name has
 * STOKER_FIELD_NAME_BYTES bytes. Errors: STOKER_EFORMAT (not one finite number per sample),
 * STOKER_ELIMIT, STOKER_ENOMEM, and those of reading. */
static int take_labels(struct stk_array *out, struct stk_region *region, const char *name,
                       uint64_t max_bytes, const struct stk_npy_input *input,
                       const struct stk_npy_header *header, stoker_error *error)
{
    const bool floats = header->kind == 'f';
    if (header->rank > 2 || (header->rank == 2 && header->lengths[1] != 1))
        return stk_npy_refuse(input, STOKER_EFORMAT, STOKER_NO_OFFSET,
                              "NPY: labels are one number a sample", error);
    /* The file is as long as its header says, so this cannot overflow. */
    const uint64_t bytes = header->lengths[0] * (floats ? sizeof(float) : sizeof(int64_t));
    if (bytes > max_bytes)
        return stk_npy_refuse(input, STOKER_ELIMIT, STOKER_NO_OFFSET,
                              "the labels take more memory than max_bytes", error);
    if (stk_region_map(region, (size_t)bytes) != STOKER_OK)
        return stk_npy_refuse(input, STOKER_ENOMEM, STOKER_NO_OFFSET, "the labels", error);
    const int rc = convert(input, header, region->base, error);
    if (rc != STOKER_OK)
        return rc;
    memcpy(out->name, name, sizeof(out->name));
    out->dtype = floats ? STOKER_DTYPE_FLOAT32 : STOKER_DTYPE_INT64;
    out->row_bytes = stoker_dtype_bytes(out->dtype);
    out->memory = region->base;
    out->class_count = floats ? 0 : classes_of(region->base, header->lengths[0]);
    return STOKER_OK;
}

/* ---- elements ------------------------------------------------------------------- */

static void swap_elements(uint8_t *at, uint64_t bytes, uint32_t element_bytes)
{
    for (uint64_t i = 0; i < bytes; i += element_bytes)
        for (uint32_t b = 0; b < element_bytes / 2; b++) {
            const uint8_t byte = at[i + b];
            at[i + b] = at[i + element_bytes - 1 - b];
            at[i + element_bytes - 1 - b] = byte;
        }
}

/* A member that was unpacked has its elements in memory already. */
static void use_memory(struct stk_array *out, const struct stk_npy_input *input,
                       const struct stk_npy_header *header)
{
    uint8_t *elements = input->memory + header->header_bytes;
    if (header->big_endian)
        swap_elements(elements, input->bytes - header->header_bytes, header->element_bytes);
    out->memory = elements;
}

static int copy_elements(struct stk_array *out, struct stk_region *region,
                         const struct stk_npy_input *input, const struct stk_npy_header *header,
                         stoker_error *error)
{
    const uint64_t bytes = input->bytes - header->header_bytes;
    if (stk_region_map(region, (size_t)bytes) != STOKER_OK)
        return stk_npy_refuse(input, STOKER_ENOMEM, STOKER_NO_OFFSET, "the elements", error);
    const int rc = stk_npy_read(input, region->base, (size_t)bytes, header->header_bytes, error);
    if (rc != STOKER_OK)
        return rc;
    if (header->big_endian)
        swap_elements(region->base, bytes, header->element_bytes);
    out->memory = region->base;
    return STOKER_OK;
}

int stk_npy_take(struct stk_array *out, struct stk_region *region, const struct stk_npy_wish *wish,
                 const struct stk_npy_input *input, const struct stk_npy_header *header,
                 stoker_error *error)
{
    if (wish->labels)
        return take_labels(out, region, wish->name, wish->max_bytes, input, header, error);
    out->dtype = stk_npy_dtype(header);
    if (wish->first && out->dtype == STOKER_DTYPE_BOOL)
        out->dtype = STOKER_DTYPE_UINT8; /* rows of truth values may be images */
    out->rank = header->rank - 1;
    memcpy(out->shape, header->lengths + 1, out->rank * sizeof(out->shape[0]));
    out->row_bytes = header->row_bytes;
    memcpy(out->name, wish->name, sizeof(out->name));
    choose_kind(out, wish->first);
    if (out->name[0] == '\0')
        (void)snprintf(out->name, sizeof(out->name), "%s",
                       out->kind == STOKER_FIELD_KIND_IMAGE ? "image" : "row");
    const bool small = !wish->first && out->kind == STOKER_FIELD_KIND_ARRAY &&
                       header->row_bytes <= COPIED_BYTES_MAX && input->bytes <= wish->max_bytes;
    if (input->memory != NULL) {
        use_memory(out, input, header);
        return STOKER_OK;
    }
    if (small)
        return copy_elements(out, region, input, header, error);
    out->offset = input->offset + header->header_bytes;
    out->codec = header->big_endian ? stk_codec_big_endian(header->element_bytes) : NULL;
    return STOKER_OK;
}

int stk_npy_check_count(const struct stk_npy_input *input, const struct stk_npy_header *header,
                        const struct stk_npy_input *first, uint64_t count, stoker_error *error)
{
    return header->lengths[0] == count
               ? STOKER_OK
               : stk_refuse_file(error, STOKER_EMISMATCH, input->name, STOKER_NO_OFFSET,
                                 "%llu samples along axis 0, but %s has %llu",
                                 (unsigned long long)header->lengths[0], first->name,
                                 (unsigned long long)count);
}
