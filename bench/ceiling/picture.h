/* picture.h - one thread's decoder of samples in memory: to rows of the data set's shape or, if images
 * have several sizes, to images of their own size. */
#ifndef BENCH_CEILING_PICTURE_H
#define BENCH_CEILING_PICTURE_H

#include "bench/ceiling/ceiling.h"

#include "kernels/transform/transform.h"

struct bench_picture {
    const stoker_codec *codec;
    void *scratch;
    struct bench_block pixels; /* the last image */
    size_t pixels_bytes;
    struct stk_image image;
    bool any_size;
    const struct stk_transform_plan *transform; /* any_size */
};

/* For the samples of work->material, which share one codec. On failure *out can still be destroyed. */
int bench_picture_create(struct bench_picture *out, const struct bench_work *work);
void bench_picture_destroy(struct bench_picture *picture);

/* Decodes into picture->image: if images have several sizes, what the sample's row needs in that epoch. */
int bench_picture_decode(struct bench_picture *picture, const stoker_encoded *sample,
                         uint64_t epoch);

#endif
