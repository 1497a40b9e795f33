/* zip.h - where the members of a zip archive are, and how to unpack one.
 *
 *   0           [local header|name|extra|data] [local header|name|extra|data] ...
 *   cd_at       central directory: [entry|name|extra|comment] ...
 *               zip64 end and its locator, if a number does not fit 16 or 32 bits
 *               end of the central directory, comment
 */
#ifndef STK_DATASETS_ZIP_H
#define STK_DATASETS_ZIP_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/error.h>

#include "datasets/source.h"
#include "loader/base/memory/memory.h"

enum { STK_ZIP_MEMBERS_MAX = 4096, STK_ZIP_NAME_BYTES_MAX = 1024 };

struct stk_zip_member {
    const char *name;      /* owned by the archive */
    uint64_t offset;       /* data in the file */
    uint64_t stored_bytes; /* in the file */
    uint64_t bytes;        /* unpacked */
    uint32_t sum;          /* CRC-32 of the unpacked bytes */
    bool deflated;         /* else stored: the data are the bytes */
};

struct stk_zip {
    struct stk_zip_member *members; /* in the order of the central directory */
    uint32_t count;                 /* >= 1 */
    char *names;
};

/* Read the central directory and the local header of each member. Folders are left out. On failure
 * there is nothing to free. Errors: STOKER_EMAGIC, STOKER_ETRUNCATED, STOKER_EFORMAT,
 * STOKER_EEMPTY; STOKER_ELIMIT over the limits above; STOKER_ENOTSUP: encrypted, in several files,
 * or packed by another method than deflate. */
int stk_zip_open(struct stk_zip *zip, const struct stk_source *source, stoker_error *error);
void stk_zip_close(struct stk_zip *zip); /* all zero is allowed */

/* Unpack a deflated member into memory and verify its checksum; the caller unmaps *out. Errors:
 * STOKER_ELIMIT over max_bytes, STOKER_ECORRUPT, STOKER_ENOMEM; STOKER_ENOTSUP in a build without
 * libdeflate. */
int stk_zip_unpack(const struct stk_zip_member *member, const struct stk_source *source,
                   uint64_t max_bytes, struct stk_region *out, stoker_error *error);

#endif
