/* format.h - the table through which data set formats reach the loader.
 *
 * The loader never names a format: it walks this table, which datasets/formats.c
 * defines.
 */
#ifndef STK_FORMAT_H
#define STK_FORMAT_H

#include <stdbool.h>
#include <stoker/dataset.h>

struct stk_format {
    const char *name; /* the word before the colon; lower case */

    /* Open the part of the spec after the colon. options is never NULL, complete and checked. *error is filled in
     * on failure; error may be NULL. */
    int (*open)(stoker_dataset **out, const char *rest, const stoker_dataset_options *options,
                stoker_error *error);

    /* Returns true if a plain path looks like this format; open then receives that path.
     * NULL = no path does. */
    bool (*recognise)(const char *path);
};

extern const struct stk_format *const stk_formats[]; /* ends with NULL */

#endif
