/* shard_sum.c - see shard_sum.h. */
#include "datasets/shard_sum.h"

#include <stdbool.h>
#include <string.h>

/* The remainder of each byte, polynomial 0x1EDC6F41 reflected. */
static const uint32_t remainders[256] = {
    0x00000000U, 0xF26B8303U, 0xE13B70F7U, 0x1350F3F4U, 0xC79A971FU, 0x35F1141CU, 0x26A1E7E8U,
    0xD4CA64EBU, 0x8AD958CFU, 0x78B2DBCCU, 0x6BE22838U, 0x9989AB3BU, 0x4D43CFD0U, 0xBF284CD3U,
    0xAC78BF27U, 0x5E133C24U, 0x105EC76FU, 0xE235446CU, 0xF165B798U, 0x030E349BU, 0xD7C45070U,
    0x25AFD373U, 0x36FF2087U, 0xC494A384U, 0x9A879FA0U, 0x68EC1CA3U, 0x7BBCEF57U, 0x89D76C54U,
    0x5D1D08BFU, 0xAF768BBCU, 0xBC267848U, 0x4E4DFB4BU, 0x20BD8EDEU, 0xD2D60DDDU, 0xC186FE29U,
    0x33ED7D2AU, 0xE72719C1U, 0x154C9AC2U, 0x061C6936U, 0xF477EA35U, 0xAA64D611U, 0x580F5512U,
    0x4B5FA6E6U, 0xB93425E5U, 0x6DFE410EU, 0x9F95C20DU, 0x8CC531F9U, 0x7EAEB2FAU, 0x30E349B1U,
    0xC288CAB2U, 0xD1D83946U, 0x23B3BA45U, 0xF779DEAEU, 0x05125DADU, 0x1642AE59U, 0xE4292D5AU,
    0xBA3A117EU, 0x4851927DU, 0x5B016189U, 0xA96AE28AU, 0x7DA08661U, 0x8FCB0562U, 0x9C9BF696U,
    0x6EF07595U, 0x417B1DBCU, 0xB3109EBFU, 0xA0406D4BU, 0x522BEE48U, 0x86E18AA3U, 0x748A09A0U,
    0x67DAFA54U, 0x95B17957U, 0xCBA24573U, 0x39C9C670U, 0x2A993584U, 0xD8F2B687U, 0x0C38D26CU,
    0xFE53516FU, 0xED03A29BU, 0x1F682198U, 0x5125DAD3U, 0xA34E59D0U, 0xB01EAA24U, 0x42752927U,
    0x96BF4DCCU, 0x64D4CECFU, 0x77843D3BU, 0x85EFBE38U, 0xDBFC821CU, 0x2997011FU, 0x3AC7F2EBU,
    0xC8AC71E8U, 0x1C661503U, 0xEE0D9600U, 0xFD5D65F4U, 0x0F36E6F7U, 0x61C69362U, 0x93AD1061U,
    0x80FDE395U, 0x72966096U, 0xA65C047DU, 0x5437877EU, 0x4767748AU, 0xB50CF789U, 0xEB1FCBADU,
    0x197448AEU, 0x0A24BB5AU, 0xF84F3859U, 0x2C855CB2U, 0xDEEEDFB1U, 0xCDBE2C45U, 0x3FD5AF46U,
    0x7198540DU, 0x83F3D70EU, 0x90A324FAU, 0x62C8A7F9U, 0xB602C312U, 0x44694011U, 0x5739B3E5U,
    0xA55230E6U, 0xFB410CC2U, 0x092A8FC1U, 0x1A7A7C35U, 0xE811FF36U, 0x3CDB9BDDU, 0xCEB018DEU,
    0xDDE0EB2AU, 0x2F8B6829U, 0x82F63B78U, 0x709DB87BU, 0x63CD4B8FU, 0x91A6C88CU, 0x456CAC67U,
    0xB7072F64U, 0xA457DC90U, 0x563C5F93U, 0x082F63B7U, 0xFA44E0B4U, 0xE9141340U, 0x1B7F9043U,
    0xCFB5F4A8U, 0x3DDE77ABU, 0x2E8E845FU, 0xDCE5075CU, 0x92A8FC17U, 0x60C37F14U, 0x73938CE0U,
    0x81F80FE3U, 0x55326B08U, 0xA759E80BU, 0xB4091BFFU, 0x466298FCU, 0x1871A4D8U, 0xEA1A27DBU,
    0xF94AD42FU, 0x0B21572CU, 0xDFEB33C7U, 0x2D80B0C4U, 0x3ED04330U, 0xCCBBC033U, 0xA24BB5A6U,
    0x502036A5U, 0x4370C551U, 0xB11B4652U, 0x65D122B9U, 0x97BAA1BAU, 0x84EA524EU, 0x7681D14DU,
    0x2892ED69U, 0xDAF96E6AU, 0xC9A99D9EU, 0x3BC21E9DU, 0xEF087A76U, 0x1D63F975U, 0x0E330A81U,
    0xFC588982U, 0xB21572C9U, 0x407EF1CAU, 0x532E023EU, 0xA145813DU, 0x758FE5D6U, 0x87E466D5U,
    0x94B49521U, 0x66DF1622U, 0x38CC2A06U, 0xCAA7A905U, 0xD9F75AF1U, 0x2B9CD9F2U, 0xFF56BD19U,
    0x0D3D3E1AU, 0x1E6DCDEEU, 0xEC064EEDU, 0xC38D26C4U, 0x31E6A5C7U, 0x22B65633U, 0xD0DDD530U,
    0x0417B1DBU, 0xF67C32D8U, 0xE52CC12CU, 0x1747422FU, 0x49547E0BU, 0xBB3FFD08U, 0xA86F0EFCU,
    0x5A048DFFU, 0x8ECEE914U, 0x7CA56A17U, 0x6FF599E3U, 0x9D9E1AE0U, 0xD3D3E1ABU, 0x21B862A8U,
    0x32E8915CU, 0xC083125FU, 0x144976B4U, 0xE622F5B7U, 0xF5720643U, 0x07198540U, 0x590AB964U,
    0xAB613A67U, 0xB831C993U, 0x4A5A4A90U, 0x9E902E7BU, 0x6CFBAD78U, 0x7FAB5E8CU, 0x8DC0DD8FU,
    0xE330A81AU, 0x115B2B19U, 0x020BD8EDU, 0xF0605BEEU, 0x24AA3F05U, 0xD6C1BC06U, 0xC5914FF2U,
    0x37FACCF1U, 0x69E9F0D5U, 0x9B8273D6U, 0x88D28022U, 0x7AB90321U, 0xAE7367CAU, 0x5C18E4C9U,
    0x4F48173DU, 0xBD23943EU, 0xF36E6F75U, 0x0105EC76U, 0x12551F82U, 0xE03E9C81U, 0x34F4F86AU,
    0xC69F7B69U, 0xD5CF889DU, 0x27A40B9EU, 0x79B737BAU, 0x8BDCB4B9U, 0x988C474DU, 0x6AE7C44EU,
    0xBE2DA0A5U, 0x4C4623A6U, 0x5F16D052U, 0xAD7D5351U
};

static uint32_t sum_plain(uint32_t sum, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    sum = ~sum;
    for (size_t i = 0; i < size; i++)
        sum = remainders[(sum ^ at[i]) & 0xFF] ^ (sum >> 8);
    return ~sum;
}

stk_shard_sum_fn *stk_shard_sum_plain(void)
{
    return sum_plain;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define SSE42_INLINE static inline __attribute__((target("sse4.2,pclmul"), always_inline))

SSE42_INLINE uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return word;
}

/* The sum as it is after so many zero bytes: `power` is x^(8 bytes - 33) mod the polynomial. */
SSE42_INLINE uint64_t shifted(uint64_t sum, uint32_t power)
{
    const __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)sum), _mm_cvtsi32_si128((int)power), 0);
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

/* Three strips of that many bytes side by side, as often as they fit. */
SSE42_INLINE uint64_t sum_strips(uint64_t sum, const uint8_t **from, size_t *size, size_t strip,
                                 uint32_t power_one, uint32_t power_two)
{
    const uint8_t *at = *from;
    for (; *size >= 3 * strip; *size -= 3 * strip, at += 3 * strip) {
        uint64_t second = 0;
        uint64_t third = 0;
        for (size_t i = 0; i < strip; i += sizeof(uint64_t)) {
            sum = _mm_crc32_u64(sum, word_at(at + i));
            second = _mm_crc32_u64(second, word_at(at + strip + i));
            third = _mm_crc32_u64(third, word_at(at + 2 * strip + i));
        }
        sum = shifted(sum, power_two) ^ shifted(second, power_one) ^ third;
    }
    *from = at;
    return sum;
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t sum_sse42(uint32_t sum_before,
                                                                   const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint64_t sum = ~sum_before;
    sum = sum_strips(sum, &at, &size, 1024, 0x170076FAU, 0xA51B6135U);
    sum = sum_strips(sum, &at, &size, 256, 0xB9E02B86U, 0xDD7E3B0CU);
    sum = sum_strips(sum, &at, &size, 64, 0x9E4ADDF8U, 0x0D3B6092U);
    for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), at += sizeof(uint64_t))
        sum = _mm_crc32_u64(sum, word_at(at));
    for (; size > 0; size--, at++)
        sum = _mm_crc32_u8((uint32_t)sum, *at);
    return ~(uint32_t)sum;
}

enum {
    LINE_BYTES = 64,
    FOLDED_BYTES = 128, /* four registers side by side */
    AHEAD_BYTES =
        2048 /* asked of memory before they are folded: while it folds, the CPU itself does
                         * not come to look as far ahead as a plain copy does */
};

#define FOLDING __attribute__((target("avx2,pclmul,vpclmulqdq,sse4.2")))

/* `sum` moved on by FOLDED_BYTES, plus what stands there. Each half of a register is multiplied by
 * what so many zero bytes mean to it, x^(1024 + 32) and x^(1024 - 32) mod the polynomial, reflected:
 * Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel, 2009. */
FOLDING static inline __m256i folded(__m256i sum, __m256i powers, __m256i next)
{
    const __m256i early = _mm256_clmulepi64_epi128(sum, powers, 0x00);
    const __m256i late = _mm256_clmulepi64_epi128(sum, powers, 0x11);
    return _mm256_xor_si256(_mm256_xor_si256(early, late), next);
}

/* Fold four registers into two, two into one, and the halves of that one: 16 bytes with the same
 * remainder are left, two steps of the instruction instead of sixteen that wait for each other. */
FOLDING static inline uint32_t remainder_of(const __m256i four[4])
{
    const __m256i by_64 = _mm256_set_epi64x(0x9e4addf8, 0x740eef02, 0x9e4addf8, 0x740eef02);
    const __m256i by_32 = _mm256_set_epi64x(0xba4fc28e, 0x3da6d0cb, 0xba4fc28e, 0x3da6d0cb);
    const __m128i by_16 = _mm_set_epi64x(0x493c7d27, 0xf20c0dfe);
    const __m256i one =
        folded(folded(four[0], by_64, four[2]), by_32, folded(four[1], by_64, four[3]));
    const __m128i early = _mm256_castsi256_si128(one);
    const __m128i half = _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(early, by_16, 0x00),
                                                     _mm_clmulepi64_si128(early, by_16, 0x11)),
                                       _mm256_extracti128_si256(one, 1));
    const uint64_t sum = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(half));
    return (uint32_t)_mm_crc32_u64(sum, (uint64_t)_mm_extract_epi64(half, 1));
}

/* always_inline: gcc 12 takes a function of prefetches alone for one without effect, and drops its
 * calls. */
FOLDING static inline __attribute__((always_inline)) void ask_for(const uint8_t *at, size_t size)
{
    for (size_t i = 0; i < size; i += LINE_BYTES)
        _mm_prefetch((const char *)at + i, _MM_HINT_T0);
}

/* Of at least FOLDED_BYTES. */
FOLDING static uint32_t fold_over(uint32_t sum, const uint8_t *at, size_t size)
{
    const __m256i powers = _mm256_set_epi64x(0xd3b6092, 0x6992cea2, 0xd3b6092, 0x6992cea2);
    const uint8_t *const end = at + size;
    ask_for(at, size < AHEAD_BYTES ? size : AHEAD_BYTES);
    __m256i four[4];
    for (int i = 0; i < 4; i++)
        four[i] = _mm256_loadu_si256((const __m256i *)at + i);
    four[0] = _mm256_xor_si256(four[0], _mm256_set_epi32(0, 0, 0, 0, 0, 0, 0, (int)~sum));
    for (at += FOLDED_BYTES; (size_t)(end - at) >= FOLDED_BYTES; at += FOLDED_BYTES) {
        if ((size_t)(end - at) >= AHEAD_BYTES + FOLDED_BYTES)
            ask_for(at + AHEAD_BYTES, FOLDED_BYTES);
        for (int i = 0; i < 4; i++)
            four[i] = folded(four[i], powers, _mm256_loadu_si256((const __m256i *)at + i));
    }
    return sum_sse42(~remainder_of(four), at, (size_t)(end - at));
}

FOLDING static uint32_t sum_avx2(uint32_t sum, const void *bytes, size_t size)
{
    return size < 2 * FOLDED_BYTES ? sum_sse42(sum, bytes, size) : fold_over(sum, bytes, size);
}

static bool has_sse42(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq") && has_sse42();
}

stk_shard_sum_fn *stk_shard_sum_sse42(void)
{
    return has_sse42() ? sum_sse42 : NULL;
}

stk_shard_sum_fn *stk_shard_sum_avx2(void)
{
    return has_avx2() ? sum_avx2 : NULL;
}
#else
stk_shard_sum_fn *stk_shard_sum_sse42(void)
{
    return NULL;
}

stk_shard_sum_fn *stk_shard_sum_avx2(void)
{
    return NULL;
}
#endif

uint32_t stk_shard_sum(uint32_t sum, const void *bytes, size_t size)
{
    stk_shard_sum_fn *fast = stk_shard_sum_avx2();
    if (fast == NULL)
        fast = stk_shard_sum_sse42();
    return fast != NULL ? fast(sum, bytes, size) : sum_plain(sum, bytes, size);
}
