/* room.h - a growing, reusable buffer. */
#ifndef PACK_ROOM_H
#define PACK_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pack_room {
    uint8_t *at;
    size_t bytes; /* allocated */
    size_t used;
};

/* Make room for `more` bytes after those used. Returns false if out of memory. */
bool pack_room_for(struct pack_room *room, size_t more);

/* Append bytes. Returns false if out of memory. */
bool pack_room_add(struct pack_room *room, const void *bytes, size_t size);
void pack_room_free(struct pack_room *room);

#endif
