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
    uint8_t *const out_stop = bulk->out_end - STK_LZ4_ROOM_BYTES;
    while (in < in_stop && out < out_stop) {
        const unsigned token = *in++;
        size_t literals = token >> 4;
        copy_16(out, in);
        if (SELDOM(literals == LONG)) {
            if (!add_length(&in, in_stop, &literals) || literals > (size_t)(in_stop - in) ||
                literals > (size_t)(out_stop - out))
                break;
            copy(out, in, literals);
        }
        in += literals;
        out += literals;

        const size_t offset = (size_t)in[0] | (size_t)in[1] << 8;
        size_t bytes = (token & LONG) + MATCH_MIN;
        in += 2;
        if (SELDOM(bytes == LONG + MATCH_MIN) &&
            (!add_length(&in, in_stop, &bytes) ||
             bytes > (size_t)(bulk->out_end - out) - COPY_BYTES))
            break;
        if (SELDOM(offset == 0 || offset > (size_t)(out - bulk->row)))
            break;
        if (SELDOM(offset < COPY_BYTES)) {
            repeat(out, offset, bytes);
        } else {
            copy_16(out, out - offset);
            memcpy(out + COPY_BYTES, out + COPY_BYTES - offset, MATCH_MIN);
            if (SELDOM(bytes > USUAL_MATCH_BYTES))
                copy(out, out - offset, bytes);
        }
        out += bytes;
        bulk->in = in;
        bulk->out = out;
    }
}
