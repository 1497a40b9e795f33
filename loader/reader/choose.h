/* choose.h - which reader serves this process, and why. */
#ifndef STK_READER_CHOOSE_H
#define STK_READER_CHOOSE_H

#include <stddef.h>
#include <stoker/reader.h>

/* *out = what STOKER_READER in the environment names (uring, pread, null); without
 * it io_uring if a ring opens and works here, else pread. reason gets one line that
 * says why, cut to reason_bytes.
 *
 * Errors, with *out and reason untouched: STOKER_EINVAL (STOKER_READER names no reader),
 * STOKER_EREADER (it names uring, which is not available), STOKER_ENOMEM.
 *
 * That a ring opened here does not promise one to each worker (descriptors and locked
 * memory run out): a worker whose own open answers STOKER_EREADER takes pread. */
int stk_reader_choose(const stoker_reader **out, char *reason, size_t reason_bytes,
                      stoker_error *error);

#endif
