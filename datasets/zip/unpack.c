/* unpack.c - a deflated member of a zip archive in memory: see zip.h. */
#include "datasets/zip/zip.h"

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
        return stk_refuse_file(error, STOKER_ENOMEM, source->path, member->offset,
                               "zip: \"%s\": the decompressor", member->name);
    const enum libdeflate_result result = libdeflate_deflate_decompress_ex(
        engine, packed, (size_t)member->stored_bytes, out, (size_t)member->bytes, &used, NULL);
    libdeflate_free_decompressor(engine);
    if (result != LIBDEFLATE_SUCCESS || used != member->stored_bytes)
        return stk_refuse_file(error, STOKER_ECORRUPT, source->path, member->offset,
                               "zip: \"%s\": damaged, or not of the size it should have",
                               member->name);
    if (libdeflate_crc32(0, out, (size_t)member->bytes) != member->sum)
        return stk_refuse_file(error, STOKER_ECORRUPT, source->path, member->offset,
                               "zip: \"%s\": its checksum is wrong", member->name);
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
        return stk_refuse_file(error, STOKER_ELIMIT, source->path, member->offset,
                               "zip: \"%s\": unpacked it takes more memory than max_bytes; "
                               "numpy.savez stores arrays as they are",
                               member->name);
    if (member->bytes == 0 || member->stored_bytes == 0)
        return stk_refuse_file(error, STOKER_EEMPTY, source->path, member->offset,
                               "zip: \"%s\": it has no bytes", member->name);
    if (stk_region_map(&packed, (size_t)member->stored_bytes) != STOKER_OK ||
        stk_region_map(&unpacked, (size_t)member->bytes) != STOKER_OK)
        rc = stk_refuse_file(error, STOKER_ENOMEM, source->path, member->offset,
                             "zip: \"%s\": unpacking", member->name);
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
    return stk_refuse_file(error, STOKER_ENOTSUP, source->path, member->offset,
                           "zip: \"%s\": deflated, but this build lacks libdeflate; numpy.savez "
                           "stores arrays as they are",
                           member->name);
}
#endif
