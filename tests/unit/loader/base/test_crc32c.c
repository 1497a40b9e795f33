/* test_crc32c.c - published values, and every variant against the definition. */
#include <criterion/criterion.h>
#include <string.h>

#include "loader/base/crc32c.h"
#include "loader/base/rng.h"
#include "support/crc32c_by_bits.h"
#include "support/leaks.h"

/* RFC 3720, appendix B.4; and the check value of the catalogue of CRCs. */
CleanTest(crc32c, published_vectors)
{
    uint8_t zeros[32] = { 0 }, ones[32], up[32], down[32];
    for (uint8_t i = 0; i < 32; i++) {
        ones[i] = 0xFF;
        up[i] = i;
        down[i] = (uint8_t)(31 - i);
    }
    static const uint8_t read_command[48] = {
        0x01, 0xC0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, 0x28, [40] = 0x02
    };
    cr_assert_eq(stk_crc32c(0, zeros, 32), 0x8A9136AA);
    cr_assert_eq(stk_crc32c(0, ones, 32), 0x62A8AB43);
    cr_assert_eq(stk_crc32c(0, up, 32), 0x46DD794E);
    cr_assert_eq(stk_crc32c(0, down, 32), 0x113FDB5C);
    cr_assert_eq(stk_crc32c(0, read_command, 48), 0xD9963A56);
    cr_assert_eq(stk_crc32c(0, "123456789", 9), 0xE3069283);
    cr_assert_eq(stk_crc32c(0, NULL, 0), 0);
}

/* In one piece and in two. */
static void check_variants(const uint8_t *bytes, size_t size)
{
    stk_crc32c_fn *const variants[] = { stk_crc32c_plain(), stk_crc32c_sse42(),
                                        stk_crc32c_avx2(),  stk_crc32c_avx512(),
                                        stk_crc32c_arm(),   stk_crc32c_arm_strips(),
                                        stk_crc32c };
    const uint32_t expected = stk_crc32c_by_bits(bytes, size);
    for (size_t v = 0; v < sizeof(variants) / sizeof(variants[0]); v++) {
        if (variants[v] == NULL)
            continue;
        cr_assert_eq(variants[v](0, bytes, size), expected, "variant %zu, %zu bytes", v, size);
        const uint32_t first = variants[v](0, bytes, size / 3);
        cr_assert_eq(variants[v](first, bytes + size / 3, size - size / 3), expected);
    }
}

CleanTest(crc32c, variants_agree_with_the_definition)
{
    static uint8_t bytes[30000]; /* five of the longest blocks of a variant, and more */
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(stk_mix64(i) >> 56);
    for (size_t lead = 0; lead < 8; lead++)
        for (size_t size = 0; size <= 80; size++)
            check_variants(bytes + lead, size);
    for (size_t size = 81; size < 29900; size += size < 1000 ? 1 : 97)
        check_variants(bytes + size % 61, size);
}

static uint32_t copy_in_pieces(uint32_t crc, void *target, const void *bytes, size_t size)
{
    return stk_crc32c_copy_plain(stk_crc32c_plain(), crc, target, bytes, size);
}

/* The target from byte `lead`: its bytes, their sum, and nothing beside them. */
static void check_copies(const uint8_t *bytes, size_t size, size_t lead)
{
    enum { ROOM = 64 + 12000 + 64 };
    static _Alignas(64) uint8_t target[ROOM];
    stk_crc32c_copy_fn *const variants[] = { copy_in_pieces, stk_crc32c_copy_avx512(),
                                             stk_crc32c_copy };
    const uint32_t expected = stk_crc32c_by_bits(bytes, size);
    for (size_t v = 0; v < sizeof(variants) / sizeof(variants[0]); v++) {
        if (variants[v] == NULL)
            continue;
        memset(target, 0xA5, ROOM);
        const size_t first = size / 3;
        uint32_t sum = variants[v](0, target + lead, bytes, first);
        sum = variants[v](sum, target + lead + first, bytes + first, size - first);
        cr_assert_eq(sum, expected, "variant %zu, %zu bytes to %zu", v, size, lead);
        cr_assert_arr_eq(target + lead, bytes, size);
        for (size_t i = 0; i < lead; i++)
            cr_assert_eq(target[i], 0xA5, "variant %zu, before the target", v);
        for (size_t i = lead + size; i < lead + size + 64; i++)
            cr_assert_eq(target[i], 0xA5, "variant %zu, behind the target", v);
    }
}

CleanTest(crc32c, copies_agree_with_the_definition)
{
    static uint8_t bytes[12000];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(stk_mix64(i) >> 56);
    for (size_t lead = 0; lead < 64; lead += 7)
        for (size_t size = 0; size < 1200; size += size < 20 ? 1 : 61)
            check_copies(bytes + size % 9, size, lead);
    for (size_t size = 1200; size < 11990; size += 1021)
        check_copies(bytes + size % 9, size, size % 64);
}
