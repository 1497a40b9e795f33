/* kept.c - see kept.h. */
#include "datasets/pack/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static bool read_all(int fd, uint8_t *to, size_t size)
{
    size_t done = 0;
    while (done < size) {
        const ssize_t got = pread(fd, to + done, size - done, (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

/* The loader has read this very file a moment ago, under its rules about links. */
static bool read_path(int directory, const stoker_extent *extent, struct pack_room *room)
{
    if (!pack_room_for(room, extent->bytes))
        return false;
    const int fd = openat(directory, extent->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const bool whole = read_all(fd, room->at, extent->bytes);
    close(fd);
    room->used = whole ? extent->bytes : 0;
    return whole;
}

static bool is_image(struct pack_sample *sample)
{
    static const uint8_t png[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n' };
    static const uint8_t jpeg[3] = { 0xFF, 0xD8, 0xFF };
    if (sample->size >= sizeof(png) && memcmp(sample->bytes, png, sizeof(png)) == 0)
        sample->codec = STK_SHARD_PNG;
    else if (sample->size >= sizeof(jpeg) && memcmp(sample->bytes, jpeg, sizeof(jpeg)) == 0)
        sample->codec = STK_SHARD_JPEG;
    else
        return false;
    return true;
}

bool pack_kept(const stoker_dataset *source, struct pack_sample *sample)
{
    stoker_sample found = { 0 };
    if (stoker_dataset_locate(source, sample->id, &found, NULL) != STOKER_OK ||
        found.codec == NULL || found.extent.bytes == 0)
        return false;
    sample->room.used = 0;
    sample->bytes = found.extent.memory;
    if (sample->bytes == NULL) {
        if (found.extent.path == NULL ||
            !read_path(stoker_dataset_get_info(source)->directory, &found.extent, &sample->room))
            return false;
        sample->bytes = sample->room.at;
    }
    sample->size = found.extent.bytes;
    return is_image(sample);
}
