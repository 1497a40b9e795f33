/* numbers.c - see numbers.h. */
#include "datasets/views/numbers.h"

#include <math.h>
#include <string.h>

#include "datasets/npy/header.h"
#include "datasets/number.h"
#include "datasets/source.h"
#include "loader/base/bytes.h"
#include "loader/base/memory.h"

/* A file in memory, and what is read from it. */
struct reading {
    const char *path;
    const uint8_t *bytes;
    size_t size;
    enum stk_numbers_kind kind;
    struct stk_numbers *out;
    stoker_error *error;
};

static int refuse(const struct reading *reading, int code, uint64_t offset, const char *what)
{
    const struct stk_place place = stk_at(reading->path, offset);
    return stk_error_set(reading->error, code, STOKER_STAGE_OPEN, &place, "%s", what);
}

static int take_memory(const struct reading *reading, uint64_t count)
{
    reading->out->count = count;
    void *memory = stk_calloc((size_t)count, sizeof(uint64_t));
    if (memory == NULL)
        return refuse(reading, STOKER_ENOMEM, STOKER_NO_OFFSET, "the numbers");
    if (reading->kind == STK_NUMBERS_IDS)
        reading->out->ids = memory;
    else
        reading->out->weights = memory;
    return STOKER_OK;
}

/* ---- text ------------------------------------------------------------------------------- */

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Find the text of the next number: it starts at *begin, and *at moves behind it. Returns its bytes, 0 at the end. */
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

static bool read_id(const uint8_t *text, size_t bytes, uint64_t *out)
{
    uint64_t id = 0;
    for (size_t i = 0; i < bytes; i++)
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(id, 10U, &id) ||
            __builtin_add_overflow(id, (uint64_t)(text[i] - '0'), &id))
            return false;
    *out = id;
    return true;
}

static bool read_weight(const uint8_t *text, size_t bytes, double *out)
{
    return stk_number_parse((const char *)text, bytes, out) == STK_NUMBER && *out >= 0.0;
}

static int read_text(const struct reading *reading)
{
    size_t at = 0, begin = 0;
    uint64_t count = 0;
    while (next_text(reading, &at, &begin) > 0)
        count++;
    if (count == 0)
        return refuse(reading, STOKER_EEMPTY, STOKER_NO_OFFSET, "the file has no numbers");
    int rc = take_memory(reading, count);
    at = 0;
    for (uint64_t i = 0; rc == STOKER_OK && i < count; i++) {
        const size_t bytes = next_text(reading, &at, &begin);
        const uint8_t *text = reading->bytes + begin;
        if (reading->kind == STK_NUMBERS_IDS) {
            if (!read_id(text, bytes, &reading->out->ids[i]))
                rc = refuse(reading, STOKER_EFORMAT, begin, "not a sample id, a decimal number");
        } else if (!read_weight(text, bytes, &reading->out->weights[i])) {
            rc = refuse(reading, STOKER_EFORMAT, begin, "not a weight, a number from 0 to 3.4e38");
        }
    }
    return rc;
}

/* ---- NumPy ------------------------------------------------------------------------------ */

static bool load_id(const struct stk_npy_header *header, const uint8_t *at, uint64_t *out)
{
    *out = stk_npy_bits(header, at);
    return header->kind != 'i' || (int64_t)*out >= 0;
}

static bool load_weight(const struct stk_npy_header *header, const uint8_t *at, double *out)
{
    const uint64_t bits = stk_npy_bits(header, at);
    const uint32_t narrow = (uint32_t)bits;
    float single;
    if (header->kind == 'f' && header->element_bytes == 8) {
        memcpy(out, &bits, sizeof(bits));
    } else if (header->kind == 'f') {
        memcpy(&single, &narrow, sizeof(narrow));
        *out = single;
    } else {
        *out = header->kind == 'i' ? (double)(int64_t)bits : (double)bits;
    }
    return isfinite(*out) && *out >= 0.0;
}

static int read_npy(const struct reading *reading)
{
    struct stk_npy_header header;
    const size_t begin = reading->size < STK_NPY_BEGIN_BYTES ? reading->size : STK_NPY_BEGIN_BYTES;
    int rc =
        stk_npy_parse(&header, reading->bytes, begin, reading->size, reading->path, reading->error);
    if (rc != STOKER_OK)
        return rc;
    if (header.rank > 2 || (header.rank == 2 && header.lengths[1] != 1))
        return refuse(reading, STOKER_EFORMAT, STOKER_NO_OFFSET, "NPY: not one number per row");
    if (header.kind == 'f' && (reading->kind == STK_NUMBERS_IDS || header.element_bytes < 4))
        return refuse(reading, STOKER_ENOTSUP, STOKER_NO_OFFSET,
                      "NPY: ids are integers, weights are float32, float64 or integers");
    rc = take_memory(reading, header.lengths[0]);
    for (uint64_t i = 0; rc == STOKER_OK && i < header.lengths[0]; i++) {
        const uint64_t offset = header.header_bytes + i * header.element_bytes;
        const uint8_t *at = reading->bytes + offset;
        const bool good = reading->kind == STK_NUMBERS_IDS
                              ? load_id(&header, at, &reading->out->ids[i])
                              : load_weight(&header, at, &reading->out->weights[i]);
        if (!good)
            rc =
                refuse(reading, STOKER_EFORMAT, offset,
                       reading->kind == STK_NUMBERS_IDS ? "NPY: a sample id is at least 0"
                                                        : "NPY: a weight is finite and at least 0");
    }
    return rc;
}

/* ---- files ------------------------------------------------------------------------------ */

static int read_source(struct stk_numbers *out, const struct stk_source *source,
                       enum stk_numbers_kind kind, uint64_t max_bytes, stoker_error *error)
{
    struct reading reading = {
        .path = source->path, .size = (size_t)source->size, .kind = kind, .out = out, .error = error
    };
    if (source->size == 0)
        return refuse(&reading, STOKER_EEMPTY, STOKER_NO_OFFSET, "the file has no numbers");
    if (source->size > max_bytes)
        return refuse(&reading, STOKER_ELIMIT, STOKER_NO_OFFSET,
                      "the file takes more memory than max_bytes");
    uint8_t *bytes = stk_calloc((size_t)source->size, 1);
    if (bytes == NULL)
        return refuse(&reading, STOKER_ENOMEM, STOKER_NO_OFFSET, "the file");
    reading.bytes = bytes;
    int rc = stk_source_read(source, bytes, (size_t)source->size, 0, error);
    if (rc == STOKER_OK)
        rc = stk_npy_magic(reading.bytes, reading.size) ? read_npy(&reading) : read_text(&reading);
    stk_free(bytes);
    if (rc != STOKER_OK)
        stk_numbers_free(out);
    return rc;
}

int stk_numbers_read(struct stk_numbers *out, const char *path, enum stk_numbers_kind kind,
                     uint64_t max_bytes, stoker_error *error)
{
    struct stk_source source;
    *out = (struct stk_numbers){ .count = 0 };
    int rc = stk_source_open(&source, path, error);
    if (rc != STOKER_OK)
        return rc;
    rc = read_source(out, &source, kind, max_bytes, error);
    stk_source_close(&source);
    return rc;
}

void stk_numbers_free(struct stk_numbers *numbers)
{
    stk_free(numbers->ids);
    stk_free(numbers->weights);
    *numbers = (struct stk_numbers){ .count = 0 };
}
