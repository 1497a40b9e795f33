/* safetensors_write.c - see safetensors.h. */
#include "trainer/files/safetensors.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "loader/base/bytes.h"
#include "loader/base/crc32c/crc32c.h"
#include "loader/base/error.h"
#include "loader/base/text/json.h"
#include "trainer/files/safetensors_format.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are written as they lie");

enum { PIECES_AT_ONCE = 64 }; /* per writev */

/* ---- the set -------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts, and returns a name that appears twice, or NULL. */
static const char *twice(const char **names, uint32_t count)
{
    qsort(names, count, sizeof(names[0]), by_text);
    for (uint32_t i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return names[i];
    return NULL;
}

static int check_each(const char *path, const struct stk_tensor_set *set, stoker_error *error)
{
    for (uint32_t i = 0; i < set->tensor_count; i++) {
        const struct stk_named_tensor *tensor = &set->tensors[i];
        if (!stk_is_utf8(tensor->name) || strcmp(tensor->name, STK_METADATA_NAME) == 0)
            return stk_refuse_file(error, STOKER_EINVAL, path, STOKER_NO_OFFSET,
                                   "the name of a tensor, \"%.64s\"", tensor->name);
        if ((unsigned)tensor->dtype >= STK_FILE_DTYPE_COUNT || tensor->rank > STK_TENSOR_RANK_MAX ||
            stk_tensor_bytes(tensor) == UINT64_MAX)
            return stk_refuse_file(error, STOKER_EINVAL, path, STOKER_NO_OFFSET,
                                   "type or shape of tensor \"%.64s\"", tensor->name);
    }
    for (uint32_t i = 0; i < set->note_count; i++) {
        const struct stk_note *note = &set->notes[i];
        if (!stk_is_utf8(note->key) || !stk_is_utf8(note->value) ||
            strcmp(note->key, STK_CHECKSUM_KEY) == 0 || strcmp(note->key, STK_FORMAT_KEY) == 0)
            return stk_refuse_file(error, STOKER_EINVAL, path, STOKER_NO_OFFSET,
                                   "the note \"%.64s\"", note->key);
    }
    return STOKER_OK;
}

static int check_set(const char *path, const struct stk_tensor_set *set, stoker_error *error)
{
    if (set->tensor_count > STK_TENSORS_MAX || set->note_count > STK_NOTES_MAX - 2)
        return stk_refuse_file(error, STOKER_ELIMIT, path, STOKER_NO_OFFSET,
                               "too many tensors or notes");
    int rc = check_each(path, set, error);
    if (rc != STOKER_OK)
        return rc;
    const uint32_t most = set->tensor_count > set->note_count ? set->tensor_count : set->note_count;
    const char **names = stk_calloc(most + 1U, sizeof(names[0]));
    if (names == NULL)
        return stk_refuse_file(error, STOKER_ENOMEM, path, STOKER_NO_OFFSET, "the list of names");
    for (uint32_t i = 0; i < set->tensor_count; i++)
        names[i] = set->tensors[i].name;
    const char *found = twice(names, set->tensor_count);
    if (found == NULL) {
        for (uint32_t i = 0; i < set->note_count; i++)
            names[i] = set->notes[i].key;
        found = twice(names, set->note_count);
    }
    if (found != NULL)
        rc = stk_refuse_file(error, STOKER_EINVAL, path, STOKER_NO_OFFSET,
                             "there is twice \"%.64s\"", found);
    stk_free(names);
    return rc;
}

/* ---- the header ----------------------------------------------------------------- */

/* Text that the same calls first count (to == NULL) and then write. */
struct text {
    char *to;
    size_t used;
};

static void put(struct text *text, const char *bytes, size_t count)
{
    if (text->to != NULL)
        memcpy(text->to + text->used, bytes, count);
    text->used += count;
}

__attribute__((format(printf, 2, 3))) static void print(struct text *text, const char *format, ...)
{
    char line[64];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    assert(length >= 0);
    assert((size_t)length < sizeof(line));
    put(text, line, (size_t)length);
}

static void put_string(struct text *text, const char *string)
{
    put(text, "\"", 1);
    for (; *string != '\0'; string++) {
        if (*string == '"' || *string == '\\')
            put(text, "\\", 1);
        if ((unsigned char)*string < 0x20)
            print(text, "\\u%04x", (unsigned)*string);
        else
            put(text, string, 1);
    }
    put(text, "\"", 1);
}

static void put_tensor(struct text *text, const struct stk_named_tensor *tensor, uint64_t begin)
{
    put(text, ",", 1);
    put_string(text, tensor->name);
    print(text, ":{\"dtype\":\"%s\",\"shape\":[", stk_file_dtype_name(tensor->dtype));
    for (uint32_t axis = 0; axis < tensor->rank; axis++)
        print(text, "%s%" PRIu64, axis > 0 ? "," : "", tensor->shape[axis]);
    print(text, "],\"data_offsets\":[%" PRIu64, begin);
    print(text, ",%" PRIu64 "]}", begin + stk_tensor_bytes(tensor));
}

/* Length, JSON with zeros for a checksum, spaces. */
static void put_header(struct text *text, const struct stk_tensor_set *set)
{
    static const char length[STK_LENGTH_BYTES] = { 0 };
    put(text, length, sizeof(length));
    put(text, STK_CHECKSUM_PREFIX, sizeof(STK_CHECKSUM_PREFIX) - 1);
    print(text, "00000000\",\"" STK_FORMAT_KEY "\":\"1\"");
    for (uint32_t i = 0; i < set->note_count; i++) {
        put(text, ",", 1);
        put_string(text, set->notes[i].key);
        put(text, ":", 1);
        put_string(text, set->notes[i].value);
    }
    put(text, "}", 1);
    uint64_t begin = 0;
    for (uint32_t i = 0; i < set->tensor_count; i++) {
        put_tensor(text, &set->tensors[i], begin);
        begin += stk_tensor_bytes(&set->tensors[i]);
    }
    put(text, "}", 1);
    while (text->used % 8 != 0)
        put(text, " ", 1);
}

static bool fits(const struct stk_tensor_set *set)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < set->tensor_count; i++)
        if (__builtin_add_overflow(bytes, stk_tensor_bytes(&set->tensors[i]), &bytes) ||
            bytes > INT64_MAX / 2)
            return false;
    return true;
}

static void put_checksum(struct text *header, const struct stk_tensor_set *set)
{
    uint32_t crc = stk_crc32c(0, header->to, header->used);
    for (uint32_t i = 0; i < set->tensor_count; i++)
        crc = stk_crc32c(crc, set->tensors[i].data, stk_tensor_bytes(&set->tensors[i]));
    char digits[STK_CHECKSUM_DIGITS + 1];
    (void)snprintf(digits, sizeof(digits), "%08" PRIx32, crc);
    memcpy(header->to + STK_CHECKSUM_AT, digits, STK_CHECKSUM_DIGITS);
}

/* On success the caller frees header->to with stk_free(). */
static int make_header(struct text *header, const char *path, const struct stk_tensor_set *set,
                       stoker_error *error)
{
    put_header(header, set);
    const size_t bytes = header->used;
    if (bytes - STK_LENGTH_BYTES > STK_SAFETENSORS_HEADER_MAX || !fits(set))
        return stk_refuse_file(error, STOKER_ELIMIT, path, STOKER_NO_OFFSET,
                               "too much for one file");
    header->to = stk_calloc(1, bytes);
    if (header->to == NULL)
        return stk_refuse_file(error, STOKER_ENOMEM, path, STOKER_NO_OFFSET, "the header");
    header->used = 0;
    put_header(header, set);
    assert(header->used == bytes);
    stk_store_le64((uint8_t *)header->to, bytes - STK_LENGTH_BYTES);
    put_checksum(header, set);
    return STOKER_OK;
}

/* ---- the bytes ------------------------------------------------------------------ */

/* Piece 0 is the header, piece n tensor n - 1; `done` bytes of the first one are written. */
static int gather(struct iovec *pieces, const struct text *header, const struct stk_tensor_set *set,
                  uint32_t first, size_t done)
{
    int count = 0;
    for (uint32_t i = first; i <= set->tensor_count && count < PIECES_AT_ONCE; i++, count++) {
        const struct stk_named_tensor *tensor = i == 0 ? NULL : &set->tensors[i - 1];
        pieces[count].iov_base = i == 0 ? header->to : (void *)tensor->data;
        pieces[count].iov_len = i == 0 ? header->used : stk_tensor_bytes(tensor);
    }
    pieces[0].iov_len -= done;
    if (done > 0)
        pieces[0].iov_base = (char *)pieces[0].iov_base + done;
    return count;
}

static size_t piece_bytes(const struct text *header, const struct stk_tensor_set *set, uint32_t i)
{
    return i == 0 ? header->used : stk_tensor_bytes(&set->tensors[i - 1]);
}

static int write_all(int fd, const char *path, const struct text *header,
                     const struct stk_tensor_set *set, stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    place.path = path;
    place.offset = 0;
    size_t done = 0; /* bytes written of the next piece */
    for (uint32_t next = 0; next <= set->tensor_count;) {
        struct iovec pieces[PIECES_AT_ONCE];
        const int count = gather(pieces, header, set, next, done);
        ssize_t written = writev(fd, pieces, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            place.os_errno = errno;
            return stk_error_set(error, stk_error_from_errno(errno), STOKER_STAGE_TRANSFER, &place,
                                 "write");
        }
        place.offset += (uint64_t)written;
        done += (size_t)written;
        while (next <= set->tensor_count && done >= piece_bytes(header, set, next))
            done -= piece_bytes(header, set, next++);
    }
    return STOKER_OK;
}

int stk_safetensors_write(int fd, const char *path, const struct stk_tensor_set *set,
                          stoker_error *error)
{
    assert(fd >= 0);
    struct text header = { 0 };
    int rc = check_set(path, set, error);
    if (rc == STOKER_OK)
        rc = make_header(&header, path, set, error);
    if (rc == STOKER_OK)
        rc = write_all(fd, path, &header, set, error);
    stk_free(header.to);
    return rc;
}
