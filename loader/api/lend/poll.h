/* poll.h - the descriptor of stoker_loader_fd(): readable while next() need not wait.
 *
 *   SET ──── nothing is ready at the end of next() or release ────▶ ARMED
 *    ▲                                                               │
 *    └── the head batch is published, a kept one returned, interrupt ┘
 *
 * While it is SET it stays readable and no thread touches it, so batches that are ready ahead cost
 * no system call. When ARMED, one worker sets it once. It may be set for nothing: next() then times
 * out, and arms it again.
 */
#ifndef STK_API_POLL_H
#define STK_API_POLL_H

#include "loader/api/loader.h"

/* Something may have changed what next() would do. Does nothing unless the caller polls. Consumer's
 * thread. */
void stk_poll_update(stoker_loader *loader);

/* next() returned `rc` instead of a batch, and the caller waits for the descriptor again. If it is
 * readable already, make an edge: a caller that waits for edges (EPOLLET) would not come back.
 * Consumer's thread. */
void stk_poll_paused(stoker_loader *loader, int rc);

/* Close the descriptor, if there is one. No thread uses the loader any more. */
void stk_poll_close(stoker_loader *loader);

#endif
