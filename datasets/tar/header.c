/* header.c - see header.h.
 *
 *   0      100    108   116   124    136    148     156    157    257     265        345    500
 *   | name | mode | uid | gid | size | time | sum | type | link | magic | ... | prefix | - |
 *
 * Numbers are octal text, or, with the top bit set, big-endian in base 256: then a file may be
 * longer than 8 GiB. The sum is over all bytes, with its own field as spaces.
 */
#include "datasets/tar/header.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    NAME_BYTES = 100,
    SIZE_AT = 124,
    SIZE_BYTES = 12,
    SUM_AT = 148,
    SUM_BYTES = 8,
    TYPE_AT = 156,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX_BYTES = 155
};

#define SAY(error, ...)                                                                            \
    ((error) == NULL ? STOKER_EFORMAT                                                              \
                     : ((void)snprintf((error)->message, sizeof((error)->message), __VA_ARGS__),   \
                        STOKER_EFORMAT))

/* ---- numbers -------------------------------------------------------------------- */

/* Spaces, octal digits, then nothing but spaces and zeros. No digit at all is 0. */
static bool read_octal(const uint8_t *at, size_t bytes, uint64_t *out)
{
    uint64_t number = 0;
    size_t i = 0;
    assert(bytes <= SIZE_BYTES); /* 12 digits have 36 bits */
    while (i < bytes && at[i] == ' ')
        i++;
    for (; i < bytes && at[i] >= '0' && at[i] <= '7'; i++)
        number = number * 8 + (uint64_t)(at[i] - '0');
    for (; i < bytes; i++)
        if (at[i] != ' ' && at[i] != '\0')
            return false;
    *out = number;
    return true;
}

/* The first byte is 80 or FF; FF begins a negative number. */
static bool read_base256(const uint8_t *at, size_t bytes, uint64_t *out)
{
    uint64_t number = 0;
    if (at[0] != 0x80)
        return false;
    for (size_t i = 1; i < bytes; i++) {
        if (number > INT64_MAX >> 8)
            return false;
        number = number << 8 | at[i];
    }
    *out = number;
    return true;
}

/* ---- blocks --------------------------------------------------------------------- */

bool stk_tar_block_is_end(const uint8_t block[STK_TAR_BLOCK_BYTES])
{
    for (size_t i = 0; i < STK_TAR_BLOCK_BYTES; i++)
        if (block[i] != 0)
            return false;
    return true;
}

bool stk_tar_block_is_header(const uint8_t block[STK_TAR_BLOCK_BYTES])
{
    uint64_t told = 0;
    uint64_t sum = SUM_BYTES * ' ';
    for (size_t i = 0; i < STK_TAR_BLOCK_BYTES; i++)
        sum += i >= SUM_AT && i < SUM_AT + SUM_BYTES ? 0 : block[i];
    return read_octal(block + SUM_AT, SUM_BYTES, &told) && told == sum;
}

bool stk_tar_block_claims(const uint8_t block[STK_TAR_BLOCK_BYTES])
{
    return memcmp(block + MAGIC_AT, "ustar", 5) == 0;
}

/* Only POSIX archives have a prefix: GNU's keep times in its place. */
static void read_name(struct stk_tar_header *out, const uint8_t *block)
{
    const char *prefix = (const char *)block + PREFIX_AT;
    const bool posix = memcmp(block + MAGIC_AT, "ustar\0", 6) == 0;
    const int name_bytes = (int)strnlen((const char *)block, NAME_BYTES);
    const int prefix_bytes = posix ? (int)strnlen(prefix, PREFIX_BYTES) : 0;
    (void)snprintf(out->name, sizeof(out->name), "%.*s%s%.*s", prefix_bytes, prefix,
                   prefix_bytes > 0 ? "/" : "", name_bytes, (const char *)block);
}

int stk_tar_header_parse(struct stk_tar_header *out, const uint8_t block[STK_TAR_BLOCK_BYTES],
                         stoker_error *error)
{
    const uint8_t *size = block + SIZE_AT;
    *out = (struct stk_tar_header){ .type = (char)block[TYPE_AT] };
    read_name(out, block);
    if ((size[0] & 0x80) != 0 ? !read_base256(size, SIZE_BYTES, &out->bytes)
                              : !read_octal(size, SIZE_BYTES, &out->bytes))
        return SAY(error, "tar: the size is no number of less than 2^63");
    return STOKER_OK;
}

/* ---- PAX records ---------------------------------------------------------------- */

/* Decimal digits, up to `most` bytes; returns how many there are, 0 = none or an overflow. */
static size_t read_decimal(const char *at, size_t most, uint64_t *out)
{
    uint64_t number = 0;
    size_t i = 0;
    for (; i < most && at[i] >= '0' && at[i] <= '9'; i++) {
        if (number > (INT64_MAX - 9) / 10)
            return 0;
        number = number * 10 + (uint64_t)(at[i] - '0');
    }
    *out = number;
    return i;
}

struct record {
    const char *key, *value;
    size_t key_bytes, value_bytes, bytes;
};

/* "LENGTH KEY=VALUE\n", where LENGTH counts itself and the line's end. */
static bool cut_record(struct record *out, const char *text, size_t bytes)
{
    uint64_t length = 0;
    const size_t digits = read_decimal(text, bytes, &length);
    if (digits == 0 || length > bytes || length < digits + 4 || text[digits] != ' ' ||
        text[length - 1] != '\n')
        return false;
    const char *key = text + digits + 1;
    const char *end = text + length - 1;
    const char *equals = memchr(key, '=', (size_t)(end - key));
    if (equals == NULL || equals == key)
        return false;
    *out = (struct record){ .key = key,
                            .value = equals + 1,
                            .key_bytes = (size_t)(equals - key),
                            .value_bytes = (size_t)(end - equals - 1),
                            .bytes = (size_t)length };
    return true;
}

static bool has_key(const struct record *record, const char *key)
{
    return record->key_bytes == strlen(key) && memcmp(record->key, key, record->key_bytes) == 0;
}

static int apply_record(struct stk_tar_records *out, const struct record *record,
                        stoker_error *error)
{
    static const char sparse[] = "GNU.sparse.";
    if (has_key(record, "path")) {
        if (record->value_bytes == 0 || memchr(record->value, '\0', record->value_bytes) != NULL)
            return SAY(error, "tar: a PAX path is empty or holds a zero");
        out->path = record->value;
        out->path_bytes = record->value_bytes;
    } else if (has_key(record, "size")) {
        out->has_bytes = true;
        if (record->value_bytes == 0 ||
            read_decimal(record->value, record->value_bytes, &out->bytes) != record->value_bytes)
            return SAY(error, "tar: a PAX size is no number of less than 2^63");
    } else if (record->key_bytes >= strlen(sparse) &&
               memcmp(record->key, sparse, strlen(sparse)) == 0) {
        out->is_sparse = true;
    }
    return STOKER_OK;
}

int stk_tar_records_parse(struct stk_tar_records *out, const char *text, size_t bytes,
                          stoker_error *error)
{
    struct record record = { 0 };
    for (size_t at = 0; at < bytes; at += record.bytes) {
        if (!cut_record(&record, text + at, bytes - at))
            return SAY(error, "tar: a PAX record is not of the form \"LENGTH KEY=VALUE\"");
        int rc = apply_record(out, &record, error);
        if (rc != STOKER_OK)
            return rc;
    }
    return STOKER_OK;
}
