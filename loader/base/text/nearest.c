/* nearest.c - see nearest.h. Uses the Damerau-Levenshtein distance, row by row. */
#include "loader/base/text/nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { WORD_MAX = 40 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static int letter(char byte)
{
    return tolower((unsigned char)byte);
}

/* Both words have WORD_MAX letters at most. */
static unsigned distance_between(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    unsigned rows[3][WORD_MAX + 1]; /* the row being filled, the one before, the one before that */
    unsigned *now = rows[0], *before = rows[1], *two_before = rows[2];
    for (size_t j = 0; j <= b_bytes; j++)
        now[j] = (unsigned)j;
    for (size_t i = 1; i <= a_bytes; i++) {
        unsigned *const oldest = two_before;
        two_before = before;
        before = now;
        now = oldest;
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= b_bytes; j++) {
            const unsigned change = letter(a[i - 1]) != letter(b[j - 1]);
            now[j] = least(before[j - 1] + change, least(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && letter(a[i - 1]) == letter(b[j - 2]) &&
                letter(a[i - 2]) == letter(b[j - 1]))
                now[j] = least(now[j], two_before[j - 2] + 1);
        }
    }
    return now[b_bytes];
}

static unsigned distance_allowed(size_t bytes)
{
    return bytes < 3 ? 0 : bytes < 6 ? 1 : bytes < 9 ? 2 : 3;
}

struct stk_nearest stk_nearest_to(const char *word, size_t bytes)
{
    return (struct stk_nearest){ .word = word, .bytes = bytes };
}

void stk_nearest_try(struct stk_nearest *nearest, const char *spelling, const char *answer)
{
    const size_t bytes = strlen(spelling);
    if (bytes > WORD_MAX || nearest->bytes > WORD_MAX)
        return;
    const unsigned distance = distance_between(nearest->word, nearest->bytes, spelling, bytes);
    if (distance > distance_allowed(bytes < nearest->bytes ? bytes : nearest->bytes) ||
        (nearest->answer != NULL && distance >= nearest->distance))
        return;
    nearest->answer = answer;
    nearest->distance = distance;
}

const char *stk_nearest_question(char out[STK_NEAREST_BYTES], const struct stk_nearest *nearest,
                                 const char *before)
{
    out[0] = '\0';
    if (nearest->answer != NULL)
        (void)snprintf(out, STK_NEAREST_BYTES, " (did you mean '%s%.60s'?)", before,
                       nearest->answer);
    return out;
}
