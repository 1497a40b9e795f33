/* regions.h - what decoding only the needed part of an image saves, and what a smaller image costs in quality. */
#ifndef BENCH_REGIONS_H
#define BENCH_REGIONS_H

#include "bench/material/material.h"

/* Decodes random rectangles, as random_resized_crop of 224 x 224 draws them, of the data set's images in four ways in
 * turn: the whole image, the rectangle, the rectangle at the smallest scale that will do, and that with the row made
 * of it; before, checks that the rectangle's pixels are those of the whole image. Prints one JSON object, with the peak
 * signal-to-noise ratio of the rows from smaller images against the exact ones. Returns the process's exit status. */
int bench_regions_compare(const char *spec, const struct bench_material *material);

#endif
