/* fingerprint.c - see fingerprint.h. */
#include "loader/dataset/fingerprint.h"

#include <fcntl.h>
#include <string.h>

#include "loader/base/bytes.h"
#include "loader/base/rng.h"

enum {
    SAMPLES_MAX = 65536, /* samples examined */
    CHUNK = 64,          /* located per call */
    ROWS_PEEKED = 1024,  /* rows hashed if all rows are in memory */
    OTHERS_PEEKED = 64,  /* rows hashed otherwise: they may be mapped from files */
    PEEK_BYTES = 1024    /* hashed per row */
};

static uint64_t mix(uint64_t sum, uint64_t word)
{
    return stk_mix64(sum ^ word) + word;
}

static uint64_t mix_bytes(uint64_t sum, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    sum = mix(sum, size);
    for (; size >= 8; size -= 8, at += 8)
        sum = mix(sum, stk_load_le64(at));
    uint8_t rest[8] = { 0 };
    if (size > 0)
        memcpy(rest, at, size);
    return size == 0 ? sum : mix(sum, stk_load_le64(rest));
}

static uint64_t mix_text(uint64_t sum, const char *text)
{
    return text == NULL ? mix(sum, 0) : mix_bytes(sum, text, strlen(text));
}

static const char *last_name(const char *path)
{
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static uint64_t mix_field(uint64_t sum, const stoker_field_info *field)
{
    sum = mix_text(sum, field->name);
    sum = mix(sum, (uint64_t)field->dtype << 8 | (field->varies ? 1 : 0));
    for (uint32_t axis = 0; axis < field->rank; axis++)
        sum = mix(sum, field->shape[axis]);
    return mix(sum, field->part);
}

static uint32_t form_of(const stoker_dataset *dataset)
{
    const stoker_dataset_info *info = &dataset->info;
    uint64_t sum = mix_text(0, dataset->ops->name);
    sum = mix(sum, info->count);
    sum = mix(sum, (uint64_t)info->dtype);
    for (uint32_t axis = 0; axis < info->rank; axis++)
        sum = mix(sum, info->shape[axis]);
    sum = mix(sum, (uint64_t)info->label_dtype);
    sum = mix(sum, info->class_count);
    if (dataset->ops->field != NULL)
        for (uint32_t i = 0; i < info->field_count; i++)
            sum = mix_field(sum, &dataset->fields[i].info);
    return (uint32_t)(sum >> 32);
}

static uint64_t mix_files(uint64_t sum, const stoker_dataset *dataset)
{
    const stoker_dataset_ops *ops = dataset->ops;
    for (uint32_t i = 0; i < dataset->info.file_count && ops->file != NULL; i++) {
        stoker_file file = { .fd = -1 };
        if (ops->file(dataset->self, i, &file) < 0)
            continue;
        sum = mix_text(sum, last_name(file.path));
        sum = mix(sum, file.size);
    }
    return sum;
}

/* Returns true if a sample is identified by its bytes: it is in memory, and its data set has no file that it could
 * also be read from. */
static bool only_in_memory(const stoker_extent *extent, const stoker_dataset_info *info)
{
    return extent->memory != NULL && info->file_count == 0;
}

/* A label as it is, a float by its bits; 0 = no label. */
static uint64_t label_bits(const stoker_dataset *dataset, uint64_t id)
{
    uint64_t bits = 0;
    if (dataset->label >= 0 && dataset->ops->values != NULL &&
        dataset->fields[dataset->label].info.part == STOKER_NO_PART)
        (void)dataset->ops->values(dataset->self, (uint32_t)dataset->label, &id, 1, &bits);
    return bits;
}

/* The file position of a part, not its address. */
static uint64_t mix_part(uint64_t sum, const stoker_part *part, const stoker_dataset_info *info)
{
    const stoker_extent *extent = &part->extent;
    sum = mix(sum, part->tag);
    if (extent->memory == NULL && extent->path != NULL &&
        info->directory == STOKER_DIRECTORY_OF_FILE)
        sum = mix(sum, extent->file);
    if (extent->memory == NULL && stk_part_is_range(part))
        sum = mix(sum, extent->offset);
    if (extent->memory == NULL && extent->path != NULL)
        sum = mix_text(sum, info->directory == AT_FDCWD ? last_name(extent->path) : extent->path);
    else if (!only_in_memory(extent, info))
        sum = mix(sum, extent->offset ^ (uint64_t)extent->file << 40);
    return mix(sum, extent->bytes);
}

/* `peeks`: the bytes of parts in memory count, too. */
static uint64_t mix_sample(uint64_t sum, const stoker_dataset *dataset, uint64_t id,
                           const stoker_part *parts, bool peeks)
{
    sum = mix(sum, label_bits(dataset, id));
    for (uint32_t i = 0; i < dataset->info.part_count; i++) {
        const stoker_extent *extent = &parts[i].extent;
        sum = mix_part(sum, &parts[i], &dataset->info);
        if (peeks && only_in_memory(extent, &dataset->info))
            sum = mix_bytes(sum, extent->memory,
                            extent->bytes < PEEK_BYTES ? extent->bytes : PEEK_BYTES);
    }
    return sum;
}

static uint64_t mix_samples(uint64_t sum, const stoker_dataset *dataset)
{
    const stoker_dataset_info *info = &dataset->info;
    const uint64_t looks = info->count < SAMPLES_MAX ? info->count : SAMPLES_MAX;
    const uint64_t step = info->count / looks;
    const uint64_t peeks = info->rows != NULL ? ROWS_PEEKED : OTHERS_PEEKED;
    const uint64_t peek_step = (looks + peeks - 1) / peeks;
    const uint64_t fits = info->part_count > 0 ? STOKER_FIELDS_MAX / info->part_count : CHUNK;
    const uint64_t chunk = fits < CHUNK ? fits : CHUNK;
    for (uint64_t begin = 0; begin < looks; begin += chunk) {
        uint64_t ids[CHUNK];
        stoker_part parts[STOKER_FIELDS_MAX] = { 0 };
        const uint32_t count = (uint32_t)(looks - begin < chunk ? looks - begin : chunk);
        for (uint32_t i = 0; i < count; i++)
            ids[i] = (begin + i) * step;
        stoker_error error;
        if (info->part_count > 0 &&
            dataset->ops->locate(dataset->self, ids, count, parts, &error) < 0)
            continue;
        for (uint32_t i = 0; i < count; i++)
            sum = mix_sample(sum, dataset, ids[i], &parts[(size_t)i * info->part_count],
                             (begin + i) % peek_step == 0);
    }
    return sum;
}

struct stk_fingerprint stk_fingerprint_of(const stoker_dataset *dataset)
{
    /* Stored in the data set; racing threads compute the same value. Both halves 0 = not computed yet. */
    _Atomic uint64_t *const kept = &((stoker_dataset *)dataset)->fingerprint;
    uint64_t both = atomic_load_explicit(kept, memory_order_relaxed);
    if (both == 0) {
        uint64_t sum = mix(1, stk_dataset_own_fingerprint(dataset));
        sum = mix_samples(mix_files(sum, dataset), dataset);
        both = (uint64_t)form_of(dataset) << 32 | sum >> 32;
        atomic_store_explicit(kept, both, memory_order_relaxed);
    }
    return (struct stk_fingerprint){ .form = (uint32_t)(both >> 32), .content = (uint32_t)both };
}

uint64_t stoker_dataset_fingerprint(const stoker_dataset *dataset)
{
    if (dataset == NULL)
        return 0;
    const struct stk_fingerprint found = stk_fingerprint_of(dataset);
    return (uint64_t)found.form << 32 | found.content;
}
