/* words.h - the different words of a column, numbered in the order of their bytes. */
#ifndef STK_DATASETS_CSV_WORDS_H
#define STK_DATASETS_CSV_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "datasets/csv/record.h"

enum { STK_CSV_WORDS_MAX = 65536 };

/* All zero = no words. */
struct stk_csv_words {
    char *bytes; /* the words in the order in which they were added, each ended by a 0 */
    size_t used;
    size_t room;
    uint32_t count;
    uint32_t *slots;     /* hash table: 1 + number of a word; 0 = free */
    uint32_t slot_count; /* a power of two, more than 2 x count; 0 = no table */
    size_t *at;          /* [slot_count / 2]: offset of each word */
    uint32_t *rank;      /* [count]: place in the sorted order; NULL = not sorted */
    uint32_t *sorted;    /* [count]: the word of each place */
};

/* Add the field's text, quotes undone, unless it is known. STOKER_ELIMIT: more than STK_CSV_WORDS_MAX
 * words; STOKER_ENOMEM. Not after sorting. */
int stk_csv_words_add(struct stk_csv_words *words, const struct stk_csv_field *field);

/* Sort the words. STOKER_ENOMEM. */
int stk_csv_words_sort(struct stk_csv_words *words);

/* The place of a word that was added, 0..count - 1, after sorting. */
uint32_t stk_csv_words_find(const struct stk_csv_words *words, const struct stk_csv_field *field);

/* The word at a place, after sorting. */
const char *stk_csv_words_at(const struct stk_csv_words *words, uint32_t place);

void stk_csv_words_free(struct stk_csv_words *words); /* all zero is allowed */

#endif
