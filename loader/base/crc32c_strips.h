/* crc32c_strips.h - CRC-32C by an instruction that adds 8 bytes to a sum, three sums at a time: each step waits for the step
 * before it, but not for the other sums'.
 *
 *   [ strip 1 | strip 2 | strip 3 ]   next: the same
 *
 * One carry-less multiplication carries a sum past the bytes behind its strip (crc32c_x86.c has the reference).
 *
 * Part of the files that compile it for a processor. They define CRC_INLINE, the functions' attributes, and
 *   uint64_t add_word(uint64_t sum, uint64_t word), uint64_t add_byte(uint64_t sum, uint8_t byte): the instruction;
 *   uint64_t multiply(uint64_t sum, uint32_t power): the carry-less product.
 */
#ifndef STK_BASE_CRC32C_STRIPS_H
#define STK_BASE_CRC32C_STRIPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

CRC_INLINE uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return word;
}

/* The sum after `bytes` zero bytes: `power` is x^(8 bytes - 33) mod the polynomial. */
CRC_INLINE uint64_t shifted(uint64_t sum, uint32_t power)
{
    return add_word(0, multiply(sum, power));
}

/* Sums three strips of `strip` bytes in parallel, as often as they fit. */
CRC_INLINE uint64_t sum_strips(uint64_t sum, const uint8_t **from, size_t *size, size_t strip,
                               uint32_t power_one, uint32_t power_two)
{
    const uint8_t *at = *from;
    for (; *size >= 3 * strip; *size -= 3 * strip, at += 3 * strip) {
        uint64_t second = 0;
        uint64_t third = 0;
        for (size_t i = 0; i < strip; i += sizeof(uint64_t)) {
            sum = add_word(sum, word_at(at + i));
            second = add_word(second, word_at(at + strip + i));
            third = add_word(third, word_at(at + 2 * strip + i));
        }
        sum = shifted(sum, power_two) ^ shifted(second, power_one) ^ third;
    }
    *from = at;
    return sum;
}

/* Adds the last `count` bytes of a word, 0..7. No branch: the count is nearly random. */
CRC_INLINE uint64_t sum_rest(uint64_t sum, uint64_t word, size_t count)
{
    const size_t before = 56 - 8 * count; /* in two steps: shifting by 64 is undefined */
    const uint64_t rest = (word >> before >> 8 ^ sum) << before << 8;
    return add_word(0, rest) ^ sum >> 8 * count;
}

CRC_INLINE uint32_t sum_words(uint64_t sum, const uint8_t *at, size_t size)
{
    if (size < sizeof(uint64_t)) {
        for (; size > 0; size--, at++)
            sum = add_byte(sum, *at);
        return (uint32_t)sum;
    }
    for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), at += sizeof(uint64_t))
        sum = add_word(sum, word_at(at));
    return (uint32_t)sum_rest(sum, word_at(at + size - sizeof(uint64_t)), size);
}

/* Returns the instruction's state after all bytes, from that before them. */
CRC_INLINE uint32_t sum_all(uint32_t before, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint64_t sum = before;
    sum = sum_strips(sum, &at, &size, 1024, 0x170076FAU, 0xA51B6135U);
    sum = sum_strips(sum, &at, &size, 256, 0xB9E02B86U, 0xDD7E3B0CU);
    sum = sum_strips(sum, &at, &size, 64, 0x9E4ADDF8U, 0x0D3B6092U);
    return sum_words(sum, at, size);
}

#endif
