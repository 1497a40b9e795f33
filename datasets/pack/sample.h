/* sample.h - one sample on its way from the loader to the target. */
#ifndef PACK_SAMPLE_H
#define PACK_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>

#include "datasets/shards/layout.h"

/* A growing, reusable buffer. */
struct pack_room {
    uint8_t *at;
    size_t bytes; /* allocated */
    size_t used;
};

struct pack_sample {
    uint64_t id; /* in the source */
    const void *row;
    stoker_label label;
    const uint8_t *bytes; /* to be stored: the row, or in room */
    size_t size;
    enum stk_shard_codec codec;
    struct pack_room room;
    const char *failed; /* why it could not be encoded; NULL = it was */
};

/* Make room for `more` bytes after those used; false if out of memory. */
bool pack_room_for(struct pack_room *room, size_t more);
void pack_room_free(struct pack_room *room);

#endif
