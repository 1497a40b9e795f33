/* devices.c - the GPUs and their properties. */
#include <stdio.h>
#include <string.h>

#include "state.h"

#ifndef STANDIN_RUNTIME
#define STANDIN_RUNTIME CUDART_VERSION
#endif

enum { PROCESSORS = 132 };

static bool exists(int device)
{
    return device >= 0 && device < atomic_load(&standin.devices);
}

cudaError_t cudaGetDeviceCount(int *count)
{
    STANDIN_BEGIN_LIGHT;
    const int no_driver = atomic_load(&standin.no_driver);
    *count = atomic_load(&standin.devices);
    if (no_driver != 0)
        return standin_end((cudaError_t)no_driver);
    if (atomic_load(&standin.driver) / 1000 < STANDIN_RUNTIME / 1000)
        return standin_end(cudaErrorInsufficientDriver);
    return standin_end(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int *device)
{
    STANDIN_BEGIN_LIGHT;
    *device = standin_current();
    return standin_end(cudaSuccess);
}

cudaError_t cudaSetDevice(int device)
{
    STANDIN_BEGIN_LIGHT;
    if (!exists(device))
        return standin_end(cudaErrorInvalidDevice);
    standin_set_current(device);
    standin_initialize(device);
    return standin_end(cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device)
{
    STANDIN_BEGIN_LIGHT;
    if (!exists(device))
        return standin_end(cudaErrorInvalidDevice);
    memset(out, 0, sizeof(*out));
    (void)snprintf(out->name, sizeof(out->name), "Stand-in GPU %d", device);
    out->uuid.bytes[0] = 'G';
    out->uuid.bytes[sizeof(out->uuid.bytes) - 1] = (char)device;
    out->pciDomainID = STANDIN_PCI_DOMAIN;
    out->pciBusID = device + 1;
    out->totalGlobalMem = atomic_load(&standin.memory_bytes);
    out->major = atomic_load(&standin.capability) / 10;
    out->minor = atomic_load(&standin.capability) % 10;
    out->multiProcessorCount = PROCESSORS;
    out->warpSize = 32;
    out->maxThreadsPerBlock = 1024;
    out->maxThreadsPerMultiProcessor = 2048;
    out->sharedMemPerBlock = 48 << 10;
    out->sharedMemPerBlockOptin = 227 << 10;
    out->sharedMemPerMultiprocessor = 228 << 10;
    out->regsPerBlock = 65536;
    out->l2CacheSize = 50 << 20;
    out->memoryBusWidth = 5120;
    out->asyncEngineCount = 2;
    out->concurrentKernels = 1;
    out->unifiedAddressing = 1;
    out->pageableMemoryAccess = atomic_load(&standin.reads_pageable) ? 1 : 0;
    return standin_end(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int *out, enum cudaDeviceAttr attribute, int device)
{
    STANDIN_BEGIN_LIGHT;
    if (!exists(device))
        return standin_end(cudaErrorInvalidDevice);
    switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
        *out = atomic_load(&standin.capability) / 10;
        return standin_end(cudaSuccess);
    case cudaDevAttrComputeCapabilityMinor:
        *out = atomic_load(&standin.capability) % 10;
        return standin_end(cudaSuccess);
    case cudaDevAttrPciDomainId:
        *out = STANDIN_PCI_DOMAIN;
        return standin_end(cudaSuccess);
    case cudaDevAttrPciBusId:
        *out = device + 1;
        return standin_end(cudaSuccess);
    case cudaDevAttrPciDeviceId:
        *out = 0;
        return standin_end(cudaSuccess);
    case cudaDevAttrPageableMemoryAccess:
        *out = atomic_load(&standin.reads_pageable) ? 1 : 0;
        return standin_end(cudaSuccess);
    case cudaDevAttrMultiProcessorCount:
        *out = PROCESSORS;
        return standin_end(cudaSuccess);
    default:
        return standin_end(cudaErrorInvalidValue);
    }
}

/* ---- peer access ---- */

void standin_cuda_peers(bool can)
{
    atomic_store(&standin.peers, can);
    for (int i = 0; i < STANDIN_DEVICES_MAX * STANDIN_DEVICES_MAX; i++)
        atomic_store(&standin.accesses[i / STANDIN_DEVICES_MAX][i % STANDIN_DEVICES_MAX], false);
}

struct standin_cuda_peer_copies standin_cuda_peer_copies(void)
{
    return (struct standin_cuda_peer_copies){ .direct = atomic_load(&standin.direct),
                                              .through_host = atomic_load(&standin.through_host) };
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    STANDIN_BEGIN_LIGHT;
    if (!exists(device) || !exists(peer))
        return standin_end(cudaErrorInvalidDevice);
    *can = atomic_load(&standin.peers) && device != peer ? 1 : 0;
    return standin_end(cudaSuccess);
}

/* From the current device to the peer. */
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    STANDIN_BEGIN;
    const int device = standin_current();
    if (flags != 0)
        return standin_end(cudaErrorInvalidValue);
    if (!exists(peer) || peer == device)
        return standin_end(cudaErrorInvalidDevice);
    if (!atomic_load(&standin.peers))
        return standin_end(cudaErrorPeerAccessUnsupported);
    const bool before = atomic_exchange(&standin.accesses[device][peer], true);
    return standin_end(before ? cudaErrorPeerAccessAlreadyEnabled : cudaSuccess);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    STANDIN_BEGIN;
    if (!exists(standin_current()))
        return standin_end(cudaErrorNoDevice);
    *total_bytes = atomic_load(&standin.memory_bytes);
    *free_bytes = *total_bytes - standin_memory_used(standin_current());
    return standin_end(cudaSuccess);
}

/* 0 without a driver, which is not an error. */
cudaError_t cudaDriverGetVersion(int *version)
{
    STANDIN_BEGIN_LIGHT;
    *version = atomic_load(&standin.no_driver) == 0 ? atomic_load(&standin.driver) : 0;
    return standin_end(cudaSuccess);
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    STANDIN_BEGIN_LIGHT;
    *version = STANDIN_RUNTIME;
    return standin_end(cudaSuccess);
}

const char *cudaGetErrorString(cudaError_t code)
{
    switch (code) {
    case cudaSuccess:
        return "no error";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorIllegalAddress:
        return "an illegal memory access was encountered";
    case cudaErrorInvalidValue:
        return "invalid argument";
    case cudaErrorInvalidResourceHandle:
        return "invalid resource handle";
    case cudaErrorStreamCaptureUnsupported:
        return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
        return "operation failed due to a previous error during capture";
    default:
        return "unknown error";
    }
}
