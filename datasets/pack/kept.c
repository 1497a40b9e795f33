/* kept.c - see kept.h. */
#include "datasets/pack/kept.h"

#include <string.h>

/* Whether the source says so, or that the bytes tell. Of rows they do not: nothing keeps a row of
 * pixels from beginning as a file does. */
static bool may_be_image(const char *stored_as)
{
    static const char *const names[] = { "png", "jpeg", "image" };
    for (size_t i = 0; stored_as != NULL && i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(stored_as, names[i]) == 0)
            return true;
    return false;
}

static bool begins_with(const struct pack_sample *sample, const uint8_t *magic, size_t bytes)
{
    return sample->size >= bytes && memcmp(sample->bytes, magic, bytes) == 0;
}

static bool take_codec(struct pack_sample *sample)
{
    static const uint8_t png[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n' };
    static const uint8_t jpeg[3] = { 0xFF, 0xD8, 0xFF };
    const bool is_png = begins_with(sample, png, sizeof(png));
    sample->codec = is_png ? STK_SHARD_PNG : STK_SHARD_JPEG;
    return is_png || begins_with(sample, jpeg, sizeof(jpeg));
}

/* The loader has read and decoded these very bytes a moment ago. */
bool pack_kept(const stoker_dataset *source, struct pack_sample *sample)
{
    stoker_sample found = { 0 };
    if (!may_be_image(stoker_dataset_stored_as(source, sample->id)) ||
        stoker_dataset_locate(source, sample->id, &found, NULL) != STOKER_OK)
        return false;
    const size_t bytes_max = (size_t)found.extent.bytes + 1;
    sample->room.used = 0;
    if (!pack_room_for(&sample->room, bytes_max) ||
        stoker_dataset_read_stored(source, sample->id, sample->room.at, bytes_max, &sample->size,
                                   NULL) != STOKER_OK)
        return false;
    sample->room.used = sample->size;
    sample->bytes = sample->room.at;
    return take_codec(sample);
}
