/* direct.h - the disk's own rate: one file, once, by a bare ring past the page cache. */
#ifndef BENCH_TOKENS_DIRECT_H
#define BENCH_TOKENS_DIRECT_H

#include <stdint.h>

/* Read the file from its beginning to its end. Sets the bytes that were read. Returns 0 or a stoker_err: STOKER_ENOTSUP (no io_uring,
 * or a file system without O_DIRECT), STOKER_ENOMEM, STOKER_EIO. */
int tokens_direct_read(const char *path, uint64_t *bytes);

#endif
