/* part.h - from the bytes of one part to the rows of its fields. */
#ifndef STK_DATASET_PART_H
#define STK_DATASET_PART_H

#include "loader/dataset/dataset.h"

/* Call locate() for `count` >= 1 samples, and check what it filled in: known flags, and codecs with
 * a name and the functions that the fields of their part need. Returns 0 or a stoker_err < 0,
 * explained by *error, which may be NULL. */
int stk_parts_locate(const stoker_dataset *dataset, const uint64_t *ids, uint32_t count,
                     stoker_part *parts, stoker_error *error);

/* Call values() of field `field` for `count` >= 1 samples. Returns as stk_parts_locate(). */
int stk_parts_values(const stoker_dataset *dataset, uint32_t field, const uint64_t *ids,
                     uint32_t count, void *out, stoker_error *error);

/* Point the rows of a raw part's fields at its bytes, of which each has its own. Sets the length
 * of a field that varies. Returns 0, or a code < 0 with a reason in said->message: the bytes are
 * not those of the fields. */
int stk_part_raw(const stoker_dataset *dataset, uint32_t part, const void *bytes, size_t size,
                 stoker_row *rows, stoker_error *said);

/* Decode part `part` of a sample into rows[0..field_count), of which only the part's own are
 * touched; codec NULL = raw. Sets the length of fields that vary. Returns 0, or a code < 0 with a
 * reason in said->message. */
int stk_part_decode(const stoker_dataset *dataset, uint32_t part, const stoker_codec *codec,
                    void *scratch, const stoker_encoded *in, stoker_row *rows, stoker_error *said);

/* Check the lengths that a codec has set in the rows of a part. Returns 0 or STOKER_EFORMAT, with
 * a reason. */
int stk_part_check(const stoker_dataset *dataset, uint32_t part, const stoker_codec *codec,
                   const stoker_row *rows, stoker_error *said);

#endif
