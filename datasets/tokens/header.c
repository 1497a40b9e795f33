/* header.c - see header.h. */
#include "datasets/tokens/header.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "datasets/npy/header.h"
#include "loader/base/bytes.h"

enum {
    LLMC_BYTES = 1024,
    LLMC_GPT2 = 20240520,
    LLMC_EVALUATION = 20240522,
    LLMC_LLAMA3 = 20240801,
    BEGIN_BYTES = STK_NPY_BEGIN_BYTES /* the longest header */
};

static const uint8_t megatron_magic[9] = { 'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0 };

/* A file while it is opened. */
struct opening {
    struct stk_token_file *file;
    struct stk_token_header *header;
    const struct stk_tokens_wish *wish;
    const struct stk_source *source;
    const uint8_t *begin; /* its first bytes */
    size_t begin_bytes;
    stoker_error *error;
};

__attribute__((format(printf, 4, 5))) static int refuse_header(const struct opening *opening,
                                                               int code, uint64_t offset,
                                                               const char *format, ...)
{
    char what[STK_LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    return stk_refuse_file(opening->error, code, opening->source->path, offset, "%s: %s",
                           opening->wish->format, what);
}

/* ---- llm.c ---------------------------------------------------------------------- */

static uint32_t first_word(const struct opening *opening)
{
    return opening->begin_bytes >= 4 ? stk_load_le32(opening->begin) : 0;
}

static bool is_llmc(const struct opening *opening)
{
    const uint32_t magic = first_word(opening);
    return magic == LLMC_GPT2 || magic == LLMC_LLAMA3 || magic == LLMC_EVALUATION;
}

static int take_llmc(const struct opening *opening)
{
    const uint32_t magic = first_word(opening);
    const uint64_t size = opening->source->size;
    if (opening->begin_bytes < LLMC_BYTES)
        return refuse_header(opening, STOKER_ETRUNCATED, size,
                             "the header of llm.c has 1024 bytes");
    if (magic == LLMC_EVALUATION)
        return refuse_header(opening, STOKER_ENOTSUP, 0,
                             "a file of llm.c for evaluations (20240522) is no stream of tokens");
    if (!is_llmc(opening))
        return refuse_header(opening, STOKER_EMAGIC, 0,
                             "llm.c's number is 20240520 or 20240801, not %u", magic);
    const uint32_t version = stk_load_le32(opening->begin + 4);
    const uint32_t wanted = magic == LLMC_GPT2 ? 1 : 7;
    if (version != wanted)
        return refuse_header(opening, STOKER_EFORMAT, 4, "version %u of llm.c's %u; %u is known",
                             version, magic, wanted);
    const uint32_t count = stk_load_le32(opening->begin + 8);
    if (count > INT32_MAX)
        return refuse_header(opening, STOKER_EFORMAT, 8,
                             "the header has a negative number of tokens");
    opening->header->dtype = magic == LLMC_GPT2 ? STOKER_DTYPE_UINT16 : STOKER_DTYPE_UINT32;
    opening->file->offset = LLMC_BYTES;
    opening->file->count = count;
    const uint64_t promised = LLMC_BYTES + count * stoker_dtype_bytes(opening->header->dtype);
    if (size < promised)
        return refuse_header(opening, STOKER_ETRUNCATED, size,
                             "the header promises %llu bytes, more than the file has",
                             (unsigned long long)promised);
    if (size > promised)
        return refuse_header(opening, STOKER_EOVERSIZE, promised,
                             "%llu bytes, but the header promises %llu", (unsigned long long)size,
                             (unsigned long long)promised);
    return STOKER_OK;
}

/* ---- npy and raw ---------------------------------------------------------------- */

static int take_npy(const struct opening *opening)
{
    struct stk_npy_header header = { 0 };
    const int rc = stk_npy_parse(&header, opening->begin, opening->begin_bytes,
                                 opening->source->size, opening->source->path, opening->error);
    if (rc != STOKER_OK)
        return rc;
    if (header.rank != 1)
        return refuse_header(opening, STOKER_EFORMAT, STOKER_NO_OFFSET,
                             "an array of tokens has one axis, not %u", header.rank);
    if ((header.kind != 'u' && header.kind != 'i') || header.big_endian)
        return refuse_header(opening, STOKER_ENOTSUP, STOKER_NO_OFFSET,
                             "an array of tokens has little-endian integers");
    opening->header->dtype = stk_npy_dtype(&header);
    opening->file->offset = header.header_bytes;
    opening->file->count = header.lengths[0];
    return STOKER_OK;
}

static int take_raw(const struct opening *opening)
{
    const uint64_t size = opening->source->size;
    const stoker_dtype dtype = opening->wish->raw_dtype;
    if (dtype == STOKER_DTYPE_NONE)
        return refuse_header(
            opening, STOKER_EMAGIC, 0,
            "no header of llm.c, Megatron (X.idx) or NumPy; if the file holds nothing but "
            "tokens, add stored=uint16 or stored=uint32");
    const uint64_t bytes = stoker_dtype_bytes(dtype);
    if (size % bytes != 0)
        return refuse_header(opening, STOKER_ETRUNCATED, size,
                             "%llu bytes are no whole number of tokens of %s",
                             (unsigned long long)size, stoker_dtype_name(dtype));
    opening->header->dtype = dtype;
    opening->file->count = size / bytes;
    return STOKER_OK;
}

/* ---- Megatron's index ----------------------------------------------------------- */

static stoker_dtype megatron_dtype(uint8_t code)
{
    static const stoker_dtype dtypes[] = {
        [1] = STOKER_DTYPE_UINT8, [2] = STOKER_DTYPE_INT8,  [3] = STOKER_DTYPE_INT16,
        [4] = STOKER_DTYPE_INT32, [5] = STOKER_DTYPE_INT64, [8] = STOKER_DTYPE_UINT16,
    };
    return code < sizeof(dtypes) / sizeof(dtypes[0]) ? dtypes[code] : STOKER_DTYPE_NONE;
}

/* The tables must fill the file; the modes, a byte per sequence, may be left out. */
static int check_tables(const struct opening *opening, uint64_t sequences, uint64_t boundaries)
{
    const uint64_t size = opening->source->size;
    if (boundaries == 0)
        return refuse_header(opening, STOKER_EFORMAT, 26, "the table of documents is empty");
    if (sequences > size || boundaries > size)
        return refuse_header(opening, STOKER_ETRUNCATED, size,
                             "the header promises %llu sequences and %llu entries of documents",
                             (unsigned long long)sequences, (unsigned long long)boundaries);
    const uint64_t promised =
        STK_MEGATRON_HEADER_BYTES + STK_MEGATRON_SEQUENCE_BYTES * sequences + 8 * boundaries;
    if (size < promised)
        return refuse_header(opening, STOKER_ETRUNCATED, size,
                             "the header promises %llu bytes, more than the file has",
                             (unsigned long long)promised);
    if (size != promised && size != promised + sequences)
        return refuse_header(opening, STOKER_EOVERSIZE, promised,
                             "%llu bytes, but the header promises %llu, or %llu with modes",
                             (unsigned long long)size, (unsigned long long)promised,
                             (unsigned long long)promised + sequences);
    return STOKER_OK;
}

static int take_index_header(const struct opening *opening)
{
    const uint8_t *begin = opening->begin;
    if (opening->begin_bytes < STK_MEGATRON_HEADER_BYTES)
        return refuse_header(opening, STOKER_ETRUNCATED, opening->source->size,
                             "the header of Megatron's index has 34 bytes");
    if (memcmp(begin, megatron_magic, sizeof(megatron_magic)) != 0)
        return refuse_header(opening, STOKER_EMAGIC, 0,
                             "Megatron's index begins with \"MMIDIDX\"; this file does not");
    if (stk_load_le64(begin + 9) != 1)
        return refuse_header(opening, STOKER_EFORMAT, 9,
                             "version %llu of Megatron's index; 1 is known",
                             (unsigned long long)stk_load_le64(begin + 9));
    opening->header->dtype = megatron_dtype(begin[17]);
    if (opening->header->dtype == STOKER_DTYPE_NONE)
        return refuse_header(opening, STOKER_EFORMAT, 17,
                             "element type %u of Megatron's index is no integer", begin[17]);
    opening->file->sequences = stk_load_le64(begin + 18);
    opening->file->boundaries = stk_load_le64(begin + 26);
    return check_tables(opening, opening->file->sequences, opening->file->boundaries);
}

/* Where the last sequence ends: the bytes that X.bin must have. */
static int read_end(const struct opening *opening, uint64_t *end)
{
    const struct stk_token_file *file = opening->file;
    uint8_t length[4], offset[8];
    *end = 0;
    if (file->sequences == 0)
        return STOKER_OK;
    const uint64_t lengths_end = stk_megatron_offsets_at(file);
    const uint64_t offsets_end = stk_megatron_documents_at(file);
    int rc = stk_source_read(opening->source, length, 4, lengths_end - 4, opening->error);
    if (rc == STOKER_OK)
        rc = stk_source_read(opening->source, offset, 8, offsets_end - 8, opening->error);
    if (rc != STOKER_OK)
        return rc;
    const uint64_t tokens = stk_load_le32(length);
    if (tokens > INT32_MAX)
        return refuse_header(opening, STOKER_EFORMAT, lengths_end - 4, "a negative length");
    if (__builtin_add_overflow(stk_load_le64(offset),
                               tokens * stoker_dtype_bytes(opening->header->dtype), end))
        return refuse_header(opening, STOKER_EFORMAT, offsets_end - 8, "an offset beyond 2^64");
    return STOKER_OK;
}

static int open_index(struct stk_token_file *file, struct stk_token_header *header,
                      const struct stk_tokens_wish *wish, uint64_t *end, stoker_error *error)
{
    struct stk_source source = STK_SOURCE_CLOSED;
    uint8_t begin[STK_MEGATRON_HEADER_BYTES];
    int rc = stk_source_open(&source, wish->storage, file->index_path, error);
    if (rc != STOKER_OK)
        return rc;
    const size_t bytes = source.size < sizeof(begin) ? (size_t)source.size : sizeof(begin);
    rc = stk_source_read(&source, begin, bytes, 0, error);
    const struct opening opening = { .file = file,
                                     .header = header,
                                     .wish = wish,
                                     .source = &source,
                                     .begin = begin,
                                     .begin_bytes = bytes,
                                     .error = error };
    if (rc == STOKER_OK)
        rc = take_index_header(&opening);
    if (rc == STOKER_OK)
        rc = read_end(&opening, end);
    stk_source_close(&source);
    return rc;
}

/* X.bin holds exactly the sequences of X.idx. */
static int check_bin(const struct opening *opening, uint64_t end)
{
    const uint64_t size = opening->source->size;
    const uint64_t bytes = stoker_dtype_bytes(opening->header->dtype);
    if (size < end)
        return refuse_header(opening, STOKER_ETRUNCATED, size, "%s promises %llu bytes",
                             opening->file->index_path, (unsigned long long)end);
    if (size > end)
        return refuse_header(opening, STOKER_EOVERSIZE, end, "%llu bytes, but %s promises %llu",
                             (unsigned long long)size, opening->file->index_path,
                             (unsigned long long)end);
    if (size % bytes != 0)
        return refuse_header(opening, STOKER_EFORMAT, size - size % bytes,
                             "%llu bytes are no whole number of tokens of %s",
                             (unsigned long long)size, stoker_dtype_name(opening->header->dtype));
    opening->file->count = size / bytes;
    return STOKER_OK;
}

/* ---- a file --------------------------------------------------------------------- */

static bool ends_with(const char *path, const char *end)
{
    const size_t bytes = strlen(path), end_bytes = strlen(end);
    return bytes > end_bytes && strcmp(path + bytes - end_bytes, end) == 0;
}

/* The path with another end of four bytes: X.bin and X.idx. */
static char *with_end(const char *path, const char *end)
{
    const size_t bytes = strlen(path) + 1;
    char *other = stk_calloc(bytes, 1);
    if (other != NULL) {
        memcpy(other, path, bytes);
        memcpy(other + bytes - 5, end, 5);
    }
    return other;
}

/* Returns true if a file begins as Megatron's index does. */
static bool is_index(const stoker_storage *storage, const char *path)
{
    uint8_t begin[sizeof(megatron_magic)];
    return stk_source_begins(storage, path, begin, sizeof(begin)) &&
           memcmp(begin, megatron_magic, sizeof(begin)) == 0;
}

static enum stk_token_layout layout_of(const struct opening *opening)
{
    if (opening->wish->layout != STK_TOKENS_ANY)
        return opening->wish->layout;
    if (is_llmc(opening))
        return STK_TOKENS_LLMC;
    return stk_npy_magic(opening->begin, opening->begin_bytes) ? STK_TOKENS_NPY : STK_TOKENS_RAW;
}

static int take_header(struct opening *opening, uint8_t begin[BEGIN_BYTES], uint64_t end)
{
    const uint64_t size = opening->source->size;
    opening->begin = begin;
    opening->begin_bytes = size < BEGIN_BYTES ? (size_t)size : BEGIN_BYTES;
    if (opening->file->index_path != NULL) {
        opening->header->layout = STK_TOKENS_MEGATRON;
        return check_bin(opening, end);
    }
    const int rc = stk_source_read(opening->source, begin, opening->begin_bytes, 0, opening->error);
    if (rc != STOKER_OK)
        return rc;
    opening->header->layout = layout_of(opening);
    switch (opening->header->layout) {
    case STK_TOKENS_LLMC:
        return take_llmc(opening);
    case STK_TOKENS_NPY:
        return take_npy(opening);
    default:
        return take_raw(opening);
    }
}

/* Find the other file of an X.idx or X.bin: an X.bin is Megatron's if there is such an X.idx. */
static int find_index(struct stk_token_file *file, const struct stk_tokens_wish *wish,
                      stoker_error *error)
{
    const bool megatron = wish->layout == STK_TOKENS_MEGATRON;
    const bool is_idx = ends_with(file->path, ".idx"), is_bin = ends_with(file->path, ".bin");
    if (file->index_path != NULL || (!megatron && wish->layout != STK_TOKENS_ANY))
        return STOKER_OK; /* known since the first attempt, or none */
    if (megatron && !is_idx && !is_bin)
        return stk_refuse_file(error, STOKER_ESPEC, file->path, STOKER_NO_OFFSET,
                               "%s: a pair of Megatron is named X.bin or X.idx", wish->format);
    if (!is_idx && !is_bin)
        return STOKER_OK;
    char *other = with_end(file->path, is_idx ? ".bin" : ".idx");
    if (other == NULL)
        return stk_refuse_file(error, STOKER_ENOMEM, file->path, STOKER_NO_OFFSET, "its path");
    if (is_idx) {
        file->index_path = file->path;
        file->path = other;
    } else if (megatron || is_index(wish->storage, other)) {
        file->index_path = other;
    } else {
        stk_free(other);
    }
    return STOKER_OK;
}

int stk_token_file_open(struct stk_token_file *file, struct stk_token_header *header,
                        const struct stk_tokens_wish *wish, bool keep, stoker_error *error)
{
    struct stk_source source = STK_SOURCE_CLOSED;
    uint8_t begin[BEGIN_BYTES];
    uint64_t end = 0;
    int rc = find_index(file, wish, error);
    if (rc == STOKER_OK && file->index_path != NULL)
        rc = open_index(file, header, wish, &end, error);
    if (rc == STOKER_OK)
        rc = stk_source_open(&source, wish->storage, file->path, error);
    if (rc != STOKER_OK)
        return rc;
    struct opening opening = {
        .file = file, .header = header, .wish = wish, .source = &source, .error = error
    };
    rc = take_header(&opening, begin, end);
    if (rc != STOKER_OK || (!keep && source.fd >= 0))
        stk_source_close(&source);
    file->source = source;
    return rc;
}

void stk_token_file_close(struct stk_token_file *file)
{
    stk_source_close(&file->source);
    if (file->mapped != NULL)
        munmap((void *)file->mapped, (size_t)file->source.size);
    stk_free(file->path);
    stk_free(file->index_path);
    *file = (struct stk_token_file){ .source = STK_SOURCE_CLOSED };
}
