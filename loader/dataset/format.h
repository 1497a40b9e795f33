/* format.h - the table through which data set formats reach the loader.
 *
 * The loader never names a format: it walks this table, which datasets/formats.c
 * defines.
 */
#ifndef STK_FORMAT_H
#define STK_FORMAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stoker/dataset.h>

struct stk_format {
    const char *name; /* the word before the colon; lower case */
    /* Lines with a spec, a tab and what it opens, for stoker_dataset_formats(). */
    const char *about;

    /* Open the part of the spec after the colon. options is never NULL, complete and checked; all
     * names are in options->storage, which is never NULL. *error is filled in on failure; error may
     * be NULL. */
    int (*open)(stoker_dataset **out, const char *rest, const stoker_dataset_options *options,
                stoker_error *error);

    /* Returns true if a plain path looks like this format; open then receives that path.
     * NULL = no path does. */
    bool (*recognize)(const stoker_storage *storage, const char *path);

    /* Returns true if the format itself reads parameter `key` ("split", "test", "seed", ...) of the
     * part of the spec after the colon, which views would read for any other format. NULL = it
     * reads none of them. */
    bool (*keeps)(const char *rest, const char *key);

    /* A row costs little more than a copy of its stored bytes, which the page cache keeps: cache
     * AUTO keeps no other copy. */
    bool cheap_rows;
};

extern const struct stk_format *const stk_formats[]; /* ends with NULL */

/* Let loaders find the rows of a data set whose parts are all raw and in memory without a call:
 * part p of sample i is at rows[p] + i x its bytes. `rows` must stay until the data set is
 * destroyed. */
void stk_dataset_set_part_rows(stoker_dataset *dataset, const void *const *rows);

/* Located memory may end while the data set is open: loaders read it as recall.h says. */
void stk_dataset_set_recalls(stoker_dataset *dataset);

/* Wait until nobody uses memory that locate() handed out before; call it when locate() does not any
 * more. Returns false if *stop became true before that. */
bool stk_recall(const _Atomic uint32_t *stop);

/* Opens a spec as its format does. */
typedef int stk_open_plain(stoker_dataset **out, const char *spec,
                           const stoker_dataset_options *options, stoker_error *error);

/* Take the parameters of views (split, test, seed, stratified, weighted) out of a spec, open the
 * rest by open_plain, and wrap it. `rest` is the part of the spec after the name of `format`; for a
 * path, the spec and NULL. */
int stk_views_open(stoker_dataset **out, const char *spec, const struct stk_format *format,
                   const char *rest, const stoker_dataset_options *options,
                   stk_open_plain *open_plain, stoker_error *error);

#endif
