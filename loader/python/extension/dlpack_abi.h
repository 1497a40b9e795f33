/* dlpack_abi.h - the structs of DLPack 1.x and 0.x, after its specification
 * (https://dmlc.github.io/dlpack/latest/c_api.html). Their layout is an ABI: it does not change
 * within major version 1. */
#ifndef STOKER_PYTHON_DLPACK_ABI_H
#define STOKER_PYTHON_DLPACK_ABI_H

#include <stdint.h>

typedef struct DLDevice {
    int32_t type; /* 1 = CPU, 2 = CUDA, 3 = page-locked host memory */
    int32_t index;
} DLDevice;

typedef struct DLTensor {
    void *data;
    DLDevice device;
    int32_t rank;
    uint8_t code; /* 0 int, 1 uint, 2 float, 4 bfloat, 6 bool */
    uint8_t bits;
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides; /* in elements */
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor tensor;
} DLManagedTensorVersioned;

typedef struct DLManagedTensor {
    DLTensor tensor;
    void *context;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

/* Since DLPack 1.2: functions of a framework in a capsule named "dlpack_exchange_api", an attribute
 * of its array's type. More members follow. */
typedef struct DLPackExchangeAPI {
    uint32_t major, minor;
    struct DLPackExchangeAPI *previous; /* the same for another major version, or NULL */
    void (*allocate)(void);             /* not called here, like the next one */
    void (*from_object)(void);
    /* Make an array, which owns the tensor; without synchronization. 0, or -1: an exception. */
    int (*to_object)(DLManagedTensorVersioned *tensor, void **object);
} DLPackExchangeAPI;

enum {
    DLPACK_CPU = 1,
    DLPACK_CUDA = 2,
    DLPACK_CUDA_HOST = 3,
    DLPACK_COPIED = 2 /* in flags */
};

_Static_assert(sizeof(void *) != 8 || sizeof(DLTensor) == 48, "DLPack's ABI");
_Static_assert(sizeof(void *) != 8 || sizeof(DLManagedTensor) == 64, "DLPack's ABI");
_Static_assert(sizeof(void *) != 8 || sizeof(DLManagedTensorVersioned) == 80, "DLPack's ABI");

#endif
