/* engine_cache.c - see engine_cache.h. */
#include "trainer/backend/common/engine_cache.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/crc32c.h"
#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "loader/base/output_file.h"
#include "loader/base/write_all.h"

#define FIRST_LINE "stoker engines 1\n"

enum {
    CRC_LINE_BYTES = 16,                       /* "crc32c 01234567\n" */
    LINE_BYTES = STK_ENGINE_KEY_BYTES + 4 * 21 /* four numbers of at most 20 digits, a tab each */
};

struct entry {
    char key[STK_ENGINE_KEY_BYTES];
    int64_t engine;
    uint64_t index, workspace_bytes, nanoseconds;
};

struct stk_engine_cache {
    uint32_t entries;
    struct entry entry[STK_ENGINE_CACHE_ENTRIES_MAX]; /* sorted by key */
};

static int refused(int code, const char *path, size_t offset, const char *why, stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    place.path = path;
    place.offset = offset;
    return stk_error_set(error, code, STOKER_STAGE_OPEN, &place, "%s", why);
}

static int system_failure(const char *path, int os_errno, const char *call, stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    place.path = path;
    place.os_errno = os_errno;
    return stk_error_set(error, stk_error_from_errno(os_errno), STOKER_STAGE_OPEN, &place, "%s",
                         call);
}

int stk_engine_cache_create(struct stk_engine_cache **out, stoker_error *error)
{
    struct stk_engine_cache *cache = stk_calloc(1, sizeof(*cache));
    if (cache == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS,
                             &(struct stk_place)STK_NOWHERE, "cache of engines");
    *out = cache;
    return STOKER_OK;
}

void stk_engine_cache_destroy(struct stk_engine_cache **cache)
{
    stk_free(*cache);
    *cache = NULL;
}

uint32_t stk_engine_cache_entries(const struct stk_engine_cache *cache)
{
    return cache->entries;
}

/* The place of a key, or that where it would be. */
static uint32_t place_of(const struct stk_engine_cache *cache, const char *key, bool *there)
{
    uint32_t begin = 0;
    uint32_t end = cache->entries;
    *there = false;
    while (begin < end) {
        const uint32_t middle = begin + (end - begin) / 2;
        const int order = strcmp(key, cache->entry[middle].key);
        if (order == 0) {
            *there = true;
            return middle;
        }
        if (order < 0)
            end = middle;
        else
            begin = middle + 1;
    }
    return begin;
}

bool stk_engine_cache_find(const struct stk_engine_cache *cache, const char *key,
                           struct stk_engine_choice *out)
{
    bool there;
    const uint32_t at = place_of(cache, key, &there);
    if (!there)
        return false;
    const struct entry *const e = &cache->entry[at];
    *out = (struct stk_engine_choice){ .index = (uint32_t)e->index,
                                       .engine = e->engine,
                                       .workspace_bytes = e->workspace_bytes,
                                       .seconds = (double)e->nanoseconds * 1e-9 };
    return true;
}

static bool is_key(const char *key, size_t length)
{
    if (length == 0 || length >= STK_ENGINE_KEY_BYTES)
        return false;
    for (size_t i = 0; i < length; i++)
        if (key[i] < ' ' || key[i] > '~')
            return false;
    return true;
}

int stk_engine_cache_keep(struct stk_engine_cache *cache, const char *key,
                          const struct stk_engine_choice *choice, stoker_error *error)
{
    const size_t length = strnlen(key, STK_ENGINE_KEY_BYTES);
    if (!is_key(key, length) || choice->engine < 0)
        return refused(STOKER_EINVAL, NULL, STOKER_NO_OFFSET, "key of an engine", error);
    bool there;
    const uint32_t at = place_of(cache, key, &there);
    if (!there) {
        if (cache->entries == STK_ENGINE_CACHE_ENTRIES_MAX)
            return refused(STOKER_ELIMIT, NULL, STOKER_NO_OFFSET, "cache of engines", error);
        memmove(&cache->entry[at + 1], &cache->entry[at],
                (cache->entries - at) * sizeof(cache->entry[0]));
        cache->entries++;
    }
    struct entry *const e = &cache->entry[at];
    memcpy(e->key, key, length + 1);
    e->engine = choice->engine;
    e->index = choice->index;
    e->workspace_bytes = choice->workspace_bytes;
    e->nanoseconds = choice->seconds > 0 ? (uint64_t)(choice->seconds * 1e9 + 0.5) : 0;
    return STOKER_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A tab, then a number without sign or leading zeros, at most `most`. */
static bool take_number(const char **at, const char *end, uint64_t most, uint64_t *out)
{
    const char *c = *at;
    if (c == end || *c++ != '\t')
        return false;
    const char *const first = c;
    uint64_t value = 0;
    for (; c < end && *c >= '0' && *c <= '9'; c++) {
        const uint64_t digit = (uint64_t)(*c - '0');
        if (value > (most - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (c == first || (*first == '0' && c - first > 1))
        return false;
    *at = c;
    *out = value;
    return true;
}

/* One line, [at, end) without its newline. */
static bool take_entry(struct entry *e, const char *at, const char *end)
{
    const char *const tab = memchr(at, '\t', (size_t)(end - at));
    if (tab == NULL || !is_key(at, (size_t)(tab - at)))
        return false;
    memcpy(e->key, at, (size_t)(tab - at));
    e->key[tab - at] = '\0';
    at = tab;
    uint64_t engine = 0;
    const bool whole = take_number(&at, end, INT64_MAX, &engine) &&
                       take_number(&at, end, UINT32_MAX, &e->index) &&
                       take_number(&at, end, INT64_MAX, &e->workspace_bytes) &&
                       take_number(&at, end, INT64_MAX, &e->nanoseconds) && at == end;
    e->engine = (int64_t)engine;
    return whole;
}

static bool checksum_agrees(const char *text, size_t body)
{
    char line[CRC_LINE_BYTES + 1];
    (void)snprintf(line, sizeof(line), "crc32c %08" PRIx32 "\n", stk_crc32c(0, text, body));
    return memcmp(text + body, line, CRC_LINE_BYTES) == 0;
}

static int take_entries(struct stk_engine_cache *cache, const char *text, size_t body,
                        const char *path, stoker_error *error)
{
    size_t at = strlen(FIRST_LINE);
    while (at < body) {
        const char *const newline = memchr(text + at, '\n', body - at);
        if (cache->entries == STK_ENGINE_CACHE_ENTRIES_MAX)
            return refused(STOKER_ELIMIT, path, at, "more engines than a cache holds", error);
        struct entry *const e = &cache->entry[cache->entries];
        if (newline == NULL || !take_entry(e, text + at, newline))
            return refused(STOKER_EFORMAT, path, at, "a line of an engine", error);
        if (cache->entries > 0 && strcmp(e[-1].key, e->key) >= 0)
            return refused(STOKER_EFORMAT, path, at, "engines are not in order", error);
        cache->entries++;
        at = (size_t)(newline + 1 - text);
    }
    return STOKER_OK;
}

int stk_engine_cache_parse(struct stk_engine_cache *cache, const char *text, size_t bytes,
                           const char *path, stoker_error *error)
{
    assert(cache->entries == 0);
    const size_t first = strlen(FIRST_LINE);
    if (bytes < first || memcmp(text, FIRST_LINE, first) != 0)
        return refused(STOKER_EMAGIC, path, 0, "cache of engines", error);
    if (bytes < first + CRC_LINE_BYTES)
        return refused(STOKER_ETRUNCATED, path, bytes, "cache of engines", error);
    const size_t body = bytes - CRC_LINE_BYTES;
    if (!checksum_agrees(text, body))
        return refused(STOKER_ECORRUPT, path, body, "cache of engines", error);
    const int rc = take_entries(cache, text, body, path, error);
    if (rc != STOKER_OK)
        cache->entries = 0;
    return rc;
}

/* All of a small file; *text is the caller's on success. */
static int read_file(char **text, size_t *bytes, int fd, const char *path, stoker_error *error)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return system_failure(path, errno, "fstat", error);
    if (!S_ISREG(status.st_mode) || status.st_size > STK_ENGINE_CACHE_FILE_BYTES_MAX)
        return refused(STOKER_ELIMIT, path, STOKER_NO_OFFSET, "not a cache of engines", error);
    const size_t wanted = (size_t)status.st_size;
    char *const buffer = stk_calloc(1, wanted + 1);
    if (buffer == NULL)
        return refused(STOKER_ENOMEM, path, STOKER_NO_OFFSET, "cache of engines", error);
    size_t done = 0;
    while (done < wanted) {
        const ssize_t got = read(fd, buffer + done, wanted - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            const int why = errno;
            stk_free(buffer);
            return system_failure(path, why, "read", error);
        }
        if (got == 0)
            break;
        done += (size_t)got;
    }
    *text = buffer;
    *bytes = done;
    return STOKER_OK;
}

int stk_engine_cache_read(struct stk_engine_cache *cache, const char *path, stoker_error *error)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return system_failure(path, errno, "open", error);
    char *text = NULL;
    size_t bytes = 0;
    int rc = read_file(&text, &bytes, fd, path, error);
    (void)close(fd);
    if (rc == STOKER_OK)
        rc = stk_engine_cache_parse(cache, text, bytes, path, error);
    stk_free(text);
    return rc;
}

/* ---- writing --------------------------------------------------------------------------------- */

static size_t format(const struct stk_engine_cache *cache, char *text)
{
    size_t at = (size_t)sprintf(text, "%s", FIRST_LINE);
    for (uint32_t i = 0; i < cache->entries; i++) {
        const struct entry *const e = &cache->entry[i];
        at += (size_t)sprintf(text + at, "%s\t%" PRId64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
                              e->key, e->engine, e->index, e->workspace_bytes, e->nanoseconds);
    }
    const uint32_t sum = stk_crc32c(0, text, at);
    return at + (size_t)sprintf(text + at, "crc32c %08" PRIx32 "\n", sum);
}

int stk_engine_cache_write(const struct stk_engine_cache *cache, const char *path,
                           stoker_error *error)
{
    const size_t most = sizeof(FIRST_LINE) + (size_t)cache->entries * LINE_BYTES + CRC_LINE_BYTES;
    struct stk_output output;
    char *const text = stk_calloc(1, most);
    if (text == NULL)
        return refused(STOKER_ENOMEM, path, STOKER_NO_OFFSET, "cache of engines", error);
    int os_errno = stk_output_open(&output, path);
    if (os_errno == 0 && !stk_write_all(output.fd, text, format(cache, text))) {
        os_errno = errno;
        stk_output_drop(&output);
    } else if (os_errno == 0) {
        os_errno = stk_output_commit(&output);
    }
    stk_free(text);
    return os_errno == 0 ? STOKER_OK : system_failure(path, os_errno, "write", error);
}
