/* output_file.h - the one way in which programs and library write an output file.
 *
 *   what path names             bytes go to                  commit
 *   nothing, a regular file     a new file in its folder     fsync, rename over the name, fsync of the folder
 *   a link to one of these      the same for its target      the same; the link stays
 *   a device, a FIFO            the thing itself             close
 *   /dev/stdout, /dev/fd/N      that open descriptor         close
 *
 * A regular file is complete under its name or unchanged, and keeps its mode bits and, as far as
 * this process may give it away, its owner. Nothing else is ever replaced. Until commit the new
 * file has no name where the file system allows that (O_TMPFILE), and else .NAME.tmp-PID-N. A FIFO
 * that nothing reads is an error (ENXIO), not a wait.
 *
 * In a sticky folder that others may write to (/tmp), what belongs neither to this process's user
 * nor to the folder's owner is a trap: such a link is not followed, such a FIFO not written to
 * (EPERM), and a regular file lends the new one neither owner nor mode. The kernel's
 * fs.protected_symlinks, _fifos and _regular do this for open(), where they are on; links in the
 * folders of a path are left to them.
 *
 * Functions return 0 or an errno; stk_output_reason() puts it into words. One thread at a time.
 */
#ifndef STK_BASE_OUTPUT_FILE_H
#define STK_BASE_OUTPUT_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct stk_output {
    int fd;                       /* write here; -1 = nothing is open */
    FILE *stream;                 /* NULL until stk_output_stream() */
    int folder;                   /* holds the file to be replaced; -1 = written in place */
    char name[NAME_MAX + 1];      /* in folder */
    char temporary[NAME_MAX + 1]; /* in folder; "" = it has no name yet */
};

#define STK_OUTPUT_CLOSED                                                                          \
    {                                                                                              \
        .fd = -1, .folder = -1                                                                     \
    }

/* Open for writing. On failure *output is closed. */
int stk_output_open(struct stk_output *output, const char *path);

/* A buffered stream over fd, owned by *output; NULL and errno if there is no memory. */
FILE *stk_output_stream(struct stk_output *output);

/* Bring all bytes to the disk and give the file its name. On failure the old file is unchanged,
 * unless only the fsync of the folder failed. Closed in any case. */
int stk_output_commit(struct stk_output *output);

/* Close, and remove what was not committed; bytes written in place stay. A closed one is
 * allowed. */
void stk_output_drop(struct stk_output *output);

/* Returns 0 if stk_output_open() would probably succeed; opens and creates nothing. */
int stk_output_check(const char *path);

/* Returns true if path names something other than a regular file, a folder or nothing: it would be
 * written in place. */
bool stk_output_is_in_place(const char *path);

/* Follow links as stk_output_open() does: what path names lies, or would lie, at `resolved`.
 * Returns 0 or an errno. */
int stk_output_resolve(const char *path, char resolved[PATH_MAX]);

/* open(path, flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC, mode), which refuses another user's file in
 * a sticky folder (EPERM) before O_TRUNC empties it. Returns the descriptor, or -1 and errno. */
int stk_output_create(const char *path, int flags, mode_t mode);

/* Open something that is not a regular file for writing, without waiting for a FIFO's reader.
 * Returns the descriptor or -errno. */
int stk_output_open_in_place(const char *path);

/* Why an output could not be written, for a message. */
const char *stk_output_reason(int os_errno);

#endif
