/* crossing.h - copies between a device and what lies beside it, on a stream of their own: host memory, or another
 * device of the same kind.
 *
 *   out     device ── from ─▶ via ──┐ copy stream ├──▶ page-locked host memory     await: the host waits
 *   in      page-locked memory ─────┤             ├──▶ device                      follow: its stream waits
 *   over    source ── from ─▶ via ──┘             └──▶ device                      follow
 *
 * A copy begins behind what is queued on the device that it comes from. `via` is memory of that device: from is
 * copied there first, on its own stream, and may be written over by what is queued next; NULL = from stays as
 * it is until the copy is over. Two slots are independent; the next copy of a slot in the same direction comes when the last is over.
 * Nothing here waits but await. All return 0 or STOKER_EDEVICE. */
#ifndef STK_TRAINER_BACKEND_COMMON_CROSSING_H
#define STK_TRAINER_BACKEND_COMMON_CROSSING_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

enum { STK_CROSSING_SLOTS = 2 };

struct stk_backend;
struct stk_crossing;

/* Sum of squares of gradients, and whether all are finite, as a device has it in its memory. */
struct stk_norm {
    double squared;
    uint32_t finite;
};

/* Without the end of the struct: there a device may have something else, which moves meanwhile. */
#define STK_NORM_BYTES (offsetof(struct stk_norm, finite) + sizeof(uint32_t))

struct stk_crossing_ops {
    int (*create)(struct stk_crossing **out, struct stk_backend *backend, stoker_error *error);
    void (*destroy)(struct stk_crossing *crossing); /* its copies are over first; NULL is allowed */
    /* Page-locked host memory; NULL = none left. */
    void *(*allocate)(struct stk_crossing *crossing, size_t bytes);
    void (*release)(struct stk_crossing *crossing, void *memory);
    int (*out)(struct stk_crossing *crossing, uint32_t slot, void *to, const void *from, void *via,
               size_t bytes, stoker_error *error);
    int (*await)(struct stk_crossing *crossing, uint32_t slot, stoker_error *error);
    int (*in)(struct stk_crossing *crossing, uint32_t slot, void *to, const void *from,
              size_t bytes, stoker_error *error);
    int (*over)(struct stk_crossing *crossing, struct stk_crossing *source, uint32_t slot, void *to,
                const void *from, void *via, size_t bytes, stoker_error *error);
    int (*follow)(struct stk_crossing *crossing, uint32_t slot, stoker_error *error);
    /* Where the back end has the norm that stk_backend_ops.norm found, and where it looks for that of the
     * gradients on the other device before an update. */
    struct stk_norm *(*own_norm)(struct stk_backend *backend);
    struct stk_norm *(*other_norm)(struct stk_backend *backend);
};

#endif
