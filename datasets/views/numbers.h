/* numbers.h - a file of numbers: sample ids, or weights; text or .npy.
 *
 *   text   numbers between blanks and line breaks; '#' begins a comment that ends with its line
 *   .npy   one axis, or a second one of length 1; integers for ids, float32, float64 or integers for weights
 */
#ifndef STK_DATASETS_VIEWS_NUMBERS_H
#define STK_DATASETS_VIEWS_NUMBERS_H

#include <stdint.h>
#include <stoker/error.h>

struct stk_numbers {
    uint64_t *ids;   /* [count], or NULL */
    double *weights; /* [count] finite and >= 0, or NULL */
    uint64_t count;  /* >= 1 */
};

enum stk_numbers_kind { STK_NUMBERS_IDS, STK_NUMBERS_WEIGHTS };

/* Read them all. Files over max_bytes are refused. Errors: those of opening and reading, STOKER_EFORMAT (with the offset
 * of the number), STOKER_EEMPTY, STOKER_ELIMIT, STOKER_ENOTSUP (other NumPy types), STOKER_ENOMEM. */
int stk_numbers_read(struct stk_numbers *out, const char *path, enum stk_numbers_kind kind,
                     uint64_t max_bytes, stoker_error *error);
void stk_numbers_free(struct stk_numbers *numbers); /* all zero is allowed */

#endif
