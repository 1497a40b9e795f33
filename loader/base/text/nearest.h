/* nearest.h - "did you mean": the known word that is nearest to a mistyped one.
 *
 *   struct stk_nearest nearest = stk_nearest_to(text, length);
 *   for each known word: stk_nearest_try(&nearest, word, word);
 *   message("'%s' is unknown%s", text, stk_nearest_question(question, &nearest, ""));
 *
 * Near is: no more letters inserted, left out, changed or swapped than 1 in a word of 3 to 5
 * letters, 2 in one of 6 to 8, 3 in a longer one; case does not count.
 */
#ifndef STK_BASE_NEAREST_H
#define STK_BASE_NEAREST_H

#include <stddef.h>

enum { STK_NEAREST_BYTES = 96 };

struct stk_nearest {
    const char *word;
    size_t bytes;
    const char *answer; /* nearest so far; NULL = none is near */
    unsigned distance;  /* between the word and the answer */
};

/* Start with the mistyped word: `bytes` bytes at `word`, which must stay valid. */
struct stk_nearest stk_nearest_to(const char *word, size_t bytes);

/* Consider a known spelling. The answer is what to suggest for it: the same word, or another for
 * one that people type ("gpu" for "cuda"). Of equally near ones the first wins. */
void stk_nearest_try(struct stk_nearest *nearest, const char *spelling, const char *answer);

/* " (did you mean 'ANSWER'?)" with `before` ahead of the answer ("--"), or "". Returns out. */
const char *stk_nearest_question(char out[STK_NEAREST_BYTES], const struct stk_nearest *nearest,
                                 const char *before);

#endif
