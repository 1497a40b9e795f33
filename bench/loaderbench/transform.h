/* transform.h - the transforms of a run, and the row that they must make of each sample.
 *
 * Independent of the loader: images are located and decoded through the public data set and codec,
 * and transformed by the plain reference.
 */
#ifndef BENCH_TRANSFORM_H
#define BENCH_TRANSFORM_H

#include "kernels/transform/transform.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/stoker.h>

struct bench_transform {
    const stoker_dataset *dataset;
    struct stk_convert_plan convert;
    struct stk_transform_plan plan;
    bool any_size;      /* images are decoded in their own size */
    size_t image_bytes; /* largest image */
    uint8_t *image;
    uint8_t *encoded;
    size_t encoded_bytes;
};

/* options: those of the loader, its dtype resolved or not. STOKER_EINVAL, STOKER_ETYPE (the
 * transforms do not suit the data set; reason in why), STOKER_ENOMEM; on failure there is nothing
 * to destroy. */
int bench_transform_create(struct bench_transform *out, const stoker_dataset *dataset,
                           const stoker_loader_options *options, char why[STK_TRANSFORM_WHY_BYTES]);
void bench_transform_destroy(struct bench_transform *transform);

/* Decodes what the row of in->sample needs in that epoch, as a loader without a cache does: a part
 * of the image, perhaps scaled, if the codec can; plan: NULL = the whole image in its own size.
 * scratch: opened for any size. pixels have
 * STK_IMAGE_SLACK_BYTES more than pixels_bytes. */
int bench_transform_decode(const struct stk_transform_plan *plan, const stoker_codec *codec,
                           void *scratch, const stoker_encoded *in, uint64_t epoch, void *pixels,
                           size_t pixels_bytes, struct stk_image *image);

/* Writes the row that sample `id` must become in that epoch: plan.convert->to_bytes bytes. */
int bench_transform_expect(struct bench_transform *transform, uint64_t epoch, uint64_t id,
                           void *row, stoker_label *label);

#endif
