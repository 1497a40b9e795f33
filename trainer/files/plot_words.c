/* plot_words.c - see plot_words.h. */
#include "trainer/files/plot_words.h"

#include <string.h>

#include "trainer/files/json.h"

#define DOTS       "\xE2\x80\xA6" /* an ellipsis */
#define HEAD_SHARE 0.4            /* of what is kept when the middle goes */

/* Bytes of the character at words; 1 for what is no text. */
static size_t step(const char *words)
{
    const size_t length = stk_utf8_length(words, strlen(words));
    return length == 0 ? 1 : length;
}

/* Width of a character, in font sizes. */
static double em(const char *at, bool bold)
{
    double width = 0.65;
    if ((unsigned char)*at >= 0x80 || strchr("mwMW@%<>&\"+=#~", *at) != NULL)
        width = 1.0;
    else if (strchr("iljtfI.,:;'|!()[]/ -", *at) != NULL)
        width = 0.42;
    else if (*at >= 'A' && *at <= 'Z')
        width = 0.79;
    return bold ? width * 1.13 : width;
}

double stk_plot_width(const char *words, const struct stk_plot_font *font)
{
    double width = 0;
    for (; *words != '\0'; words += step(words))
        width += em(words, font->bold) * font->pixels;
    return width;
}

void stk_plot_fit(char out[STK_PLOT_WORDS_BYTES], const char *words, double pixels,
                  const struct stk_plot_font *font)
{
    const double all = stk_plot_width(words, font);
    const bool fits = all <= pixels;
    const double room = pixels - stk_plot_width(DOTS, font);
    const double head = fits ? pixels : room * HEAD_SHARE;
    const double tail = fits ? 0 : all - room * (1 - HEAD_SHARE); /* where it begins */
    size_t used = 0;
    double before = 0;
    bool dotted = false;
    for (size_t bytes; *words != '\0'; words += bytes) {
        bytes = step(words);
        const double after = before + em(words, font->bold) * font->pixels;
        const bool kept = fits || after <= head || before >= tail;
        if (used + bytes + sizeof(DOTS) > STK_PLOT_WORDS_BYTES)
            break;
        if (kept) {
            memcpy(out + used, words, bytes);
            used += bytes;
        } else if (!dotted) {
            memcpy(out + used, DOTS, sizeof(DOTS) - 1);
            used += sizeof(DOTS) - 1;
            dotted = true;
        }
        before = after;
    }
    out[used] = '\0';
}
