/* images.h - data sets of drawn images: square, as many as asked for, each drawn when it is read.
 *
 *   "synth:NAME?count=..&seed=..&size=.."    splits "train" and "test"
 *
 * What is common to them is here; what they show is an artist's.
 */
#ifndef STK_DATASETS_SYNTH_IMAGES_H
#define STK_DATASETS_SYNTH_IMAGES_H

#include <stoker/dataset.h>

/* One set, as its artist sees it. */
struct stk_synth_images {
    uint64_t count;
    uint64_t seed;
    uint64_t size; /* pixels on a side */
    uint64_t key;  /* of the generator: seed and split */
    const struct stk_synth_artist *artist;
    stoker_codec codec;
    stoker_dataset_ops ops;
};

struct stk_synth_artist {
    const char *name;     /* "synth:digits" */
    uint64_t count;       /* images, where no number is asked for */
    uint64_t size;        /* pixels on a side, where none are asked for */
    uint64_t size_min;    /* pixels on a side */
    uint64_t size_max;    /* pixels on a side */
    uint8_t channels;     /* bytes of a pixel */
    uint32_t class_count; /* labels are 0.. below this, each about as often */
    size_t scratch_bytes; /* of one worker; 0 = none */

    /* Draw image `id`, whose label is stk_synth_images_label(), over row: size x size x channels
     * bytes that hold anything. From many threads, each with its own scratch. */
    void (*draw)(const struct stk_synth_images *images, uint64_t id, void *scratch, uint8_t *row);
};

/* Open a set of an artist, who must outlive it. `parameters` is what follows the question mark,
 * perhaps "". Errors: STOKER_ESPEC or STOKER_EINVAL (parameters, split), STOKER_ENOMEM. */
int stk_synth_images_open(stoker_dataset **out, const struct stk_synth_artist *artist,
                          const char *parameters, const stoker_dataset_options *options);

uint32_t stk_synth_images_label(const struct stk_synth_images *images, uint64_t id);

#endif
