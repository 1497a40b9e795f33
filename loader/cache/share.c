/* share.c - see share.h. */
#include "loader/cache/share.h"

#include <errno.h>

#include <stoker/error.h>

/* Raised whenever the header or the meaning of a state changes: loaders of two versions of the
 * library must not share. */
enum { LAYOUT = 3 };

#define LAYOUT_MARK                                                                                \
    ((UINT64_C(0x53746f6b) << 32 | sizeof(struct stk_share_header)) + ((uint64_t)LAYOUT << 24))

uint64_t stk_cache_share_bytes(uint64_t bytes)
{
    const uint64_t unit = STK_HUGE_PAGE_BYTES;
    return (bytes + unit - 1) / unit * unit;
}

int stk_cache_share_map(struct stk_cache_share *share, struct stk_region *region, size_t bytes)
{
    const uint64_t room = share->segment.bytes - share->mapped;
    if (bytes > room)
        /* the loader that made it has a smaller form: open has refused
         * that */
        return STOKER_ENOMEM;
    const int rc = stk_region_map_file(region, share->segment.memory, share->mapped, bytes);
    if (rc == 0)
        share->mapped += stk_cache_share_bytes(bytes);
    return rc;
}

static bool agrees(const struct stk_share_form *mine, const struct stk_share_form *theirs,
                   uint64_t segment_bytes)
{
    return mine->count == theirs->count && mine->stride_bytes == theirs->stride_bytes &&
           mine->block_rows == theirs->block_rows && mine->kind == theirs->kind &&
           mine->whole_places == theirs->whole_places && theirs->capacity >= 1 &&
           theirs->capacity <= theirs->count && theirs->rows_bytes >= 1 &&
           theirs->rows_bytes <= segment_bytes;
}

/* Fill in the header of a new segment, or check the one that another loader filled in. */
static int meet(struct stk_cache_share *share, struct stk_share_form *form, bool made)
{
    struct stk_share_header *header = share->memory.base;
    if (made) {
        header->layout = LAYOUT_MARK;
        header->form = *form;
    } else if (header->layout != LAYOUT_MARK ||
               !agrees(form, &header->form, share->segment.bytes)) {
        return -EPROTO;
    }
    const int member = stk_members_join(&header->members);
    if (member < 0)
        return member;
    share->member = (uint32_t)member;
    share->header = header;
    *form = header->form;
    return made && stk_segment_serve(&share->segment) < 0 ? -EAGAIN : 0;
}

int stk_cache_share_open(struct stk_cache_share *share, const char *key,
                         struct stk_share_form *form, uint64_t data_bytes)
{
    *share = (struct stk_cache_share){ .segment = { .memory = -1, .socket = -1, .stop = -1 } };
    const uint64_t header_bytes = stk_cache_share_bytes(sizeof(struct stk_share_header));
    const int opened =
        stk_segment_open(&share->segment, key, data_bytes == 0 ? 0 : header_bytes + data_bytes);
    if (opened < 0)
        return opened;
    int rc = stk_cache_share_map(share, &share->memory, sizeof(struct stk_share_header)) < 0
                 ? -ENOMEM
                 : meet(share, form, opened == 1);
    if (rc < 0)
        stk_cache_share_close(share);
    return rc;
}

void stk_cache_share_close(struct stk_cache_share *share)
{
    if (share->memory.base == NULL && share->segment.bytes == 0)
        return;
    if (share->header != NULL)
        stk_members_leave(&share->header->members, share->member);
    stk_segment_close(&share->segment);
    stk_region_unmap(&share->memory);
    *share = (struct stk_cache_share){ 0 };
}
