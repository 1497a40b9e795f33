/* directory.h - the files of a checkpoint in their directory: names, temporaries, the lock.
 *
 *   model.safetensors  ─ state of generation 7 ─▶  model.7.state.safetensors
 *   model              ─ state of generation 7 ─▶  model.7.state
 *   model.safetensors  ─ averages ─▶               model.ema.safetensors
 *   either             ─ temporary ─▶              .BASE.tmp-PID-N
 *
 * The name of a state file belongs to one base only, so a sweep removes no other checkpoint's files.
 * The lock is flock() on the directory: it ends with its process, and also excludes other threads. If
 * the file system has no locks, saves to one PATH must not overlap.
 */
#ifndef STK_TRAINER_DIRECTORY_H
#define STK_TRAINER_DIRECTORY_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/error.h>

enum { STK_PATH_BYTES = PATH_MAX };
#define STK_GENERATION_MAX 999999999999999999U /* 18 digits */

struct stk_directory_files {
    const char *path; /* the caller's, for messages */
    char directory[STK_PATH_BYTES];
    char base[NAME_MAX + 1];
    char temporary[NAME_MAX + 1];
    int fd;
};

/* Opens the directory of path (of its target, if it is a link) and waits for its lock.
 * STOKER_EINVAL: path ends as a state file or a directory does, or is a device, FIFO or socket. */
int stk_directory_open(struct stk_directory_files *files, const char *path, stoker_error *error);
void stk_directory_close(struct stk_directory_files *files);

/* The highest generation of the state files of base; 0 = none. */
int stk_directory_last_generation(const struct stk_directory_files *files, uint64_t *out,
                                  stoker_error *error);

/* Creates a temporary file with a unique name. */
int stk_directory_begin(struct stk_directory_files *files, int *fd, stoker_error *error);
/* Synchronises and closes it, and renames it, replacing a file of that name. On failure it is removed. */
int stk_directory_place(struct stk_directory_files *files, int fd, const char *name,
                        stoker_error *error);
/* Closes and removes it; fd -1: there is none. */
void stk_directory_abandon(struct stk_directory_files *files, int fd);

int stk_directory_sync(const struct stk_directory_files *files, stoker_error *error);
void stk_directory_remove(const struct stk_directory_files *files, const char *name);
/* Removes temporaries and state files of base, except `keep` ("" = none). */
void stk_directory_sweep(const struct stk_directory_files *files, const char *keep);

/* STOKER_EINVAL: the name is too long. */
int stk_state_name(char out[NAME_MAX + 1], const char *base, uint64_t generation);
int stk_averages_name(char out[NAME_MAX + 1], const char *base);
/* True for NAME.DIGITS.state and NAME.DIGITS.state.safetensors without a slash. */
bool stk_is_state_name(const char *name);
/* The path of a file beside path (beside its target, if it is a link). */
int stk_path_beside(char out[STK_PATH_BYTES], const char *path, const char *name);

#endif
