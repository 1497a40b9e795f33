/* header.h - parse 512-byte tar headers and the records of PAX headers. */
#ifndef STK_DATASETS_TAR_HEADER_H
#define STK_DATASETS_TAR_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

enum {
    STK_TAR_BLOCK_BYTES = 512,
    STK_TAR_NAME_MAX = 4096,       /* bytes of a member's name */
    STK_TAR_RECORDS_MAX = 64 << 10 /* bytes of a PAX header */
};

struct stk_tar_header {
    char name[256 + 1]; /* prefix, slash, name */
    uint64_t bytes;     /* the member's size */
    char type;          /* '0' a file, '1' and '2' links, ... */
};

/* Returns true for a block of zeros, which ends an archive. */
bool stk_tar_block_is_end(const uint8_t block[STK_TAR_BLOCK_BYTES]);

/* Returns true for a header with the right checksum. */
bool stk_tar_block_is_header(const uint8_t block[STK_TAR_BLOCK_BYTES]);

/* Returns true if the block has the magic "ustar". */
bool stk_tar_block_claims(const uint8_t block[STK_TAR_BLOCK_BYTES]);

/* Parse a header with the right checksum. STOKER_EFORMAT, with error->message only: the size is not
 * a number, negative, or over 2^63. */
int stk_tar_header_parse(struct stk_tar_header *out, const uint8_t block[STK_TAR_BLOCK_BYTES],
                         stoker_error *error);

/* What PAX records say about the next member. */
struct stk_tar_records {
    const char *path; /* in the text, not terminated; NULL = none */
    size_t path_bytes;
    uint64_t bytes;
    bool has_bytes;
    bool is_sparse; /* a sparse member of GNU tar */
};

/* Parse "17 size=12345678\n...". STOKER_EFORMAT, with error->message only: malformed. */
int stk_tar_records_parse(struct stk_tar_records *out, const char *text, size_t bytes,
                          stoker_error *error);

#endif
