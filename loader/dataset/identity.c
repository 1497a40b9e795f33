/* identity.c - see identity.h. */
#include "loader/dataset/identity.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "loader/base/rng.h"

enum { PARTS_TOGETHER = 1024 }; /* located by one call, at most; >= STOKER_FIELDS_MAX */

void stk_identity_add(struct stk_identity *identity, uint64_t word)
{
    static const uint64_t salts[2] = { 0, UINT64_C(0x9E3779B97F4A7C15) };
    for (int i = 0; i < 2; i++)
        identity->words[i] = stk_mix64(identity->words[i] ^ word ^ salts[i]) + word;
}

void stk_identity_add_text(struct stk_identity *identity, const char *text)
{
    const size_t bytes = text == NULL ? 0 : strlen(text);
    stk_identity_add(identity, text == NULL ? UINT64_MAX : bytes);
    for (size_t at = 0; at < bytes; at += 8) {
        uint64_t word = 0;
        memcpy(&word, text + at, bytes - at < 8 ? bytes - at : 8);
        stk_identity_add(identity, word);
    }
}

static void add_time(struct stk_identity *identity, struct timespec time)
{
    stk_identity_add(identity, (uint64_t)time.tv_sec);
    stk_identity_add(identity, (uint64_t)time.tv_nsec);
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
    stk_identity_add(identity, (uint64_t)status.st_size);
    add_time(identity, status.st_mtim);
    add_time(identity, status.st_ctim);
    return true;
}

static bool add_files(struct stk_identity *identity, const stoker_dataset *dataset)
{
    stk_identity_add(identity, dataset->info.file_count);
    for (uint32_t i = 0; i < dataset->info.file_count; i++) {
        stoker_file file = { .fd = -1 };
        if (dataset->ops->file == NULL || dataset->ops->file(dataset->self, i, &file) < 0 ||
            !add_descriptor(identity, file.fd))
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

/* A part in the memory of this process, or made from its id, has bytes that other processes cannot look at. An empty one
 * has none. */
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
