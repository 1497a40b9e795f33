/* fields_item.h - one sample of several fields on its way from the source to a target: read, then kept or encoded.
 *
 *   part of the source ─▶ an image file, as it is (--codec keep)            ─▶ piece
 *   decoded field      ─▶ elements, compressed elements, PNG, JPEG, NPY     ─▶ piece
 */
#ifndef PACK_FIELDS_ITEM_H
#define PACK_FIELDS_ITEM_H

#include "datasets/pack/target.h"
#include "datasets/shards/fields_layout.h"

/* What is packed: the fields as shards store them, one part each but the label's. */
struct pack_fields {
    const struct pack_plan *plan;
    struct stk_fields_field at[STOKER_FIELDS_MAX];
    uint32_t count;
    uint32_t part_count;
};

/* One part of a sample, to be stored. */
struct pack_piece {
    struct pack_room room; /* file or compressed bytes */
    const uint8_t *bytes;
    size_t size;
    uint32_t codec; /* enum stk_shard_codec; RAW for NPY files, text and bytes */
};

struct pack_item {
    uint64_t id;
    stoker_row rows[STOKER_FIELDS_MAX]; /* decoded fields */
    struct pack_piece pieces[STOKER_FIELDS_MAX];
    stoker_label label;
    bool bad;
    char failed[256]; /* why packing must end; "" = it need not */
    stoker_error error;
    /* As pack_batch.load. */
    bool (*load)(void *self, struct pack_failure *failure);
    void *load_self;
};

/* Returns true if the field is the label of `info`, which has no part. */
bool pack_is_label(const stoker_field_info *field);

/* Allocate the rows. False: out of memory; pack_item_free() frees what there is. */
bool pack_item_make(struct pack_item *item, const struct pack_fields *fields);
void pack_item_free(struct pack_item *item); /* all zero is allowed */

/* Read sample item->id: sets all but rows and id. Any thread, each with its own item. */
void pack_item_read(const struct pack_fields *fields, struct pack_item *item);

#endif
