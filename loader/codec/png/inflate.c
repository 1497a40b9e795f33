/* inflate.c - see inflate.h.
 *
 *   stream   [CMF FLG][block][block]...[Adler-32]
 *   block    final:1 type:2, then by type
 *     0  stored    to the next byte; length:16, its complement:16, the bytes
 *     1  fixed     symbols by the codes of the standard
 *     2  dynamic   HLIT:5 HDIST:5 HCLEN:4, the lengths of the precode's codewords, with it the
 *                  lengths of the codewords of both codes, symbols by those
 *
 * Bits are read through a word that is refilled without a branch ("variant 4" of F. Giesen, Reading
 * bits in far too many ways, 2018): above `count` bits it holds some of the next ones already, and a
 * refill writes the same bits there.
 *
 *   position in the stream = 8 next - count        past the end, the stream is refused
 */
#include "loader/codec/png/inflate.h"

#include <assert.h>
#include <libdeflate.h>
#include <string.h>

#include "loader/base/bytes.h"
#include "loader/base/cpu_features.h"
#include "loader/codec/png/inflate_table.h"

enum {
    HEADER_BYTES = 2,
    SUM_BYTES = 4,
    LITLEN_SYMBOLS = 286, /* 286 and 287 have codewords in the fixed code, but no meaning */
    DISTANCE_SYMBOLS = 30,
    FIXED_LITLEN_SYMBOLS = 288,
    FIXED_DISTANCE_SYMBOLS = 32,
    PRECODE_SYMBOLS = 19,
    PRECODE_BITS_MAX = 7,
    DISTANCE_ROOT_BITS = 8,
    SMALL_ROOT_BITS = 9,       /* literals and lengths: a large table must pay off, */
    LARGE_ROOT_BITS = 11,      /* so it is built only if much output is left: */
    LARGE_OUT_BYTES = 8 << 10, /* this much */
    LITERALS_A_WORD = 4,       /* entries looked up per refill */
    LENGTHS_SLACK_BYTES = 144, /* a run of lengths may start at the last one */
    COPY_BYTES = 16
};

#define INLINE static inline __attribute__((always_inline))

static_assert((LITERALS_A_WORD + 1) * LARGE_ROOT_BITS <= 56, "read_symbols counts on it");
static_assert((LITERALS_A_WORD - 1) * LARGE_ROOT_BITS + STK_CODEWORD_BITS_MAX + 5 <= 56, "and so");

struct reading {
    uint64_t buffer;
    uint64_t count; /* lowest 6 bits: number of valid bits */
    const uint8_t *next;
    const uint8_t *end; /* end of the blocks */
    uint8_t *out;
    uint8_t *out_begin;
    uint8_t *out_end;
};

/* ---- the meaning of symbols ---- */

#define BASE(base, extra_bits) ((uint32_t)(base) << STK_ENTRY_VALUE_AT | (extra_bits))
#define LITERAL(value)         (BASE(value, 0) | STK_ENTRY_LITERAL)
#define LITERALS_4(value)                                                                          \
    LITERAL(value), LITERAL((value) + 1), LITERAL((value) + 2), LITERAL((value) + 3)
#define LITERALS_16(value)                                                                         \
    LITERALS_4(value), LITERALS_4((value) + 4), LITERALS_4((value) + 8), LITERALS_4((value) + 12)
#define LITERALS_64(value)                                                                         \
    LITERALS_16(value), LITERALS_16((value) + 16), LITERALS_16((value) + 32),                      \
        LITERALS_16((value) + 48)
#define LENGTHS_4(base, step, extra_bits)                                                          \
    BASE(base, extra_bits), BASE((base) + (step), extra_bits),                                     \
        BASE((base) + 2 * (step), extra_bits), BASE((base) + 3 * (step), extra_bits)
#define DISTANCES_2(base, extra_bits)                                                              \
    BASE(base, extra_bits), BASE((base) + (1 << (extra_bits)), extra_bits)

/* Literals, the end of the block, lengths, and two without a meaning. */
static const uint32_t litlen_meaning[FIXED_LITLEN_SYMBOLS] = {
    LITERALS_64(0),      LITERALS_64(64),     LITERALS_64(128),     LITERALS_64(192),
    STK_ENTRY_END,       LENGTHS_4(3, 1, 0),  LENGTHS_4(7, 1, 0),   LENGTHS_4(11, 2, 1),
    LENGTHS_4(19, 4, 2), LENGTHS_4(35, 8, 3), LENGTHS_4(67, 16, 4), LENGTHS_4(131, 32, 5),
    BASE(258, 0),        STK_ENTRY_SPECIAL,   STK_ENTRY_SPECIAL
};

static const uint32_t distance_meaning[FIXED_DISTANCE_SYMBOLS] = {
    DISTANCES_2(1, 0),     DISTANCES_2(3, 0),     DISTANCES_2(5, 1),      DISTANCES_2(9, 2),
    DISTANCES_2(17, 3),    DISTANCES_2(33, 4),    DISTANCES_2(65, 5),     DISTANCES_2(129, 6),
    DISTANCES_2(257, 7),   DISTANCES_2(513, 8),   DISTANCES_2(1025, 9),   DISTANCES_2(2049, 10),
    DISTANCES_2(4097, 11), DISTANCES_2(8193, 12), DISTANCES_2(16385, 13), STK_ENTRY_SPECIAL,
    STK_ENTRY_SPECIAL
};

/* Precode: the value is a repeat count and what is repeated. */
enum { REPEATED_AT = STK_ENTRY_VALUE_AT + 8, REPEAT_LAST = 1 << STK_ENTRY_LITERALS_AT };
#define ONCE(length)   (BASE(1, 0) | (uint32_t)(length) << REPEATED_AT)
#define ONCE_4(length) ONCE(length), ONCE((length) + 1), ONCE((length) + 2), ONCE((length) + 3)

static const uint32_t precode_meaning[PRECODE_SYMBOLS] = {
    ONCE_4(0), ONCE_4(4), ONCE_4(8), ONCE_4(12), BASE(3, 2) | REPEAT_LAST, BASE(3, 3), BASE(11, 7)
};

/* ---- bits ---- */

INLINE void fill(struct reading *r)
{
    r->buffer |= stk_load_le64(r->next) << (r->count & 63);
    r->next += (~r->count >> 3) & 7;
    r->count |= 56;
}

/* Drop the bits that an entry uses, or a number of bits; only bits 0..5 of the argument count. */
INLINE void drop(struct reading *r, uint32_t entry)
{
    r->buffer >>= entry & STK_ENTRY_USED;
    r->count -= entry;
}

INLINE uint64_t low_bits(uint64_t word, unsigned bits)
{
    return word & (((uint64_t)1 << bits) - 1);
}

INLINE unsigned take(struct reading *r, unsigned bits)
{
    const unsigned value = (unsigned)low_bits(r->buffer, bits);
    drop(r, bits);
    return value;
}

INLINE const uint8_t *position(const struct reading *r)
{
    return r->next - ((r->count & 63) >> 3);
}

INLINE bool is_past_end(const struct reading *r)
{
    return position(r) > r->end;
}

/* Take the extra bits of an entry; returns its value plus these. */
INLINE unsigned take_value(struct reading *r, uint32_t entry)
{
    const unsigned used = entry & STK_ENTRY_USED;
    const unsigned code_bits = (entry >> STK_ENTRY_CODE_AT) & 15;
    const uint64_t extra = low_bits(r->buffer, used) >> code_bits;
    drop(r, entry);
    return (entry >> STK_ENTRY_VALUE_AT) + (unsigned)extra;
}

/* Follow an entry of the first level to its subtable. */
INLINE uint32_t follow(struct reading *r, const uint32_t *table, uint32_t entry)
{
    drop(r, entry);
    const unsigned index_bits = (entry >> STK_ENTRY_CODE_AT) & 15;
    return table[(entry >> STK_ENTRY_VALUE_AT) + low_bits(r->buffer, index_bits)];
}

/* ---- symbols ---- */

/* Repeat the 1..7 bytes before `out`. A load would wait for the previous store, so the bytes are
 * multiplied into a word that ends on a whole repetition. */
INLINE void repeat(uint8_t *out, size_t distance, const uint8_t *end)
{
    static const uint64_t copies[8] = {
        0,
        0x0101010101010101, /* a 1 in each byte where a copy starts */
        0x0001000100010001,
        0x0001000001000001,
        0x0000000100000001,
        0x0000010000000001,
        0x0001000000000001,
        0x0100000000000001,
    };
    static const uint8_t steps[8] = { 0, 8, 8, 6, 8, 5, 6, 7 };
    const uint64_t word =
        low_bits(stk_load_le64(out - distance), 8 * (unsigned)distance) * copies[distance];
    do {
        stk_store_le64(out, word);
        out += steps[distance];
        stk_store_le64(out, word);
        out += steps[distance];
    } while (out < end);
}

/* Copy `length` bytes from `distance` back, and up to COPY_BYTES more. */
INLINE void copy_back(uint8_t *out, size_t distance, size_t length)
{
    const uint8_t *from = out - distance;
    const uint8_t *const end = out + length;
    if (distance >= COPY_BYTES / 2) {
        do {
            memcpy(out, from, COPY_BYTES / 2);
            memcpy(out + COPY_BYTES / 2, from + COPY_BYTES / 2, COPY_BYTES / 2);
            out += COPY_BYTES;
            from += COPY_BYTES;
        } while (out < end);
    } else {
        repeat(out, distance, end);
    }
}

INLINE uint8_t *put_literals(uint8_t *out, uint32_t entry, bool pairs)
{
    if (!pairs) {
        *out = (uint8_t)(entry >> STK_ENTRY_VALUE_AT);
        return out + 1;
    }
    const uint16_t two = (uint16_t)(entry >> STK_ENTRY_VALUE_AT);
    out[0] = (uint8_t)two;
    out[1] = (uint8_t)(two >> 8);
    return out + ((entry >> STK_ENTRY_LITERALS_AT) & 3);
}

INLINE bool is_literal(uint32_t entry)
{
    return (entry & STK_ENTRY_LITERALS_MASK) != 0;
}

/* Write the literals of an entry and look up the next; false if it is not a literal. */
INLINE bool take_literal(struct reading *r, const uint32_t *litlen, uint64_t mask, uint32_t *entry,
                         bool pairs)
{
    if (!is_literal(*entry))
        return false;
    r->out = put_literals(r->out, *entry, pairs);
    drop(r, *entry);
    *entry = litlen[r->buffer & mask];
    return true;
}

/* Take the distance after a length; 0 = invalid. */
INLINE size_t take_distance(struct reading *r, const struct stk_inflate *tables)
{
    fill(r);
    uint32_t entry = tables->distance[low_bits(r->buffer, tables->distance_bits)];
    if ((entry & STK_ENTRY_SPECIAL) != 0) {
        if ((entry & STK_ENTRY_SUBTABLE) != 0)
            entry = follow(r, tables->distance, entry);
        if ((entry & STK_ENTRY_SPECIAL) != 0)
            return 0;
    }
    return take_value(r, entry);
}

/* Decode symbols up to the end of the block.
 *
 * The next entry is looked up before a refill. Of 56 bits, four entries of 11 leave enough for that, as
 * do three and a length of 15 + 5; the distance, of 15 + 13, gets its own refill. */
INLINE bool read_symbols(const struct stk_inflate *tables, struct reading *reading, bool pairs)
{
    struct reading r = *reading; /* a copy in registers, not aliased by `out` */
    const uint32_t *litlen = tables->litlen;
    const uint64_t mask = ((uint64_t)1 << tables->litlen_bits) - 1;
    fill(&r);
    uint32_t entry = litlen[r.buffer & mask];
    while (r.out <= reading->out_end && !is_past_end(&r)) {
        fill(&r);
        unsigned taken = 0; /* entries of literals; the compiler unrolls this */
        while (taken < LITERALS_A_WORD && take_literal(&r, litlen, mask, &entry, pairs))
            taken++;
        if (taken == LITERALS_A_WORD)
            continue;
        if ((entry & STK_ENTRY_SPECIAL) != 0) {
            if ((entry & STK_ENTRY_SUBTABLE) != 0)
                entry = follow(&r, litlen, entry);
            if ((entry & STK_ENTRY_SPECIAL) != 0)
                break;
            if (is_literal(entry)) {
                r.out = put_literals(r.out, entry, pairs);
                drop(&r, entry);
                fill(&r);
                entry = litlen[r.buffer & mask];
                continue;
            }
        }
        const size_t length = take_value(&r, entry);
        const size_t distance = take_distance(&r, tables);
        entry = litlen[r.buffer & mask];
        if (distance - 1 >= (size_t)(r.out - reading->out_begin))
            return false; /* no distance, or too far back */
        copy_back(r.out, distance, length);
        r.out += length;
    }
    drop(&r, entry);
    *reading = r;
    return entry >> STK_ENTRY_SPECIAL_AT == STK_ENTRY_END >> STK_ENTRY_SPECIAL_AT;
}

static bool read_symbols_plain(const struct stk_inflate *tables, struct reading *reading)
{
    return tables->pairs ? read_symbols(tables, reading, true)
                         : read_symbols(tables, reading, false);
}

#if defined(__x86_64__)
__attribute__((target("bmi2"))) static bool read_symbols_bmi2(const struct stk_inflate *tables,
                                                              struct reading *reading)
{
    return tables->pairs ? read_symbols(tables, reading, true)
                         : read_symbols(tables, reading, false);
}
#endif

static bool read_symbols_best(const struct stk_inflate *tables, struct reading *reading)
{
#if defined(__x86_64__)
    if (!tables->plain && stk_cpu_has(STK_CPU_BMI2))
        return read_symbols_bmi2(tables, reading);
#endif
    return read_symbols_plain(tables, reading);
}

/* ---- blocks ---- */

static bool read_stored(struct reading *r)
{
    const uint8_t *from = position(r);
    if (from > r->end || r->end - from < 4)
        return false;
    const size_t bytes = from[0] | (size_t)from[1] << 8;
    const size_t complement = from[2] | (size_t)from[3] << 8;
    from += 4;
    if ((bytes ^ complement) != 0xFFFF || bytes > (size_t)(r->end - from) || r->out > r->out_end)
        return false;
    if (bytes > (size_t)(r->out_end - r->out))
        return false;
    memcpy(r->out, from, bytes);
    r->out += bytes;
    r->next = from + bytes;
    r->buffer = 0;
    r->count = 0;
    return true;
}

/* Returns true if literals are so likely and short that two often fit in one entry. */
static bool pays_to_pair(const uint8_t *lengths)
{
    enum { LITERALS = 256, SHORT_BITS = LARGE_ROOT_BITS / 2 };
    unsigned entries = 0; /* out of 2^SHORT_BITS */
    for (unsigned i = 0; i < LITERALS; i++)
        if (lengths[i] != 0 && lengths[i] <= SHORT_BITS)
            entries += 1U << (SHORT_BITS - lengths[i]);
    return entries >= 1U << (SHORT_BITS - 1);
}

/* Build both tables from the lengths of the codewords. */
static bool build_both(struct stk_inflate *tables, const struct reading *r, const uint8_t *lengths,
                       unsigned litlen_symbols, unsigned distance_symbols)
{
    const bool large = r->out_end - r->out >= LARGE_OUT_BYTES;
    const struct stk_inflate_code litlen = {
        .lengths = lengths,
        .symbols = litlen_symbols,
        .meaning = litlen_meaning,
        .root_bits_max = large ? LARGE_ROOT_BITS : SMALL_ROOT_BITS,
        .entries = STK_INFLATE_LITLEN_ENTRIES,
        .may_be_single = true,
    };
    const struct stk_inflate_code distance = {
        .lengths = lengths + litlen_symbols,
        .symbols = distance_symbols,
        .meaning = distance_meaning,
        .root_bits_max = DISTANCE_ROOT_BITS,
        .entries = STK_INFLATE_DISTANCE_ENTRIES,
        .may_be_single = true,
    };
    tables->litlen_bits = stk_inflate_build(tables->litlen, &litlen);
    tables->distance_bits = stk_inflate_build(tables->distance, &distance);
    if (tables->litlen_bits == 0 || tables->distance_bits == 0)
        return false;
    tables->pairs = large && pays_to_pair(lengths);
    if (tables->pairs)
        stk_inflate_pair_literals(tables->litlen, tables->litlen_bits);
    return true;
}

static bool read_fixed(struct stk_inflate *tables, struct reading *r)
{
    uint8_t lengths[FIXED_LITLEN_SYMBOLS + FIXED_DISTANCE_SYMBOLS];
    if (!tables->fixed) {
        memset(lengths, 8, 144);
        memset(lengths + 144, 9, 112);
        memset(lengths + 256, 7, 24);
        memset(lengths + 280, 8, 8);
        memset(lengths + FIXED_LITLEN_SYMBOLS, 5, FIXED_DISTANCE_SYMBOLS);
        tables->fixed =
            build_both(tables, r, lengths, FIXED_LITLEN_SYMBOLS, FIXED_DISTANCE_SYMBOLS);
        assert(tables->fixed);
    }
    return read_symbols_best(tables, r);
}

/* Read the precode, with codewords of up to 7 bits. Returns its root bits, 0 = invalid. */
static unsigned read_precode(uint32_t *table, struct reading *r, unsigned lengths_given)
{
    static const uint8_t order[PRECODE_SYMBOLS] = { 16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                    11, 4,  12, 3, 13, 2, 14, 1, 15 };
    uint8_t lengths[PRECODE_SYMBOLS] = { 0 };
    for (unsigned i = 0; i < lengths_given; i++) {
        if (i % 16 == 0) {
            if (is_past_end(r))
                return 0;
            fill(r);
        }
        lengths[order[i]] = (uint8_t)take(r, 3);
    }
    const struct stk_inflate_code code = {
        .lengths = lengths,
        .symbols = PRECODE_SYMBOLS,
        .meaning = precode_meaning,
        .root_bits_max = PRECODE_BITS_MAX,
        .entries = STK_INFLATE_PRECODE_ENTRIES,
    };
    return stk_inflate_build(table, &code);
}

/* Read `wanted` lengths into zeroed memory. Each symbol writes 16 of them, and the next ones overwrite
 * the excess; only runs of zeros are longer, and the memory is zero already. */
static bool read_lengths(const uint32_t *table, unsigned root_bits, struct reading *r,
                         uint8_t *lengths, unsigned wanted)
{
    enum { NONE = 0xFF, SYMBOLS_OF_A_WORD = 4, WRITTEN = 16 };
    unsigned last = NONE;
    unsigned wrong = 0;
    unsigned done = 0;
    while (done < wanted) {
        if (is_past_end(r))
            return false;
        fill(r);
        for (unsigned i = 0; i < SYMBOLS_OF_A_WORD && done < wanted; i++) {
            const uint32_t entry = table[low_bits(r->buffer, root_bits)];
            const unsigned repeated = (entry >> REPEATED_AT) & 15;
            last = (entry & REPEAT_LAST) != 0 ? last : repeated;
            wrong |= last;
            memset(lengths + done, (int)last, WRITTEN);
            done += take_value(r, entry) & 0xFF;
        }
    }
    return done == wanted && wrong < 16;
}

static bool read_dynamic(struct stk_inflate *tables, struct reading *r)
{
    uint8_t lengths[LITLEN_SYMBOLS + DISTANCE_SYMBOLS + LENGTHS_SLACK_BYTES] = { 0 };
    const unsigned litlen_symbols = take(r, 5) + 257;
    const unsigned distance_symbols = take(r, 5) + 1;
    const unsigned precode_lengths = take(r, 4) + 4;
    tables->fixed = false;
    if (litlen_symbols > LITLEN_SYMBOLS || distance_symbols > DISTANCE_SYMBOLS)
        return false;
    const unsigned root_bits = read_precode(tables->precode, r, precode_lengths);
    if (root_bits == 0 ||
        !read_lengths(tables->precode, root_bits, r, lengths, litlen_symbols + distance_symbols))
        return false;
    /* A code without the end of the block needs no check: its block never ends. */
    return build_both(tables, r, lengths, litlen_symbols, distance_symbols) &&
           read_symbols_best(tables, r);
}

static bool read_block(struct stk_inflate *tables, struct reading *r, unsigned type)
{
    switch (type) {
    case 0:
        return read_stored(r);
    case 1:
        return read_fixed(tables, r);
    case 2:
        return read_dynamic(tables, r);
    default:
        return false;
    }
}

static bool is_header(const uint8_t *in)
{
    const unsigned method = in[0] & 15;
    const unsigned window = in[0] >> 4;
    const bool dictionary = (in[1] & 0x20) != 0;
    return method == 8 && window <= 7 && !dictionary && stk_load_be16(in) % 31 == 0;
}

static bool read_blocks(struct stk_inflate *tables, struct reading *r)
{
    for (bool final = false; !final;) {
        if (is_past_end(r))
            return false;
        fill(r);
        final = take(r, 1) != 0;
        if (!read_block(tables, r, take(r, 2)))
            return false;
    }
    return true;
}

/* Returns false if `in` has no zlib header. */
static bool begin(struct reading *r, const uint8_t *in, size_t in_bytes, uint8_t *out,
                  size_t out_bytes)
{
    if (in_bytes < HEADER_BYTES + SUM_BYTES || !is_header(in))
        return false;
    *r = (struct reading){
        .next = in + HEADER_BYTES,
        .end = in + in_bytes - SUM_BYTES,
        .out = out,
        .out_begin = out,
        .out_end = out + out_bytes,
    };
    return true;
}

bool stk_inflate(struct stk_inflate *tables, const uint8_t *in, size_t in_bytes, uint8_t *out,
                 size_t out_bytes)
{
    struct reading r;
    return begin(&r, in, in_bytes, out, out_bytes) && read_blocks(tables, &r) &&
           r.out == r.out_end && position(&r) == r.end &&
           libdeflate_adler32(1, out, out_bytes) == stk_load_be32(r.end);
}
