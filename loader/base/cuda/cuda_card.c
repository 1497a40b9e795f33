/* cuda_card.c - see cuda_card.h. */
#ifdef STOKER_HAVE_CUDA
#include "loader/base/cuda/cuda_card.h"

#include <stdio.h>
#include <stdlib.h>
#include <stoker/error.h>
#include <string.h>

/* The first driver for each major version of CUDA; source: CUDA Toolkit Release Notes, table "CUDA
 * Toolkit and Minimum Required Driver Version for CUDA Minor Version Compatibility". */
static int first_driver(int cuda_major)
{
    return cuda_major >= 13 ? 580 : 525;
}

/* ---- count --------------------------------------------------------------- */

/* Returns false if there is no driver at all, which is the same error. */
static bool explain_old_driver(const struct stk_cuda_runtime *runtime, char *why, size_t why_bytes)
{
    int driver = 0, has = 0;
    if (runtime->cudaDriverGetVersion(&driver) != cudaSuccess ||
        runtime->cudaRuntimeGetVersion(&has) != cudaSuccess)
        (void)runtime->cudaGetLastError();
    if (driver == 0 || has == 0)
        return false;
    (void)snprintf(
        why, why_bytes,
        "the driver is for CUDA %d.%d, libcudart is of %d.%d: install NVIDIA's driver %d "
        "or later, or build with CUDA %d",
        driver / 1000, driver % 1000 / 10, has / 1000, has % 1000 / 10, first_driver(has / 1000),
        driver / 1000);
    return true;
}

int stk_cuda_count(const struct stk_cuda_runtime *runtime, int *count, char *why, size_t why_bytes)
{
    int found = 0;
    const cudaError_t code = runtime->cudaGetDeviceCount(&found);
    (void)runtime->cudaGetLastError(); /* not the program's error */
    if (code == cudaErrorInsufficientDriver && explain_old_driver(runtime, why, why_bytes))
        return STOKER_EDEVICE;
    if (code != cudaSuccess)
        (void)snprintf(why, why_bytes, "%s (%d)", runtime->cudaGetErrorString(code), (int)code);
    else if (found <= 0)
        (void)snprintf(why, why_bytes, "the CUDA runtime sees no GPU");
    else {
        *count = found;
        return STOKER_OK;
    }
    return STOKER_EDEVICE;
}

/* ---- describe ------------------------------------------------------------ */

/* Larger than the struct of any version. */
union properties {
    struct cudaDeviceProp of_this_build;
    char room[4096];
};

/* What CUDA 12 and 13 have in the same places; in 12 `clockRate` fills the gap before
 * totalConstMem. */
_Static_assert(offsetof(struct cudaDeviceProp, uuid) == 256, "of 12 and 13");
_Static_assert(offsetof(struct cudaDeviceProp, totalGlobalMem) == 288, "of 12 and 13");
_Static_assert(offsetof(struct cudaDeviceProp, major) == 360, "of 12 and 13");
_Static_assert(offsetof(struct cudaDeviceProp, minor) == 364, "of 12 and 13");

static cudaError_t read_attributes(const struct stk_cuda_runtime *runtime, int device,
                                   struct stk_cuda_card *out)
{
    int pageable = 0;
    const struct {
        enum cudaDeviceAttr attribute;
        int *value;
    } rows[] = {
        { cudaDevAttrPciDomainId, &out->pci_domain },
        { cudaDevAttrPciBusId, &out->pci_bus },
        { cudaDevAttrPciDeviceId, &out->pci_device },
        { cudaDevAttrPageableMemoryAccess, &pageable },
    };
    cudaError_t code = cudaSuccess;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && code == cudaSuccess; i++)
        code = runtime->cudaDeviceGetAttribute(rows[i].value, rows[i].attribute, device);
    out->reads_pageable = pageable != 0;
    return code;
}

cudaError_t stk_cuda_card_read(const struct stk_cuda_runtime *runtime, int device,
                               struct stk_cuda_card *out)
{
    union properties found;
    memset(out, 0, sizeof(*out));
    cudaError_t code = runtime->device_properties(&found, device);
    if (code == cudaSuccess)
        code = read_attributes(runtime, device, out);
    if (code == cudaSuccess)
        code = runtime->cudaDriverGetVersion(&out->driver);
    if (code != cudaSuccess)
        return code;
    const struct cudaDeviceProp *const properties = &found.of_this_build;
    _Static_assert(sizeof(out->name) == sizeof(properties->name), "copied whole");
    _Static_assert(sizeof(out->id) == sizeof(properties->uuid), "copied whole");
    memcpy(out->name, properties->name, sizeof(out->name) - 1);
    memcpy(out->id, &properties->uuid, sizeof(out->id));
    out->memory_bytes = properties->totalGlobalMem;
    out->major = properties->major;
    out->minor = properties->minor;
    return cudaSuccess;
}

/* ---- kernels ------------------------------------------------------------- */

enum fit { NONE, BY_PTX, BY_CODE };

/* "10.0" = 100. *end is behind it. */
static int capability(const char *text, const char **end)
{
    char *point;
    const long major = strtol(text, &point, 10);
    const long minor = *point == '.' ? strtol(point + 1, &point, 10) : 0;
    *end = point;
    return (int)(major * 10 + minor);
}

static enum fit find_fit(int card, const char *targets)
{
    enum fit best = NONE;
    bool ptx = false;
    for (const char *at = targets; *at != '\0';) {
        if (*at == ' ') {
            at++;
        } else if (strncmp(at, "PTX", 3) == 0) {
            ptx = true;
            at += 3;
        } else {
            const int target = capability(at, &at);
            if (!ptx && card / 10 == target / 10 && card >= target)
                best = BY_CODE;
            else if (ptx && best == NONE && card >= target)
                best = BY_PTX;
        }
    }
    return best;
}

bool stk_cuda_card_runs(const struct stk_cuda_card *card, int toolkit, const char *targets,
                        char *why, size_t why_bytes)
{
    const enum fit fit = find_fit(card->major * 10 + card->minor, targets);
    if (fit == NONE) {
        (void)snprintf(why, why_bytes,
                       "%.40s has compute capability %d.%d; the kernels of this build are for %s",
                       card->name, card->major, card->minor, targets);
        return false;
    }
    if (fit == BY_CODE ? card->driver / 1000 >= toolkit / 1000 : card->driver >= toolkit)
        return true;
    if (fit == BY_CODE)
        (void)snprintf(
            why, why_bytes,
            "the driver is for CUDA %d.%d, the kernels of this build need CUDA %d: install "
            "NVIDIA's driver %d or later",
            card->driver / 1000, card->driver % 1000 / 10, toolkit / 1000,
            first_driver(toolkit / 1000));
    else
        (void)snprintf(
            why, why_bytes,
            "the driver is for CUDA %d.%d; to compile the kernels of this build for %.40s it "
            "must be for CUDA %d.%d or later",
            card->driver / 1000, card->driver % 1000 / 10, card->name, toolkit / 1000,
            toolkit % 1000 / 10);
    return false;
}
#else
typedef int stk_cuda_card_not_in_this_build; /* ISO C wants a declaration in every file */
#endif
