/* inflate_table.c - see inflate_table.h.
 *
 * Codewords are numbered by length, then by symbol (RFC 1951, 3.2.2). The stream has their first bit
 * lowest, so they are reversed here: a codeword of n bits fills every entry whose index ends in it. The
 * table is built by doubling, and each codeword is written once:
 *
 *   lengths <= 1   [ . . ]
 *   lengths <= 2   [ . . | copy ]           then the codewords of 2 bits go in
 *   lengths <= 3   [ . . . . | copy    ]    then those of 3 bits
 */
#include "loader/codec/png/inflate_table.h"

#include <assert.h>
#include <string.h>

enum { LENGTHS = STK_CODEWORD_BITS_MAX + 1, SYMBOLS_MAX = 288 };

/* The symbols that have a codeword, by its length. */
struct sorted {
    uint16_t count[LENGTHS];
    uint16_t symbols[SYMBOLS_MAX + 8];
    unsigned longest; /* bits; 0 = none */
};

/* List the symbols with a codeword, in order. Most have none, so eight are skipped at once. */
static unsigned used_symbols(const struct stk_inflate_code *code, uint16_t *used)
{
    unsigned count = 0;
    unsigned symbol = 0;
    for (; symbol + 8 <= code->symbols; symbol += 8) {
        uint64_t eight;
        memcpy(&eight, code->lengths + symbol, sizeof(eight));
        if (eight == 0)
            continue;
        for (unsigned i = 0; i < 8; i++) {
            used[count] = (uint16_t)(symbol + i);
            count += code->lengths[symbol + i] != 0;
        }
    }
    for (; symbol < code->symbols; symbol++) {
        used[count] = (uint16_t)symbol;
        count += code->lengths[symbol] != 0;
    }
    return count;
}

/* Counting sort in four interleaved parts, since each count depends on its previous store. */
static void sort(struct sorted *sorted, const struct stk_inflate_code *code)
{
    enum { PARTS = 4 };
    uint16_t used[SYMBOLS_MAX + 8 + PARTS];
    uint16_t place[PARTS][LENGTHS] = { 0 };
    const unsigned count = used_symbols(code, used);
    const unsigned part = count / PARTS;
    const uint8_t *lengths = code->lengths;
    for (unsigned i = 0; i < part; i++)
        for (unsigned p = 0; p < PARTS; p++)
            place[p][lengths[used[p * part + i]]]++;
    for (unsigned i = PARTS * part; i < count; i++)
        place[PARTS - 1][lengths[used[i]]]++;

    unsigned next = 0;
    sorted->count[0] = 0;
    sorted->longest = 0;
    for (unsigned length = 1; length < LENGTHS; length++) {
        const unsigned first = next;
        for (unsigned p = 0; p < PARTS; p++) {
            const unsigned symbols = place[p][length];
            place[p][length] = (uint16_t)next;
            next += symbols;
        }
        sorted->count[length] = (uint16_t)(next - first);
        if (next != first)
            sorted->longest = length;
    }
    for (unsigned i = 0; i < part; i++)
        for (unsigned p = 0; p < PARTS; p++) {
            const uint16_t symbol = used[p * part + i];
            sorted->symbols[place[p][lengths[symbol]]++] = symbol;
        }
    for (unsigned i = PARTS * part; i < count; i++)
        sorted->symbols[place[PARTS - 1][lengths[used[i]]]++] = used[i];
}

/* Returns true if the code is complete: the sum of 2^-length is 1. */
static bool is_complete(const struct sorted *sorted)
{
    int free = 1; /* free codewords of this length; once below 0, it stays so */
    for (unsigned length = 1; length <= sorted->longest; length++)
        free = 2 * free - sorted->count[length];
    return free == 0;
}

/* ---- reversed codewords ---- */

#define REVERSED_2(n) (n), (n) + 2 * 64, (n) + 1 * 64, (n) + 3 * 64
#define REVERSED_4(n)                                                                              \
    REVERSED_2(n), REVERSED_2((n) + 2 * 16), REVERSED_2((n) + 1 * 16), REVERSED_2((n) + 3 * 16)
#define REVERSED_6(n)                                                                              \
    REVERSED_4(n), REVERSED_4((n) + 2 * 4), REVERSED_4((n) + 1 * 4), REVERSED_4((n) + 3 * 4)
static const uint8_t reversed_byte[256] = { REVERSED_6(0), REVERSED_6(2), REVERSED_6(1),
                                            REVERSED_6(3) };

static inline unsigned reversed(unsigned word, unsigned bits)
{
    const unsigned all = (unsigned)reversed_byte[word & 0xFF] << 8 | reversed_byte[word >> 8];
    return all >> (16 - bits);
}

static inline uint32_t entry_of(const struct stk_inflate_code *code, unsigned symbol, unsigned bits)
{
    return code->meaning[symbol] + bits + (bits << STK_ENTRY_CODE_AT);
}

/* Enter the codewords of up to root_bits bits. Returns the next codeword. */
static unsigned fill_root(uint32_t *table, const struct stk_inflate_code *code,
                          const struct sorted *sorted, unsigned root_bits, const uint16_t **symbol)
{
    unsigned word = 0;
    for (unsigned bits = 1; bits <= root_bits; bits++) {
        const size_t half = (size_t)1 << (bits - 1);
        memcpy(table + half, table, half * sizeof(table[0]));
        word *= 2;
        for (unsigned i = 0; i < sorted->count[bits]; i++)
            table[reversed(word++, bits)] = entry_of(code, *(*symbol)++, bits);
    }
    return word;
}

/* Index bits of a subtable that starts with `left` codewords of `bits` bits left, chosen so that it is
 * full; the rest goes into the next subtable. */
static unsigned subtable_bits(const struct sorted *sorted, unsigned bits, unsigned left,
                              unsigned root_bits)
{
    unsigned index_bits = bits - root_bits, taken = left;
    while (taken < 1U << index_bits && root_bits + index_bits < STK_CODEWORD_BITS_MAX) {
        index_bits++;
        taken = 2 * taken + sorted->count[root_bits + index_bits];
    }
    assert(taken >= 1U << index_bits); /* the code is complete */
    return index_bits;
}

/* Enter the longer codewords, which are sorted by their first root_bits bits. */
static void fill_subtables(uint32_t *table, const struct stk_inflate_code *code,
                           const struct sorted *sorted, unsigned root_bits, unsigned word,
                           const uint16_t *symbol)
{
    const unsigned root_mask = (1U << root_bits) - 1;
    unsigned prefix = ~0U;
    unsigned begin = 0;
    unsigned index_bits = 0;
    unsigned end = 1U << root_bits;
    for (unsigned bits = root_bits + 1; bits <= sorted->longest; bits++) {
        word *= 2;
        for (unsigned i = 0; i < sorted->count[bits]; i++) {
            const unsigned backwards = reversed(word++, bits);
            if ((backwards & root_mask) != prefix) {
                prefix = backwards & root_mask;
                index_bits = subtable_bits(sorted, bits, sorted->count[bits] - i, root_bits);
                begin = end;
                end += 1U << index_bits;
                assert(end <= code->entries);
                table[prefix] = begin << STK_ENTRY_VALUE_AT | STK_ENTRY_SPECIAL |
                                STK_ENTRY_SUBTABLE | index_bits << STK_ENTRY_CODE_AT | root_bits;
            }
            const uint32_t entry = entry_of(code, *symbol++, bits - root_bits);
            for (unsigned at = backwards >> root_bits; at < 1U << index_bits;
                 at += 1U << (bits - root_bits))
                table[begin + at] = entry;
        }
    }
}

/* An incomplete code: at most one codeword, of one bit. */
static unsigned build_single(uint32_t *table, const struct stk_inflate_code *code,
                             const struct sorted *sorted)
{
    const bool single = sorted->longest == 1 && sorted->count[1] == 1;
    if (!code->may_be_single || (sorted->longest != 0 && !single))
        return 0;
    table[0] = single ? entry_of(code, sorted->symbols[0], 1) : STK_ENTRY_INVALID;
    table[1] = STK_ENTRY_INVALID;
    return 1;
}

unsigned stk_inflate_build(uint32_t *table, const struct stk_inflate_code *code)
{
    struct sorted sorted;
    assert(code->symbols <= SYMBOLS_MAX);
    assert(code->entries >= 1U << code->root_bits_max);
    sort(&sorted, code);
    if (!is_complete(&sorted))
        return build_single(table, code, &sorted);
    const unsigned root_bits =
        sorted.longest < code->root_bits_max ? sorted.longest : code->root_bits_max;
    const uint16_t *symbol = sorted.symbols;
    const unsigned word = fill_root(table, code, &sorted, root_bits, &symbol);
    if (sorted.longest > root_bits)
        fill_subtables(table, code, &sorted, root_bits, word, symbol);
    return root_bits;
}

/* From the end to the start: the second codeword's entry comes before the changed one, so it still has
 * one literal. */
void stk_inflate_pair_literals(uint32_t *table, unsigned root_bits)
{
    for (unsigned i = 1U << root_bits; i-- > 0;) {
        const uint32_t first = table[i];
        const unsigned used = first & STK_ENTRY_USED;
        if ((first & STK_ENTRY_LITERALS_MASK) == 0)
            continue;
        const uint32_t second = table[i >> used];
        if ((second & STK_ENTRY_LITERALS_MASK) == 0 || used + (second & STK_ENTRY_USED) > root_bits)
            continue;
        table[i] = first + (second & STK_ENTRY_USED) + STK_ENTRY_LITERAL +
                   ((second >> STK_ENTRY_VALUE_AT) << (STK_ENTRY_VALUE_AT + 8));
    }
}
