/* test_crc32c.c - published values, and every variant against the definition. */
#include "loader/base/crc32c/crc32c.h"
#include "loader/base/rng.h"
#include "support/crc32c_by_bits.h"
#include "support/leaks.h"

enum { BYTES = 150000 };

/* RFC 3720, appendix B.4; and the check value of the catalog of CRCs. */
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
    stk_crc32c_fn *const variants[] = { stk_crc32c_plain(), stk_crc32c_sse42(), stk_crc32c_arm(),
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
    static uint8_t bytes[30000]; /* several of the longest blocks of a variant, and more */
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(stk_mix64(i) >> 56);
    for (size_t lead = 0; lead < 8; lead++)
        for (size_t size = 0; size <= 80; size++)
            check_variants(bytes + lead, size);
    for (size_t size = 81; size < 29900; size += size < 1000 ? 1 : 97)
        check_variants(bytes + size % 61, size);
}

/* The target from byte `lead`, in two copies: its bytes, their sum, and nothing beside them. */
static void check_copy(const uint8_t *bytes, size_t size, size_t lead)
{
    static _Alignas(64) uint8_t target[64 + BYTES + 64];
    memset(target, 0xA5, sizeof(target));
    const size_t first = size / 3;
    uint32_t sum = stk_crc32c_copy(0, target + lead, bytes, first);
    sum = stk_crc32c_copy(sum, target + lead + first, bytes + first, size - first);
    cr_assert_eq(sum, stk_crc32c(0, bytes, size), "%zu bytes to %zu", size, lead);
    cr_assert_arr_eq(target + lead, bytes, size);
    for (size_t i = 0; i < lead; i++)
        cr_assert_eq(target[i], 0xA5, "before the target");
    for (size_t i = lead + size; i < lead + size + 64; i++)
        cr_assert_eq(target[i], 0xA5, "behind the target");
}

/* Short copies, and some that are stored past the caches. */
CleanTest(crc32c, copies_agree_with_sums)
{
    static uint8_t bytes[BYTES];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(stk_mix64(i) >> 56);
    for (size_t lead = 0; lead < 64; lead += 7)
        for (size_t size = 0; size < 1200; size += size < 20 ? 1 : 61)
            check_copy(bytes + size % 9, size, lead);
    for (size_t size = 1200; size < BYTES - 9; size += 4021)
        check_copy(bytes + size % 9, size, size % 64);
}
