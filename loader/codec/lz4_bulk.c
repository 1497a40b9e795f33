/* lz4_bulk.c - see lz4_bulk.h.
 *
 *   sequence   [token][more of L ...][literals ....][offset:16][more of M ...]
 *   token      L:4 M:4    L literals, then a match of M + 4 bytes that begins `offset` bytes before;
 *              15 = more follows: bytes are added up to the first that is not 255
 *
 * Copies are of constant size, and longer than need be: what is too much is written over by the next
 * sequence. So the usual sequence has three branches, all of which are seldom taken. (The format:
 * Y. Collet, LZ4 Block Format Description, 2022.)
 */
#include "loader/codec/lz4_bulk.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum { LONG = 15, MATCH_MIN = 4, COPY_BYTES = 16, USUAL_MATCH_BYTES = LONG - 1 + MATCH_MIN };

static_assert((int)STK_LZ4_ROOM_IN_BYTES >= 1 + COPY_BYTES, "a token and its literals");
static_assert((int)STK_LZ4_ROOM_BYTES >= LONG - 1 + COPY_BYTES + MATCH_MIN + COPY_BYTES,
              "usual literals, a usual match, and what is written too much");
static_assert((int)STK_LZ4_ROOM_IN_BYTES >= 2 * COPY_BYTES,
              "what is read too much of many literals");

#define INLINE        static inline __attribute__((always_inline))
#define SELDOM(thing) __builtin_expect(!!(thing), 0)

INLINE void copy_16(uint8_t *to, const uint8_t *from)
{
    memcpy(to, from, COPY_BYTES);
}

/* Up to 15 bytes more than `bytes` are written. */
INLINE void copy(uint8_t *to, const uint8_t *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += COPY_BYTES)
        copy_16(to + at, from + at);
}

/* Literals, of which there may be many: up to 31 bytes more are read and written. */
INLINE void copy_literals(uint8_t *to, const uint8_t *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 2 * COPY_BYTES)
        memcpy(to + at, from + at, 2 * COPY_BYTES);
}

/* What follows a length of 15. False: the end is near. */
INLINE bool add_length(const uint8_t **in, const uint8_t *stop, size_t *length)
{
    uint8_t more;
    do {
        if (*in >= stop)
            return false;
        more = *(*in)++;
        *length += more;
    } while (more == UINT8_MAX);
    return true;
}

/* A match that begins fewer than 16 bytes before: as a pattern, moved on by a multiple of its length. */
static void repeat(uint8_t *to, size_t offset, size_t bytes)
{
    const uint8_t *from = to - offset;
    for (size_t i = 0; i < COPY_BYTES; i++)
        to[i] = from[i];
    uint8_t pattern[COPY_BYTES];
    copy_16(pattern, to);
    const size_t step = COPY_BYTES - COPY_BYTES % offset;
    for (size_t at = step; at < bytes; at += step)
        copy_16(to + at, pattern);
}

void stk_lz4_bulk(struct stk_lz4_bulk *bulk)
{
    if (bulk->in_end - bulk->in <= STK_LZ4_ROOM_IN_BYTES ||
        bulk->out_end - bulk->out <= STK_LZ4_ROOM_BYTES)
        return;
    const uint8_t *in = bulk->in;
    const uint8_t *const in_stop = bulk->in_end - STK_LZ4_ROOM_IN_BYTES;
    uint8_t *out = bulk->out;
    uint8_t *const out_end = bulk->out_end;
    uint8_t *const out_stop = out_end - STK_LZ4_ROOM_BYTES;
    const uint8_t *const row = bulk->row;
    while (in < in_stop && out < out_stop) {
        /* Of this sequence; it counts when it is whole. */
        const uint8_t *next = in;
        uint8_t *to = out;
        const unsigned token = *next++;
        size_t literals = token >> 4;
        copy_16(to, next);
        if (SELDOM(literals == LONG)) {
            if (!add_length(&next, in_stop, &literals) || literals > (size_t)(in_stop - next) ||
                literals > (size_t)(out_stop - to))
                break;
            copy_literals(to, next, literals);
        }
        next += literals;
        to += literals;

        const size_t offset = (size_t)next[0] | (size_t)next[1] << 8;
        size_t bytes = (token & LONG) + MATCH_MIN;
        next += 2;
        if (bytes == LONG + MATCH_MIN &&
            (!add_length(&next, in_stop, &bytes) || bytes > (size_t)(out_end - to) - COPY_BYTES))
            break;
        if (offset == 0 || offset > (size_t)(to - row))
            break;
        if (SELDOM(offset < COPY_BYTES)) {
            repeat(to, offset, bytes);
        } else {
            copy_16(to, to - offset);
            memcpy(to + COPY_BYTES, to + COPY_BYTES - offset, MATCH_MIN);
            if (bytes > USUAL_MATCH_BYTES)
                copy(to, to - offset, bytes);
        }
        in = next;
        out = to + bytes;
    }
    bulk->in = in;
    bulk->out = out;
}
