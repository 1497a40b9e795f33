/* deliver.h - turns a full slot into the batch that the consumer sees, in place or on a device.
 *
 *   slot READY ─▶ rows settled ─┬─ lent ─────────────────────────────── in place
 *                               └─ copied ─▶ ... ─▶ buffer lent ─────── send, then sent
 *
 * Consumer's thread. Settling records what the workers noted and closes the gaps of skipped rows,
 * so it follows the order of the batches: only slots with nothing to settle are copied ahead of
 * their turn.
 */
#ifndef STK_DELIVER_H
#define STK_DELIVER_H

#include <stoker/loader.h>

#include "loader/api/loader.h"

/* End the run with this error, which every later call returns, too. Returns its code. */
int stk_deliver_fail(stoker_loader *loader, const stoker_error *error);

/* Lend the head slot, which is ready. Returns STOKER_OK or the error that ends the run. */
int stk_deliver_in_place(stoker_loader *loader, stoker_batch *batch);

/* Copy the head slot, which is ready and has room on the device. Returns the same. */
int stk_deliver_send(stoker_loader *loader);

/* Copy all slots that are ready, have room and need no settling. Returns 0 or STOKER_EDEVICE. */
int stk_deliver_send_ahead(stoker_loader *loader);

/* Lend the next batch, whose copy has started. */
void stk_deliver_sent(stoker_loader *loader, stoker_batch *batch);

#endif
