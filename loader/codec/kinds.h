/* kinds.h - how the part of a sample may be stored: the one table of names, file extensions, first
 * bytes and numbers in shards.
 *
 * Knows no decoder, so that stoker-pack can compile a copy.
 */
#ifndef STK_CODEC_KINDS_H
#define STK_CODEC_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Indices of the table, and the numbers that shards store. */
enum stk_shard_codec {
    STK_SHARD_RAW = 0,  /* the row */
    STK_SHARD_LZ4 = 1,  /* the row as one LZ4 block */
    STK_SHARD_PNG = 2,  /* an image file */
    STK_SHARD_JPEG = 3, /* an image file */
    STK_SHARD_ZSTD = 4, /* the row as one Zstandard frame */
    STK_SHARD_WEBP = 5, /* an image file */
    STK_SHARD_CODECS
};

enum { STK_KIND_EXTENSIONS_MAX = 2 };

struct stk_kind {
    const char *name; /* the codec's; what stoker_dataset_stored_as() returns */
    /* Of image files, lower case; the first is for files that Stoker writes. NULL ends the list. */
    const char *extensions[STK_KIND_EXTENSIONS_MAX + 1];
    const char *magic; /* first bytes of an image file; '?' is any byte */
    size_t magic_bytes;
};

extern const struct stk_kind stk_kinds[STK_SHARD_CODECS];

/* Returns true if parts of that number are image files. */
bool stk_kind_is_image(uint32_t codec);

/* Find the kind of an image file by its first bytes, or by an extension without its dot, in upper
 * or lower case. STK_SHARD_RAW: unknown. */
enum stk_shard_codec stk_kind_of_bytes(const void *bytes, size_t size);
enum stk_shard_codec stk_kind_of_extension(const char *extension);

/* Returns true if a codec of that name reads image files: one kind's, or "image" for any kind. NULL
 * is allowed. */
bool stk_kind_names_image(const char *name);

/* Write the extensions of all image files, separated: "png,jpg,jpeg,webp". They must fit. */
void stk_kind_list_extensions(char separator, char *to, size_t bytes);

#endif
