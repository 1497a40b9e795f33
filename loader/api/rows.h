/* rows.h - what is done to a row, and on which side of the bus.
 *
 *   stored ─▶ host: decode, transform, convert ─▶ slot ══ bus ══▶ GPU: transform, convert ─▶ row as delivered
 *
 *   STORED    images of one size cross as they are stored: the GPU does all that is asked for
 *   RESIZED   the host resizes each to the one size that is asked for; the GPU does the rest
 *   MADE      the host does all transforms, to bytes; the GPU converts
 *   (none)    batches stay on the CPU, or no kernel can do it: the host does all
 *
 * Where the GPU keeps rows (cache DEVICE), they are kept as they cross: STORED; RESIZED where all are resized
 * to one size; MADE where sizes differ and nothing is random.
 *
 * Otherwise nothing crosses that is larger than the row as delivered, which is what would cross without the GPU's
 * help, unless that is asked for.
 */
#ifndef STK_ROWS_H
#define STK_ROWS_H

#include "loader/api/loader.h"

/* Work out shape, conversion and transforms of the loader's rows, for both sides. 0, or STOKER_ENOMEM,
 * EINVAL, ETYPE, and ENOTSUP, EDEVICE or ENOMEM where convert_on_device = ON or cache = DEVICE cannot be had. */
int stk_rows_plan(stoker_loader *loader, stoker_error *error);

#endif
