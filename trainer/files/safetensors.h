/* safetensors.h - reads and writes the safetensors format.
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
 * The checksum covers the whole file, with zeros in place of its own eight digits. A file without
 * one was written by another program and is not checked.
 *
 * Reading is strict: JSON of exactly that shape, known types, unique names, offsets that cover the
 * rest of the file without a hole or an overlap. Sizes are compared with that of the file before
 * they are used, so a hostile file takes no more memory than its own bytes and the list of its
 * tensors.
 */
#ifndef STK_TRAINER_SAFETENSORS_H
#define STK_TRAINER_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

#include "loader/base/memory/memory.h"
#include "trainer/files/tensors.h"

enum { STK_SAFETENSORS_HEADER_MAX = 100000000 }; /* bytes; as in the format's own library */

/* A file that was read into memory. */
struct stk_safetensors {
    struct stk_tensor_set set; /* sorted by name */
    struct stk_region memory;
    void *lists;
    uint64_t size; /* bytes of the file */
};

/* Reads and checks the whole file. On success the caller closes *out; on failure it is empty.
 * STOKER_ENOENT, EACCES, EISDIR, ENOTSUP (not a regular file), EIO, ETRUNCATED, EOVERSIZE,
 * EFORMAT, ECORRUPT (checksum), ELIMIT (header over 100 MB, too many tensors, larger than the
 * memory), ENOMEM. */
int stk_safetensors_open(struct stk_safetensors *out, const char *path, stoker_error *error);
void stk_safetensors_close(struct stk_safetensors *file); /* may be empty */

/* The same from bytes in memory; path is for messages. */
int stk_safetensors_parse(struct stk_safetensors *out, const void *bytes, size_t size,
                          const char *path, stoker_error *error);

/* Writes the set to fd, at its current offset, in one pass; path is for messages. STOKER_EINVAL (a
 * name twice or not UTF-8, a rank or a size out of range), ELIMIT, EIO with the errno, ENOMEM. */
int stk_safetensors_write(int fd, const char *path, const struct stk_tensor_set *set,
                          stoker_error *error);

#endif
