/* label_column.h - the labels of a set once more, each in a byte or two, for who wants nothing else.
 *
 * An entry of an index is 16 or 32 bytes, and a gathered row needs its label alone: the entries of
 * 60,000 samples fill a core's cache, their labels do not.
 */
#ifndef STK_DATASETS_LABEL_COLUMN_H
#define STK_DATASETS_LABEL_COLUMN_H

#include <stdbool.h>
#include <stdint.h>

struct stk_label_column {
    uint8_t *narrow; /* NULL unless all labels are 0..255 */
    uint16_t *wide;  /* NULL unless they are 0..65535, and not all narrow. Both NULL: no column */
};

/* Make it for `count` labels, which `label` tells. Labels that do not fit make no column, and that is
 * no failure. STOKER_ENOMEM: there is none. */
int stk_label_column_make(struct stk_label_column *column, uint64_t count,
                          int64_t (*label)(const void *self, uint64_t id), const void *self);
void stk_label_column_free(struct stk_label_column *column); /* all zero is allowed */

/* out[i] = label of ids[i]. False, and nothing is written, if there is no column. */
bool stk_label_column_take(const struct stk_label_column *column, const uint64_t *ids,
                           uint32_t count, int64_t *out);

#endif
