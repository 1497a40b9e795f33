/* file_pieces.c - see file_pieces.h. */
#include "loader/pipeline/rows/file_pieces.h"

#include <sys/uio.h>

/* Read bytes that are in the page cache. Returns false if not all of them are, or the file system
 * cannot tell. */
static bool read_warm(int fd, uint8_t *to, uint64_t bytes, uint64_t offset)
{
    while (bytes > 0) {
        struct iovec into = { .iov_base = to, .iov_len = (size_t)bytes };
        const ssize_t got = preadv2(fd, &into, 1, (off_t)offset, RWF_NOWAIT);
        if (got <= 0)
            return false;
        to += got;
        offset += (uint64_t)got;
        bytes -= (uint64_t)got;
    }
    return true;
}

/* The length by which pieces are numbered, not what the data set's file() says. */
static uint64_t file_bytes(const struct stk_pipeline *pipeline, uint32_t file)
{
    return pipeline->dataset->stamps.each[file].file.size;
}

/* Copy a piece of a file into the cache. Returns it, or NULL: another worker copies it, there is no
 * room, or it is not in the page cache. */
static const uint8_t *fill_piece(struct stk_pipeline *pipeline, uint32_t file, uint64_t piece,
                                 uint64_t at)
{
    struct stk_cache *cache = &pipeline->cache;
    const int fd = pipeline->files[file].fd;
    const uint64_t left = file_bytes(pipeline, file) - at;
    const uint64_t bytes = left < cache->stride_bytes ? left : cache->stride_bytes;
    /* Pages usually arrive in order: without the last one the piece is not complete yet. */
    uint8_t last;
    if (!read_warm(fd, &last, 1, at + bytes - 1))
        return NULL;
    uint8_t *to = stk_cache_begin(cache, piece, (size_t)bytes);
    if (to == NULL)
        return NULL;
    const bool is_read = read_warm(fd, to, bytes, at);
    stk_pipeline_note_unchecked(pipeline, NULL);
    if (is_read)
        stk_cache_commit(cache, piece);
    else
        stk_cache_cancel(cache, piece);
    return is_read ? to : NULL;
}

/* Returns true if a sample lies within a file, as the data set announced. */
static bool is_in_file(const struct stk_pipeline *pipeline, const stoker_part *part)
{
    const stoker_extent *extent = &part->extent;
    return extent->path == NULL && extent->memory == NULL && extent->bytes > 0 &&
           extent->bytes <= pipeline->encoded_bytes_max &&
           extent->file < pipeline->dataset->info.file_count &&
           extent->bytes <= file_bytes(pipeline, extent->file) &&
           extent->offset <= file_bytes(pipeline, extent->file) - extent->bytes &&
           (part->codec == NULL || part->codec->verify == NULL);
}

void stk_file_pieces_find(struct stk_row_maker *maker, const struct stk_span *span)
{
    struct stk_pipeline *pipeline = maker->pipeline;
    const bool fills =
        maker->may_read && (!pipeline->plan.runs || span->epoch > pipeline->schedule.first_epoch);
    const uint8_t *found = NULL;
    uint64_t found_piece = UINT64_MAX, hits = 0;
    for (uint32_t row = 0; row < span->rows; row++) {
        stoker_part *part = &span->samples[row]; /* the only one of each row */
        stoker_extent *extent = &part->extent;
        if (!is_in_file(pipeline, part))
            continue;
        const uint64_t at = extent->offset / STK_PIECE_BYTES * STK_PIECE_BYTES;
        const uint64_t piece = pipeline->first_pieces[extent->file] + at / STK_PIECE_BYTES;
        if (piece != found_piece) {
            found_piece = piece;
            found = stk_cache_find(&pipeline->cache, piece);
            if (found == NULL && fills)
                found = fill_piece(pipeline, extent->file, piece, at);
        }
        if (found != NULL) {
            extent->memory = found + (extent->offset - at);
            hits++;
        }
    }
    stk_ledger_add(&maker->ledger->cache_hits, hits);
}
