/* transfer.h - copies between a device and the host, or a peer device, on a stream of their own.
 *
 *   to_host     device ── from ─▶ via ──┐ copy stream ├──▶ page-locked host memory     wait: the host waits
 *   from_host   page-locked memory ─────┤             ├──▶ device                      stream_wait
 *   from_peer   peer   ── from ─▶ via ──┘             └──▶ device                      stream_wait
 *
 * A copy starts after what is already queued on its source device. `via` is memory of that device:
 * `from` is first copied there on the device's own stream, and may then be overwritten by what is
 * queued next. via = NULL: `from` must stay unchanged until the copy is done. The slots are
 * independent; start the next copy of a slot in the same direction only when the last is done. Only
 * wait() blocks. All return 0 or STOKER_EDEVICE. */
#ifndef STK_TRAINER_BACKEND_COMMON_TRANSFER_H
#define STK_TRAINER_BACKEND_COMMON_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

enum { STK_TRANSFER_SLOTS = 2 };

struct stk_backend;
struct stk_transfer;

/* The norm of a device's gradients, as it lies in device memory. */
struct stk_norm {
    double squared;  /* sum of squares */
    uint32_t finite; /* 1 = all gradients are */
};

/* The size without trailing padding, where a device may keep something else. */
#define STK_NORM_BYTES (offsetof(struct stk_norm, finite) + sizeof(uint32_t))

struct stk_transfer_ops {
    int (*create)(struct stk_transfer **out, struct stk_backend *backend, stoker_error *error);
    void (*destroy)(struct stk_transfer *transfer); /* waits for its copies; NULL-safe */
    /* Page-locked host memory; NULL: out of memory. */
    void *(*allocate)(struct stk_transfer *transfer, size_t bytes);
    void (*release)(struct stk_transfer *transfer, void *memory);
    int (*to_host)(struct stk_transfer *transfer, uint32_t slot, void *to, const void *from,
                   void *via, size_t bytes, stoker_error *error);
    int (*wait)(struct stk_transfer *transfer, uint32_t slot, stoker_error *error);
    int (*from_host)(struct stk_transfer *transfer, uint32_t slot, void *to, const void *from,
                     size_t bytes, stoker_error *error);
    int (*from_peer)(struct stk_transfer *transfer, struct stk_transfer *peer, uint32_t slot,
                     void *to, const void *from, void *via, size_t bytes, stoker_error *error);
    int (*stream_wait)(struct stk_transfer *transfer, uint32_t slot, stoker_error *error);
    /* Let two devices copy from each other's memory directly, which the process can do from then
     * on. Returns false if they cannot: then from_peer() goes through host memory, which CUDA takes
     * for it. */
    bool (*reach)(struct stk_transfer *transfer, struct stk_transfer *peer);
    /* Device memory: the norm that queue_norm computed, and the peer's norm, which the update
     * reads. */
    struct stk_norm *(*local_norm)(struct stk_backend *backend);
    struct stk_norm *(*peer_norm)(struct stk_backend *backend);
};

#endif
