/* kinds.c - see kinds.h. */
#include "loader/codec/kinds.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAGIC(bytes) .magic = (bytes), .magic_bytes = sizeof(bytes) - 1

const struct stk_kind stk_kinds[STK_SHARD_CODECS] = {
    [STK_SHARD_RAW] = { .name = "raw" },
    [STK_SHARD_LZ4] = { .name = "lz4" },
    [STK_SHARD_PNG] = { .name = "png", .extensions = { "png" }, MAGIC("\x89PNG\r\n\x1A\n") },
    [STK_SHARD_JPEG] = { .name = "jpeg", .extensions = { "jpg", "jpeg" }, MAGIC("\xFF\xD8\xFF") },
    [STK_SHARD_ZSTD] = { .name = "zstd" },
    [STK_SHARD_WEBP] = { .name = "webp", .extensions = { "webp" }, MAGIC("RIFF????WEBP") },
};

bool stk_kind_is_image(uint32_t codec)
{
    return codec < STK_SHARD_CODECS && stk_kinds[codec].magic != NULL;
}

static bool begins_with(const uint8_t *bytes, size_t size, const struct stk_kind *kind)
{
    if (kind->magic == NULL || size < kind->magic_bytes)
        return false;
    for (size_t i = 0; i < kind->magic_bytes; i++)
        if (kind->magic[i] != '?' && bytes[i] != (uint8_t)kind->magic[i])
            return false;
    return true;
}

enum stk_shard_codec stk_kind_of_bytes(const void *bytes, size_t size)
{
    for (uint32_t codec = 0; codec < STK_SHARD_CODECS; codec++)
        if (begins_with(bytes, size, &stk_kinds[codec]))
            return (enum stk_shard_codec)codec;
    return STK_SHARD_RAW;
}

enum stk_shard_codec stk_kind_of_extension(const char *extension)
{
    for (uint32_t codec = 0; codec < STK_SHARD_CODECS; codec++)
        for (const char *const *own = stk_kinds[codec].extensions; *own != NULL; own++)
            if (strcasecmp(*own, extension) == 0)
                return (enum stk_shard_codec)codec;
    return STK_SHARD_RAW;
}

bool stk_kind_names_image(const char *name)
{
    if (name == NULL)
        return false;
    bool found = strcmp(name, "image") == 0;
    for (uint32_t codec = 0; codec < STK_SHARD_CODECS; codec++)
        found = found || (stk_kind_is_image(codec) && strcmp(stk_kinds[codec].name, name) == 0);
    return found;
}

void stk_kind_list_extensions(char separator, char *to, size_t bytes)
{
    size_t used = 0;
    for (uint32_t codec = 0; codec < STK_SHARD_CODECS; codec++)
        for (const char *const *own = stk_kinds[codec].extensions; *own != NULL; own++) {
            if (used > 0)
                to[used++] = separator;
            used += (size_t)snprintf(to + used, bytes - used, "%s", *own);
            assert(used < bytes);
        }
}
