/* id_file.c - see spec.h. */
#include <string.h>

#include "datasets/npy/header.h"
#include "datasets/source.h"
#include "datasets/views/spec.h"
#include "loader/base/memory/memory.h"
#include "loader/storage/choose.h"

/* A file in memory, and what is read from it. */
struct reading {
    const char *path;
    const uint8_t *bytes;
    size_t size;
    uint64_t *ids;
    uint64_t count;
    stoker_error *error;
};

static int take_ids(struct reading *reading, uint64_t count)
{
    reading->count = count;
    reading->ids = stk_calloc((size_t)count, sizeof(reading->ids[0]));
    return reading->ids != NULL ? STOKER_OK
                                : stk_refuse_file(reading->error, STOKER_ENOMEM, reading->path,
                                                  STOKER_NO_OFFSET, "the ids");
}

/* ---- text ------------------------------------------------------------------------------- */

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Find the text of the next number: it starts at *begin, and *at moves behind it. Returns its
 * bytes, 0 at the end. */
static size_t next_text(const struct reading *reading, size_t *at, size_t *begin)
{
    const uint8_t *bytes = reading->bytes;
    size_t i = *at;
    while (i < reading->size && (is_blank(bytes[i]) || bytes[i] == '#')) {
        if (bytes[i] == '#')
            while (i < reading->size && bytes[i] != '\n' && bytes[i] != '\r')
                i++;
        else
            i++;
    }
    *begin = i;
    while (i < reading->size && !is_blank(bytes[i]) && bytes[i] != '#')
        i++;
    *at = i;
    return i - *begin;
}

static bool parse_id(const uint8_t *text, size_t bytes, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < bytes; i++)
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(*out, 10U, out) ||
            __builtin_add_overflow(*out, (uint64_t)(text[i] - '0'), out))
            return false;
    return true;
}

static int read_text(struct reading *reading)
{
    size_t at = 0, begin = 0;
    uint64_t count = 0;
    while (next_text(reading, &at, &begin) > 0)
        count++;
    if (count == 0)
        return stk_refuse_file(reading->error, STOKER_EEMPTY, reading->path, STOKER_NO_OFFSET,
                               "the file has no numbers");
    int rc = take_ids(reading, count);
    at = 0;
    for (uint64_t i = 0; rc == STOKER_OK && i < count; i++) {
        const size_t bytes = next_text(reading, &at, &begin);
        if (!parse_id(reading->bytes + begin, bytes, &reading->ids[i]))
            rc = stk_refuse_file(reading->error, STOKER_EFORMAT, reading->path, begin,
                                 "not a sample id, a decimal number");
    }
    return rc;
}

/* ---- NumPy ------------------------------------------------------------------------------ */

static int read_npy(struct reading *reading)
{
    struct stk_npy_header header;
    const size_t begin = reading->size < STK_NPY_BEGIN_BYTES ? reading->size : STK_NPY_BEGIN_BYTES;
    int rc =
        stk_npy_parse(&header, reading->bytes, begin, reading->size, reading->path, reading->error);
    if (rc != STOKER_OK)
        return rc;
    if (header.rank > 2 || (header.rank == 2 && header.lengths[1] != 1))
        return stk_refuse_file(reading->error, STOKER_EFORMAT, reading->path, STOKER_NO_OFFSET,
                               "NPY: not one number per row");
    if (header.kind == 'f')
        return stk_refuse_file(reading->error, STOKER_ENOTSUP, reading->path, STOKER_NO_OFFSET,
                               "NPY: sample ids are integers");
    rc = take_ids(reading, header.lengths[0]);
    for (uint64_t i = 0; rc == STOKER_OK && i < header.lengths[0]; i++) {
        const uint64_t offset = header.header_bytes + i * header.element_bytes;
        reading->ids[i] = stk_npy_bits(&header, reading->bytes + offset);
        if (header.kind == 'i' && (int64_t)reading->ids[i] < 0)
            rc = stk_refuse_file(reading->error, STOKER_EFORMAT, reading->path, offset,
                                 "NPY: a sample id is at least 0");
    }
    return rc;
}

/* ---- file ------------------------------------------------------------------------------- */

static int read_source(struct reading *reading, const struct stk_source *source, uint64_t max_bytes)
{
    if (source->size == 0)
        return stk_refuse_file(reading->error, STOKER_EEMPTY, source->path, STOKER_NO_OFFSET,
                               "the file has no numbers");
    if (source->size > max_bytes)
        return stk_refuse_file(reading->error, STOKER_ELIMIT, source->path, STOKER_NO_OFFSET,
                               "the file takes more memory than max_bytes");
    uint8_t *bytes = stk_calloc((size_t)source->size, 1);
    if (bytes == NULL)
        return stk_refuse_file(reading->error, STOKER_ENOMEM, source->path, STOKER_NO_OFFSET,
                               "the file");
    reading->bytes = bytes;
    reading->size = (size_t)source->size;
    int rc = stk_source_read(source, bytes, reading->size, 0, reading->error);
    if (rc == STOKER_OK)
        rc = stk_npy_magic(bytes, reading->size) ? read_npy(reading) : read_text(reading);
    stk_free(bytes);
    return rc;
}

int stk_id_file_read(uint64_t **ids, uint64_t *count, stoker_storage *storage, const char *path,
                     uint64_t max_bytes, stoker_error *error)
{
    struct stk_source source;
    struct reading reading = { .path = path, .error = error };
    const stoker_storage *routed = stk_storage_for(storage, path);
    if (routed == NULL)
        return stk_refuse_spec(error, STOKER_ENOMEM, "the storage of URLs");
    int rc = stk_source_open(&source, routed, path, error);
    if (rc != STOKER_OK)
        return rc;
    rc = read_source(&reading, &source, max_bytes);
    stk_source_close(&source);
    if (rc != STOKER_OK) {
        stk_free(reading.ids);
        return rc;
    }
    *ids = reading.ids;
    *count = reading.count;
    return STOKER_OK;
}
