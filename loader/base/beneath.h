/* beneath.h - open a file by its name in a directory, and never one outside of it.
 *
 *   directory           a name leads                          answer
 *   an open directory   beneath it, through links or not      a descriptor
 *                       out of it, by ".." or by a link       -EXDEV (-ELOOP: an old kernel's)
 *   AT_FDCWD            anywhere                              a descriptor
 *
 * Linux asks the file system for that in one call, openat2, since 5.6. Where the call is missing
 * or a sandbox forbids it, no part of a name may be a link at all (-ELOOP), and none "..".
 */
#ifndef STK_BASE_BENEATH_H
#define STK_BASE_BENEATH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The resolve flags of struct open_how for a directory. */
uint64_t stk_beneath_resolve(int directory);

/* Whether a name can lead out of its directory by a link alone. If it has none, openat2 may be told so
 * instead (RESOLVE_NO_SYMLINKS; -ELOOP if it has): then Linux need not watch where the name leads, and
 * an open with its close takes 6 % less. */
bool stk_beneath_leaves_by_link_alone(const char *path);

/* Open; `flags` are those of open without O_CREAT, O_CLOEXEC is added. Returns the descriptor or
 * -errno. */
int stk_beneath_open(int directory, const char *path, int flags);

/* Open for reading, never waiting for the other end of a pipe. Returns the descriptor or -errno. */
int stk_beneath_open_to_read(int directory, const char *path);

/* Open, read up to `bytes` bytes at `offset` with one system call, close. Returns the bytes read
 * or -errno. */
ssize_t stk_beneath_read(int directory, const char *path, void *to, size_t bytes, uint64_t offset);

/* Open, read until `bytes` bytes are there or the file ends, close: short reads and EINTR are
 * gone on after, all through one descriptor. Returns the bytes read or -errno. */
ssize_t stk_beneath_read_all(int directory, const char *path, void *to, size_t bytes);

#endif
