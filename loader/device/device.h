/* device.h - where batches go, and how they get there: one vtable for every kind of device.
 *
 *   cpu    the slot itself is lent: no copy, no stream, none of the hooks below
 *   cuda   the slot is copied to a buffer in the GPU's memory, on a stream of the device's own;
 *          kernels that change it there have another: the next copy does not wait for them
 *   cuda-host   as cpu, but the slots are page-locked for a GPU: the consumer issues the copy
 *
 * An event is a mark on a stream: it is done once everything before it on the stream is done.
 * One that was never marked counts as done. Events and streams are the device's own handles; the
 * consumer's streams are passed through; CUDA finds out if they are wrong.
 *
 * Errors are sticky: the first one is kept in words, and from then on `send` answers
 * STOKER_EDEVICE without a copy. A device is used by one thread, the loader's consumer, except for
 * mark_on: the thread that releases the last reference to a batch may call it.
 */
#ifndef STK_DEVICE_DEVICE_H
#define STK_DEVICE_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/loader.h>

#include "loader/base/memory/memory.h"

enum { STK_DEVICE_WHY_BYTES = 192, STK_BUS_ADDRESS_BYTES = 16 };

struct stk_device;

/* Kernels for several GPUs, as nvcc writes them. */
struct stk_device_image {
    const void *bytes;
    int toolkit;       /* CUDA version of nvcc: 13000 = 13.0 */
    const char *cards; /* GPUs that it is for: loader/base/cuda/cuda_card.h */
};

/* A kernel with one argument, a struct of plain data whose pointers are the device's. */
struct stk_device_launch {
    void *kernel;
    uint32_t grid_x, grid_y; /* blocks */
    uint32_t block_threads;
    const void *arguments;
};

/* Bytes to copy. */
struct stk_send_piece {
    void *to;         /* device memory */
    const void *from; /* may be written again once the batch's `done` is done */
    size_t bytes;     /* >= 1 */
    bool within;      /* from is memory of the device, too; else of the host */
};

/* One batch on its way: copies in the order of send(), and behind each its kernels, in that order,
 * too. */
struct stk_send {
    const struct stk_send_piece *pieces;
    uint32_t piece_count;
    void *after, *after_kernels; /* events that the copy waits for, on the device; NULL = none */
    void *copied;                /* event to mark after the copy */
    const struct stk_device_launch *launches; /* kernels after the copy, in this order */
    uint32_t launch_count;
    void *ready; /* event to mark after them; not used if there are none */
};

struct stk_device_ops {
    const char *name; /* "cpu", "cuda", "cuda-host" */
    stoker_device kind;

    /* Open device number `index`. 0, STOKER_ENOMEM, or STOKER_EDEVICE with the reason in `why`. */
    int (*open)(struct stk_device **out, uint32_t index, char why[STK_DEVICE_WHY_BYTES]);
    /* Free the device itself; its memory and events are destroyed before. NULL: stk_free() is
     * enough. */
    void (*close)(struct stk_device *device);

    /* The PCI address, as "0000:17:00.0", of device number `index` of this kind. Returns false if
     * there is no such device or its address is unknown; the device stays usable. NULL: it is not
     * on such a bus. */
    bool (*bus_address)(struct stk_device *device, uint32_t index,
                        char address[STK_BUS_ADDRESS_BYTES]);

    /* Page-lock a region so that the device reads it by itself; sets region->locked. NULL: mlock
     * does. On failure the reason in `why` and STOKER_EPIN, and then the device stays usable, or
     * EDEVICE. */
    int (*pin)(struct stk_device *device, struct stk_region *region,
               char why[STK_DEVICE_WHY_BYTES]);
    void (*unpin)(struct stk_device *device, struct stk_region *region);

    /* Device memory, aligned to 256 bytes; the host must not touch it. Returns NULL with the reason
     * in `why` if there is none; the device stays usable. This hook and all that follow are NULL if
     * batches are lent in place. */
    void *(*alloc)(struct stk_device *device, size_t bytes, char why[STK_DEVICE_WHY_BYTES]);
    void (*free)(struct stk_device *device, void *memory);
    /* Bytes of device memory that are free now. 0, or STOKER_EDEVICE and the reason in `why`: the
     * device stays usable. */
    int (*available)(struct stk_device *device, uint64_t *bytes, char why[STK_DEVICE_WHY_BYTES]);
    /* NULL, with the reason in `why`, if it failed: the device stays usable. */
    void *(*event_create)(struct stk_device *device, char why[STK_DEVICE_WHY_BYTES]);
    void (*event_destroy)(struct stk_device *device, void *event);

    /* Find a kernel in an image. 0, or STOKER_EDEVICE and the reason in `why`: the device stays
     * usable. What is loaded stays until close. */
    int (*load)(struct stk_device *device, const struct stk_device_image *image, const char *name,
                void **kernel, char why[STK_DEVICE_WHY_BYTES]);

    int (*send)(struct stk_device *device, const struct stk_send *send);
    /* The next three take a stream of the consumer. If that is the wrong one they return
     * STOKER_EINVAL with the reason in `why`: nothing has happened, and the device stays usable. */

    /* The stream waits for the event; the host does not. event NULL: only look if the stream can be
     * used. */
    int (*wait_on)(struct stk_device *device, void *event, void *stream,
                   char why[STK_DEVICE_WHY_BYTES]);
    /* Mark the event after what is on the stream. */
    int (*mark_on)(struct stk_device *device, void *event, void *stream,
                   char why[STK_DEVICE_WHY_BYTES]);
    /* The host waits for what is on the stream. Only if batches are lent in place;
     * NULL: the consumer has no streams. */
    int (*finish)(struct stk_device *device, void *stream, char why[STK_DEVICE_WHY_BYTES]);
    /* 1 = done, 0 = not yet, or the error. */
    int (*done)(struct stk_device *device, void *event);
    /* The host waits, until deadline_ns (UINT64_MAX = no limit). As done(). It sleeps; if a core is
     * spare it spins for a short time first, as long as a sleep and its end take. */
    int (*wait)(struct stk_device *device, void *event, uint64_t deadline_ns, bool spare_core);
    /* The same for everything ever sent, also after a failure. True: the device will not touch
     * our memory again. */
    bool (*drain)(struct stk_device *device, uint64_t deadline_ns);
};

/* The part that all devices have: the first member of each implementation's own struct. */
struct stk_device {
    const struct stk_device_ops *ops;
    uint32_t index;
    _Atomic uint32_t failed;            /* 0 no, 1 being written, 2 failure[] is set. Release (2)
                                         pairs with acquire in stk_device_failure */
    char failure[STK_DEVICE_WHY_BYTES]; /* the first error in words */
};

extern const struct stk_device_ops stk_device_cpu;
extern const struct stk_device_ops stk_device_cuda_host;
extern const struct stk_device_ops stk_device_cuda; /* fails to open in a build without CUDA */

/* Open device `index` of a kind. AUTO is what the environment variable STOKER_DEVICE names ("cpu",
 * "cuda", "cuda:1"), else the first GPU, else the CPU. `why` receives the reason for the choice.
 * Returns 0, STOKER_ENOMEM, STOKER_EINVAL (STOKER_DEVICE is not understood) or STOKER_EDEVICE. */
int stk_device_choose(struct stk_device **out, stoker_device kind, uint32_t index,
                      char why[STK_DEVICE_WHY_BYTES], stoker_error *error);

/* NULL is allowed. */
void stk_device_close(struct stk_device *device);

/* Returns true if batches must be copied there. */
static inline bool stk_device_copies(const struct stk_device *device)
{
    return device->ops->send != NULL;
}

/* The first error in words; NULL if there was none. Any thread. */
const char *stk_device_failure(const struct stk_device *device);

/* Record an error if it is the first; returns STOKER_EDEVICE. Any thread. */
int stk_device_fail(struct stk_device *device, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
