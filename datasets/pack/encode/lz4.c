/* lz4.c - a row as one LZ4 block, through liblz4. */
#include "datasets/pack/encode/pixels.h"

#ifdef STOKER_HAVE_LZ4
#include <lz4.h>
#include <lz4hc.h>

bool pack_lz4_present(void)
{
    return true;
}

const char *pack_lz4(const uint8_t *row, size_t row_bytes, uint32_t level, struct pack_room *room)
{
    const int bound = row_bytes > LZ4_MAX_INPUT_SIZE ? 0 : LZ4_compressBound((int)row_bytes);
    if (bound == 0)
        return "the row is too long for LZ4";
    if (!pack_room_for(room, (size_t)bound))
        return "out of memory";
    const int bytes =
        LZ4_compress_HC((const char *)row, (char *)room->at, (int)row_bytes, bound, (int)level);
    if (bytes <= 0)
        return "LZ4 could not pack the row";
    room->used = (size_t)bytes;
    return NULL;
}
#else
bool pack_lz4_present(void)
{
    return false;
}

const char *pack_lz4(const uint8_t *row, size_t row_bytes, uint32_t level, struct pack_room *room)
{
    (void)row;
    (void)row_bytes;
    (void)level;
    (void)room;
    return "built without liblz4";
}
#endif
