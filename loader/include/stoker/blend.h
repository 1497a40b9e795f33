/* stoker/blend.h - mixup and cutmix: each sample of a complete batch takes something of another
 * one.
 *
 *   mixup    row k = lambda x row k + (1 - lambda) x partner       Zhang et al., "mixup", ICLR 2018
 *   cutmix   row k with a box of its partner's pixels              Yun et al., "CutMix", ICCV 2019
 *
 * What follows is torchvision's (transforms.v2.MixUp, CutMix and RandomChoice). The partner of row
 * k is row k - 1 of the batch as it is delivered, that of row 0 the last row: each as it was
 * before. One lambda from Beta(alpha, alpha) and one box hold for all rows of a batch. The box has
 * a uniform center and sides of sqrt(1 - lambda) of the image's, and is cut off at the image's
 * edges; lambda then becomes the share of the image outside of it.
 *
 * It comes after type, scale, mean, std and layout, and before options.batch_hook. float32 is mixed
 * with the two products and the sum rounded once each, float16 and bfloat16 as float32 and then
 * rounded, uint8 to the nearest level. Lambda of a mixup is a multiple of 2^-15, so that all types
 * are mixed by exactly the lambda that is delivered. The bits are the same on every CPU and GPU.
 *
 * The batch gets more fields, after those of the data set; stoker_loader_find_field() finds them:
 *
 *   "label_b"   like "label"   the partner's label; only if the data set has a label
 *   "partner"   int64          index of the partner in the batch, 0 .. count - 1: for all other targets
 *   "lambda"    float32        share of the row's own image, 0..1
 *
 * Labels and all other fields keep their own values: loss = lambda x loss(label) + (1 - lambda) x
 * loss(label_b). Masks of the images are cut with the same box; create refuses to blend them. In a
 * batch that is not mixed, or that has one row, lambda is 1 and each row its own partner.
 *
 * Draws are a pure function of (seed, epoch, position of the batch's first row), so neither workers
 * nor device nor a resume change a byte. What a batch holds, and with it the pairs that are mixed,
 * depends on batch size and world size: resume with the same ones to continue the same run. Bad
 * samples that are skipped are no partners.
 */
#ifndef STOKER_BLEND_H
#define STOKER_BLEND_H

#include <stdint.h>
#include <stoker/export.h>

STOKER_BEGIN_DECLS

/* With the defaults of STOKER_LOADER_OPTIONS_INIT nothing is mixed. If both alphas are set, one of
 * the two ways is drawn for each batch. Its size never changes: new members take the place of
 * reserved ones. */
typedef struct stoker_blend {
    /* Mixup of field 0 as uint8, float16, bfloat16 or float32, of any shape: alpha of the Beta
     * distribution, 0.01..100. Default 0 = no mixup. */
    float mixup_alpha;
    /* Cutmix of images of any type: alpha, 0.01..100. Default 0 = no cutmix. */
    float cutmix_alpha;
    float probability;    /* that a batch is mixed, 0..1; default 1 */
    float cutmix_share;   /* if both are set: probability of cutmix, 0..1; default 0.5 */
    uint32_t reserved[4]; /* 0 */
} stoker_blend;

STOKER_END_DECLS
#endif
