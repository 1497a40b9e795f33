/* walk.c - see walk.h.
 *
 *   | x: path, size | L: a long name | header | bytes, to 512 | header | ... | zeros |
 *     \____________________________/      ^ they describe this member
 *
 * More zeros, up to any block size, or another archive may follow the zeros that end an archive.
 *
 * Only headers are read, through a window, so that one read serves several small members: of a page
 * if the archive is a local file. If each read takes a round trip, the window doubles as long as
 * the next header lies less than a window behind it. A size is checked against the file before it
 * is used, so each step moves forward and the last one ends.
 */
#include "datasets/tar/walk.h"

#include <assert.h>
#include <string.h>

#include "loader/base/memory/memory.h"

enum { WINDOW_BYTES = 4096, FAR_WINDOW_BYTES = 1 << 20 };

struct stk_tar_walk {
    const struct stk_source *source;
    uint64_t at; /* the next header */
    uint64_t window_at;
    size_t window_bytes; /* 0 = nothing read yet */
    size_t next_bytes;   /* of the next window, up to window_max */
    size_t window_max;
    bool has_name; /* name[] was given by a header in front */
    bool is_sparse;
    bool has_bytes;
    uint64_t bytes; /* with has_bytes */
    char name[STK_TAR_NAME_MAX + 1];
    char records[STK_TAR_RECORDS_MAX];
    uint8_t window[]; /* [window_max] */
};

#define FAIL(walk, code, offset, ...)                                                              \
    stk_error_set(error, code, STOKER_STAGE_OPEN,                                                  \
                  &(struct stk_place){ (walk)->source->path, offset, STOKER_NO_SAMPLE, 0 },        \
                  __VA_ARGS__)

int stk_tar_walk_create(struct stk_tar_walk **out, const struct stk_source *source,
                        stoker_error *error)
{
    const bool far = stk_storage_is_far(source->storage);
    const size_t window_max = far ? FAR_WINDOW_BYTES : WINDOW_BYTES;
    struct stk_tar_walk *walk = stk_calloc(1, sizeof(*walk) + window_max);
    if (walk == NULL)
        return stk_refuse_file(error, STOKER_ENOMEM, source->path, STOKER_NO_OFFSET, "tar");
    walk->source = source;
    walk->next_bytes = WINDOW_BYTES;
    walk->window_max = window_max;
    *out = walk;
    return STOKER_OK;
}

void stk_tar_walk_destroy(struct stk_tar_walk *walk)
{
    stk_free(walk);
}

/* ---- bytes ---------------------------------------------------------------------- */

int stk_tar_walk_read(struct stk_tar_walk *walk, uint64_t offset, size_t bytes, const uint8_t **out,
                      stoker_error *error)
{
    assert(bytes <= STK_TAR_BLOCK_BYTES);
    assert(offset <= walk->source->size);
    assert(bytes <= walk->source->size - offset);
    if (offset < walk->window_at || offset - walk->window_at > walk->window_bytes ||
        bytes > walk->window_bytes - (size_t)(offset - walk->window_at)) {
        const uint64_t left = walk->source->size - offset;
        const uint64_t behind = walk->window_at + walk->window_bytes;
        const bool near = offset >= behind && offset - behind < walk->next_bytes;
        if (near && walk->window_bytes > 0 && walk->next_bytes < walk->window_max)
            walk->next_bytes *= 2;
        else if (!near)
            walk->next_bytes = WINDOW_BYTES;
        const size_t wanted = left < walk->next_bytes ? (size_t)left : walk->next_bytes;
        walk->window_bytes = 0;
        int rc = stk_source_read(walk->source, walk->window, wanted, offset, error);
        if (rc != STOKER_OK)
            return rc;
        walk->window_at = offset;
        walk->window_bytes = wanted;
    }
    *out = walk->window + (offset - walk->window_at);
    return STOKER_OK;
}

/* ---- headers in front ----------------------------------------------------------- */

static int set_name(struct stk_tar_walk *walk, uint64_t at, const char *name, size_t bytes,
                    stoker_error *error)
{
    if (bytes > STK_TAR_NAME_MAX)
        return FAIL(walk, STOKER_ELIMIT, at, "tar: a name of %zu bytes, at most %d are allowed",
                    bytes, STK_TAR_NAME_MAX);
    memcpy(walk->name, name, bytes);
    walk->name[bytes] = '\0';
    walk->has_name = true;
    return STOKER_OK;
}

/* GNU: the bytes are the next member's name, which a zero ends. */
static int take_long_name(struct stk_tar_walk *walk, const struct stk_tar_header *header,
                          uint64_t at, stoker_error *error)
{
    if (header->bytes > STK_TAR_NAME_MAX + 1)
        return FAIL(walk, STOKER_ELIMIT, at, "tar: a name of %llu bytes, at most %d are allowed",
                    (unsigned long long)header->bytes, STK_TAR_NAME_MAX);
    const size_t bytes = (size_t)header->bytes;
    int rc = stk_source_read(walk->source, walk->records, bytes, at + STK_TAR_BLOCK_BYTES, error);
    return rc == STOKER_OK ? set_name(walk, at, walk->records, strnlen(walk->records, bytes), error)
                           : rc;
}

static int take_records(struct stk_tar_walk *walk, const struct stk_tar_header *header, uint64_t at,
                        stoker_error *error)
{
    struct stk_tar_records records = { 0 };
    stoker_error said = { .message = "" };
    if (header->bytes > STK_TAR_RECORDS_MAX)
        return FAIL(walk, STOKER_ELIMIT, at,
                    "tar: a PAX header of %llu bytes, at most %d are allowed",
                    (unsigned long long)header->bytes, STK_TAR_RECORDS_MAX);
    const size_t bytes = (size_t)header->bytes;
    int rc = stk_source_read(walk->source, walk->records, bytes, at + STK_TAR_BLOCK_BYTES, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_tar_records_parse(&records, walk->records, bytes, &said);
    if (rc != STOKER_OK)
        return FAIL(walk, rc, at, "%s", said.message);
    if (header->type == 'g') /* about all that follows, and so far from its place? */
        return records.path == NULL && !records.has_bytes && !records.is_sparse
                   ? STOKER_OK
                   : FAIL(walk, STOKER_ENOTSUP, at, "tar: a global path or size");
    walk->is_sparse = walk->is_sparse || records.is_sparse;
    walk->has_bytes = records.has_bytes;
    walk->bytes = records.bytes;
    return records.path == NULL ? STOKER_OK
                                : set_name(walk, at, records.path, records.path_bytes, error);
}

/* ---- members -------------------------------------------------------------------- */

static enum stk_tar_kind kind_of(const struct stk_tar_walk *walk, char type)
{
    switch (type) {
    case '\0': /* in the oldest archives the name marks a directory */
    case '0':
    case '7':
        if (walk->name[0] != '\0' && walk->name[strlen(walk->name) - 1] == '/')
            return STK_TAR_DIRECTORY;
        return walk->is_sparse ? STK_TAR_OTHER : STK_TAR_FILE;
    case '1':
    case '2':
        return STK_TAR_LINK;
    case '3':
    case '4':
    case '6':
        return STK_TAR_DEVICE;
    case '5':
        return STK_TAR_DIRECTORY;
    default:
        return STK_TAR_OTHER;
    }
}

/* The header at walk->at, or the end. */
static int read_header(struct stk_tar_walk *walk, struct stk_tar_header *out, bool *end,
                       stoker_error *error)
{
    const uint64_t at = walk->at;
    const uint8_t *block = NULL;
    stoker_error said = { .message = "" };
    if (at > walk->source->size || walk->source->size - at < STK_TAR_BLOCK_BYTES)
        return FAIL(walk, STOKER_ETRUNCATED, walk->source->size,
                    "tar: the blocks of zeros that end an archive are missing");
    int rc = stk_tar_walk_read(walk, at, STK_TAR_BLOCK_BYTES, &block, error);
    if (rc != STOKER_OK)
        return rc;
    *end = stk_tar_block_is_end(block);
    if (*end)
        return STOKER_OK;
    if (!stk_tar_block_is_header(block)) {
        if (at == 0 && !stk_tar_block_claims(block))
            return FAIL(walk, STOKER_EMAGIC, 0, "tar: no header%s",
                        block[0] == 0x1F && block[1] == 0x8B
                            ? ", but gzip: unpack it, to read it at random"
                            : "");
        return FAIL(walk, STOKER_ECORRUPT, at, "tar: wrong header checksum");
    }
    rc = stk_tar_header_parse(out, block, &said);
    return rc == STOKER_OK ? rc : FAIL(walk, rc, at + 124, "%s", said.message);
}

/* Step over `bytes` bytes behind the header at walk->at, which must be in the file. */
static int step_over(struct stk_tar_walk *walk, uint64_t bytes, stoker_error *error)
{
    const uint64_t begin = walk->at + STK_TAR_BLOCK_BYTES;
    if (bytes > walk->source->size - begin)
        return FAIL(walk, STOKER_ETRUNCATED, walk->source->size,
                    "tar: the member at byte %llu promises %llu bytes",
                    (unsigned long long)walk->at, (unsigned long long)bytes);
    walk->at =
        begin + (bytes + STK_TAR_BLOCK_BYTES - 1) / STK_TAR_BLOCK_BYTES * STK_TAR_BLOCK_BYTES;
    return STOKER_OK;
}

static int finish_member(struct stk_tar_walk *walk, const struct stk_tar_header *header,
                         struct stk_tar_member *out, stoker_error *error)
{
    const uint64_t at = walk->at;
    if (!walk->has_name) {
        int rc = set_name(walk, at, header->name, strlen(header->name), error);
        if (rc != STOKER_OK)
            return rc;
    }
    if (walk->name[0] == '\0')
        return FAIL(walk, STOKER_EFORMAT, at, "tar: a member without a name");
    out->kind = kind_of(walk, header->type);
    out->name = walk->name;
    out->offset = at + STK_TAR_BLOCK_BYTES;
    /* Links and directories may have a size but no bytes; unknown types have bytes. */
    const bool has_bytes = out->kind == STK_TAR_FILE || out->kind == STK_TAR_OTHER;
    const uint64_t bytes = walk->has_bytes ? walk->bytes : header->bytes;
    int rc = step_over(walk, has_bytes ? bytes : 0, error);
    if (rc == STOKER_OK && out->kind == STK_TAR_FILE)
        out->bytes = bytes;
    return rc;
}

int stk_tar_walk_next(struct stk_tar_walk *walk, struct stk_tar_member *out, stoker_error *error)
{
    *out = (struct stk_tar_member){ .name = "", .header_at = walk->at };
    walk->has_name = walk->is_sparse = walk->has_bytes = false;
    for (;;) {
        struct stk_tar_header header = { .type = '0' };
        bool end = false;
        int rc = read_header(walk, &header, &end, error);
        if (rc != STOKER_OK || end)
            return rc;
        const bool records = header.type == 'x' || header.type == 'g' || header.type == 'X';
        if (!records && header.type != 'L' && header.type != 'K')
            return finish_member(walk, &header, out, error);

        const uint64_t at = walk->at;
        rc = step_over(walk, header.bytes, error);
        if (rc == STOKER_OK && records)
            rc = take_records(walk, &header, at, error);
        else if (rc == STOKER_OK && header.type == 'L')
            rc = take_long_name(walk, &header, at, error);
        if (rc != STOKER_OK)
            return rc;
    }
}

/* ---- behind the end ------------------------------------------------------------- */

/* The offset of the first byte that is no zero, from walk->at on; the file's size if there is none.
 * What PAX records are read into is free between archives. */
static int find_nonzero(struct stk_tar_walk *walk, uint64_t *out, stoker_error *error)
{
    const uint64_t size = walk->source->size;
    uint64_t at = walk->at;
    while (at < size) {
        const size_t bytes =
            size - at < sizeof(walk->records) ? (size_t)(size - at) : sizeof(walk->records);
        const int rc = stk_source_read(walk->source, walk->records, bytes, at, error);
        if (rc != STOKER_OK)
            return rc;
        size_t zeros = 0;
        while (zeros < bytes && walk->records[zeros] == '\0')
            zeros++;
        at += zeros;
        if (zeros < bytes)
            break;
    }
    *out = at;
    return STOKER_OK;
}

int stk_tar_walk_further(struct stk_tar_walk *walk, bool *further, stoker_error *error)
{
    const uint64_t size = walk->source->size;
    const uint8_t *block = NULL;
    uint64_t at = 0;
    int rc = find_nonzero(walk, &at, error);
    *further = rc == STOKER_OK && at < size;
    if (!*further)
        return rc;
    const uint64_t begin = at / STK_TAR_BLOCK_BYTES * STK_TAR_BLOCK_BYTES;
    bool is_header = false;
    if (size - begin >= STK_TAR_BLOCK_BYTES) {
        rc = stk_tar_walk_read(walk, begin, STK_TAR_BLOCK_BYTES, &block, error);
        if (rc != STOKER_OK)
            return rc;
        is_header = stk_tar_block_is_header(block);
    }
    if (!is_header)
        return FAIL(
            walk, STOKER_EFORMAT, at,
            "tar: the archive ends at byte %llu, and what follows is neither zeros nor another "
            "archive: cut it off",
            (unsigned long long)walk->at);
    walk->at = begin;
    return STOKER_OK;
}
