/* stoker/blend.h - mixup and cutmix: blend each sample of a batch with another one.
 *
 *   mixup    row k = lambda x row k + (1 - lambda) x partner       Zhang et al., "mixup", ICLR 2018
 *   cutmix   row k with a box of its partner's pixels              Yun et al., "CutMix", ICCV 2019
 *
 * Both follow torchvision (transforms.v2.MixUp, CutMix and RandomChoice). The partner of row k is
 * the unblended row k - 1 of the delivered batch; the partner of row 0 is the last row. All rows of
 * a batch share one lambda, drawn from Beta(alpha, alpha), and one box. The box has a uniformly
 * drawn center and sides of sqrt(1 - lambda) times the image's, and is clipped at the image's
 * edges; lambda is then recomputed as the share of the image outside the box.
 *
 * Rows are blended after type, scale, mean, std and layout, and before options.batch_hook. For
 * float32 the two products and the sum are rounded once each; float16 and bfloat16 are blended as
 * float32 and rounded; uint8 is rounded to the nearest level. Lambda of mixup is a multiple of
 * 2^-15, so that every type is blended by exactly the lambda that is delivered. The bits are the
 * same on every CPU and GPU.
 *
 * The batch has these fields after the data set's; stoker_loader_find_field() finds them:
 *
 *   "label_b"   like "label"   the partner's label; only if the data set has a label
 *   "partner"   int64          index of the partner in the batch, 0 .. count - 1, for other targets
 *   "lambda"    float32        weight of the row's own image, 0..1
 *
 * Labels and all other fields are not changed: loss = lambda x loss(label) + (1 - lambda) x
 * loss(label_b). Cutmix copies the box of masks, too; with masks, create refuses mixup. In a batch
 * that is not blended, or has one row, lambda is 1 and each row is its own partner.
 *
 * Draws are a pure function of (seed, epoch, position of the batch's first row): workers, device
 * and resuming do not change a byte. The pairs depend on batch size and world size, so resume with
 * the same ones to continue the same run. Skipped bad samples are not partners.
 */
#ifndef STOKER_BLEND_H
#define STOKER_BLEND_H

#include <stdint.h>
#include <stoker/export.h>

STOKER_BEGIN_DECLS

/* With the defaults of STOKER_LOADER_OPTIONS_INIT nothing is blended. If both alphas are set, mixup
 * or cutmix is drawn per batch. Its size never changes: new members replace reserved ones. */
typedef struct stoker_blend {
    /* Alpha of mixup's Beta distribution, 0.01..100. Field 0 must be delivered as uint8, float16,
     * bfloat16 or float32; any shape. Default 0 = no mixup. */
    float mixup_alpha;
    /* Alpha of cutmix's, 0.01..100; images of any type. Default 0 = no cutmix. */
    float cutmix_alpha;
    float probability;    /* of blending a batch, 0..1; default 1 */
    float cutmix_share;   /* if both are set: probability of cutmix, 0..1; default 0.5 */
    uint32_t reserved[4]; /* 0 */
} stoker_blend;

STOKER_END_DECLS
#endif
