/* members.h - the files that hold the fields of a sample in an archive or in folders, and the spec
 * that opens them.
 *
 *   field                    archive                    folder
 *   the first image          KEY.jpg                    image/KEY.jpg
 *   other images             KEY.NAME.jpg               NAME/KEY.jpg
 *   masks                    KEY.NAME.png, or           NAME/KEY.png
 *                            KEY.NAME.mask.png
 *   arrays                   KEY.NAME.npy               NAME/KEY.npy
 *   bytes                    KEY.NAME.txt, .json, .bin  NAME/KEY.txt, .json, .bin
 *   int64 label              KEY.cls                    label/KEY.npy
 *   key, if it is bytes      names the files            names the files
 *
 * A folder of an image and its class alone has a folder per class: CLASS/KEY.jpg.
 */
#ifndef PACK_MEMBERS_H
#define PACK_MEMBERS_H

#include "datasets/pack/item.h"
#include "datasets/pack/output.h"

enum { PACK_KEY_BYTES = 2048, PACK_SPEC_BYTES = 2 * PACK_PATH_BYTES };

/* Returns NULL, or why the fields do not fit into files of this form. */
const char *pack_members_unsuitable(const struct pack_plan *plan);

/* Returns true if the files lie in a folder per class, not per field. */
bool pack_members_by_class(const struct pack_plan *plan);

/* Returns true for the label if it is a class number. */
bool pack_members_is_class(const struct stk_shard_field *field);

/* Returns true if field `number` is the key, which names the files. */
bool pack_members_is_key(const struct pack_plan *plan, uint32_t number);

/* Write the key of a sample: that of its field "key", else its number. Returns NULL, or what is
 * wrong with it. */
const char *pack_members_key(const struct pack_plan *plan, const struct pack_item *item,
                             char key[PACK_KEY_BYTES]);

/* Write what follows the key and a dot: "jpg", "boxes.npy" in an archive, "jpg", "npy" in a folder.
 * Field `number` of the item is not the key. */
void pack_members_extension(const struct pack_plan *plan, const struct pack_item *item,
                            uint32_t number, char *to, size_t bytes);

/* Write the spec that opens the target with the same fields. False: it is too long. */
bool pack_members_spec(const struct pack_plan *plan, char spec[PACK_SPEC_BYTES]);

#endif
