/* room.c - see room.h. */
#include "datasets/pack/room.h"

#include <stdlib.h>
#include <string.h>

bool pack_room_for(struct pack_room *room, size_t more)
{
    if (more <= room->bytes - room->used)
        return true;
    size_t bytes = room->bytes < 4096 ? 4096 : room->bytes;
    while (bytes - room->used < more) {
        if (bytes > SIZE_MAX / 2)
            return false;
        bytes *= 2;
    }
    uint8_t *at = realloc(room->at, bytes);
    if (at == NULL)
        return false;
    room->at = at;
    room->bytes = bytes;
    return true;
}

bool pack_room_add(struct pack_room *room, const void *bytes, size_t size)
{
    if (!pack_room_for(room, size))
        return false;
    memcpy(room->at + room->used, bytes, size);
    room->used += size;
    return true;
}

void pack_room_free(struct pack_room *room)
{
    free(room->at);
    *room = (struct pack_room){ 0 };
}
