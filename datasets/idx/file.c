/* file.c - parse the header of an IDX file, and open one.
 *
 *   0        2      3      4                4 + 4 x rank
 *   | 00 00 | type | rank | lengths, be32 | elements, big-endian, last axis fastest |
 *
 * Every length is checked before it is multiplied, every product before it is
 * believed, and the file must be exactly as long as the header promises.
 */
#include "datasets/idx/file.h"

#include <assert.h>
#include <string.h>

#include "datasets/gzip.h"
#include "loader/base/bytes.h"

#define ROW_BYTES_MAX ((uint64_t)1 << 30)

/* ---- header --------------------------------------------------------------------- */

struct parse {
    const uint8_t *bytes;
    size_t size;         /* bytes at hand */
    uint64_t file_bytes; /* bytes of the whole file */
    const char *path;
    stoker_error *error;
};

#define FAIL(parse, code, offset, ...)                                                             \
    stk_error_set((parse)->error, code, STOKER_STAGE_OPEN,                                         \
                  &(struct stk_place){ (parse)->path, offset, STOKER_NO_SAMPLE, 0 }, __VA_ARGS__)

static stoker_dtype dtype_of_code(uint8_t code)
{
    switch (code) {
    case 0x08:
        return STOKER_DTYPE_UINT8;
    case 0x09:
        return STOKER_DTYPE_INT8;
    case 0x0B:
        return STOKER_DTYPE_INT16;
    case 0x0C:
        return STOKER_DTYPE_INT32;
    case 0x0D:
        return STOKER_DTYPE_FLOAT32;
    case 0x0E:
        return STOKER_DTYPE_FLOAT64;
    default:
        return STOKER_DTYPE_NONE;
    }
}

static int parse_magic(const struct parse *in, struct stk_idx_header *out)
{
    const uint8_t *bytes = in->bytes;
    if (in->size < 4)
        return FAIL(in, STOKER_ETRUNCATED, in->size,
                    "IDX: the file ends inside the 4 bytes of the magic number");
    if (bytes[0] != 0 || bytes[1] != 0)
        return FAIL(in, STOKER_EMAGIC, 0, "IDX begins with 00 00, this with %02X %02X", bytes[0],
                    bytes[1]);
    out->dtype = dtype_of_code(bytes[2]);
    if (out->dtype == STOKER_DTYPE_NONE)
        return FAIL(in, STOKER_EFORMAT, 2, "IDX: there is no element type 0x%02X", bytes[2]);
    out->rank = bytes[3];
    if (out->rank < 1 || out->rank > STK_IDX_RANK_MAX)
        return FAIL(in, STOKER_EFORMAT, 3, "IDX: %u axes, 1..%d are supported", out->rank,
                    STK_IDX_RANK_MAX);
    out->header_bytes = 4 + 4 * out->rank;
    if (in->size < out->header_bytes)
        return FAIL(in, STOKER_ETRUNCATED, in->size,
                    "IDX: the file ends inside the %u bytes of its header", out->header_bytes);
    return STOKER_OK;
}

static int parse_lengths(const struct parse *in, struct stk_idx_header *out)
{
    uint64_t row_bytes = stoker_dtype_bytes(out->dtype);
    for (uint32_t axis = 0; axis < out->rank; axis++) {
        uint64_t offset = 4 + 4 * (uint64_t)axis;
        out->lengths[axis] = stk_load_be32(in->bytes + offset);
        if (axis == 0)
            continue; /* the samples; the row is the product of the rest */
        if (out->lengths[axis] == 0)
            return FAIL(in, STOKER_EFORMAT, offset, "IDX: axis %u has no elements", axis);
        row_bytes *= out->lengths[axis]; /* < 2^30 x 2^32 */
        if (row_bytes > ROW_BYTES_MAX)
            return FAIL(in, STOKER_ELIMIT, offset, "IDX: a sample is longer than 1 GiB");
    }
    if (out->lengths[0] == 0)
        return FAIL(in, STOKER_EEMPTY, 4, "IDX: axis 0, the samples, has length 0");
    out->row_bytes = (uint32_t)row_bytes;
    return STOKER_OK;
}

static int check_file_bytes(const struct parse *in, const struct stk_idx_header *header)
{
    uint64_t promised = header->header_bytes + (uint64_t)header->lengths[0] * header->row_bytes;
    if (in->file_bytes < promised)
        return FAIL(in, STOKER_ETRUNCATED, in->file_bytes,
                    "IDX: the header promises %llu bytes, more than the file has",
                    (unsigned long long)promised);
    if (in->file_bytes > promised)
        return FAIL(in, STOKER_EOVERSIZE, promised, "IDX: %llu bytes, but the header promises %llu",
                    (unsigned long long)in->file_bytes, (unsigned long long)promised);
    return STOKER_OK;
}

/* Parse the first `size` bytes of a file which is file_bytes long: the header and the length it
 * promises. path is for messages. */
static int read_header(struct stk_idx_header *out, const uint8_t *bytes, size_t size,
                       uint64_t file_bytes, const char *path, stoker_error *error)
{
    assert(size <= file_bytes);
    struct stk_idx_header header = { 0 };
    const struct parse in = { bytes, size, file_bytes, path, error };
    int rc = parse_magic(&in, &header);
    if (rc == STOKER_OK)
        rc = parse_lengths(&in, &header);
    if (rc == STOKER_OK)
        rc = check_file_bytes(&in, &header);
    if (rc == STOKER_OK)
        *out = header;
    return rc;
}

/* ---- file ----------------------------------------------------------------------- */

static int open_contents(struct stk_idx_file *file, const stoker_dataset_options *options,
                         stoker_error *error)
{
    int rc = stk_source_open(&file->source, options->storage, file->path, error);
    if (rc != STOKER_OK)
        return rc;
    uint8_t begin[STK_IDX_HEADER_BYTES_MAX] = { 0 };
    size_t size = file->source.size < sizeof(begin) ? (size_t)file->source.size : sizeof(begin);
    rc = stk_source_read(&file->source, begin, size, 0, error);
    if (rc != STOKER_OK)
        return rc;
    if (!stk_gzip_magic(begin, size))
        return read_header(&file->header, begin, size, file->source.size, file->path, error);

    size_t unpacked_bytes = 0;
    rc =
        stk_gzip_unpack(&file->source, options->max_bytes, &file->unpacked, &unpacked_bytes, error);
    stk_source_close(&file->source);
    if (rc != STOKER_OK)
        return rc;
    return read_header(&file->header, file->unpacked.base, unpacked_bytes, unpacked_bytes,
                       file->path, error);
}

int stk_idx_file_open(struct stk_idx_file *out, const char *path,
                      const stoker_dataset_options *options, stoker_error *error)
{
    *out = (struct stk_idx_file){ .source = STK_SOURCE_CLOSED };
    size_t path_bytes = strlen(path) + 1;
    out->path = stk_calloc(path_bytes, 1);
    if (out->path == NULL) {
        return stk_refuse_file(error, STOKER_ENOMEM, path, STOKER_NO_OFFSET, "the path");
    }
    memcpy(out->path, path, path_bytes);
    int rc = open_contents(out, options, error);
    if (rc != STOKER_OK)
        stk_idx_file_close(out);
    return rc;
}

void stk_idx_file_close(struct stk_idx_file *file)
{
    stk_source_close(&file->source);
    stk_region_unmap(&file->unpacked);
    stk_free(file->path);
    *file = (struct stk_idx_file){ .source = STK_SOURCE_CLOSED };
}
