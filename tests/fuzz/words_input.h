/* words_input.h - an input as the words of a command line: for fuzz targets of option parsing. */
#ifndef STK_FUZZ_WORDS_INPUT_H
#define STK_FUZZ_WORDS_INPUT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STK_FUZZ_WORDS_MAX = 32 };

struct stk_fuzz_words {
    char *text;
    char *at[STK_FUZZ_WORDS_MAX + 2]; /* a program's name first, NULL last */
    int count;
};

/* One word a line; a 0 byte ends a word as well. Lines beyond the limit are left out. */
static inline struct stk_fuzz_words stk_fuzz_words(const uint8_t *bytes, size_t size)
{
    static char name[] = "program";
    struct stk_fuzz_words words = { .text = malloc(size + 1), .at = { name }, .count = 1 };
    if (words.text == NULL)
        abort();
    if (size > 0)
        memcpy(words.text, bytes, size);
    words.text[size] = '\0';
    for (char *word = words.text, *next = word;
         next != NULL && words.count <= STK_FUZZ_WORDS_MAX && size > 0; word = next) {
        next = memchr(word, '\n', size - (size_t)(word - words.text));
        words.at[words.count++] = word;
        if (next != NULL)
            *next++ = '\0';
    }
    return words;
}

#define STK_FUZZ_MUST_HOLD(condition)                                                              \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
