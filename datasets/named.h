/* named.h - lists of named things in specs: "x=X.npy,y=Y.npy". */
#ifndef STK_DATASETS_NAMED_H
#define STK_DATASETS_NAMED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>

/* An item of a list, in the list's text. */
struct stk_named {
    char name[STOKER_FIELD_NAME_BYTES]; /* before the '='; "" = none */
    const char *text;                   /* behind it */
    size_t text_bytes;
};

/* Returns true if the text begins with NAME=, a name being 1..63 bytes of letters, digits and "_-.". */
bool stk_named_begins(const char *text);

/* Take the next item from *at and move *at behind it; false at the end of the list. With `all_named` an item reaches to
 * the next comma with a NAME= behind it, so that a text may contain commas; else to the next comma. */
bool stk_named_next(const char **at, bool all_named, struct stk_named *out);

#endif
