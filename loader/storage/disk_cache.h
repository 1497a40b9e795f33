/* disk_cache.h - pieces of far objects in a local folder, for later epochs, runs and processes.
 *
 *   FOLDER/3f/3f0c...e1-12         piece 12 of the object of that digest, behind a header of 128 bytes:
 *
 *   | magic, digest, number, bytes, a CRC-32C of each 64 KiB | CRC-32C of the header | bytes ... |
 *
 * An object has another digest in each version, so a piece never changes: a file is written under a
 * name that begins with a dot, and renamed when it is complete. What a killed process leaves
 * behind is removed later; what a loss of power leaves unwritten is found by its sums. Every byte
 * is verified before it is delivered, each time; a piece that is damaged is removed.
 *
 * Room      Pieces take at most `bytes_max` bytes of all processes together, each of which counts
 *           the files now and then. When the room is used up, pieces that no run has used since this
 *           cache was opened make way, oldest first: within an epoch nothing is evicted, since
 *           evicting would answer fewer reads (LRU: none at all while the set is larger than the
 *           room). If none is left, or the disk is full, no more pieces are kept for a while.
 * Threads   Any number of threads and processes use a folder at once.
 * Trust     The folder must belong to this user or root, and others must not write to it: whoever
 *           may write there decides which bytes are delivered.
 */
#ifndef STK_STORAGE_DISK_CACHE_H
#define STK_STORAGE_DISK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <string.h>

enum {
    STK_PIECE_BYTES = 1 << 20, /* of an object, the last piece may be shorter */
    STK_PIECE_DIGEST_BYTES = 32
};

struct stk_disk_cache;

/* Piece `number` of the object with that digest. */
struct stk_object_piece {
    uint8_t digest[STK_PIECE_DIGEST_BYTES];
    uint64_t number;
};

static inline bool stk_object_piece_equals(const struct stk_object_piece *one,
                                           const struct stk_object_piece *other)
{
    return one->number == other->number &&
           memcmp(one->digest, other->digest, sizeof(one->digest)) == 0;
}

struct stk_disk_cache_counts {
    uint64_t hits, misses;  /* pieces */
    uint64_t damaged;       /* removed, since a sum was wrong */
    uint64_t kept, refused; /* pieces written; or not, for lack of room */
    uint64_t evicted;
};

/* Open the cache in a folder, which is made if it does not exist (its parent must). bytes_max >= 1,
 * or STOKER_BYTES_AUTO: what is there, and nine tenths of the free space.
 * Errors: STOKER_EACCES (others may write to the folder), STOKER_ENOMEM, and those of the file
 * system. */
int stk_disk_cache_open(struct stk_disk_cache **out, const char *folder, uint64_t bytes_max,
                        stoker_error *error);
void stk_disk_cache_close(struct stk_disk_cache *cache); /* NULL is allowed */

/* Read up to `bytes` bytes of a piece at `offset` of it. Returns how many, up to the end of what is
 * kept, or 0: the piece is not there, ends before, or is damaged; `to` may then have been written
 * to. */
size_t stk_disk_cache_get(struct stk_disk_cache *cache, const struct stk_object_piece *piece,
                          size_t offset, void *to, size_t bytes);

/* Keep the first `bytes` bytes of a piece, if there is room: all of it, or up to the end of the
 * object; 1..STK_PIECE_BYTES. */
void stk_disk_cache_put(struct stk_disk_cache *cache, const struct stk_object_piece *piece,
                        const void *bytes_of_piece, size_t bytes);

/* Returns false while no piece is accepted, for lack of room. */
bool stk_disk_cache_takes(const struct stk_disk_cache *cache);

/* Claim a piece, so that one thread of this process fetches it. Returns true if the caller is the
 * one: it must release the claim. */
bool stk_disk_cache_claim(struct stk_disk_cache *cache, const struct stk_object_piece *piece);
void stk_disk_cache_release(struct stk_disk_cache *cache, const struct stk_object_piece *piece);

/* Returns a number that changes with each release. wait() returns when it differs from `releases`,
 * or after wait_ns (< 0 = no limit). */
uint32_t stk_disk_cache_releases(const struct stk_disk_cache *cache);
void stk_disk_cache_wait(struct stk_disk_cache *cache, uint32_t releases, int64_t wait_ns);

struct stk_disk_cache_counts stk_disk_cache_count(const struct stk_disk_cache *cache);

#endif
