/* gather.c - see gather.h. */
#include "bench/device/gather.h"

#include <math.h>
#include <string.h>

#include "kernels/convert/convert.h"
#include "kernels/fatbin.h"

const char *bench_gather_name(size_t element_bytes)
{
    switch (element_bytes) {
    case 1:
        return "bench_gather_1";
    case 2:
        return "bench_gather_2";
    case 4:
        return "bench_gather_4";
    default:
        return NULL;
    }
}

bool bench_gather_fits(uint64_t row_bytes, size_t element_bytes)
{
    return bench_gather_name(element_bytes) != NULL &&
           row_bytes * element_bytes % BENCH_GATHER_STORE_BYTES == 0 &&
           row_bytes * element_bytes / BENCH_GATHER_PART_BYTES < 65535; /* most blocks along y */
}

static void put(uint8_t *to, size_t bytes, float value, uint8_t stored)
{
    const uint16_t narrow = stk_bfloat16_from_float(value);
    if (bytes == 4)
        memcpy(to, &value, sizeof(value));
    else if (bytes == 2)
        memcpy(to, &narrow, sizeof(narrow));
    else
        *to = stored;
}

void bench_gather_on_host(const struct bench_gather *gather, size_t element_bytes)
{
    uint8_t *to = gather->out;
    for (uint32_t k = 0; k < gather->count; k++) {
        const uint8_t *row = gather->rows + gather->numbers[k] * gather->row_bytes;
        for (uint64_t i = 0; i < gather->row_bytes; i++, to += element_bytes)
            put(to, element_bytes, fmaf((float)row[i], gather->factor, gather->bias), row[i]);
    }
}

#ifdef BENCH_GATHER_FATBIN
STK_EMBED_FATBIN(bench_gather_fatbin, BENCH_GATHER_FATBIN)
#else
STK_NO_FATBIN(bench_gather_fatbin)
#endif
