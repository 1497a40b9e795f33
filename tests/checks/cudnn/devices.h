/* devices.h - the GPUs that cuDNN makes plans for without having them. README.md says where the
 * figures come from. */
#ifndef STK_TEST_CUDNN_DEVICES_H
#define STK_TEST_CUDNN_DEVICES_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB INT64_C(1073741824)

static const struct described_device {
    const char *sm, *name;
    int64_t memory_bytes;
    int processors, l2_kib;
    int clock_khz, memory_clock_khz;
    int shared_kib_optin, shared_kib_reserved; /* per block */
    int threads, blocks;                       /* per multiprocessor */
} described_devices[] = {
    { "sm_75", "Tesla T4", 15843721216, 40, 4096, 1590000, 5001000, 64, 0, 1024, 16 },
    { "sm_80", "NVIDIA A100-SXM4-80GB", 80 * GIB, 108, 40960, 1410000, 1593000, 163, 1, 2048, 32 },
    { "sm_86", "NVIDIA GeForce RTX 3090", 24 * GIB, 82, 6144, 1695000, 9751000, 99, 1, 1536, 16 },
    { "sm_89", "NVIDIA L4", 24 * GIB, 58, 49152, 2040000, 6251000, 99, 1, 1536, 24 },
    { "sm_90", "NVIDIA H200", 141000000000, 132, 61440, 1980000, 3201000, 227, 1, 2048, 32 },
    { "sm_100", "NVIDIA B200", 180 * GIB, 148, 129536, 1965000, 3996000, 227, 1, 2048, 32 },
    { "sm_120", "NVIDIA GeForce RTX 5090", 32 * GIB, 170, 98304, 2407000, 14001000, 99, 1, 1536,
      24 },
};

/* Write cuDNN's description of a device. Returns false if no device has that name. */
static inline bool describe_device(char *out, size_t bytes, const char *sm)
{
    for (size_t i = 0; i < sizeof(described_devices) / sizeof(described_devices[0]); i++) {
        const struct described_device *const d = &described_devices[i];
        if (strcmp(d->sm, sm) != 0)
            continue;
        (void)snprintf(
            out, bytes,
            "{ \"deviceName\": \"%s\", \"deviceVer\": %d, \"multiProcessorCount\": %d,"
            " \"totalGlobalMem\": %" PRId64 ", \"l2CacheSize\": %d, \"smClockRateKHz\": %d,"
            " \"memClockRateKHz\": %d, \"maxSharedMemoryPerBlockOptin\": %d,"
            " \"reservedSharedMemoryPerBlock\": %d, \"maxThreadsPerSM\": %d, \"maxCtasPerSM\": %d,"
            " \"maxRegistersPerSM\": 65536, \"regsPerBlock\": 65536, \"maxThreadsPerBlock\": 1024,"
            " \"maxSharedMemoryPerBlock\": 49152, \"maxBlockSize\": [1024, 1024, 64],"
            " \"maxGridSize\": [2147483647, 65535, 65535], \"warpSize\": 32,"
            " \"supportCoopLaunch\": 1, \"isTccDriver\": 0, \"driverVer\": 13000,"
            " \"cudaDeviceId\": 0, \"pciDeviceId\": 0 }",
            d->name, 10 * atoi(sm + strlen("sm_")), d->processors, d->memory_bytes,
            d->l2_kib * 1024, d->clock_khz, d->memory_clock_khz, d->shared_kib_optin * 1024,
            d->shared_kib_reserved * 1024, d->threads, d->blocks);
        return true;
    }
    return false;
}

#endif
