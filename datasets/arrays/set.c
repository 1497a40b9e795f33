/* set.c - see set.h. */
#include "datasets/arrays/set.h"

#include <assert.h>
#include <string.h>

#include "loader/dataset/format.h"

enum { ROWS_AHEAD = 4 }; /* rows prefetched while values are gathered */

static bool is_integer(stoker_dtype dtype)
{
    switch (dtype) {
    case STOKER_DTYPE_UINT8:
    case STOKER_DTYPE_INT8:
    case STOKER_DTYPE_INT16:
    case STOKER_DTYPE_INT32:
    case STOKER_DTYPE_INT64:
    case STOKER_DTYPE_UINT16:
    case STOKER_DTYPE_UINT32:
        return true;
    default:
        return false;
    }
}

/* One integer per sample with the name of labels: int64 in all data sets. */
static bool is_label(const struct stk_array *array)
{
    return strcmp(array->name, "label") == 0 && array->rank == 0 && is_integer(array->dtype) &&
           array->part == STOKER_NO_PART;
}

/* ---- callbacks ------------------------------------------------------------------ */

static bool lies_in_rows(const struct stk_array_set *set)
{
    return set->part_count == 1 && set->arrays[0].codec == NULL && set->arrays[0].offsets == NULL;
}

static uint64_t longest_part(const struct stk_array_set *set)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < set->array_count; i++) {
        const struct stk_array *array = &set->arrays[i];
        if (array->memory == NULL && array->row_bytes > most)
            most = array->row_bytes;
    }
    return most;
}

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct stk_array_set *set = self;
    const bool rows = lies_in_rows(set);
    *out = (stoker_dataset_info){
        .struct_size = sizeof(*out),
        .count = set->count,
        .field_count = set->array_count,
        .part_count = set->part_count,
        .file_count = set->source_count,
        .encoded_bytes_max = longest_part(set),
        .dense = rows && set->arrays[0].memory == NULL && set->arrays[0].file == 0,
        .rows = rows ? set->arrays[0].memory : NULL,
        .fingerprint = set->fingerprint,
    };
    return STOKER_OK;
}

static int describe_field(const void *self, uint32_t field, stoker_field_info *out)
{
    const struct stk_array_set *set = self;
    const struct stk_array *array = &set->arrays[field];
    *out = (stoker_field_info){ .struct_size = sizeof(*out),
                                .name = array->name,
                                .kind = array->kind,
                                .dtype = is_label(array) ? STOKER_DTYPE_INT64 : array->dtype,
                                .rank = array->rank,
                                .varies = array->offsets != NULL,
                                .part = array->part,
                                .class_count = array->class_count };
    memcpy(out->shape, array->shape, sizeof(out->shape));
    return STOKER_OK;
}

/* The part of one sample. */
static stoker_extent extent_of(const struct stk_array *array, uint64_t id)
{
    if (array->memory == NULL)
        return (stoker_extent){ .offset = array->offset + id * array->row_bytes,
                                .bytes = array->row_bytes,
                                .file = array->file };
    const uint64_t first = array->offsets == NULL ? id : (uint64_t)array->offsets[id];
    const uint64_t entries =
        array->offsets == NULL ? 1 : (uint64_t)(array->offsets[id + 1] - array->offsets[id]);
    return (stoker_extent){ .memory = (const uint8_t *)array->memory + first * array->row_bytes,
                            .bytes = entries * array->row_bytes };
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    (void)error;
    const struct stk_array_set *set = self;
    for (uint32_t i = 0; i < set->array_count; i++) {
        const struct stk_array *array = &set->arrays[i];
        if (array->part == STOKER_NO_PART)
            continue;
        for (uint32_t at = 0; at < count; at++) {
            assert(ids[at] < set->count);
            parts[(size_t)at * set->part_count + array->part] =
                (stoker_part){ .extent = extent_of(array, ids[at]), .codec = array->codec };
        }
    }
    return STOKER_OK;
}

/* Labels become int64; one loop per type. The caller's memory may be unaligned. */
#define WIDEN(type)                                                                                \
    for (uint32_t i = 0; i < count; i++) {                                                         \
        type value;                                                                                \
        memcpy(&value, (const uint8_t *)array->memory + ids[i] * sizeof(value), sizeof(value));    \
        out[i] = (int64_t)value;                                                                   \
    }

static void widen(const struct stk_array *array, const uint64_t *ids, uint32_t count, int64_t *out)
{
    switch (array->dtype) {
    case STOKER_DTYPE_UINT8:
        WIDEN(uint8_t)
        break;
    case STOKER_DTYPE_INT8:
        WIDEN(int8_t)
        break;
    case STOKER_DTYPE_INT16:
        WIDEN(int16_t)
        break;
    case STOKER_DTYPE_INT32:
        WIDEN(int32_t)
        break;
    case STOKER_DTYPE_UINT16:
        WIDEN(uint16_t)
        break;
    case STOKER_DTYPE_UINT32:
        WIDEN(uint32_t)
        break;
    default:
        WIDEN(int64_t)
        break;
    }
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    const struct stk_array_set *set = self;
    const struct stk_array *array = &set->arrays[field];
    const size_t bytes = (size_t)array->row_bytes;
    const uint8_t *rows = array->memory;
    assert(array->part == STOKER_NO_PART);
    if (is_label(array)) {
        widen(array, ids, count, out);
        return STOKER_OK;
    }
    for (uint32_t i = 0; i < count; i++) {
        __builtin_prefetch(rows + ids[i + ROWS_AHEAD < count ? i + ROWS_AHEAD : i] * bytes);
        memcpy((uint8_t *)out + i * bytes, rows + ids[i] * bytes, bytes);
    }
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t file, stoker_file *out)
{
    const struct stk_array_set *set = self;
    *out = stk_source_file(&set->sources[file]);
    return STOKER_OK;
}

static const char *class_name(const void *self, uint32_t field, uint32_t index)
{
    const struct stk_array_set *set = self;
    const struct stk_array *array = &set->arrays[field];
    return array->class_names == NULL ? NULL : array->class_names[index];
}

static void destroy(void *self)
{
    struct stk_array_set *set = self;
    void (*const release)(void *) = set->release;
    void *const context = set->context;
    stk_array_set_free(set);
    if (release != NULL)
        release(context);
}

#define ARRAY_OPS(format_name)                                                                     \
    {                                                                                              \
        .struct_size = sizeof(stoker_dataset_ops), .name = (format_name), .describe = describe,    \
        .field = describe_field, .locate = locate, .values = values, .file = file_of,              \
        .destroy = destroy, .class_name = class_name                                               \
    }

const stoker_dataset_ops stk_array_ops_memory = ARRAY_OPS("arrays");
const stoker_dataset_ops stk_array_ops_npy = ARRAY_OPS("npy");
const stoker_dataset_ops stk_array_ops_npz = ARRAY_OPS("npz");

/* ---- a set ---------------------------------------------------------------------- */

struct stk_array_set *stk_array_set_new(const char *format, uint32_t array_count,
                                        uint32_t source_count)
{
    struct stk_array_set *set = stk_calloc(1, sizeof(*set));
    if (set == NULL)
        return NULL;
    *set = (struct stk_array_set){ .format = format };
    set->arrays = stk_calloc((size_t)array_count + 1, sizeof(*set->arrays));
    set->regions = stk_calloc((size_t)array_count + 1, sizeof(*set->regions));
    set->sources = stk_calloc((size_t)source_count + 1, sizeof(*set->sources));
    if (set->arrays == NULL || set->regions == NULL || set->sources == NULL) {
        stk_array_set_free(set);
        return NULL;
    }
    set->array_count = array_count;
    set->source_count = source_count;
    for (uint32_t i = 0; i < source_count; i++)
        set->sources[i] = (struct stk_source)STK_SOURCE_CLOSED;
    return set;
}

void stk_array_set_free(struct stk_array_set *set)
{
    for (uint32_t i = 0; i < set->source_count; i++) {
        stk_source_close(&set->sources[i]);
        stk_free((char *)set->sources[i].path);
    }
    for (uint32_t i = 0; i < set->array_count; i++)
        stk_region_unmap(&set->regions[i]);
    stk_free(set->regions);
    stk_free(set->sources);
    stk_free(set->part_rows);
    stk_free(set->arrays);
    stk_free(set);
}

/* Returns true if values() can bring the array: transforms and lengths need parts, and field 0 is
 * gathered. */
static bool has_values(const struct stk_array_set *set, uint32_t index, bool beside)
{
    const struct stk_array *array = &set->arrays[index];
    return (index > 0 || beside) && array->memory != NULL && array->offsets == NULL &&
           array->codec == NULL && array->kind == STOKER_FIELD_KIND_ARRAY;
}

void stk_array_set_plan(struct stk_array_set *set, bool beside)
{
    set->part_count = 0;
    for (uint32_t i = 0; i < set->array_count; i++) {
        struct stk_array *array = &set->arrays[i];
        array->part = has_values(set, i, beside) ? STOKER_NO_PART : set->part_count++;
    }
}

/* Let a loader find the rows of several parts without a call, if all are raw and in memory. */
static void publish_rows(stoker_dataset *dataset, struct stk_array_set *set)
{
    const void *rows[STOKER_FIELDS_MAX];
    for (uint32_t i = 0; i < set->array_count; i++) {
        const struct stk_array *array = &set->arrays[i];
        if (array->part == STOKER_NO_PART)
            continue;
        if (array->memory == NULL || array->offsets != NULL || array->codec != NULL)
            return;
        rows[array->part] = array->memory;
    }
    if (set->part_count < 2)
        return;
    set->part_rows = stk_calloc(set->part_count, sizeof(rows[0]));
    if (set->part_rows == NULL)
        return; /* locate() reports them */
    memcpy(set->part_rows, rows, set->part_count * sizeof(rows[0]));
    stk_dataset_set_part_rows(dataset, set->part_rows);
}

int stk_array_set_make(stoker_dataset **out, struct stk_array_set *set,
                       const stoker_dataset_ops *ops, stoker_error *error)
{
    stoker_dataset *dataset = NULL;
    stk_array_set_plan(set, false);
    const int rc = stoker_dataset_create(&dataset, ops, set, error);
    if (rc != STOKER_OK)
        return rc;
    publish_rows(dataset, set);
    *out = dataset;
    return STOKER_OK;
}
