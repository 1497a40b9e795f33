/* counts.h - what changes while a cache is used, but for the states of its blocks. */
#ifndef STK_CACHE_COUNTS_H
#define STK_CACHE_COUNTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct stk_cache_counts {
    _Atomic bool paused;
    _Atomic uint64_t taken_bytes; /* in all pages in use */
    /* Bytes of blocks being loaded; the kernel may not have allocated their pages yet. A process
     * that dies while it counts can leave it too small, even below 0. */
    _Atomic int64_t coming_bytes;
    _Atomic uint64_t look_at; /* taken_bytes at which to look again */
    _Atomic uint64_t refused; /* rows turned away while paused */
    _Atomic uint64_t held_bytes;
    _Atomic uint64_t held_rows; /* release in commit and check pairs with acquire in holds_all */
};

#endif
