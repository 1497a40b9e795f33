/* safetensors.h - read and write the file format of that name.
 *
 *   0         8                       8 + N                        8 + N + bytes of all tensors
 *   ├─────────┼───────────────────────┼────────────────────────────┤
 *   │ u64 LE  │ JSON, spaces at the   │ the tensors, one after     │
 *   │ N       │ end: N % 8 == 0       │ another, without holes     │
 *   └─────────┴───────────────────────┴────────────────────────────┘
 *
 *   {"__metadata__": {"stoker.crc32c": "89abcdef", KEY: VALUE, ...},
 *    NAME: {"dtype": "F32", "shape": [6, 4], "data_offsets": [0, 96]}, ...}
 *
 * The checksum is over the whole file with zeros in the place of its own eight digits. A file
 * without one was written by another program and is taken as it is.
 *
 * Reading is strict: JSON of just that shape, known types, offsets that cover the rest of the file
 * without a hole or an overlap, no name twice. Nothing is believed before it was compared with the
 * size of the file, so that a hostile file takes no more memory than it has bytes, and the list of
 * what it holds.
 */
#ifndef STK_TRAINER_SAFETENSORS_H
#define STK_TRAINER_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

#include "loader/base/memory.h"
#include "trainer/files/tensors.h"

enum { STK_SAFETENSORS_HEADER_MAX = 100000000 }; /* bytes; as in the format's own library */

/* A file that was read: all of it is in memory, and the file is closed again. */
struct stk_safetensors {
    struct stk_tensor_set set; /* sorted by name */
    struct stk_region memory;
    void *lists;
    uint64_t size; /* of the file */
};

/* Read path and check all of it. On success *out is to be closed; on failure it is empty.
 * STOKER_ENOENT, EACCES, EISDIR, ENOTSUP (not a regular file), EIO, ETRUNCATED, EOVERSIZE, EFORMAT,
 * ECORRUPT (checksum), ELIMIT (header over 100 MB, too many tensors, larger than the memory), ENOMEM. */
int stk_safetensors_open(struct stk_safetensors *out, const char *path, stoker_error *error);
void stk_safetensors_close(struct stk_safetensors *file); /* empty already is allowed */

/* The same from bytes in memory; path is for messages. */
int stk_safetensors_parse(struct stk_safetensors *out, const void *bytes, size_t size,
                          const char *path, stoker_error *error);

/* Write the set to fd, from where it stands, in one pass; path is for messages. STOKER_EINVAL (a
 * name twice or not UTF-8, a rank or a size out of range), ELIMIT, EIO with the errno, ENOMEM. */
int stk_safetensors_write(int fd, const char *path, const struct stk_tensor_set *set,
                          stoker_error *error);

#endif
