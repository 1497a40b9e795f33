/* fingerprint.c - see fingerprint.h. */
#include "loader/api/fingerprint.h"

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

/* The file position of a sample, not its address. */
static uint64_t mix_sample(uint64_t sum, const stoker_sample *sample,
                           const stoker_dataset_info *info)
{
    const stoker_extent *extent = &sample->extent;
    const uint32_t value = (uint32_t)sample->label.index;
    sum = mix(sum, info->label_dtype == STOKER_DTYPE_INT64     ? (uint64_t)sample->label.index
                   : info->label_dtype == STOKER_DTYPE_FLOAT32 ? value /* the bits of the float */
                                                               : 0);
    sum = mix(sum, sample->tag);
    if (extent->memory == NULL && extent->path != NULL &&
        info->directory == STOKER_DIRECTORY_OF_FILE)
        sum = mix(sum, extent->file);
    if (extent->memory == NULL && extent->path != NULL)
        sum = mix_text(sum, info->directory == AT_FDCWD ? last_name(extent->path) : extent->path);
    else if (!only_in_memory(extent, info))
        sum = mix(sum, extent->offset ^ (uint64_t)extent->file << 40);
    return mix(sum, extent->bytes);
}

static uint64_t mix_samples(uint64_t sum, const stoker_dataset *dataset)
{
    const stoker_dataset_info *info = &dataset->info;
    const uint64_t looks = info->count < SAMPLES_MAX ? info->count : SAMPLES_MAX;
    const uint64_t step = info->count / looks;
    const uint64_t peeks = info->rows != NULL ? ROWS_PEEKED : OTHERS_PEEKED;
    const uint64_t peek_step = (looks + peeks - 1) / peeks;
    for (uint64_t begin = 0; begin < looks; begin += CHUNK) {
        uint64_t ids[CHUNK];
        stoker_sample samples[CHUNK] = { 0 };
        const uint32_t count = looks - begin < CHUNK ? (uint32_t)(looks - begin) : CHUNK;
        for (uint32_t i = 0; i < count; i++)
            ids[i] = (begin + i) * step;
        stoker_error error;
        if (dataset->ops->locate(dataset->self, ids, count, samples, &error) < 0)
            continue;
        for (uint32_t i = 0; i < count; i++) {
            const stoker_extent *extent = &samples[i].extent;
            sum = mix_sample(sum, &samples[i], info);
            if (only_in_memory(extent, info) && (begin + i) % peek_step == 0)
                sum = mix_bytes(sum, extent->memory,
                                extent->bytes < PEEK_BYTES ? extent->bytes : PEEK_BYTES);
        }
    }
    return sum;
}

struct stk_fingerprint stk_fingerprint_of(const stoker_dataset *dataset)
{
    /* Stored in the data set; racing threads compute the same value. Both halves 0 = not computed yet. */
    _Atomic uint64_t *const kept = &((stoker_dataset *)dataset)->fingerprint;
    uint64_t both = atomic_load_explicit(kept, memory_order_relaxed);
    if (both == 0) {
        uint64_t sum = mix(1, dataset->info.fingerprint);
        sum = mix_samples(mix_files(sum, dataset), dataset);
        both = (uint64_t)form_of(dataset) << 32 | sum >> 32;
        atomic_store_explicit(kept, both, memory_order_relaxed);
    }
    return (struct stk_fingerprint){ .form = (uint32_t)(both >> 32), .content = (uint32_t)both };
}
