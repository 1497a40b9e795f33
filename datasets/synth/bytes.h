/* bytes.h - the contents of synth:bytes rows, so that a test can compute any byte.
 *
 *   row of sample id, as little-endian 64-bit words:
 *     word 0   id
 *     word k   mix64(id) + k x 0x9E3779B97F4A7C15      k = 1, 2, ...
 *   the last word is truncated at the end of the row; the label is id % classes
 */
#ifndef STK_DATASETS_SYNTH_BYTES_H
#define STK_DATASETS_SYNTH_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/rng.h"

static inline uint64_t stk_synth_word(uint64_t id, uint64_t word)
{
    return word == 0 ? id : stk_mix64(id) + word * 0x9E3779B97F4A7C15U;
}

/* Byte `at` of the row of sample id. */
static inline uint8_t stk_synth_byte(uint64_t id, uint64_t at)
{
    return (uint8_t)(stk_synth_word(id, at / 8) >> (8 * (at % 8)));
}

#endif
