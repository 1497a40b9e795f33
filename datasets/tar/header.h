/* header.h - one 512-byte header of a tar archive, and the records of a PAX header. */
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
    uint64_t bytes;     /* of what follows */
    char type;          /* '0' a file, '1' and '2' links, ... */
};

/* A block of zeros ends an archive. */
bool stk_tar_block_is_end(const uint8_t block[STK_TAR_BLOCK_BYTES]);

/* Whether block is a header whose checksum is right. */
bool stk_tar_block_is_header(const uint8_t block[STK_TAR_BLOCK_BYTES]);

/* Whether it claims to be one: "ustar" stands where it should. */
bool stk_tar_block_claims(const uint8_t block[STK_TAR_BLOCK_BYTES]);

/* Take a header apart whose checksum is right. STOKER_EFORMAT, with error->message only: its size
 * is no number, negative, or over 2^63. */
int stk_tar_header_parse(struct stk_tar_header *out, const uint8_t block[STK_TAR_BLOCK_BYTES],
                         stoker_error *error);

/* What PAX records say of the member that follows. */
struct stk_tar_records {
    const char *path; /* in the text, not terminated; NULL = not said */
    size_t path_bytes;
    uint64_t bytes;
    bool has_bytes;
    bool is_sparse; /* the member is packed in a way of GNU tar's */
};

/* Take "17 size=12345678\n..." apart. STOKER_EFORMAT, with error->message only: broken. */
int stk_tar_records_parse(struct stk_tar_records *out, const char *text, size_t bytes,
                          stoker_error *error);

#endif
