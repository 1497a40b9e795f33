/* formats.c - the table of formats. Plain paths are shown to them in this order. */
#include "datasets/formats.h"

#include <stddef.h>

const struct stk_format *const stk_formats[] = { &stk_format_mnist, &stk_format_idx,
                                                 &stk_format_synth, NULL };
