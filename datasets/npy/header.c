/* header.c - parse the header of an NPY file.
 *
 *   0           6        8                   10 or 12
 *   | 93 NUMPY | version | length, le16/le32 | {'descr': '<f4', 'fortran_order': False,
 *                                               'shape': (60000, 28, 28), }      \n | elements
 *
 * The text is a Python literal. Only what NumPy writes is accepted: three keys, each once, in any
 * order. The file must have exactly the length that follows from the header.
 */
#include "datasets/npy/header.h"

#include <assert.h>
#include <string.h>

#include "datasets/source.h"
#include "loader/base/bytes.h"

#define ROW_BYTES_MAX  ((uint64_t)1 << 30)
#define FILE_BYTES_MAX ((uint64_t)1 << 62)

enum { MAGIC_BYTES = 6, STRING_BYTES = 24 };

static const uint8_t magic[MAGIC_BYTES] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };

struct parse {
    const uint8_t *bytes;
    size_t at;  /* the next byte of the text */
    size_t end; /* where the text ends */
    const char *path;
    stoker_error *error;
    size_t shape_at; /* where the shape begins */
    unsigned version;
    bool fortran;
    bool sample; /* the array is one sample */
};

#define FAIL(parse, code, offset, ...)                                                             \
    stk_error_set((parse)->error, code, STOKER_STAGE_OPEN,                                         \
                  &(struct stk_place){ (parse)->path, offset, STOKER_NO_SAMPLE, 0 }, __VA_ARGS__)

/* ---- words ---------------------------------------------------------------------- */

static char peek(struct parse *in)
{
    while (in->at < in->end && in->bytes[in->at] == ' ')
        in->at++;
    return in->at < in->end ? (char)in->bytes[in->at] : '\0';
}

/* Step over one character, if it is the next. */
static bool take_byte(struct parse *in, char wanted)
{
    if (peek(in) != wanted || wanted == '\0')
        return false;
    in->at++;
    return true;
}

static int expect(struct parse *in, char wanted)
{
    if (take_byte(in, wanted))
        return STOKER_OK;
    return FAIL(in, STOKER_EFORMAT, in->at, "NPY: the header needs a '%c' here", wanted);
}

static bool take_word(struct parse *in, const char *word)
{
    const size_t bytes = strlen(word);
    (void)peek(in);
    if (in->end - in->at < bytes || memcmp(in->bytes + in->at, word, bytes) != 0)
        return false;
    in->at += bytes;
    return true;
}

/* A short string in either quotes, without escapes. */
static int take_string(struct parse *in, char out[STRING_BYTES])
{
    const char quote = peek(in);
    const size_t begin = in->at;
    if (quote != '\'' && quote != '"')
        return FAIL(in, STOKER_EFORMAT, begin, "NPY: the header needs a string here");
    size_t used = 0;
    for (in->at++; in->at < in->end && used + 1 < STRING_BYTES; in->at++) {
        const char byte = (char)in->bytes[in->at];
        if (byte == quote) {
            in->at++;
            out[used] = '\0';
            return STOKER_OK;
        }
        if (byte < ' ' || byte > '~' || byte == '\\')
            break;
        out[used++] = byte;
    }
    return FAIL(in, STOKER_EFORMAT, begin, "NPY: no string of the header is of this form");
}

static int take_length(struct parse *in, uint64_t *out)
{
    const char first = peek(in);
    const size_t begin = in->at;
    uint64_t number = 0;
    while (in->at < in->end && in->bytes[in->at] >= '0' && in->bytes[in->at] <= '9') {
        const uint64_t digit = (uint64_t)(in->bytes[in->at++] - '0');
        if (__builtin_mul_overflow(number, (uint64_t)10, &number) ||
            __builtin_add_overflow(number, digit, &number))
            return FAIL(in, STOKER_ELIMIT, begin, "NPY: an axis of more than 2^64 elements");
    }
    if (in->at == begin || (first == '0' && in->at > begin + 1))
        return FAIL(in, STOKER_EFORMAT, begin, "NPY: the length of an axis is a decimal number");
    if (in->version < 3)
        (void)take_byte(in, 'L'); /* so did NumPy write it under Python 2 */
    *out = number;
    return STOKER_OK;
}

/* ---- values --------------------------------------------------------------------- */

/* '<f4': byte order, kind, bytes. */
static int take_descr(struct parse *in, struct stk_npy_header *out)
{
    char descr[STRING_BYTES] = "";
    if (peek(in) == '[')
        return FAIL(in, STOKER_ENOTSUP, in->at, "NPY: records of named fields are no rows");
    const size_t begin = in->at;
    int rc = take_string(in, descr);
    if (rc != STOKER_OK)
        return rc;
    const char order = descr[0];
    const bool sized =
        order != '\0' && descr[1] != '\0' && strlen(descr) == 3 && strchr("1248", descr[2]) != NULL;
    if (!sized || strchr("<>|", order) == NULL || strchr("biuf", descr[1]) == NULL ||
        (order == '|' && descr[2] != '1') || (descr[1] == 'f' && descr[2] == '1') ||
        (descr[1] == 'b' && descr[2] != '1'))
        return FAIL(in, STOKER_ENOTSUP, begin,
                    "NPY: elements of type \"%s\"; b1, i1 to i8, u1 to u8 and f2 to f8 are known",
                    descr);
    out->kind = descr[1];
    out->element_bytes = (uint32_t)(descr[2] - '0');
    out->big_endian = order == '>' && out->element_bytes > 1;
    return STOKER_OK;
}

static int take_fortran(struct parse *in)
{
    if (take_word(in, "True"))
        in->fortran = true;
    else if (!take_word(in, "False"))
        return FAIL(in, STOKER_EFORMAT, in->at, "NPY: fortran_order is True or False");
    return STOKER_OK;
}

/* (60000, 28, 28), with a comma behind a single length. */
static int take_shape(struct parse *in, struct stk_npy_header *out)
{
    in->shape_at = in->at;
    int rc = expect(in, '(');
    bool comma = true;
    while (rc == STOKER_OK && peek(in) != ')') {
        if (!comma)
            return expect(in, ',');
        if (out->rank == STOKER_RANK_MAX)
            return FAIL(in, STOKER_ELIMIT, in->at, "NPY: more than %d axes", STOKER_RANK_MAX);
        rc = take_length(in, &out->lengths[out->rank++]);
        comma = take_byte(in, ',');
    }
    if (rc != STOKER_OK)
        return rc;
    if ((out->rank == 0 && !in->sample) || (out->rank == 1 && !comma))
        return FAIL(in, STOKER_EFORMAT, in->at,
                    "NPY: the shape needs a first axis, which counts the samples");
    return expect(in, ')');
}

static int take_pair(struct parse *in, struct stk_npy_header *out, unsigned *seen)
{
    static const char *const keys[] = { "descr", "fortran_order", "shape" };
    char key[STRING_BYTES] = "";
    unsigned which = 0;
    (void)peek(in);
    const size_t begin = in->at;
    int rc = take_string(in, key);
    if (rc != STOKER_OK)
        return rc;
    while (which < 3 && strcmp(key, keys[which]) != 0)
        which++;
    if (which == 3 || (*seen & 1U << which) != 0)
        return FAIL(in, STOKER_EFORMAT, begin, "NPY: the key \"%s\" is %s", key,
                    which == 3 ? "unknown" : "there twice");
    *seen |= 1U << which;
    rc = expect(in, ':');
    if (rc != STOKER_OK)
        return rc;
    if (which == 0)
        return take_descr(in, out);
    return which == 1 ? take_fortran(in) : take_shape(in, out);
}

static int parse_text(struct parse *in, struct stk_npy_header *out)
{
    unsigned seen = 0;
    int rc = expect(in, '{');
    for (bool comma = true; rc == STOKER_OK && peek(in) != '}'; comma = take_byte(in, ',')) {
        if (!comma)
            return expect(in, ',');
        rc = take_pair(in, out, &seen);
        if (rc != STOKER_OK)
            return rc;
    }
    if (rc == STOKER_OK)
        rc = expect(in, '}');
    if (rc != STOKER_OK)
        return rc;
    if (seen != 7)
        return FAIL(in, STOKER_EFORMAT, in->at,
                    "NPY: descr, fortran_order and shape must all be there");
    if (peek(in) == '\n')
        in->at++;
    return in->at == in->end ? STOKER_OK
                             : FAIL(in, STOKER_EFORMAT, in->at,
                                    "NPY: only spaces and a line's end may follow the header");
}

/* ---- sizes ---------------------------------------------------------------------- */

static int measure(const struct parse *in, struct stk_npy_header *out, uint64_t file_bytes)
{
    uint64_t row_bytes = out->element_bytes;
    uint64_t promised = 0;
    for (uint32_t axis = 1; axis < out->rank; axis++) {
        if (out->lengths[axis] == 0)
            return FAIL(in, STOKER_EFORMAT, in->shape_at, "NPY: axis %u has no elements", axis);
        if (__builtin_mul_overflow(row_bytes, out->lengths[axis], &row_bytes) ||
            row_bytes > ROW_BYTES_MAX)
            return FAIL(in, STOKER_ELIMIT, in->shape_at, "NPY: a sample is longer than 1 GiB");
    }
    if (out->rank == 0)
        promised = row_bytes;
    else if (out->lengths[0] == 0 && !in->sample)
        return FAIL(in, STOKER_EEMPTY, in->shape_at, "NPY: axis 0, the samples, has length 0");
    else if (__builtin_mul_overflow(out->lengths[0], row_bytes, &promised) ||
             promised > FILE_BYTES_MAX)
        return FAIL(in, STOKER_ELIMIT, in->shape_at, "NPY: more than 2^62 bytes of elements");
    promised += out->header_bytes;
    if (file_bytes < promised)
        return FAIL(in, STOKER_ETRUNCATED, file_bytes,
                    "NPY: the header promises %llu bytes, more than the file has",
                    (unsigned long long)promised);
    if (file_bytes > promised)
        return FAIL(in, STOKER_EOVERSIZE, promised, "NPY: %llu bytes, but the header promises %llu",
                    (unsigned long long)file_bytes, (unsigned long long)promised);
    out->row_bytes = (uint32_t)row_bytes;
    return STOKER_OK;
}

bool stk_npy_magic(const uint8_t *bytes, size_t size)
{
    return size >= MAGIC_BYTES && memcmp(bytes, magic, MAGIC_BYTES) == 0;
}

/* The fixed fields: where the text begins, and where it ends. */
static int parse_begin(struct parse *in, size_t size, uint64_t file_bytes)
{
    if (size < 10)
        return FAIL(in, STOKER_ETRUNCATED, size,
                    "NPY: the file ends inside magic number, version and length");
    if (!stk_npy_magic(in->bytes, size))
        return FAIL(in, STOKER_EMAGIC, 0, "NPY begins with 93 and \"NUMPY\"; this file does not");
    in->version = in->bytes[6];
    if (in->version < 1 || in->version > 3 || in->bytes[7] != 0)
        return FAIL(in, STOKER_EFORMAT, 6, "NPY: version %u.%u; 1.0, 2.0 and 3.0 are known",
                    in->version, in->bytes[7]);
    in->at = in->version == 1 ? 10 : 12;
    if (size < in->at)
        return FAIL(in, STOKER_ETRUNCATED, size,
                    "NPY: the file ends inside the 4 bytes of the header's length");
    const uint64_t text_bytes =
        in->version == 1 ? in->bytes[8] + 256U * in->bytes[9] : stk_load_le32(in->bytes + 8);
    if (text_bytes > STK_NPY_BEGIN_BYTES - 12)
        return FAIL(in, STOKER_ELIMIT, 8, "NPY: a header of %llu bytes, at most %d are read",
                    (unsigned long long)text_bytes, STK_NPY_BEGIN_BYTES - 12);
    in->end = in->at + (size_t)text_bytes;
    if (size < in->end && in->sample && in->end <= file_bytes)
        return FAIL(in, STOKER_ELIMIT, 8, "NPY: a header of %zu bytes, at most %zu are read",
                    in->end, size);
    if (size < in->end)
        return FAIL(in, STOKER_ETRUNCATED, size, "NPY: the header ends at byte %zu", in->end);
    return STOKER_OK;
}

static int parse_header(struct parse *in, struct stk_npy_header *out, size_t size,
                        uint64_t file_bytes)
{
    struct stk_npy_header header = { 0 };
    int rc = parse_begin(in, size, file_bytes);
    if (rc == STOKER_OK) {
        header.header_bytes = (uint32_t)in->end;
        rc = parse_text(in, &header);
    }
    if (rc == STOKER_OK)
        rc = measure(in, &header, file_bytes);
    if (rc == STOKER_OK && in->fortran && header.rank > 1)
        rc = FAIL(in, STOKER_ENOTSUP, in->shape_at,
                  "NPY: in Fortran order no sample lies in one piece; save it in C order");
    if (rc == STOKER_OK)
        *out = header;
    return rc;
}

int stk_npy_parse(struct stk_npy_header *out, const uint8_t *bytes, size_t size,
                  uint64_t file_bytes, const char *path, stoker_error *error)
{
    assert(size == file_bytes || size == STK_NPY_BEGIN_BYTES);
    struct parse in = { .bytes = bytes, .path = path, .error = error };
    return parse_header(&in, out, size, file_bytes);
}

int stk_npy_parse_sample(struct stk_npy_header *out, const uint8_t *bytes, size_t size,
                         uint64_t file_bytes, const char *path, stoker_error *error)
{
    assert(size <= file_bytes);
    struct parse in = { .bytes = bytes, .path = path, .error = error, .sample = true };
    return parse_header(&in, out, size, file_bytes);
}

/* ---- types ---------------------------------------------------------------------- */

uint64_t stk_npy_bits(const struct stk_npy_header *header, const uint8_t *at)
{
    uint64_t bits = 0;
    const uint32_t bytes = header->element_bytes;
    assert(bytes >= 1);
    assert(bytes <= 8);
    for (uint32_t i = 0; i < bytes; i++)
        bits = bits << 8 | at[header->big_endian ? i : bytes - 1 - i];
    const uint32_t spare = 64 - 8 * bytes;
    return header->kind == 'i' ? (uint64_t)((int64_t)(bits << spare) >> spare) : bits;
}

stoker_dtype stk_npy_dtype(const struct stk_npy_header *header)
{
    static const stoker_dtype integers[9] = { [1] = STOKER_DTYPE_INT8,
                                              [2] = STOKER_DTYPE_INT16,
                                              [4] = STOKER_DTYPE_INT32,
                                              [8] = STOKER_DTYPE_INT64 };
    static const stoker_dtype unsigneds[9] = { [1] = STOKER_DTYPE_UINT8,
                                               [2] = STOKER_DTYPE_UINT16,
                                               [4] = STOKER_DTYPE_UINT32,
                                               [8] = STOKER_DTYPE_UINT64 };
    static const stoker_dtype floats[9] = {
        [2] = STOKER_DTYPE_FLOAT16, [4] = STOKER_DTYPE_FLOAT32, [8] = STOKER_DTYPE_FLOAT64
    };
    assert(header->element_bytes <= 8);
    if (header->kind == 'i')
        return integers[header->element_bytes];
    if (header->kind == 'f')
        return floats[header->element_bytes];
    return header->kind == 'b' ? STOKER_DTYPE_BOOL : unsigneds[header->element_bytes];
}

/* ---- files and members ---------------------------------------------------------- */

int stk_npy_refuse(const struct stk_npy_input *input, int code, uint64_t offset, const char *what,
                   stoker_error *error)
{
    return stk_refuse_file(error, code, input->name, offset, "%s", what);
}

int stk_npy_read(const struct stk_npy_input *input, void *to, size_t bytes, uint64_t at,
                 stoker_error *error)
{
    assert(at <= input->bytes);
    assert(bytes <= input->bytes - at);
    if (input->memory == NULL)
        return stk_source_read(input->source, to, bytes, input->offset + at, error);
    memcpy(to, input->memory + at, bytes);
    return STOKER_OK;
}

int stk_npy_read_header(struct stk_npy_header *header, const struct stk_npy_input *input,
                        stoker_error *error)
{
    uint8_t begin[STK_NPY_BEGIN_BYTES];
    const size_t size = input->bytes < sizeof(begin) ? (size_t)input->bytes : sizeof(begin);
    const int rc = stk_npy_read(input, begin, size, 0, error);
    return rc == STOKER_OK ? stk_npy_parse(header, begin, size, input->bytes, input->name, error)
                           : rc;
}
