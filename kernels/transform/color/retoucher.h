/* retoucher.h - rotates, colors and blurs a cropped image on the CPU (retouch.h has the
 * arithmetic).
 *
 *   crop ──copied, flipped──▶ bytes ─▶ turned ─▶ colored in place ─▶ blurred in place ──▶ crop of all of it
 *
 *   blur: line of bytes ─▶ padded line ─▶ along ─▶ ring of 2 x reach + 1 lines ─▶ across ─▶ line of bytes
 */
#ifndef STK_KERNELS_TRANSFORM_RETOUCHER_H
#define STK_KERNELS_TRANSFORM_RETOUCHER_H

#include "kernels/transform/transform.h"

/* Working memory of one thread, laid out in the scratch on first use. */
struct stk_retoucher {
    uint8_t *bytes;  /* the image */
    uint8_t *turned; /* the rotated image; NULL = no rotation */
    int16_t *padded; /* a line and its reflected ends; NULL = no blur */
    int16_t *ring;
    size_t ring_stride; /* elements */
    const int16_t **lines;
};

/* 0 if the plan retouches nothing; else a multiple of 64. */
size_t stk_retoucher_bytes(const struct stk_transform_plan *plan);

/* Lays out the retoucher in `memory`, which is aligned to 64 bytes. */
void stk_retoucher_init(struct stk_retoucher *retoucher, const struct stk_transform_plan *plan,
                        uint8_t *memory);

/* Retouches what `crop` shows. *crop then shows the result, not flipped, with the same cutout. */
void stk_retoucher_run(struct stk_retoucher *retoucher, const struct stk_transform_plan *plan,
                       uint64_t epoch, uint64_t sample, struct stk_crop *crop);

#endif
