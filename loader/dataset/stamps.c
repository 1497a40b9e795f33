/* stamps.c - see stamps.h. */
#include "loader/dataset/stamps.h"

#include <sys/stat.h>

#include "loader/base/memory/memory.h"

static struct stk_stamp stamp_of(int fd)
{
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return (struct stk_stamp){ .fd = -1 };
    return (struct stk_stamp){ .fd = fd, .file = stk_file_stamp_of(&status) };
}

int stk_stamps_take(struct stk_stamps *stamps, const stoker_dataset_ops *ops, const void *self,
                    uint32_t file_count)
{
    *stamps = (struct stk_stamps){ 0 };
    if (file_count == 0)
        return 0;
    stamps->each = stk_calloc(file_count, sizeof(stamps->each[0]));
    if (stamps->each == NULL)
        return STOKER_ENOMEM;
    stamps->count = file_count;
    for (uint32_t i = 0; i < file_count; i++) {
        stoker_file file = { .fd = -1 };
        /* A file that file() cannot give now is reported when it is read. */
        stamps->each[i] = stamp_of(ops->file(self, i, &file) == 0 ? file.fd : -1);
        stamps->apart = stamps->apart || file.storage != NULL || file.blocks != NULL;
    }
    return 0;
}

void stk_stamps_free(struct stk_stamps *stamps)
{
    stk_free(stamps->each);
    *stamps = (struct stk_stamps){ 0 };
}

bool stk_stamp_holds(const struct stk_stamps *stamps, uint32_t file)
{
    const struct stk_stamp *stamp = &stamps->each[file];
    struct stat status;
    if (stamp->fd < 0 || fstat(stamp->fd, &status) != 0) /* closed: its reads report it */
        return true;
    const struct stk_file_stamp now = stk_file_stamp_of(&status);
    return stk_file_stamp_holds(&stamp->file, &now);
}

uint32_t stk_stamps_first_changed(const struct stk_stamps *stamps)
{
    for (uint32_t i = 0; i < stamps->count; i++)
        if (!stk_stamp_holds(stamps, i))
            return i;
    return UINT32_MAX;
}

int stk_stamps_refuse(const struct stk_stamps *stamps, uint32_t file, struct stk_place place,
                      stoker_error *error)
{
    struct stat status;
    const struct stk_file_stamp *then = &stamps->each[file].file;
    const bool known = fstat(stamps->each[file].fd, &status) == 0;
    if (known && (uint64_t)status.st_size != then->size)
        return stk_error_set(error, STOKER_ECHANGED, STOKER_STAGE_READ, &place,
                             "size is %llu bytes, was %llu when the data set was opened",
                             (unsigned long long)status.st_size, (unsigned long long)then->size);
    return stk_error_set(error, STOKER_ECHANGED, STOKER_STAGE_READ, &place,
                         "written to after the data set was opened%s",
                         known && stk_timespec_ns(status.st_mtim) == then->modified_ns
                             ? " (by its ctime; the modification time was set back)"
                             : "");
}
