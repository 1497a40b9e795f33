/* standin_nvimgcodec.h - nvImageCodec without a GPU, for tests: its GPU back ends decode by libjpeg
 * into the memory of the stand-in for CUDA, with the bits of our own decoder.
 *
 *   Decode    reads each file and writes its pixels at once, and again when its stream comes to it:
 *             the first overwrites what kernels of the stream still read, as nvJPEG's hardware
 *             engine does, the second is what must be waited for
 *   refused   structs of another kind or size, pixels that do not lie in the memory of the
 *             decoder's GPU, a stream of no GPU, another current device, objects of another
 *             instance, and what is destroyed twice; each counts as a violation
 *
 * It replaces libnvimgcodec by having its soname; STOKER_NVIMGCODEC may name it as well.
 *
 * The controls are for the test's main thread, while no loader runs.
 */
#ifndef STK_TESTS_STANDIN_NVIMGCODEC_H
#define STK_TESTS_STANDIN_NVIMGCODEC_H

#include <stdbool.h>
#include <stdint.h>

/* Reset: no faults, counts at zero, version 0.9.0. */
void standin_nvimgcodec_reset(void);

void standin_nvimgcodec_version(uint32_t version); /* the library's */

/* The nth call (1, 2, ...) from now on returns `status`, once, and does nothing; destroying
 * functions destroy all the same. */
void standin_nvimgcodec_fail(uint64_t nth, int status);
/* The nth image that is decoded from now on gets `status`, once, and no pixels. */
void standin_nvimgcodec_fail_image(uint64_t nth, uint32_t status);
bool standin_nvimgcodec_failed(void); /* true if that call or image was reached */

uint64_t standin_nvimgcodec_images(void);     /* given to Decode */
uint64_t standin_nvimgcodec_batches(void);    /* calls of Decode */
uint64_t standin_nvimgcodec_pageable(void);   /* files in memory that is not page-locked */
uint64_t standin_nvimgcodec_violations(void); /* misuse */
int64_t standin_nvimgcodec_live(void);        /* objects that exist */

#endif
