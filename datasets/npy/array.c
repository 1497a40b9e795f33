/* array.c - see array.h. */
#include "datasets/npy/array.h"

#include <stdio.h>
#include <string.h>

#include "datasets/npy/labels.h"
#include "loader/codec/big_endian.h"

enum {
    COPIED_BYTES_MAX = 64
}; /* arrays with no more per sample are copied: a read each would cost more */

/* ---- kind ----------------------------------------------------------------------- */

static bool begins_with(const char *name, const char *word)
{
    return strncmp(name, word, strlen(word)) == 0;
}

/* Images are uint8 with two axes, or three, the last of 1 to 4. The first array, and others with such a name, may be
 * images; "mask" and "seg" are masks. */
static void choose_kind(struct stk_array *array, bool first)
{
    const bool two = array->rank == 2;
    const bool pixels = two || (array->rank == 3 && array->shape[2] <= 4);
    if (array->dtype != STOKER_DTYPE_UINT8 || !pixels)
        return;
    if (begins_with(array->name, "mask") || begins_with(array->name, "seg"))
        array->kind = STOKER_FIELD_MASK;
    else if (first || begins_with(array->name, "image"))
        array->kind = STOKER_FIELD_IMAGE;
    if (array->kind != STOKER_FIELD_ARRAY && two)
        array->shape[array->rank++] = 1;
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
        return stk_npy_take_labels(out, region, wish->name, wish->max_bytes, input, header, error);
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
                       out->kind == STOKER_FIELD_IMAGE ? "image" : "row");
    const bool small = !wish->first && out->kind == STOKER_FIELD_ARRAY &&
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
