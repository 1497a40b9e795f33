/* gzip.c - see gzip.h.
 *
 *   packed   [header|deflate|crc|isize] [header|deflate|crc|isize] ...    RFC 1952
 *               member 0                   member 1
 *   out      [ bytes of member 0       ][ bytes of member 1       ]...  grows by doubling
 *
 * The last four bytes (isize) give the length of the last member, usually the only one. They are
 * not trusted: they only size the first attempt.
 */
#include "datasets/gzip.h"

#ifdef STOKER_HAVE_DEFLATE
#include <assert.h>
#include <libdeflate.h>
#include <string.h>

#include "loader/base/bytes.h"
#include "loader/base/fault.h"

enum {
    RATIO_MAX = 1032,       /* deflate cannot do better */
    MEMBER_BYTES_MIN = 18,  /* header 10, an empty deflate stream 2 and less, trailer 8 */
    FIRST_TRY_BYTES = 65536 /* when isize says less */
};

struct unpacking {
    struct libdeflate_decompressor *engine;
    struct stk_region packed;
    size_t packed_bytes;
    size_t packed_at; /* first byte of the member at hand */
    struct stk_region out;
    size_t out_at;
    uint64_t out_bytes_max; /* what the caller and the ratio allow */
    const char *path;
    stoker_error *error;
};

static int refuse_member(const struct unpacking *work, int code, const char *what)
{
    return stk_refuse_file(work->error, code, work->path, work->packed_at, "gzip: %s", what);
}

static int over_limit(const struct unpacking *work, uint64_t wanted_bytes)
{
    return stk_refuse_file(work->error, STOKER_ELIMIT, work->path, STOKER_NO_OFFSET,
                           "gzip: %llu bytes or more to unpack, at most %llu are allowed",
                           (unsigned long long)wanted_bytes,
                           (unsigned long long)work->out_bytes_max);
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int read_packed(struct unpacking *work, const struct stk_source *source)
{
    if (source->size < MEMBER_BYTES_MIN) {
        work->packed_at = (size_t)source->size;
        return refuse_member(work, STOKER_ETRUNCATED, "shorter than the shortest gzip file");
    }
    /* Stored blocks add little, so a packed file far over the limit cannot fit it. */
    if (source->size > work->out_bytes_max + work->out_bytes_max / 1024 + FIRST_TRY_BYTES)
        return over_limit(work, source->size);
    work->packed_bytes = (size_t)source->size;
    if (stk_region_map(&work->packed, work->packed_bytes) != STOKER_OK)
        return refuse_member(work, STOKER_ENOMEM, "the packed bytes");
    return stk_source_read(source, work->packed.base, work->packed_bytes, 0, work->error);
}

/* Map the first try: isize, if it is possible at all. */
static int map_first_try(struct unpacking *work)
{
    const uint8_t *packed = work->packed.base;
    assert(packed != NULL);
    uint64_t hint = stk_load_le32(packed + work->packed_bytes - 4);
    uint64_t possible = (uint64_t)work->packed_bytes * RATIO_MAX;
    if (hint > possible)
        hint = 0; /* damaged, or not the end of a member: the engine will say */
    if (hint > work->out_bytes_max)
        return over_limit(work, hint);
    uint64_t least = lesser(lesser(FIRST_TRY_BYTES, possible), work->out_bytes_max);
    if (hint < least)
        hint = least;
    if (stk_region_map(&work->out, (size_t)hint) != STOKER_OK)
        return refuse_member(work, STOKER_ENOMEM, "the unpacked bytes");
    return STOKER_OK;
}

/* Twice the room, with what is finished moved over. */
static int grow_output(struct unpacking *work)
{
    const uint64_t possible = (uint64_t)work->packed_bytes * RATIO_MAX;
    if (work->out.bytes >= work->out_bytes_max)
        return over_limit(work, (uint64_t)work->out.bytes + 1);
    if (work->out.bytes >= possible)
        return refuse_member(work, STOKER_ECORRUPT, "unpacks to more than deflate can hold");
    const uint64_t most = lesser(work->out_bytes_max, possible);
    struct stk_region larger;
    if (stk_region_map(&larger, (size_t)lesser(most, (uint64_t)work->out.bytes * 2)) != STOKER_OK)
        return refuse_member(work, STOKER_ENOMEM, "the unpacked bytes");
    memcpy(larger.base, work->out.base, work->out_at);
    stk_region_unmap(&work->out);
    work->out = larger;
    return STOKER_OK;
}

static int unpack_member(struct unpacking *work)
{
    const uint8_t *packed = work->packed.base;
    const size_t left = work->packed_bytes - work->packed_at;
    if (!stk_gzip_magic(packed + work->packed_at, left))
        return refuse_member(work, STOKER_ECORRUPT, "bytes after the last member are not gzip");
    if (left < MEMBER_BYTES_MIN)
        return refuse_member(work, STOKER_ETRUNCATED,
                             "the file ends inside the member that begins here");
    for (;;) {
        size_t used = 0;
        size_t made = 0;
        enum libdeflate_result result = libdeflate_gzip_decompress_ex(
            work->engine, packed + work->packed_at, left, (uint8_t *)work->out.base + work->out_at,
            work->out.bytes - work->out_at, &used, &made);
        if (result == LIBDEFLATE_SUCCESS) {
            assert(used >= MEMBER_BYTES_MIN);
            work->packed_at += used;
            work->out_at += made;
            return STOKER_OK;
        }
        if (result != LIBDEFLATE_INSUFFICIENT_SPACE)
            return refuse_member(work, STOKER_ECORRUPT,
                                 "the member that begins here is damaged or cut short");
        int rc = grow_output(work);
        if (rc != STOKER_OK)
            return rc;
    }
}

static int unpack(struct unpacking *work, const struct stk_source *source)
{
    /* libdeflate allocates by itself; the tests let that fail too. */
    if (!stk_fault_hit(STK_FAULT_MEMORY))
        work->engine = libdeflate_alloc_decompressor();
    if (work->engine == NULL)
        return refuse_member(work, STOKER_ENOMEM, "the decompressor");
    int rc = read_packed(work, source);
    if (rc == STOKER_OK)
        rc = map_first_try(work);
    while (rc == STOKER_OK && work->packed_at < work->packed_bytes)
        rc = unpack_member(work);
    if (rc == STOKER_OK && work->out_at > work->out_bytes_max)
        rc = over_limit(work, work->out_at); /* it fitted only because pages are whole */
    return rc;
}

int stk_gzip_unpack(const struct stk_source *source, uint64_t max_bytes, struct stk_region *out,
                    size_t *out_bytes, stoker_error *error)
{
    assert(max_bytes >= 1);
    assert(max_bytes <= SIZE_MAX / 4);
    struct unpacking work = { .out_bytes_max = max_bytes, .path = source->path, .error = error };
    int rc = unpack(&work, source);
    if (rc == STOKER_OK) {
        *out = work.out;
        *out_bytes = work.out_at;
    } else {
        stk_region_unmap(&work.out);
    }
    stk_region_unmap(&work.packed);
    if (work.engine != NULL)
        libdeflate_free_decompressor(work.engine);
    return rc;
}

#else

int stk_gzip_unpack(const struct stk_source *source, uint64_t max_bytes, struct stk_region *out,
                    size_t *out_bytes, stoker_error *error)
{
    (void)max_bytes;
    (void)out;
    (void)out_bytes;
    return stk_refuse_file(error, STOKER_ENOTSUP, source->path, 0,
                           "gzip, but this build lacks libdeflate: unpack the file first");
}

#endif
