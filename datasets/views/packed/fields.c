/* fields.c - the fields of a packed row. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "datasets/views/packed/packed.h"
#include "loader/base/error.h"

/* ---- types ---------------------------------------------------------------------------------- */

/* Least and greatest value of an integer type, as far as an int64 can be one. */
static bool range_of(stoker_dtype dtype, int64_t *least, int64_t *most)
{
    const size_t bits = 8 * stoker_dtype_bytes(dtype);
    switch (dtype) {
    case STOKER_DTYPE_INT8:
    case STOKER_DTYPE_INT16:
    case STOKER_DTYPE_INT32:
    case STOKER_DTYPE_INT64:
        *most = (int64_t)(UINT64_MAX >> (65 - bits));
        *least = -*most - 1;
        return true;
    case STOKER_DTYPE_UINT8:
    case STOKER_DTYPE_UINT16:
    case STOKER_DTYPE_UINT32:
        *most = (int64_t)(UINT64_MAX >> (64 - bits));
        *least = 0;
        return true;
    case STOKER_DTYPE_UINT64:
        *most = INT64_MAX;
        *least = 0;
        return true;
    default:
        return false;
    }
}

bool stk_packed_is_token(stoker_dtype dtype)
{
    int64_t least;
    int64_t most;
    return range_of(dtype, &least, &most);
}

bool stk_packed_fits(stoker_dtype dtype, int64_t value)
{
    int64_t least;
    int64_t most;
    return range_of(dtype, &least, &most) && value >= least && value <= most;
}

/* ---- description ---------------------------------------------------------------------------- */

void stk_packed_describe_field(const struct stk_packed *packed, uint32_t bit,
                               stoker_field_info *out)
{
    static const char *const names[STK_PACKED_FIELDS] = { "tokens",    "inputs",    "targets",
                                                          "positions", "documents", "cu_seqlens",
                                                          "max_seqlen" };
    const bool is_tokens = bit <= STOKER_PACKED_TARGETS;
    *out = (stoker_field_info){ .struct_size = sizeof(*out),
                                .name = names[__builtin_ctz(bit)],
                                .kind = STOKER_FIELD_KIND_ARRAY,
                                .dtype = is_tokens ? packed->dtype : STOKER_DTYPE_INT32,
                                .rank = bit == STOKER_PACKED_MAX_SEQLEN ? 0 : 1,
                                .varies = bit == STOKER_PACKED_CU_SEQLENS,
                                .part = STOKER_NO_PART };
    if (bit == STOKER_PACKED_CU_SEQLENS)
        out->shape[0] = packed->row_documents_max + UINT64_C(1);
    else if (out->rank == 1)
        out->shape[0] = packed->packing.length;
}

/* ---- tokens of another type ------------------------------------------------------------------ */

#define WIDEN(stored_type, made_type)                                                              \
    {                                                                                              \
        const stored_type *from = tokens;                                                          \
        made_type *to = out;                                                                       \
        for (uint64_t i = 0; i < length; i++)                                                      \
            to[i] = (made_type)from[i];                                                            \
        break;                                                                                     \
    }

#define WIDEN_ALL(made_type)                                                                       \
    switch (stored) {                                                                              \
    case STOKER_DTYPE_UINT8:                                                                       \
        WIDEN(uint8_t, made_type)                                                                  \
    case STOKER_DTYPE_INT8:                                                                        \
        WIDEN(int8_t, made_type)                                                                   \
    case STOKER_DTYPE_UINT16:                                                                      \
        WIDEN(uint16_t, made_type)                                                                 \
    case STOKER_DTYPE_INT16:                                                                       \
        WIDEN(int16_t, made_type)                                                                  \
    case STOKER_DTYPE_UINT32:                                                                      \
        WIDEN(uint32_t, made_type)                                                                 \
    case STOKER_DTYPE_INT32:                                                                       \
        WIDEN(int32_t, made_type)                                                                  \
    default:                                                                                       \
        WIDEN(int64_t, made_type)                                                                  \
    }

/* uint64 is taken as int64: fits_all() has found that every token is below 2^63. */
static void widen_to_int32(const void *tokens, stoker_dtype stored, uint64_t length, void *out)
{
    WIDEN_ALL(int32_t)
}

static void widen_to_int64(const void *tokens, stoker_dtype stored, uint64_t length, void *out)
{
    WIDEN_ALL(int64_t)
}

/* Returns false, and the index of a token that the type cannot hold, if there is one. */
static bool fits_all(const struct stk_packed *packed, const void *tokens, uint64_t *at)
{
    const bool narrow = packed->dtype == STOKER_DTYPE_INT32;
    const uint64_t most = narrow ? INT32_MAX : INT64_MAX;
    for (*at = 0; *at < packed->packing.length; ++*at) {
        if (packed->stored == STOKER_DTYPE_UINT32 && ((const uint32_t *)tokens)[*at] > most)
            return false;
        if (packed->stored == STOKER_DTYPE_UINT64 && ((const uint64_t *)tokens)[*at] > most)
            return false;
        if (packed->stored == STOKER_DTYPE_INT64 && narrow &&
            !stk_packed_fits(STOKER_DTYPE_INT32, ((const int64_t *)tokens)[*at]))
            return false;
    }
    return true;
}

static void write_tokens(const struct stk_packed *packed, const void *tokens, void *out)
{
    const uint64_t length = packed->packing.length;
    if (packed->dtype == packed->stored)
        memcpy(out, tokens, length * packed->stored_bytes);
    else if (packed->dtype == STOKER_DTYPE_INT32)
        widen_to_int32(tokens, packed->stored, length, out);
    else
        widen_to_int64(tokens, packed->stored, length, out);
}

/* Fill elements from..to - 1 with a value that fits the type. */
static void fill_elements(void *out, stoker_dtype dtype, int64_t value, uint64_t from, uint64_t to)
{
    const size_t bytes = stoker_dtype_bytes(dtype);
    uint8_t *at = (uint8_t *)out + from * bytes;
    for (; from < to; from++, at += bytes)
        switch (bytes) {
        case 1:
            *at = (uint8_t)value;
            break;
        case 2:
            memcpy(at, &(uint16_t){ (uint16_t)value }, 2);
            break;
        case 4:
            memcpy(at, &(uint32_t){ (uint32_t)value }, 4);
            break;
        default:
            memcpy(at, &value, 8);
            break;
        }
}

void stk_packed_pad(const struct stk_packed *packed, void *tokens, uint64_t from)
{
    fill_elements(tokens, packed->stored, packed->packing.padding, from, packed->packing.length);
}

/* ---- fields
 * ----------------------------------------------------------------------------------- */

/* Each token's successor in its document; the last one's and padding's is `ignored`. */
static void write_targets(const struct stk_packed *packed, const void *tokens,
                          const int32_t *starts, uint32_t count, void *out)
{
    const size_t bytes = stoker_dtype_bytes(packed->dtype);
    const uint64_t length = packed->packing.length;
    write_tokens(packed, tokens, out);
    memmove(out, (uint8_t *)out + bytes, (length - 1) * bytes);
    for (uint32_t i = 1; i <= count; i++)
        fill_elements(out, packed->dtype, packed->packing.ignored, (uint64_t)starts[i] - 1,
                      (uint64_t)starts[i]);
    fill_elements(out, packed->dtype, packed->packing.ignored, (uint64_t)starts[count], length);
}

static void write_positions(const struct stk_packed *packed, const int32_t *starts, uint32_t count,
                            int32_t *out)
{
    for (uint32_t i = 0; i < count; i++)
        for (int32_t at = starts[i]; at < starts[i + 1]; at++)
            out[at] = at - starts[i];
    fill_elements(out, STOKER_DTYPE_INT32, 0, (uint64_t)starts[count], packed->packing.length);
}

static void write_documents(const struct stk_packed *packed, const int32_t *starts, uint32_t count,
                            int32_t *out)
{
    for (uint32_t i = 0; i < count; i++)
        fill_elements(out, STOKER_DTYPE_INT32, (int64_t)i, (uint64_t)starts[i],
                      (uint64_t)starts[i + 1]);
    fill_elements(out, STOKER_DTYPE_INT32, -1, (uint64_t)starts[count], packed->packing.length);
}

static int32_t longest_of(const int32_t *starts, uint32_t count)
{
    int32_t most = 0;
    for (uint32_t i = 0; i < count; i++)
        most = starts[i + 1] - starts[i] > most ? starts[i + 1] - starts[i] : most;
    return most;
}

static void write_field(const struct stk_packed *packed, uint32_t bit, const void *tokens,
                        const int32_t *starts, uint32_t count, stoker_row *row)
{
    switch (bit) {
    case STOKER_PACKED_TOKENS:
    case STOKER_PACKED_INPUTS:
        write_tokens(packed, tokens, row->data);
        break;
    case STOKER_PACKED_TARGETS:
        write_targets(packed, tokens, starts, count, row->data);
        break;
    case STOKER_PACKED_POSITIONS:
        write_positions(packed, starts, count, row->data);
        break;
    case STOKER_PACKED_DOCUMENTS:
        write_documents(packed, starts, count, row->data);
        break;
    case STOKER_PACKED_CU_SEQLENS:
        memcpy(row->data, starts, (count + UINT64_C(1)) * sizeof(starts[0]));
        row->length = count + UINT64_C(1);
        break;
    default:
        *(int32_t *)row->data = longest_of(starts, count);
        break;
    }
}

int stk_packed_fill(const struct stk_packed *packed, const void *tokens, const int32_t *starts,
                    uint32_t count, stoker_row *rows, stoker_error *error)
{
    uint64_t at;
    if (packed->dtype != packed->stored && !fits_all(packed, tokens, &at))
        return stk_error_set(error, STOKER_EFORMAT, STOKER_STAGE_DECODE, NULL,
                             "packed: token %" PRIu64 " of the row does not fit %s", at,
                             stoker_dtype_name(packed->dtype));
    for (uint32_t i = 0; i < packed->field_count; i++)
        write_field(packed, packed->bits[i], tokens, starts, count, &rows[i]);
    return STOKER_OK;
}
