/* zstd.c - a row as one Zstandard frame, through libzstd. */
#include "datasets/pack/encode/pixels.h"

#ifdef STOKER_HAVE_ZSTD
#include <zstd.h>

bool pack_zstd_present(void)
{
    return true;
}

const char *pack_zstd(const uint8_t *row, size_t row_bytes, uint32_t level, struct pack_room *room)
{
    if (!pack_room_for(room, ZSTD_compressBound(row_bytes)))
        return "out of memory";
    const size_t bytes = ZSTD_compress(room->at, room->bytes, row, row_bytes, (int)level);
    if (ZSTD_isError(bytes))
        return ZSTD_getErrorName(bytes);
    room->used = bytes;
    return NULL;
}
#else
bool pack_zstd_present(void)
{
    return false;
}

const char *pack_zstd(const uint8_t *row, size_t row_bytes, uint32_t level, struct pack_room *room)
{
    (void)row;
    (void)row_bytes;
    (void)level;
    (void)room;
    return "built without libzstd";
}
#endif
