/* plot_words.h - how wide words are in a picture, and words shortened to what there is room for.
 *
 * Widths are those of a wide font (DejaVu Sans), since a picture does not know in which it will be shown.
 */
#ifndef STK_TRAINER_PLOT_WORDS_H
#define STK_TRAINER_PLOT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

enum { STK_PLOT_WORDS_BYTES = 1024 };

struct stk_plot_font {
    double pixels; /* font-size */
    bool bold;
};

/* Pixels that the words take, at most. */
double stk_plot_width(const char *words, const struct stk_plot_font *font);

/* Copy words to out; if they are wider than `pixels`, their middle becomes "...". A path keeps its end. */
void stk_plot_fit(char out[STK_PLOT_WORDS_BYTES], const char *words, double pixels,
                  const struct stk_plot_font *font);

#endif
