/* safetensors_read.c - see safetensors.h.
 *
 *   length ──▶ header into memory ──▶ its part of the checksum ──▶ lists ──▶ rest into memory
 *
 * The header is parsed in place, so its checksum is computed first; the rest is read only if the
 * header describes exactly the bytes of the file. */
#include "trainer/files/safetensors.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/bytes.h"
#include "loader/base/crc32c/crc32c.h"
#include "loader/base/error.h"
#include "loader/base/io/pread.h"
#include "loader/base/memory/budget.h"
#include "loader/base/text/json.h"
#include "trainer/files/safetensors_format.h"

enum {
    ENTRY_BYTES_MIN = 40,     /* least for a tensor in the header */
    UNASKED_BYTES = 64 << 20, /* smaller files are read without a look at the available memory */
    SHOWN = 64                /* characters of a name in a message */
};

struct reading {
    const char *path;
    stoker_error *error;
    uint8_t *bytes; /* the whole file; at first only its header was read */
    uint64_t size;
    uint64_t data_at; /* end of the header */
    uint32_t crc;     /* the header's */
    bool has_crc;
    char crc_written[STK_CHECKSUM_DIGITS];

    struct stk_json json;
    int code; /* for an error of json */
    struct stk_named_tensor *tensors;
    uint32_t tensor_count, tensor_capacity;
    struct stk_note *notes;
    uint32_t note_count, note_capacity;
    bool has_metadata;
};

static struct stk_place at(const char *path, uint64_t offset)
{
    struct stk_place place = STK_NOWHERE;
    place.path = path;
    place.offset = offset;
    return place;
}

/* ---- the header ----------------------------------------------------------------- */

static bool refuse_limit(struct reading *r, const char *why)
{
    if (r->json.why == NULL)
        r->code = STOKER_ELIMIT;
    return stk_json_refuse(&r->json, r->json.at, why);
}

static bool parse_note(struct reading *r)
{
    struct stk_note note;
    if (!stk_json_string(&r->json, &note.key) || !stk_json_expect(&r->json, ':') ||
        !stk_json_string(&r->json, &note.value))
        return false;
    if (r->note_count == STK_NOTES_MAX)
        return refuse_limit(r, "too many entries in __metadata__");
    assert(r->note_count < r->note_capacity);
    r->notes[r->note_count++] = note;
    return true;
}

static bool parse_metadata(struct reading *r, size_t name_at)
{
    if (r->has_metadata)
        return stk_json_refuse(&r->json, name_at, "__metadata__ twice");
    r->has_metadata = true;
    if (!stk_json_expect(&r->json, '{'))
        return false;
    if (stk_json_take(&r->json, '}'))
        return true;
    do {
        if (!parse_note(r))
            return false;
    } while (stk_json_take(&r->json, ','));
    return stk_json_expect(&r->json, '}');
}

static bool parse_dtype(struct reading *r, struct stk_named_tensor *tensor)
{
    const size_t value_at = r->json.at;
    const char *name;
    if (!stk_json_string(&r->json, &name))
        return false;
    for (int dtype = 0; dtype < STK_FILE_DTYPE_COUNT; dtype++) {
        if (strcmp(name, stk_file_dtype_name((enum stk_file_dtype)dtype)) == 0) {
            tensor->dtype = (enum stk_file_dtype)dtype;
            return true;
        }
    }
    return stk_json_refuse(&r->json, value_at, "an unknown dtype");
}

static bool parse_shape(struct reading *r, struct stk_named_tensor *tensor)
{
    if (!stk_json_expect(&r->json, '['))
        return false;
    if (stk_json_take(&r->json, ']'))
        return true;
    do {
        if (tensor->rank == STK_TENSOR_RANK_MAX)
            return refuse_limit(r, "more than 8 axes");
        if (!stk_json_number(&r->json, &tensor->shape[tensor->rank]))
            return false;
        tensor->rank++;
    } while (stk_json_take(&r->json, ','));
    return stk_json_expect(&r->json, ']');
}

static bool parse_offsets(struct reading *r, uint64_t offsets[2])
{
    return stk_json_expect(&r->json, '[') && stk_json_number(&r->json, &offsets[0]) &&
           stk_json_expect(&r->json, ',') && stk_json_number(&r->json, &offsets[1]) &&
           stk_json_expect(&r->json, ']');
}

/* Checks that offsets, shape and type of the tensor agree, also with the size of the file. */
static bool check_tensor(struct reading *r, struct stk_named_tensor *tensor, size_t name_at,
                         const uint64_t offsets[2])
{
    const uint64_t data_bytes = r->size - r->data_at;
    if (offsets[0] > offsets[1])
        return stk_json_refuse(&r->json, name_at, "data_offsets that run backwards");
    const uint64_t bytes = stk_tensor_bytes(tensor);
    if (bytes == UINT64_MAX)
        return stk_json_refuse(&r->json, name_at, "a shape too large for any file");
    if (bytes != offsets[1] - offsets[0])
        return stk_json_refuse(&r->json, name_at, "shape and data_offsets do not agree");
    if (offsets[1] > data_bytes) {
        r->code = STOKER_ETRUNCATED;
        return stk_json_refuse(&r->json, name_at, "a tensor ends beyond the end of the file");
    }
    tensor->data = r->bytes + r->data_at + offsets[0];
    tensor->bytes = bytes;
    return true;
}

static bool parse_tensor(struct reading *r, const char *name, size_t name_at)
{
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4 };
    struct stk_named_tensor tensor = { .name = name };
    uint64_t offsets[2] = { 0, 0 };
    unsigned seen = 0;
    if (!stk_json_expect(&r->json, '{'))
        return false;
    do {
        const size_t key_at = r->json.at;
        const char *key;
        if (!stk_json_string(&r->json, &key) || !stk_json_expect(&r->json, ':'))
            return false;
        const unsigned part = strcmp(key, "dtype") == 0          ? DTYPE
                              : strcmp(key, "shape") == 0        ? SHAPE
                              : strcmp(key, "data_offsets") == 0 ? OFFSETS
                                                                 : 0;
        if (part == 0 || (seen & part) != 0)
            return stk_json_refuse(&r->json, key_at, "an unknown key of a tensor, or one twice");
        seen |= part;
        const bool good = part == DTYPE   ? parse_dtype(r, &tensor)
                          : part == SHAPE ? parse_shape(r, &tensor)
                                          : parse_offsets(r, offsets);
        if (!good)
            return false;
    } while (stk_json_take(&r->json, ','));
    if (!stk_json_expect(&r->json, '}'))
        return false;
    if (seen != (DTYPE | SHAPE | OFFSETS))
        return stk_json_refuse(&r->json, name_at, "a tensor without dtype, shape or data_offsets");
    if (!check_tensor(r, &tensor, name_at, offsets))
        return false;
    if (r->tensor_count == STK_TENSORS_MAX)
        return refuse_limit(r, "too many tensors");
    assert(r->tensor_count < r->tensor_capacity);
    r->tensors[r->tensor_count++] = tensor;
    return true;
}

static bool parse_entries(struct reading *r)
{
    if (!stk_json_expect(&r->json, '{'))
        return false;
    if (stk_json_take(&r->json, '}'))
        return stk_json_end(&r->json);
    do {
        const size_t name_at = r->json.at;
        const char *name;
        if (!stk_json_string(&r->json, &name) || !stk_json_expect(&r->json, ':'))
            return false;
        if (!(strcmp(name, STK_METADATA_NAME) == 0 ? parse_metadata(r, name_at)
                                                   : parse_tensor(r, name, name_at)))
            return false;
    } while (stk_json_take(&r->json, ','));
    return stk_json_expect(&r->json, '}') && stk_json_end(&r->json);
}

/* Counts a character, up to `most`. */
static uint32_t count_of(const struct stk_json *json, char character, size_t most)
{
    size_t count = 0;
    const char *from = json->text;
    const char *const end = json->text + json->size;
    while (count < most && (from = memchr(from, character, (size_t)(end - from))) != NULL) {
        count++;
        from++;
    }
    return (uint32_t)count;
}

/* Allocates the lists: each tensor has a brace and each note a colon. */
static int take_lists(struct reading *r, struct stk_safetensors *out)
{
    const size_t tensors_most = r->json.size / ENTRY_BYTES_MIN + 1;
    r->tensor_capacity = count_of(
        &r->json, '{', tensors_most < STK_TENSORS_MAX ? tensors_most : (size_t)STK_TENSORS_MAX);
    r->note_capacity = count_of(&r->json, ':', STK_NOTES_MAX);
    const size_t tensor_bytes = r->tensor_capacity * sizeof(r->tensors[0]);
    out->lists = stk_calloc(1, tensor_bytes + r->note_capacity * sizeof(r->notes[0]) + 1);
    if (out->lists == NULL)
        return stk_refuse_file(r->error, STOKER_ENOMEM, r->path, STOKER_NO_OFFSET,
                               "the list of tensors");
    r->tensors = out->lists;
    r->notes = (struct stk_note *)(void *)((uint8_t *)out->lists + tensor_bytes);
    return STOKER_OK;
}

/* ---- the lists as a whole ------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const struct stk_named_tensor *x = a;
    const struct stk_named_tensor *y = b;
    if (x->data != y->data)
        return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* empty ones first */
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct stk_named_tensor *)a)->name,
                  ((const struct stk_named_tensor *)b)->name);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct stk_note *)a)->key, ((const struct stk_note *)b)->key);
}

/* Checks that the tensors, sorted by offset, cover the file from the header to its end. */
static int check_cover(struct reading *r)
{
    qsort(r->tensors, r->tensor_count, sizeof(r->tensors[0]), by_place);
    uint64_t end = r->data_at;
    for (uint32_t i = 0; i < r->tensor_count; i++) {
        const uint64_t begin = (uint64_t)((const uint8_t *)r->tensors[i].data - r->bytes);
        const struct stk_place place = at(r->path, begin);
        if (begin != end)
            return stk_error_set(r->error, STOKER_EFORMAT, STOKER_STAGE_READ, &place,
                                 begin > end ? "unused bytes before tensor \"%.*s\""
                                             : "tensor \"%.*s\" overlaps another",
                                 SHOWN, r->tensors[i].name);
        end = begin + r->tensors[i].bytes;
    }
    if (end < r->size)
        return stk_refuse_file(r->error, STOKER_EOVERSIZE, r->path, end,
                               "bytes that belong to no tensor");
    return STOKER_OK;
}

static int check_names(struct reading *r)
{
    qsort(r->tensors, r->tensor_count, sizeof(r->tensors[0]), by_name);
    for (uint32_t i = 1; i < r->tensor_count; i++) {
        const struct stk_place place = at(r->path, STK_LENGTH_BYTES);
        if (strcmp(r->tensors[i - 1].name, r->tensors[i].name) == 0)
            return stk_error_set(r->error, STOKER_EFORMAT, STOKER_STAGE_READ, &place,
                                 "two tensors \"%.*s\"", SHOWN, r->tensors[i].name);
    }
    qsort(r->notes, r->note_count, sizeof(r->notes[0]), by_key);
    for (uint32_t i = 1; i < r->note_count; i++)
        if (strcmp(r->notes[i - 1].key, r->notes[i].key) == 0)
            return stk_refuse_file(r->error, STOKER_EFORMAT, r->path, STK_LENGTH_BYTES,
                                   "a key of __metadata__ is there twice");
    /* A damaged key must not disable the checksum. */
    for (uint32_t i = 0; i < r->note_count && !r->has_crc; i++)
        if (strncmp(r->notes[i].key, STK_OWN_KEYS, strlen(STK_OWN_KEYS)) == 0)
            return stk_refuse_file(r->error, STOKER_EFORMAT, r->path, STK_LENGTH_BYTES,
                                   "keys of ours, but the checksum is not at its place");
    return STOKER_OK;
}

/* ---- stages of reading ---------------------------------------------------------- */

/* After the first 8 bytes were read. */
static int check_length(struct reading *r)
{
    assert(r->bytes != NULL);
    const uint64_t header_bytes = stk_load_le64(r->bytes);
    if (header_bytes > STK_SAFETENSORS_HEADER_MAX)
        return stk_refuse_file(r->error, STOKER_ELIMIT, r->path, 0,
                               "a header of more than 100 MB, or another format");
    if (header_bytes > r->size - STK_LENGTH_BYTES)
        return stk_refuse_file(r->error, STOKER_ETRUNCATED, r->path, r->size,
                               "the file ends inside its header");
    if (header_bytes < 2)
        return stk_refuse_file(r->error, STOKER_EFORMAT, r->path, 0, "an empty header");
    r->data_at = STK_LENGTH_BYTES + header_bytes;
    return STOKER_OK;
}

/* Computes the checksum of the header with zeros for its digits, and reads the digits. */
static void sum_header(struct reading *r)
{
    static const char zeros[] = "00000000";
    const size_t end = STK_CHECKSUM_AT + STK_CHECKSUM_DIGITS;
    r->has_crc = r->data_at >= end && memcmp(r->bytes + STK_LENGTH_BYTES, STK_CHECKSUM_PREFIX,
                                             sizeof(STK_CHECKSUM_PREFIX) - 1) == 0;
    if (!r->has_crc)
        return;
    memcpy(r->crc_written, r->bytes + STK_CHECKSUM_AT, STK_CHECKSUM_DIGITS);
    r->crc = stk_crc32c(0, r->bytes, STK_CHECKSUM_AT);
    r->crc = stk_crc32c(r->crc, zeros, STK_CHECKSUM_DIGITS);
    r->crc = stk_crc32c(r->crc, r->bytes + end, r->data_at - end);
}

/* After the header was read. */
static int parse_header(struct reading *r, struct stk_safetensors *out)
{
    sum_header(r);
    r->json = (struct stk_json){ .text = (char *)r->bytes + STK_LENGTH_BYTES,
                                 .size = r->data_at - STK_LENGTH_BYTES };
    r->code = STOKER_EFORMAT;
    if (r->json.text[0] != '{')
        return stk_refuse_file(r->error, STOKER_EFORMAT, r->path, STK_LENGTH_BYTES,
                               "the header does not begin with '{'");
    int rc = take_lists(r, out);
    if (rc != STOKER_OK)
        return rc;
    if (!parse_entries(r))
        return stk_refuse_file(r->error, r->code, r->path, STK_LENGTH_BYTES + r->json.at, "%s",
                               r->json.why);
    rc = check_cover(r);
    if (rc == STOKER_OK)
        rc = check_names(r);
    if (rc == STOKER_OK)
        out->set = (struct stk_tensor_set){ .tensors = r->tensors,
                                            .tensor_count = r->tensor_count,
                                            .notes = r->notes,
                                            .note_count = r->note_count };
    return rc;
}

/* After all bytes were read. */
static int check_sum(const struct reading *r)
{
    if (!r->has_crc)
        return STOKER_OK;
    char digits[STK_CHECKSUM_DIGITS + 1];
    const uint32_t crc = stk_crc32c(r->crc, r->bytes + r->data_at, r->size - r->data_at);
    (void)snprintf(digits, sizeof(digits), "%08" PRIx32, crc);
    if (memcmp(digits, r->crc_written, STK_CHECKSUM_DIGITS) == 0)
        return STOKER_OK;
    const struct stk_place place = at(r->path, STK_CHECKSUM_AT);
    return stk_error_set(r->error, STOKER_ECORRUPT, STOKER_STAGE_READ, &place,
                         "its checksum says %.8s, its bytes %s", r->crc_written, digits);
}

static int take_memory(struct reading *r, struct stk_safetensors *out)
{
    if (r->size < STK_LENGTH_BYTES)
        return stk_refuse_file(r->error, STOKER_ETRUNCATED, r->path, r->size,
                               "the file ends inside the length of its header");
    if (stk_region_map(&out->memory, r->size) != 0)
        return stk_refuse_file(r->error, STOKER_ENOMEM, r->path, STOKER_NO_OFFSET,
                               "the bytes of the file");
    r->bytes = out->memory.base;
    out->size = r->size;
    return STOKER_OK;
}

static int read_part(const struct reading *r, int fd, uint64_t from, uint64_t to)
{
    return stk_pread_all(fd, r->bytes + from, to - from, at(r->path, from), r->error);
}

static int read_all(struct reading *r, struct stk_safetensors *out, int fd)
{
    int rc = take_memory(r, out);
    if (rc == STOKER_OK)
        rc = read_part(r, fd, 0, STK_LENGTH_BYTES);
    if (rc == STOKER_OK)
        rc = check_length(r);
    if (rc == STOKER_OK)
        rc = read_part(r, fd, STK_LENGTH_BYTES, r->data_at);
    if (rc == STOKER_OK)
        rc = parse_header(r, out);
    if (rc == STOKER_OK && r->size > UNASKED_BYTES && r->size > stk_memory_available())
        rc = stk_refuse_file(r->error, STOKER_ELIMIT, r->path, STOKER_NO_OFFSET,
                             "the file is larger than the memory");
    if (rc == STOKER_OK)
        rc = read_part(r, fd, r->data_at, r->size);
    return rc == STOKER_OK ? check_sum(r) : rc;
}

static int system_failure(const struct reading *r, int os_errno, const char *call)
{
    struct stk_place place = at(r->path, STOKER_NO_OFFSET);
    place.os_errno = os_errno;
    return stk_error_set(r->error, stk_error_from_errno(os_errno), STOKER_STAGE_OPEN, &place, "%s",
                         call);
}

static int open_file(struct reading *r, int *fd)
{
    struct stat status;
    /* O_NONBLOCK: opening a pipe without a writer must not wait. */
    *fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (*fd < 0)
        return system_failure(r, errno, "open");
    if (fstat(*fd, &status) != 0)
        return system_failure(r, errno, "fstat");
    if (S_ISDIR(status.st_mode))
        return system_failure(r, EISDIR, "open");
    if (!S_ISREG(status.st_mode))
        return stk_refuse_file(r->error, STOKER_ENOTSUP, r->path, STOKER_NO_OFFSET,
                               "not a regular file");
    r->size = (uint64_t)status.st_size;
    return STOKER_OK;
}

int stk_safetensors_open(struct stk_safetensors *out, const char *path, stoker_error *error)
{
    assert(path != NULL);
    struct reading r = { .path = path, .error = error };
    int fd = -1;
    memset(out, 0, sizeof(*out));
    int rc = open_file(&r, &fd);
    if (rc == STOKER_OK)
        rc = read_all(&r, out, fd);
    if (fd >= 0)
        close(fd);
    if (rc != STOKER_OK)
        stk_safetensors_close(out);
    return rc;
}

int stk_safetensors_parse(struct stk_safetensors *out, const void *bytes, size_t size,
                          const char *path, stoker_error *error)
{
    struct reading r = { .path = path, .error = error, .size = size };
    memset(out, 0, sizeof(*out));
    int rc = take_memory(&r, out);
    if (rc == STOKER_OK) {
        assert(r.bytes != NULL);
        memcpy(r.bytes, bytes, size);
        rc = check_length(&r);
    }
    if (rc == STOKER_OK)
        rc = parse_header(&r, out);
    if (rc == STOKER_OK)
        rc = check_sum(&r);
    if (rc != STOKER_OK)
        stk_safetensors_close(out);
    return rc;
}

void stk_safetensors_close(struct stk_safetensors *file)
{
    stk_region_unmap(&file->memory);
    stk_free(file->lists);
    memset(file, 0, sizeof(*file));
}
