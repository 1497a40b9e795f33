/* crc32c.c - see crc32c.h.
 *
 * x86-64 adds 8 bytes to a sum with each CRC32 instruction, one a cycle with a latency of three, so
 * three strips are summed at a time:
 *
 *   [ strip 1 | strip 2 | strip 3 ]   next: the same
 *
 * One carry-less multiplication carries a sum past the bytes behind its strip, since N zero bytes
 * multiply it by a power of x (Gopal and others, "Fast CRC Computation for Generic Polynomials
 * Using PCLMULQDQ", Intel, 2009).
 */
#include "loader/base/crc32c/crc32c.h"

#include <stdbool.h>
#include <string.h>

#include "loader/base/cpu/cpu_features.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    LINE_BYTES = 64,
    PIECE_BYTES = 4096,
    STREAMED_BYTES_MIN = 64 << 10 /* copies from here on go past the caches: a few would fill one */
};

/* The remainder of each byte times x^32, polynomial 0x1EDC6F41 reflected. */
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

static uint32_t crc_plain(uint32_t crc, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    crc = ~crc;
    for (size_t i = 0; i < size; i++)
        crc = remainders[(crc ^ at[i]) & 0xFF] ^ (crc >> 8);
    return ~crc;
}

stk_crc32c_fn *stk_crc32c_plain(void)
{
    return crc_plain;
}

/* ---- x86-64: a sum is the instruction's state, the interface's checksum inverted ---- */

#if defined(__x86_64__)
#define SSE42        __attribute__((target("sse4.2,pclmul")))
#define SSE42_INLINE SSE42 static inline __attribute__((always_inline))

/* What to do with the bytes besides. Always a constant, so each way gets a loop of its own. */
enum copying { NO_COPY, COPY, COPY_PAST_CACHES };

struct run {
    const uint8_t *at;
    uint8_t *to; /* NO_COPY: unused */
    size_t size;
};

SSE42_INLINE uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return word;
}

/* Returns the sum after `count` zero bytes: `power` is x^(8 count - 33) mod the polynomial. */
SSE42_INLINE uint64_t shifted(uint64_t sum, uint32_t power)
{
    const __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)sum), _mm_cvtsi32_si128((int)power), 0);
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

SSE42_INLINE void copy_bytes(const uint8_t *at, uint8_t *to, size_t size, enum copying copying)
{
    for (size_t i = 0; i < size; i += sizeof(__m128i)) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(at + i));
        if (copying == COPY_PAST_CACHES)
            _mm_stream_si128((__m128i *)(void *)(to + i), bytes);
        else
            _mm_storeu_si128((__m128i *)(void *)(to + i), bytes);
    }
}

/* Sum three strips of `strip` bytes at a time, as often as they fit. Copying runs ahead by one such
 * block: it reads memory in order, and the strips are in the cache when they are summed. */
SSE42_INLINE uint64_t sum_strips(uint64_t sum, struct run *run, size_t strip, uint32_t power_one,
                                 uint32_t power_two, enum copying copying)
{
    const size_t block = 3 * strip;
    if (copying != NO_COPY && run->size >= block)
        copy_bytes(run->at, run->to, block, copying);
    for (; run->size >= block; run->size -= block, run->at += block) {
        const uint8_t *at = run->at;
        const bool ahead = copying != NO_COPY && run->size >= 2 * block;
        uint64_t second = 0;
        uint64_t third = 0;
        for (size_t line = 0; line < strip; line += LINE_BYTES) {
            if (ahead)
                copy_bytes(at + block + 3 * line, run->to + block + 3 * line, 3 * LINE_BYTES,
                           copying);
            for (size_t i = line; i < line + LINE_BYTES; i += sizeof(uint64_t)) {
                sum = _mm_crc32_u64(sum, word_at(at + i));
                second = _mm_crc32_u64(second, word_at(at + strip + i));
                third = _mm_crc32_u64(third, word_at(at + 2 * strip + i));
            }
        }
        sum = shifted(sum, power_two) ^ shifted(second, power_one) ^ third;
        if (copying != NO_COPY)
            run->to += block;
    }
    return sum;
}

/* Add the last `count` bytes of a word, 0..7. No branch: the count is nearly random. */
SSE42_INLINE uint64_t sum_rest(uint64_t sum, uint64_t word, size_t count)
{
    const size_t before = 56 - 8 * count; /* in two steps: shifting by 64 is undefined */
    const uint64_t rest = (word >> before >> 8 ^ sum) << before << 8;
    return _mm_crc32_u64(0, rest) ^ sum >> 8 * count;
}

SSE42_INLINE uint32_t sum_all(uint32_t before, struct run run, enum copying copying)
{
    uint64_t sum = before;
    if (copying == NO_COPY)
        sum = sum_strips(sum, &run, 1024, 0x170076FAU, 0xA51B6135U, copying);
    sum = sum_strips(sum, &run, 256, 0xB9E02B86U, 0xDD7E3B0CU, copying);
    sum = sum_strips(sum, &run, 64, 0x9E4ADDF8U, 0x0D3B6092U, copying);
    if (copying != NO_COPY && run.size > 0)
        memcpy(run.to, run.at, run.size);
    if (run.size < sizeof(uint64_t)) {
        for (; run.size > 0; run.size--, run.at++)
            sum = _mm_crc32_u8((uint32_t)sum, *run.at);
        return (uint32_t)sum;
    }
    for (; run.size >= sizeof(uint64_t); run.size -= sizeof(uint64_t), run.at += sizeof(uint64_t))
        sum = _mm_crc32_u64(sum, word_at(run.at));
    return (uint32_t)sum_rest(sum, word_at(run.at + run.size - sizeof(uint64_t)), run.size);
}

SSE42 static uint32_t crc_sse42(uint32_t crc, const void *bytes, size_t size)
{
    return ~sum_all(~crc, (struct run){ bytes, NULL, size }, NO_COPY);
}

SSE42 static uint32_t copy_sse42(uint32_t crc, void *target, const void *bytes, size_t size)
{
    if (size < STREAMED_BYTES_MIN)
        return ~sum_all(~crc, (struct run){ bytes, target, size }, COPY);
    const size_t lead = (0U - (uintptr_t)target) % LINE_BYTES;
    struct run run = { bytes, target, lead };
    const uint32_t sum = sum_all(~crc, run, COPY);
    run = (struct run){ run.at + lead, run.to + lead, size - lead };
    const uint32_t all = sum_all(sum, run, COPY_PAST_CACHES);
    _mm_sfence(); /* such stores are ordered with no other */
    return ~all;
}

stk_crc32c_fn *stk_crc32c_sse42(void)
{
    return stk_cpu_has(STK_CPU_SSE42 | STK_CPU_PCLMUL) ? crc_sse42 : NULL;
}
#else
stk_crc32c_fn *stk_crc32c_sse42(void)
{
    return NULL;
}
#endif

/* ---- 64-bit ARM ------------------------------------------------------------------ */

#if defined(__aarch64__)
/* gcc and clang name features and instructions differently, and arm_acle.h needs flags for the
 * whole file. */
#if defined(__clang__)
#define ARM_CRC  __attribute__((target("crc")))
#define ADD_WORD __builtin_arm_crc32cd
#define ADD_BYTE __builtin_arm_crc32cb
#else
#define ARM_CRC  __attribute__((target("+crc")))
#define ADD_WORD __builtin_aarch64_crc32cx
#define ADD_BYTE __builtin_aarch64_crc32cb
#endif

ARM_CRC static uint32_t crc_arm(uint32_t crc, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    crc = ~crc;
    for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, at, sizeof(word));
        crc = ADD_WORD(crc, word);
    }
    for (; size > 0; size--, at++)
        crc = ADD_BYTE(crc, *at);
    return ~crc;
}

stk_crc32c_fn *stk_crc32c_arm(void)
{
    return stk_cpu_has(STK_CPU_ARM_CRC32) ? crc_arm : NULL;
}
#else
stk_crc32c_fn *stk_crc32c_arm(void)
{
    return NULL;
}
#endif

/* ---- selection ------------------------------------------------------------------- */

stk_crc32c_fn *stk_crc32c_fastest(void)
{
    stk_crc32c_fn *fast = stk_crc32c_sse42();
    if (fast == NULL)
        fast = stk_crc32c_arm();
    return fast != NULL ? fast : crc_plain;
}

uint32_t stk_crc32c(uint32_t crc, const void *bytes, size_t size)
{
    return stk_crc32c_fastest()(crc, bytes, size);
}

uint32_t stk_crc32c_copy(uint32_t crc, void *target, const void *bytes, size_t size)
{
#if defined(__x86_64__)
    if (stk_crc32c_sse42() != NULL)
        return copy_sse42(crc, target, bytes, size);
#endif
    stk_crc32c_fn *const sum = stk_crc32c_fastest();
    for (size_t done = 0; done < size; done += PIECE_BYTES) { /* which stays in the cache */
        const size_t piece = size - done < PIECE_BYTES ? size - done : PIECE_BYTES;
        memcpy((uint8_t *)target + done, (const uint8_t *)bytes + done, piece);
        crc = sum(crc, (const uint8_t *)bytes + done, piece);
    }
    return crc;
}
