/* crew.h - threads that pack the samples of a batch, each sample by itself.
 *
 * The samples come out in the order they went in, whoever packed them: targets are the same
 * bytes with any number of workers.
 */
#ifndef PACK_CREW_H
#define PACK_CREW_H

#include <stdint.h>

#include "datasets/pack/arguments.h"
#include "datasets/pack/pixels.h"
#include "datasets/pack/sample.h"

/* How samples are packed; constant while the crew lives. */
struct pack_recipe {
    const stoker_dataset *source;
    struct pack_pixels pixels;
    size_t row_bytes;
    enum pack_codec codec;
    enum pack_codec otherwise; /* with KEEP, for what is neither PNG nor JPEG: RAW or PNG */
    uint32_t quality;
};

struct pack_crew;

/* NULL, or why it failed. workers >= 1 threads, the caller's one of them. */
const char *pack_crew_start(struct pack_crew **out, const struct pack_recipe *recipe,
                            uint32_t workers);

/* Pack samples[0..count): sets bytes, size, codec, failed of each. */
void pack_crew_run(struct pack_crew *crew, struct pack_sample *samples, uint32_t count);
void pack_crew_stop(struct pack_crew **at); /* NULL is allowed */

#endif
