/* fit.h - best-fit decreasing: assign the documents of a block to rows.
 *
 * Documents are placed from the longest to the shortest, each into the fullest row that still has
 * room for it, or into a new row. It needs at most 11/9 of the fewest rows possible, and 4 more
 * (Johnson, Demers, Ullman, Garey, Graham, "Worst-case performance bounds for simple
 * one-dimensional packing algorithms", SIAM J. Comput. 3, 1974).
 *
 * With lengths that are small integers this takes O(documents x log(row)): a counting sort, and a
 * search tree over the rooms that rows have left, as in Ding et al., "Fewer Truncations Improve
 * Language Modeling" (ICML 2024). Here a node of the tree has 64 children and is one word of bits,
 * so that the tree has at most STK_FIT_LEVELS levels.
 *
 *   room       0  1  2  3 ... 63 | 64 ...        bits[0]: a bit per room, 1 = some row has it
 *   top[room]  the row with this room that was put there last; next[row] the one before it
 *
 * The result is a pure function of the lengths: integers only, and every tie is decided by the
 * documents' order.
 */
#ifndef STK_DATASETS_VIEWS_PACKED_FIT_H
#define STK_DATASETS_VIEWS_PACKED_FIT_H

#include <stdint.h>

enum { STK_FIT_LEVELS = 4 };
#define STK_FIT_LENGTH_MAX (UINT32_C(1) << 23)

/* What packing a block works with; packings may share it, one after the other. */
struct stk_fit {
    uint32_t row_length; /* elements of a row, 1..STK_FIT_LENGTH_MAX */
    uint32_t items_max;
    uint32_t *first;  /* [row_length + 2] counting sort: where the items of each length begin */
    uint32_t *sorted; /* [items_max] items by falling length; those of one length in their order */
    uint32_t *top;    /* [row_length + 1] */
    uint32_t *next;   /* [items_max] */
    uint32_t *number; /* [items_max] of each row, the number that it gets in the end */
    uint64_t *bits[STK_FIT_LEVELS];
    uint32_t levels;
};

/* Take the memory to pack blocks of up to items_max >= 1 items. Returns 0, or STOKER_ENOMEM with
 * nothing kept. */
int stk_fit_init(struct stk_fit *fit, uint32_t row_length, uint32_t items_max);
void stk_fit_free(struct stk_fit *fit); /* one that is all zero is allowed */

/* Pack `count` <= items_max items of lengths[i] in 1..row_length elements: row_of[i] becomes the
 * row of item i. Rows are numbered by their first items, so that they lie in the order of the data
 * as far as possible. Returns their number. */
uint32_t stk_fit_pack(struct stk_fit *fit, const uint32_t *lengths, uint32_t count,
                      uint32_t *row_of);

#endif
