/* item.h - one sample on its way from the source to a target: read, then kept or encoded.
 *
 *   part of the source ─▶ an image file, as it is (--codec keep)            ─▶ piece
 *   decoded field      ─▶ elements, compressed elements, PNG, JPEG, NPY     ─▶ piece
 */
#ifndef PACK_ITEM_H
#define PACK_ITEM_H

#include "datasets/pack/room.h"
#include "datasets/pack/target/target.h"

/* One part of a sample, to be stored. */
struct pack_piece {
    struct pack_room room; /* file or compressed bytes */
    const uint8_t *bytes;
    size_t size;
    uint32_t codec; /* enum stk_shard_codec; RAW for NPY files, text and bytes */
};

struct pack_item {
    uint64_t id;
    stoker_row rows[STOKER_FIELDS_MAX];          /* decoded fields */
    struct pack_piece pieces[STOKER_FIELDS_MAX]; /* parts */
    bool bad;
    char failed[256];   /* why packing must end; "" = it need not */
    stoker_error error; /* why it is bad */
};

/* Allocate the rows. False: out of memory; pack_item_free() frees what there is. */
bool pack_item_make(struct pack_item *item, const struct pack_plan *plan);
void pack_item_free(struct pack_item *item); /* all zero is allowed */

/* Read sample item->id: sets all but id. Any thread, each with its own item. */
void pack_item_read(const struct pack_plan *plan, struct pack_item *item);

#endif
