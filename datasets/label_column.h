/* label_column.h - a compact copy of the labels, one or two bytes each.
 *
 * An index entry has 16 or 32 bytes, and a gathered row needs only its label: the entries of 60,000
 * samples fill a core's cache, their labels do not.
 */
#ifndef STK_DATASETS_LABEL_COLUMN_H
#define STK_DATASETS_LABEL_COLUMN_H

#include <stdbool.h>
#include <stdint.h>

struct stk_label_column {
    uint8_t *narrow; /* if all labels are 0..255, else NULL */
    uint16_t *wide;  /* else if all are 0..65535. Both NULL: no column */
};

/* Copy `count` labels from `label`. Labels that do not fit leave no column, which is not an error.
 * STOKER_ENOMEM: there is no column. */
int stk_label_column_make(struct stk_label_column *column, uint64_t count,
                          int64_t (*label)(const void *self, uint64_t id), const void *self);
void stk_label_column_free(struct stk_label_column *column); /* all zero is allowed */

/* out[i] = label of ids[i]. Returns false and writes nothing if there is no column. */
bool stk_label_column_take(const struct stk_label_column *column, const uint64_t *ids,
                           uint32_t count, int64_t *out);

#endif
