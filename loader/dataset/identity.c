/* identity.c - see identity.h. */
#include "loader/dataset/identity.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "loader/base/bytes.h"
#include "loader/base/rng.h"
#include "loader/storage/storage.h"

enum { PARTS_TOGETHER = 1024 }; /* located by one call, at most; >= STOKER_FIELDS_MAX */

void stk_identity_add(struct stk_identity *identity, uint64_t word)
{
    static const uint64_t salts[2] = { 0, UINT64_C(0x9E3779B97F4A7C15) };
    for (int i = 0; i < 2; i++)
        identity->words[i] = stk_mix64(identity->words[i] ^ word ^ salts[i]) + word;
}

static void add_bytes(struct stk_identity *identity, const void *bytes, size_t size)
{
    stk_identity_add(identity, size);
    for (size_t at = 0; at < size; at += 8) {
        uint8_t word[8] = { 0 };
        memcpy(word, (const uint8_t *)bytes + at, size - at < 8 ? size - at : 8);
        stk_identity_add(identity, stk_load_le64(word));
    }
}

void stk_identity_add_text(struct stk_identity *identity, const char *text)
{
    if (text == NULL)
        stk_identity_add(identity, UINT64_MAX);
    else
        add_bytes(identity, text, strlen(text));
}

/* A folder changes whenever anything in it does, so only which one it is counts. */
static bool add_descriptor(struct stk_identity *identity, int fd)
{
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0)
        return false;
    stk_identity_add(identity, status.st_dev);
    stk_identity_add(identity, status.st_ino);
    if (S_ISDIR(status.st_mode))
        return true;
    const struct stk_file_stamp stamp = stk_file_stamp_of(&status);
    stk_identity_add(identity, stamp.size);
    stk_identity_add(identity, (uint64_t)stamp.modified_ns);
    stk_identity_add(identity, (uint64_t)stamp.changed_ns);
    return true;
}

/* An object of a storage. Without a version, nobody knows if other processes see the same bytes. */
static bool add_object(struct stk_identity *identity, const stoker_file *file)
{
    if (file->fd >= 0 || file->storage == NULL || file->version == 0)
        return false;
    stk_identity_add_text(identity, file->storage->ops.name);
    stk_identity_add_text(identity, file->path);
    stk_identity_add(identity, file->size);
    stk_identity_add(identity, file->version);
    return true;
}

static bool add_files(struct stk_identity *identity, const stoker_dataset *dataset)
{
    stk_identity_add(identity, dataset->info.file_count);
    for (uint32_t i = 0; i < dataset->info.file_count; i++) {
        stoker_file file = { .fd = -1 };
        if (dataset->ops->file == NULL || dataset->ops->file(dataset->self, i, &file) < 0 ||
            (!add_descriptor(identity, file.fd) && !add_object(identity, &file)))
            return false;
    }
    if (!dataset->info.has_paths)
        return true;
    return dataset->info.directory == STOKER_DIRECTORY_OF_FILE ||
           dataset->info.directory ==
               AT_FDCWD || /* then add_part() refuses what is relative to it */
           add_descriptor(identity, dataset->info.directory);
}

static void add_fields(struct stk_identity *identity, const stoker_dataset *dataset)
{
    stk_identity_add(identity, dataset->info.field_count);
    for (uint32_t i = 0; i < dataset->info.field_count; i++) {
        const stoker_field_info *field = &dataset->fields[i].info;
        stk_identity_add_text(identity, field->name);
        stk_identity_add(identity, (uint64_t)field->kind << 32 | (uint64_t)field->dtype);
        stk_identity_add(identity, (uint64_t)field->part << 32 | field->varies);
        stk_identity_add(identity, field->rank);
        for (uint32_t axis = 0; axis < field->rank; axis++)
            stk_identity_add(identity, field->shape[axis]);
    }
}

/* A part in the memory of this process, or made from its id, has bytes that other processes cannot
 * look at. An empty one has none. */
static bool add_part(struct stk_identity *identity, const stoker_dataset *dataset,
                     const stoker_part *part)
{
    const stoker_extent *extent = &part->extent;
    const bool by_path = extent->path != NULL;
    if (extent->memory != NULL || (extent->bytes == 0 && part->codec != NULL) ||
        (by_path && dataset->info.directory == AT_FDCWD && extent->path[0] != '/'))
        return false;
    stk_identity_add(identity, (uint64_t)extent->file << 32 | extent->bytes);
    stk_identity_add(identity, by_path && !stk_part_is_range(part) ? 0 : extent->offset);
    if (by_path)
        stk_identity_add_text(identity, extent->path);
    stk_identity_add(identity, part->tag);
    stk_identity_add(identity, part->version);
    stk_identity_add(identity, part->codec_id);
    stk_identity_add_text(identity, part->codec == NULL ? NULL : part->codec->name);
    return true;
}

static bool add_samples(struct stk_identity *identity, const stoker_dataset *dataset)
{
    const stoker_dataset_info *info = &dataset->info;
    if (info->part_count == 0 || info->part_count > PARTS_TOGETHER || info->rows != NULL)
        return false;
    stoker_part parts[PARTS_TOGETHER];
    uint64_t ids[PARTS_TOGETHER];
    const uint32_t together = PARTS_TOGETHER / info->part_count;
    for (uint64_t first = 0; first < info->count; first += together) {
        const uint64_t left = info->count - first;
        const uint32_t count = left < together ? (uint32_t)left : together;
        for (uint32_t i = 0; i < count; i++)
            ids[i] = first + i;
        memset(parts, 0, sizeof(parts[0]) * count * info->part_count);
        stoker_error error;
        if (dataset->ops->locate(dataset->self, ids, count, parts, &error) < 0)
            return false;
        for (uint32_t i = 0; i < count * info->part_count; i++)
            if (!add_part(identity, dataset, &parts[i]))
                return false;
        if (info->dense) /* the first sample says where all are */
            return true;
    }
    return true;
}

bool stk_identity_of(const stoker_dataset *dataset, struct stk_identity *out)
{
    *out = (struct stk_identity){ { 0 } };
    stk_identity_add_text(out, dataset->ops->name);
    stk_identity_add(out, dataset->info.count);
    stk_identity_add(out, stk_dataset_own_fingerprint(dataset));
    add_fields(out, dataset);
    return add_files(out, dataset) && add_samples(out, dataset);
}

/* ---- fingerprint ------------------------------------------------------------------- */

enum {
    SAMPLES_MAX = 65536, /* samples examined */
    CHUNK = 64,          /* located per call */
    ROWS_PEEKED = 1024,  /* rows hashed if all rows are in memory */
    OTHERS_PEEKED = 64,  /* rows hashed otherwise: they may be mapped from files */
    PEEK_BYTES = 1024    /* hashed per row */
};

static const char *last_name(const char *path)
{
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* What all data sets of this kind have in common. */
static uint32_t form_of(const stoker_dataset *dataset)
{
    struct stk_identity form = { { 0 } };
    stk_identity_add_text(&form, dataset->ops->name);
    stk_identity_add(&form, dataset->info.count);
    stk_identity_add(&form, dataset->info.class_count);
    add_fields(&form, dataset);
    return (uint32_t)(form.words[0] >> 32);
}

static void add_names(struct stk_identity *content, const stoker_dataset *dataset)
{
    const stoker_dataset_ops *ops = dataset->ops;
    for (uint32_t i = 0; i < dataset->info.file_count && ops->file != NULL; i++) {
        stoker_file file = { .fd = -1 };
        if (ops->file(dataset->self, i, &file) < 0)
            continue;
        stk_identity_add_text(content, last_name(file.path));
        stk_identity_add(content, file.size);
    }
}

/* Returns true if a sample is identified by its bytes: it is in memory, and its data set has no
 * file that it could also be read from. */
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
static void add_place(struct stk_identity *content, const stoker_part *part,
                      const stoker_dataset_info *info)
{
    const stoker_extent *extent = &part->extent;
    stk_identity_add(content, part->tag);
    if (extent->memory == NULL && extent->path != NULL &&
        info->directory == STOKER_DIRECTORY_OF_FILE)
        stk_identity_add(content, extent->file);
    if (extent->memory == NULL && stk_part_is_range(part))
        stk_identity_add(content, extent->offset);
    if (extent->memory == NULL && extent->path != NULL)
        stk_identity_add_text(content,
                              info->directory == AT_FDCWD ? last_name(extent->path) : extent->path);
    else if (!only_in_memory(extent, info))
        stk_identity_add(content, extent->offset ^ (uint64_t)extent->file << 40);
    stk_identity_add(content, extent->bytes);
}

/* `peeks`: the bytes of parts in memory count, too. */
static void add_sample(struct stk_identity *content, const stoker_dataset *dataset, uint64_t id,
                       const stoker_part *parts, bool peeks)
{
    stk_identity_add(content, label_bits(dataset, id));
    for (uint32_t i = 0; i < dataset->info.part_count; i++) {
        const stoker_extent *extent = &parts[i].extent;
        add_place(content, &parts[i], &dataset->info);
        if (peeks && only_in_memory(extent, &dataset->info))
            add_bytes(content, extent->memory,
                      extent->bytes < PEEK_BYTES ? extent->bytes : PEEK_BYTES);
    }
}

static void add_some_samples(struct stk_identity *content, const stoker_dataset *dataset)
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
            add_sample(content, dataset, ids[i], &parts[(size_t)i * info->part_count],
                       (begin + i) % peek_step == 0);
    }
}

struct stk_fingerprint stk_fingerprint_of(const stoker_dataset *dataset)
{
    /* Stored in the data set; racing threads compute the same value. Both halves 0 = not computed
     * yet. */
    _Atomic uint64_t *const kept = &((stoker_dataset *)dataset)->fingerprint;
    uint64_t both = atomic_load_explicit(kept, memory_order_relaxed);
    if (both == 0) {
        struct stk_identity content = { { 1 } };
        stk_identity_add(&content, stk_dataset_own_fingerprint(dataset));
        add_names(&content, dataset);
        add_some_samples(&content, dataset);
        both = (uint64_t)form_of(dataset) << 32 | content.words[0] >> 32;
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
