/* picture.h - one thread's decoder of samples in memory: to rows of the data set's shape, or, where images have
 * several sizes, to pictures of their own. */
#ifndef BENCH_CEILING_PICTURE_H
#define BENCH_CEILING_PICTURE_H

#include "bench/ceiling/ceiling.h"

#include "kernels/transform/transform.h"

struct bench_picture {
    const stoker_codec *codec;
    void *scratch;
    struct bench_block pixels; /* the last one decoded */
    size_t pixels_bytes;
    struct stk_image image; /* of it */
    bool any_size;
};

/* For the samples of work->material, which have one codec. On failure destroy takes it all the same. */
int bench_picture_create(struct bench_picture *out, const struct bench_work *work);
void bench_picture_destroy(struct bench_picture *picture);

/* Decode into picture->image. */
int bench_picture_decode(struct bench_picture *picture, const stoker_encoded *sample);

#endif
