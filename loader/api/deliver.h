/* deliver.h - from a full slot to what the consumer sees: where it lies, or on a device.
 *
 *   slot READY ─▶ rows settled ─┬─ lent where it lies ───────────────── in place
 *                               └─ copied ─▶ ... ─▶ buffer lent ─────── send, then sent
 *
 * The consumer's thread. Settling files what the workers noted and closes the gaps of rows left out, so
 * it is done in the order of the batches: ahead of their turn only slots with nothing to settle go.
 */
#ifndef STK_DELIVER_H
#define STK_DELIVER_H

#include <stoker/loader.h>

#include "loader/api/loader.h"

/* End the run with this error, which every later call returns, too. Returns its code. */
int stk_deliver_fail(stoker_loader *loader, const stoker_error *error);

/* Lend the head slot, which is ready. STOKER_OK, or the error that ends the run. */
int stk_deliver_in_place(stoker_loader *loader, stoker_batch *batch);

/* Copy the head slot, which is ready and has room on the device. The same. */
int stk_deliver_send(stoker_loader *loader);

/* Copy what is ready, has room and needs no settling. 0 or STOKER_EDEVICE. */
int stk_deliver_send_ahead(stoker_loader *loader);

/* Lend the batch that comes next, whose copy is on its way. */
void stk_deliver_sent(stoker_loader *loader, stoker_batch *batch);

#endif
