/* row_plan.h - plans which steps turn a stored row into a delivered one, and which run on the GPU.
 *
 *   stored ─▶ host: decode, transform, convert ─▶ slot ══ bus ══▶ GPU: transform, convert ─▶ row as delivered
 *
 *   STORED    images of one size cross as they are stored: the GPU does everything
 *   RESIZED   the host resizes each to the one size asked for; the GPU does the rest
 *   MADE      the host does all transforms, to bytes; the GPU converts
 *   (none)    batches stay on the CPU, or no kernel can do it: the host does everything
 *
 * The cache in GPU memory (cache DEVICE) holds rows as they cross: STORED; RESIZED if all are
 * resized to one size; MADE if sizes differ, or masks are beside them, and nothing is random. Other
 * fields, and field 0 if it is not transformed and no kernel can convert it, are held as delivered.
 *
 * Without it, a form that is larger than the row as delivered is not used, unless convert_on_device
 * = ON: without the GPU's help only the delivered row would cross.
 */
#ifndef STK_ROW_PLAN_H
#define STK_ROW_PLAN_H

#include "loader/api/loader.h"

/* Plan shape, conversion and transforms of the loader's rows as delivered. Returns 0, STOKER_EINVAL
 * or ETYPE. */
int stk_row_plan(stoker_loader *loader, struct stk_framing *framing, stoker_error *error);

/* Then, with the outputs made, divide the work between both sides. Returns 0; STOKER_ENOMEM, EINVAL
 * or ETYPE; and ENOTSUP, EDEVICE or ENOMEM if convert_on_device = ON or cache = DEVICE is
 * impossible. */
int stk_row_plan_divide(stoker_loader *loader, struct stk_framing *framing, stoker_error *error);

#endif
