/* share.h - one cache for several loaders, of one process or of several on one node.
 *
 *   segment   | header: form, counts, members | words | sizes | sums | rows |   each from a multiple of 2 MiB:
 *                                                                     what nobody touches
 *                                                                     takes no memory
 *
 * The loader that creates the segment decides capacity and room, and the others adopt them. They
 * share only if the rest of the form is equal. All may write, since each loads the samples it
 * needs: a process that can join (segment.h) could write to the memory of the others anyway.
 * Checksums find bytes that were changed by mistake.
 */
#ifndef STK_CACHE_SHARE_H
#define STK_CACHE_SHARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/base/memory/memory.h"
#include "loader/cache/members.h"
#include "loader/cache/segment.h"

/* What all loaders that share a cache must agree on, but for capacity and room. */
struct stk_share_form {
    uint64_t count; /* samples of the data set */
    uint64_t capacity;
    uint64_t rows_bytes;
    uint64_t stride_bytes;
    uint32_t block_rows;
    uint32_t kind; /* a stoker_cache */
    uint64_t whole_places;
};

/* The state of a cache in use, except the states of its blocks. */
struct stk_cache_counts {
    _Atomic bool paused;
    _Atomic uint64_t taken_bytes; /* of rows: places begin there */
    /* Bytes of blocks being loaded; the kernel may not have allocated their pages yet. A process
     * that dies while it counts can leave it too small, even below 0. */
    _Atomic int64_t coming_bytes;
    _Atomic uint64_t look_at; /* taken_bytes at which to look again */
    _Atomic uint64_t refused; /* rows turned away while paused */
    _Atomic uint64_t held_bytes;
    _Atomic uint64_t held_rows; /* release in commit and check pairs with acquire in holds_all */
};

struct stk_share_header {
    uint64_t layout; /* a number that differs if this struct does */
    struct stk_share_form form;
    struct stk_cache_counts counts;
    struct stk_members members;
};

struct stk_cache_share {
    struct stk_share_header *header; /* NULL = the cache is not shared */
    struct stk_region memory;        /* that holds the header */
    struct stk_segment segment;
    uint32_t member; /* this loader's number; 0 if not shared */
    uint64_t mapped; /* bytes of the segment that have been given out */
};

/* Bytes of the segment that a region of `bytes` takes. */
uint64_t stk_cache_share_bytes(uint64_t bytes);

/* Find or make the cache of `key`. data_bytes: for all regions that stk_cache_share_map() will be
 * asked for; 0 = only find it (else -ENOENT). On success form has the capacity and the room of the
 * segment. Returns 0 or -errno: -EPROTO: the segment has another form; see also stk_segment_open()
 * and stk_members_join(). On failure nothing is left. */
int stk_cache_share_open(struct stk_cache_share *share, const char *key,
                         struct stk_share_form *form, uint64_t data_bytes);

/* Map the next `bytes` of the segment, in the same order in every loader. Returns 0 or
 * STOKER_ENOMEM. */
int stk_cache_share_map(struct stk_cache_share *share, struct stk_region *region, size_t bytes);

/* Leave it. All zero is allowed. */
void stk_cache_share_close(struct stk_cache_share *share);

#endif
