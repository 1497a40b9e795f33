/* test_inflate.c - zlib streams are unpacked, or refused, just as zlib does it.
 *
 * Method: streams are written bit by bit, each with the bytes that it must become, and go to our
 * decoder, with and without what only some processors have, and to zlib and libdeflate.
 */
#include "loader/codec/png/inflate.h"

#include <criterion/criterion.h>

#include "loader/base/rng.h"
#include "support/deflate_writer.h"
#include "support/inflate_verdict.h"
#include "support/leaks.h"

static struct stk_deflate stream;

/* What all decoders say; that they agree is checked here. */
static bool judge(const uint8_t *bytes, size_t size, size_t out_bytes, uint8_t **out)
{
    bool accepted = false;
    const char *who = stk_inflate_judge(bytes, size, out_bytes, &accepted, out);
    cr_assert_null(who, "%s disagrees: we %s %zu bytes, to be %zu", who,
                   accepted ? "take" : "refuse", size, out_bytes);
    return accepted;
}

static bool accepts(const uint8_t *bytes, size_t size, size_t out_bytes)
{
    uint8_t *out = NULL;
    const bool accepted = judge(bytes, size, out_bytes, &out);
    free(out);
    return accepted;
}

/* The stream unchanged, its checksum appended. */
static bool is_taken(void)
{
    stk_deflate_finish(&stream);
    uint8_t *out = NULL;
    const bool accepted = judge(stream.bytes, stk_deflate_size(&stream), stream.out_bytes, &out);
    if (accepted && stream.out_bytes > 0)
        cr_assert_arr_eq(out, stream.out, stream.out_bytes);
    free(out);
    return accepted;
}

static void no_codes(void)
{
    memset(stream.litlen, 0, sizeof(stream.litlen));
    memset(stream.distance, 0, sizeof(stream.distance));
}

/* ---- blocks ---- */

CleanTest(inflate, stored_blocks)
{
    static uint8_t noise[UINT16_MAX];
    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (uint8_t)stk_mix64(i);
    static const uint16_t sizes[] = { 0, 1, 2, 7, 255, 4096, UINT16_MAX };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        stk_deflate_begin(&stream);
        stk_deflate_stored(&stream, true, noise, sizes[i]);
        cr_assert(is_taken());
        stk_deflate_begin(&stream);
        stk_deflate_stored(&stream, false, noise, sizes[i]);
        stk_deflate_fixed(&stream, false); /* so that the next one does not begin at a byte */
        stk_deflate_literal(&stream, 'x');
        stk_deflate_end(&stream);
        stk_deflate_stored(&stream, false, NULL, 0);
        stk_deflate_stored(&stream, true, noise, sizes[i]);
        cr_assert(is_taken());
    }
    for (unsigned bit = 0; bit < 32; bit++) { /* a length that is not its complement's */
        stk_deflate_begin(&stream);
        stk_deflate_stored(&stream, true, noise, 5);
        stk_deflate_finish(&stream);
        stream.bytes[3 + bit / 8] ^= (uint8_t)(1U << bit % 8);
        cr_assert_not(accepts(stream.bytes, stk_deflate_size(&stream), 5));
    }
}

CleanTest(inflate, fixed_codes_of_all_literals_lengths_and_distances)
{
    stk_deflate_begin(&stream);
    stk_deflate_fixed(&stream, false);
    for (unsigned i = 0; i < 256; i++)
        stk_deflate_literal(&stream, (uint8_t)i);
    for (uint32_t length = 3; length <= 258; length++)
        for (uint32_t distance = 1; distance <= 18; distance++) {
            stk_deflate_match(&stream, length, distance);
            stk_deflate_literal(&stream, (uint8_t)stk_mix64(length * 31 + distance));
        }
    stk_deflate_end(&stream);
    stk_deflate_fixed(&stream, true);
    uint32_t base = 1;
    for (unsigned symbol = 0; symbol < 30; symbol++) { /* both ends of each symbol's range */
        const unsigned extra = symbol < 2 ? 0 : symbol / 2 - 1;
        stk_deflate_match(&stream, 3 + symbol, base);
        base += 1U << extra;
        stk_deflate_match(&stream, 258 - symbol, base - 1);
    }
    cr_assert_eq(base, 32769);
    stk_deflate_end(&stream);
    cr_assert(is_taken());
}

CleanTest(inflate, tables_of_fixed_codes_are_kept_and_replaced)
{
    stk_deflate_begin(&stream);
    for (int round = 0; round < 4; round++) {
        stk_deflate_fixed(&stream, false);
        stk_deflate_literal(&stream, 'a');
        stk_deflate_match(&stream, 10, 1);
        stk_deflate_end(&stream);
        if (round % 2 == 0)
            continue;
        no_codes();
        stream.litlen['b'] = stream.litlen['c'] = 2;
        stream.litlen[STK_DEFLATE_END] = 1;
        stk_deflate_dynamic(&stream, round == 3, 257, 1);
        stk_deflate_literal(&stream, 'c');
        stk_deflate_end(&stream);
    }
    cr_assert(is_taken());
}

/* Codewords of 1, 2, ..., 15 and 15 bits on both sides, and extra bits behind the longest. */
CleanTest(inflate, the_longest_codewords_are_found_through_subtables)
{
    static const uint16_t symbols[16] = {
        'z', 'y', 'x', 257, 'w', 268, 'v', 'u', 't', 's', 'r', 265, 'q', 284, STK_DEFLATE_END, 285
    };
    stk_deflate_begin(&stream);
    no_codes();
    for (unsigned i = 0; i < 16; i++) {
        stream.litlen[symbols[i]] = (uint8_t)(i < 15 ? i + 1 : 15);
        stream.distance[29 - i] = (uint8_t)(i < 15 ? i + 1 : 15);
    }
    stk_deflate_dynamic(&stream, true, 286, 30);
    for (unsigned i = 0; i < 33000; i++)
        stk_deflate_literal(&stream, (uint8_t)("zyxwvutsrq"[stk_mix64(i) % 10]));
    static const uint16_t lengths[] = { 3, 18, 17, 11, 12, 257, 227, 258 };
    static const uint16_t distances[] = { 129, 200, 300, 1000, 5000, 20000, 32768, 24577 };
    for (unsigned i = 0; i < 8; i++)
        for (unsigned j = 0; j < 8; j++) {
            stk_deflate_match(&stream, lengths[i], distances[j]);
            for (unsigned k = 0; k < (i + j) % 6; k++) /* 284 behind 0 to 5 codes of 15 bits */
                stk_deflate_literal(&stream, 'q');
        }
    stk_deflate_end(&stream);
    cr_assert(is_taken());
}

/* Random complete codes, most of them with subtables, and all they can say. */
CleanTest(inflate, codes_of_any_shape)
{
    uint64_t draw = 7;
    for (unsigned round = 0; round < 400; round++) {
        stk_deflate_begin(&stream);
        no_codes();
        /* Split one codeword after the other in two, from a single one of no bits. */
        uint8_t lengths[288] = { 0 };
        const unsigned wanted = 2 + (unsigned)(stk_mix64(draw++) % (round % 3 == 0 ? 284 : 20));
        for (unsigned count = 1; count < wanted;) {
            const unsigned at = (unsigned)(stk_mix64(draw++) % count);
            unsigned split = round % 2 == 0 ? at : count - 1 - at / 4;
            while (lengths[split] == 15)
                split = (split + 1) % count;
            lengths[count++] = ++lengths[split];
        }
        stream.litlen[STK_DEFLATE_END] = lengths[0];
        unsigned symbol = 0;
        for (unsigned i = 1; i < wanted && symbol < 286; i++, symbol++) {
            symbol += symbol == STK_DEFLATE_END;
            stream.litlen[symbol] = lengths[i];
        }
        stream.distance[0] = 1; /* alone, and complete enough */
        stk_deflate_dynamic(&stream, true, 286, 1);
        for (unsigned i = 0; i < 600; i++) {
            const unsigned s = (unsigned)(stk_mix64(draw++) % 256);
            if (stream.litlen[s] != 0)
                stk_deflate_literal(&stream, (uint8_t)s);
            if (i > 0 && i % 50 == 0 && stream.litlen[258] != 0 && stream.out_bytes > 0)
                stk_deflate_match(&stream, 4, 1);
        }
        stk_deflate_end(&stream);
        cr_assert(is_taken(), "round %u, %u symbols", round, wanted);
    }
}

/* Large enough that two literals share an entry. */
CleanTest(inflate, short_literals_of_a_large_picture)
{
    stk_deflate_begin(&stream);
    no_codes();
    memset(stream.litlen, 5, 31);
    stream.litlen[STK_DEFLATE_END] = 6;
    stream.litlen[257] = 6;
    stream.distance[3] = 1;
    stream.distance[10] = 1;
    stk_deflate_dynamic(&stream, true, 258, 11);
    for (unsigned i = 0; i < 100000; i++) {
        stk_deflate_literal(&stream, (uint8_t)(stk_mix64(i) % 31));
        if (i > 1000 && stk_mix64(i + 1) % 7 == 0)
            stk_deflate_match(&stream, 3, i % 2 == 0 ? 4 : 33 + i % 16);
    }
    stk_deflate_end(&stream);
    cr_assert(is_taken());
}

/* ---- codes that are none ---- */

static bool ended_is_taken(void)
{
    stk_deflate_end(&stream);
    return is_taken();
}

CleanTest(inflate, incomplete_codes)
{
    for (unsigned longest = 1; longest <= 2; longest++) { /* the end of the block alone */
        stk_deflate_begin(&stream);
        no_codes();
        stream.litlen[STK_DEFLATE_END] = (uint8_t)longest;
        stk_deflate_dynamic(&stream, true, 257, 1);
        cr_assert_eq(ended_is_taken(), longest == 1);
    }
    for (unsigned count = 0; count <= 3; count++) { /* 0, 1, 2, 3 distances of 2 bits */
        stk_deflate_begin(&stream);
        no_codes();
        stream.litlen['a'] = stream.litlen[STK_DEFLATE_END] = 1;
        memset(stream.distance, 2, count);
        stk_deflate_dynamic(&stream, true, 257, 30);
        stk_deflate_literal(&stream, 'a');
        cr_assert_eq(ended_is_taken(), count == 0);
    }
    for (unsigned used = 0; used < 2; used++) { /* one distance of 1 bit; its twin means nothing */
        stk_deflate_begin(&stream);
        no_codes();
        stream.litlen['a'] = 1;
        stream.litlen[257] = stream.litlen[STK_DEFLATE_END] = 2;
        stream.distance[0] = 1;
        stk_deflate_dynamic(&stream, true, 258, 1);
        stk_deflate_literal(&stream, 'a');
        stk_deflate_match(&stream, 3, 1);
        if (used == 1) {
            stk_deflate_length(&stream, 3);
            stk_deflate_put(&stream, 1, 1);
            memset(stream.out + stream.out_bytes, 'a', 3); /* as if it meant the same */
            stream.out_bytes += 3;
        }
        cr_assert_eq(ended_is_taken(), used == 0);
    }
    stk_deflate_begin(&stream); /* a length, but no distances */
    no_codes();
    stream.litlen['a'] = 1;
    stream.litlen[257] = stream.litlen[STK_DEFLATE_END] = 2;
    stk_deflate_dynamic(&stream, true, 258, 1);
    stk_deflate_literal(&stream, 'a');
    stk_deflate_length(&stream, 3);
    stk_deflate_put(&stream, 0, 1);
    cr_assert_not(ended_is_taken());
}

CleanTest(inflate, codes_that_are_no_codes)
{
    for (unsigned count = 2; count <= 5; count++) { /* 4 codewords of 2 bits is one too many */
        stk_deflate_begin(&stream);
        no_codes();
        memset(stream.litlen, 2, count - 1);
        stream.litlen[STK_DEFLATE_END] = 2;
        stk_deflate_dynamic(&stream, true, 257, 1);
        cr_assert_eq(ended_is_taken(), count == 4);
    }
    stk_deflate_begin(&stream); /* distances too many */
    no_codes();
    stream.litlen['a'] = stream.litlen[STK_DEFLATE_END] = 1;
    memset(stream.distance, 1, 3);
    stk_deflate_dynamic(&stream, true, 257, 3);
    cr_assert_not(ended_is_taken());

    stk_deflate_begin(&stream); /* no end of the block */
    no_codes();
    stream.litlen['a'] = stream.litlen['b'] = 1;
    stk_deflate_dynamic(&stream, true, 257, 1);
    stk_deflate_literal(&stream, 'a');
    cr_assert_not(is_taken());

    for (unsigned symbols = 286; symbols <= 288; symbols++)
        for (unsigned distances = 30; distances <= 32; distances++) {
            stk_deflate_begin(&stream);
            no_codes();
            stream.litlen['a'] = stream.litlen[STK_DEFLATE_END] = 1;
            stk_deflate_dynamic(&stream, true, symbols, distances);
            stk_deflate_literal(&stream, 'a');
            cr_assert_eq(ended_is_taken(), symbols == 286 && distances == 30);
        }
}

CleanTest(inflate, reserved_symbols_of_the_fixed_codes)
{
    for (unsigned symbol = 285; symbol <= 287; symbol++)
        for (unsigned distance = 0; distance < 32; distance++) {
            stk_deflate_begin(&stream);
            stk_deflate_fixed(&stream, true);
            for (unsigned i = 0; i < 4; i++)
                stk_deflate_literal(&stream, 'a');
            stk_deflate_symbol(&stream, symbol);
            stk_deflate_codeword(&stream, stream.distance, 32, distance);
            memset(stream.out + 4, 'a', 258);
            stream.out_bytes += 258;
            cr_assert_eq(ended_is_taken(), symbol == 285 && distance < 4);
        }
    stk_deflate_begin(&stream);
    stk_deflate_put(&stream, 1 | 3 << 1, 3); /* a type of block that there is not */
    cr_assert_not(is_taken());
}

/* ---- the lengths of the codewords ---- */

/* A precode of 0, 1, 16, 17 and 18, of which the last two differ in a third bit. */
static void begin_repeating(void)
{
    stk_deflate_begin(&stream);
    stk_deflate_put(&stream, 1 | 2 << 1, 3);
    stk_deflate_put(&stream, 0, 5 + 5);
    stk_deflate_put(&stream, 18 - 4, 4);
    for (unsigned i = 0; i < 18; i++) /* 16 17 18 0 ... 1 */
        stk_deflate_put(&stream, i == 0 || i == 3 || i == 17 ? 2 : i == 1 || i == 2 ? 3 : 0, 3);
}

static void put_repeating(unsigned symbol, uint32_t extra)
{
    static const uint8_t precode[19] = { [0] = 2, [1] = 2, [16] = 2, [17] = 3, [18] = 3 };
    stk_deflate_codeword(&stream, precode, 19, symbol);
    if (symbol >= 16)
        stk_deflate_put(&stream, extra, symbol == 16 ? 2 : symbol == 17 ? 3 : 7);
}

CleanTest(inflate, repeated_lengths)
{
    /* 'a' and the end; the zeros between them in as many ways, the last of which run too far */
    for (unsigned more = 0; more < 3; more++) {
        begin_repeating();
        no_codes();
        stream.litlen['a'] = stream.litlen[STK_DEFLATE_END] = 1;
        put_repeating(18, 'a' - 11);
        put_repeating(1, 0);
        put_repeating(18, 138 - 11);
        put_repeating(17, 10 - 3);
        put_repeating(17, 5 - 3);
        put_repeating(0, 0);
        put_repeating(0, 0);
        put_repeating(16, 0); /* 97 + 1 + 138 + 10 + 5 + 2 + 3 = 256 */
        put_repeating(1, 0);
        if (more == 0)
            put_repeating(0, 0); /* the only distance: none */
        else
            put_repeating(17 + more - 1, 0);
        stk_deflate_literal(&stream, 'a');
        cr_assert_eq(ended_is_taken(), more == 0);
    }
    begin_repeating(); /* nothing to repeat yet */
    put_repeating(16, 0);
    put_repeating(18, 127);
    put_repeating(18, 138 - 27 - 11);
    put_repeating(16, 0);
    put_repeating(1, 0);
    put_repeating(1, 0);
    stk_deflate_put(&stream, 0, 8);
    cr_assert_not(is_taken());

    begin_repeating(); /* a run over the boundary between both codes */
    no_codes();
    stream.litlen['a'] = stream.litlen[STK_DEFLATE_END] = 1;
    stream.bits -= 18 * 3 + 4 + 5; /* HDIST once more */
    stk_deflate_put(&stream, 3, 5);
    stk_deflate_put(&stream, 18 - 4, 4);
    for (unsigned i = 0; i < 18; i++)
        stk_deflate_put(&stream, i == 0 || i == 3 || i == 17 ? 2 : i == 1 || i == 2 ? 3 : 0, 3);
    put_repeating(18, 'a' - 11);
    put_repeating(1, 0);
    put_repeating(18, 138 - 11);
    put_repeating(18, 20 - 11);
    put_repeating(1, 0); /* 97 + 1 + 138 + 20 = 256 */
    put_repeating(0, 0);
    put_repeating(16, 0);
    stk_deflate_literal(&stream, 'a');
    cr_assert(ended_is_taken());
}

CleanTest(inflate, precodes_must_be_complete)
{
    for (unsigned bits = 0; bits <= 7; bits++) {
        stk_deflate_begin(&stream);
        no_codes();
        stk_deflate_put(&stream, 1 | 2 << 1, 3);
        stk_deflate_put(&stream, 0, 5 + 5);
        stk_deflate_put(&stream, 0, 4);
        for (unsigned i = 0; i < 4; i++) /* 16 17 18 0: only 0 and 18 */
            stk_deflate_put(&stream, i >= 2 ? bits : 0, 3);
        for (unsigned i = 0; i < 2; i++)
            stk_deflate_put(&stream, 0, 32);
        cr_assert_not(is_taken());
    }
}

/* ---- matches ---- */

CleanTest(inflate, a_distance_reaches_the_first_byte_and_no_further)
{
    for (uint32_t before = 1; before < 40; before++)
        for (uint32_t distance = 1; distance <= before + 2; distance++) {
            stk_deflate_begin(&stream);
            stk_deflate_fixed(&stream, true);
            for (uint32_t i = 0; i < before; i++)
                stk_deflate_literal(&stream, (uint8_t)i);
            stk_deflate_match(&stream, 3 + before * 6, distance);
            cr_assert_eq(ended_is_taken(), distance <= before);
        }
}

CleanTest(inflate, a_header_that_declares_a_small_window_is_not_believed)
{
    stk_deflate_begin(&stream);
    stream.bytes[0] = 0x08; /* 256 bytes */
    stream.bytes[1] = 0x1D;
    stk_deflate_fixed(&stream, true);
    for (uint32_t i = 0; i < 1000; i++)
        stk_deflate_literal(&stream, (uint8_t)stk_mix64(i));
    stk_deflate_match(&stream, 258, 1000);
    cr_assert(ended_is_taken());
}

CleanTest(inflate, the_size_must_be_just_that)
{
    stk_deflate_begin(&stream);
    stk_deflate_fixed(&stream, true);
    for (uint32_t i = 0; i < 20; i++)
        stk_deflate_literal(&stream, (uint8_t)i);
    stk_deflate_match(&stream, 258, 20);
    stk_deflate_end(&stream);
    stk_deflate_finish(&stream);
    for (size_t out_bytes = 0; out_bytes < 600; out_bytes++)
        cr_assert_eq(accepts(stream.bytes, stk_deflate_size(&stream), out_bytes), out_bytes == 278);
}

CleanTest(inflate, empty_blocks_and_empty_pictures)
{
    stk_deflate_begin(&stream);
    for (unsigned i = 0; i < 100; i++) {
        stk_deflate_fixed(&stream, false);
        stk_deflate_end(&stream);
        stk_deflate_stored(&stream, false, NULL, 0);
    }
    stk_deflate_fixed(&stream, true);
    cr_assert(ended_is_taken());
    cr_assert_eq(stream.out_bytes, 0);
}

/* ---- what is around the blocks ---- */

static void write_a_little_of_everything(void)
{
    stk_deflate_begin(&stream);
    stk_deflate_fixed(&stream, false);
    for (unsigned i = 0; i < 12; i++)
        stk_deflate_literal(&stream, (uint8_t)(i * 23));
    stk_deflate_match(&stream, 9, 5);
    stk_deflate_end(&stream);
    stk_deflate_stored(&stream, false, (const uint8_t *)"stored", 6);
    no_codes();
    stream.litlen['a'] = 1;
    stream.litlen['b'] = 3;
    stream.litlen[STK_DEFLATE_END] = stream.litlen[260] = 4;
    stream.litlen[270] = 2;
    stream.distance[0] = stream.distance[4] = stream.distance[5] = 2;
    stream.distance[8] = 3;
    stream.distance[7] = 3;
    stk_deflate_dynamic(&stream, true, 271, 9);
    for (unsigned i = 0; i < 10; i++)
        stk_deflate_literal(&stream, i % 3 == 0 ? 'b' : 'a');
    stk_deflate_match(&stream, 6, 17);
    stk_deflate_match(&stream, 25, 1);
    stk_deflate_end(&stream);
}

CleanTest(inflate, each_header)
{
    write_a_little_of_everything();
    cr_assert(is_taken());
    const size_t size = stk_deflate_size(&stream);
    unsigned accepted = 0;
    for (unsigned header = 0; header < 65536; header++) {
        stream.bytes[0] = (uint8_t)(header >> 8);
        stream.bytes[1] = (uint8_t)header;
        accepted += accepts(stream.bytes, size, stream.out_bytes);
    }
    cr_assert_eq(accepted, 8 * 4); /* windows, and levels that nobody looks at */
}

CleanTest(inflate, every_prefix_and_trailing_bytes)
{
    write_a_little_of_everything();
    cr_assert(is_taken());
    const size_t whole = stk_deflate_size(&stream);
    memset(stream.bytes + whole, 0, 8);
    for (size_t size = 0; size < whole + 8; size++)
        cr_assert_eq(accepts(stream.bytes, size, stream.out_bytes), size == whole);
}

/* Each bit, also with the sum put right if the number of bytes still is. */
static unsigned flip_every_bit(void)
{
    unsigned accepted = 0;
    const size_t size = stk_deflate_size(&stream);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        stream.bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        (void)accepts(stream.bytes, size, stream.out_bytes);
        struct stk_inflate_try other =
            stk_inflate_try_ours(stream.bytes, size, stream.out_bytes, false, 0);
        const uint32_t sum = stk_deflate_sum(other.out, stream.out_bytes);
        uint8_t kept[4];
        memcpy(kept, stream.bytes + size - 4, 4);
        for (unsigned i = 0; i < 4; i++)
            stream.bytes[size - 4 + i] = (uint8_t)(sum >> (24 - 8 * i));
        accepted += accepts(stream.bytes, size, stream.out_bytes);
        memcpy(stream.bytes + size - 4, kept, 4);
        free(other.out);
        stream.bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    return accepted;
}

CleanTest(inflate, every_flipped_bit)
{
    write_a_little_of_everything();
    cr_assert(is_taken());
    cr_assert_gt(flip_every_bit(), 50); /* other literals */
}

#ifdef STOKER_TEST_ZLIB
/* Rows as pictures have them: flat, smooth, noisy. */
static void paint(uint8_t *bytes, size_t size, unsigned kind)
{
    for (size_t i = 0; i < size; i++) {
        const unsigned noise = (unsigned)stk_mix64(i * 4 + kind);
        bytes[i] = (uint8_t)(kind == 0   ? 0
                             : kind == 1 ? i / 50
                             : kind == 2 ? (noise % 8 == 0 ? noise >> 8 : 0)
                             : kind == 3 ? (noise & noise >> 8 & 15)
                                         : noise);
    }
}

static void pack(const uint8_t *bytes, size_t size, int level, int window, int strategy)
{
    z_stream packer = { .next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)size };
    cr_assert_eq(deflateInit2(&packer, level, Z_DEFLATED, window, 8, strategy), Z_OK);
    packer.next_out = stream.bytes;
    packer.avail_out = sizeof(stream.bytes);
    cr_assert_eq(deflate(&packer, Z_FINISH), Z_STREAM_END);
    stream.bits = 8 * (size_t)packer.total_out;
    memcpy(stream.out, bytes, size);
    stream.out_bytes = size;
    cr_assert_eq(deflateEnd(&packer), Z_OK);
}

CleanTest(inflate, what_zlib_writes)
{
    static uint8_t bytes[300000];
    static const size_t sizes[] = { 1, 2, 30, 812, 3000, 8191, 8192, 8193, 70000, 300000 };
    static const int strategies[] = { Z_DEFAULT_STRATEGY, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED,
                                      Z_FILTERED };
    for (unsigned kind = 0; kind < 5; kind++)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
            for (size_t t = 0; t < sizeof(strategies) / sizeof(strategies[0]); t++)
                for (int level = 0; level <= 9; level += 3) {
                    paint(bytes, sizes[s], kind);
                    pack(bytes, sizes[s], level, 9 + (int)(s + t) % 7, strategies[t]);
                    uint8_t *out = NULL;
                    cr_assert(judge(stream.bytes, stk_deflate_size(&stream), sizes[s], &out));
                    cr_assert_arr_eq(out, bytes, sizes[s]);
                    free(out);
                }
}

CleanTest(inflate, every_flipped_bit_and_prefix_of_what_zlib_writes)
{
    static uint8_t bytes[400];
    for (unsigned kind = 0; kind < 5; kind++)
        for (int strategy = Z_DEFAULT_STRATEGY; strategy <= Z_FIXED; strategy++) {
            paint(bytes, sizeof(bytes), kind);
            pack(bytes, sizeof(bytes), 9, 15, strategy);
            const size_t size = stk_deflate_size(&stream);
            for (size_t prefix = 0; prefix < size; prefix++)
                cr_assert_not(accepts(stream.bytes, prefix, sizeof(bytes)));
            (void)flip_every_bit();
        }
}
#endif
