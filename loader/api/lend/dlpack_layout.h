/* dlpack_layout.h - the structs of DLPack 1.x, and that of 0.x, written after its specification
 * (https://dmlc.github.io/dlpack/latest/c_api.html). Their layout is an ABI: it does not change
 * within major version 1.
 */
#ifndef STK_DLPACK_LAYOUT_H
#define STK_DLPACK_LAYOUT_H

#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 0 };

typedef struct DLPackVersion {
    uint32_t major;
    uint32_t minor;
} DLPackVersion;

typedef enum DLDeviceType { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 } DLDeviceType;

typedef struct DLDevice {
    int32_t device_type; /* DLDeviceType */
    int32_t device_id;
} DLDevice;

typedef enum DLDataTypeCode {
    kDLInt = 0,
    kDLUInt = 1,
    kDLFloat = 2,
    kDLBfloat = 4,
    kDLBool = 6
} DLDataTypeCode;

typedef struct DLDataType {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* in elements */
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags; /* bit 0 read-only, bit 1 copied */
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

/* The struct of DLPack 0.x, which has no version. */
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

_Static_assert(sizeof(void *) != 8 || sizeof(DLManagedTensor) == 64, "DLPack's ABI");
_Static_assert(sizeof(void *) != 8 || sizeof(DLTensor) == 48, "DLPack's ABI");
_Static_assert(sizeof(void *) != 8 || sizeof(DLManagedTensorVersioned) == 80, "DLPack's ABI");

#endif
