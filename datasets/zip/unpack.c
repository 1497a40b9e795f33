/* unpack.c - a deflated member of a zip archive in memory: see zip.h. */
#include "datasets/zip/zip.h"

static int failure(const struct stk_zip_member *member, const struct stk_source *source, int code,
                   const char *what, stoker_error *error)
{
    const struct stk_place place = stk_at(source->path, member->offset);
    return stk_error_set(error, code, STOKER_STAGE_OPEN, &place, "zip: \"%s\": %s", member->name,
                         what);
}

#ifdef STOKER_HAVE_DEFLATE
#include <assert.h>
#include <libdeflate.h>

#include "loader/base/fault.h"

/* Unpack the `packed` bytes into out, which has room for exactly member->bytes. */
static int inflate(const struct stk_zip_member *member, const struct stk_source *source,
                   const void *packed, void *out, stoker_error *error)
{
    /* libdeflate allocates by itself; the tests let that fail too. */
    struct libdeflate_decompressor *engine =
        stk_fault_hit(STK_FAULT_MEMORY) ? NULL : libdeflate_alloc_decompressor();
    size_t used = 0;
    if (engine == NULL)
        return failure(member, source, STOKER_ENOMEM, "the decompressor", error);
    const enum libdeflate_result result = libdeflate_deflate_decompress_ex(
        engine, packed, (size_t)member->stored_bytes, out, (size_t)member->bytes, &used, NULL);
    libdeflate_free_decompressor(engine);
    if (result != LIBDEFLATE_SUCCESS || used != member->stored_bytes)
        return failure(member, source, STOKER_ECORRUPT,
                       "damaged, or not of the size it should have", error);
    if (libdeflate_crc32(0, out, (size_t)member->bytes) != member->sum)
        return failure(member, source, STOKER_ECORRUPT, "its checksum is wrong", error);
    return STOKER_OK;
}

int stk_zip_unpack(const struct stk_zip_member *member, const struct stk_source *source,
                   uint64_t max_bytes, struct stk_region *out, stoker_error *error)
{
    assert(member->deflated);
    struct stk_region packed = { 0 };
    struct stk_region unpacked = { 0 };
    int rc = STOKER_OK;
    if (member->bytes > max_bytes || member->stored_bytes > max_bytes)
        return failure(
            member, source, STOKER_ELIMIT,
            "unpacked it takes more memory than max_bytes; numpy.savez stores arrays as they are",
            error);
    if (member->bytes == 0 || member->stored_bytes == 0)
        return failure(member, source, STOKER_EEMPTY, "it has no bytes", error);
    if (stk_region_map(&packed, (size_t)member->stored_bytes) != STOKER_OK ||
        stk_region_map(&unpacked, (size_t)member->bytes) != STOKER_OK)
        rc = failure(member, source, STOKER_ENOMEM, "unpacking", error);
    if (rc == STOKER_OK)
        rc = stk_source_read(source, packed.base, (size_t)member->stored_bytes, member->offset,
                             error);
    if (rc == STOKER_OK)
        rc = inflate(member, source, packed.base, unpacked.base, error);
    stk_region_unmap(&packed);
    if (rc == STOKER_OK)
        *out = unpacked;
    else
        stk_region_unmap(&unpacked);
    return rc;
}
#else
int stk_zip_unpack(const struct stk_zip_member *member, const struct stk_source *source,
                   uint64_t max_bytes, struct stk_region *out, stoker_error *error)
{
    (void)max_bytes;
    (void)out;
    return failure(
        member, source, STOKER_ENOTSUP,
        "deflated, but this build lacks libdeflate; numpy.savez stores arrays as they are", error);
}
#endif
