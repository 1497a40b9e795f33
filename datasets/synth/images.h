/* images.h - data sets of square generated images, drawn when they are read.
 *
 *   "synth:NAME?count=..&seed=..&size=.."    splits "train" and "test"
 *
 * Common code; the artist draws.
 */
#ifndef STK_DATASETS_SYNTH_IMAGES_H
#define STK_DATASETS_SYNTH_IMAGES_H

#include <stoker/dataset.h>

/* One data set. */
struct stk_synth_images {
    uint64_t count;
    uint64_t seed;
    uint64_t size; /* pixels on a side */
    uint64_t key;  /* from seed and split */
    const struct stk_synth_artist *artist;
    stoker_codec codec;
    stoker_dataset_ops ops;
};

struct stk_synth_artist {
    const char *name;     /* "synth:digits" */
    uint64_t count;       /* default number of images */
    uint64_t size;        /* default pixels on a side */
    uint64_t size_min;    /* pixels on a side */
    uint64_t size_max;    /* pixels on a side */
    uint8_t channels;     /* bytes of a pixel */
    uint32_t class_count; /* labels are 0..class_count - 1, about equally often */
    size_t scratch_bytes; /* per worker; 0 = none */

    /* Draw image `id`, whose label is stk_synth_images_label(), over all size x size x channels
     * bytes of row. Called from many threads, each with its own scratch. */
    void (*draw)(const struct stk_synth_images *images, uint64_t id, void *scratch, uint8_t *row);
};

/* Open a data set of an artist, which must outlive it. `parameters` follows the question mark of
 * the spec, or is "". Errors: STOKER_ESPEC or STOKER_EINVAL (parameters, split), STOKER_ENOMEM. */
int stk_synth_images_open(stoker_dataset **out, const struct stk_synth_artist *artist,
                          const char *parameters, const stoker_dataset_options *options,
                          stoker_error *error);

uint32_t stk_synth_images_label(const struct stk_synth_images *images, uint64_t id);

#endif
