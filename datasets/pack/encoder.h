/* encoder.h - encodes the samples of a batch on a team of threads, each sample by itself.
 *
 * The samples come out in the order in which they went in, so a target has the same bytes with any
 * number of threads.
 */
#ifndef PACK_ENCODER_H
#define PACK_ENCODER_H

#include <stdint.h>

#include "datasets/pack/arguments.h"
#include "datasets/pack/pixels.h"
#include "datasets/pack/sample.h"

/* How samples are encoded; constant during a run. */
struct pack_recipe {
    const stoker_dataset *source;
    struct pack_pixels pixels;
    size_t row_bytes;
    enum pack_codec codec;
    /* For samples that KEEP cannot keep (neither PNG nor JPEG): RAW or PNG. */
    enum pack_codec otherwise;
    uint32_t quality;
    uint32_t level;
};

struct pack_encoder;

/* Starts `threads` (>= 1) threads, the caller's included. Returns NULL, or why it failed. */
const char *pack_encoder_create(struct pack_encoder **out, const struct pack_recipe *recipe,
                                uint32_t threads);

/* Encodes samples[0..count): sets bytes, size, codec and failed of each. */
void pack_encoder_run(struct pack_encoder *encoder, struct pack_sample *samples, uint32_t count);
void pack_encoder_destroy(struct pack_encoder **at); /* NULL is allowed */

#endif
