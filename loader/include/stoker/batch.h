/* stoker/batch.h - a batch of samples: its fields, and how to release it.
 *
 *   next() ──▶ lent: read and write its rows ──▶ release: the workers refill its memory
 */
#ifndef STOKER_BATCH_H
#define STOKER_BATCH_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/export.h>
#include <stoker/field.h>
#include <stoker/options.h>
#include <stoker/tensor.h>

STOKER_BEGIN_DECLS

struct stoker_loader;

/* One batch, borrowed from the loader until it is released. Start from STOKER_BATCH_INIT. */
typedef struct stoker_batch {
    size_t struct_size; /* set by STOKER_BATCH_INIT; kept by next and release */
    /* [count, ...]; shape as the data set's or after options.transform; in options.layout */
    stoker_tensor images;
    stoker_tensor labels; /* [count]; dtype NONE and data NULL if there are no labels */
    /* All fields in the data set's order, then those of options.blend; stoker_batch_field() finds
     * one by name. images shows the values of field 0, labels those of the field "label" if it is
     * one int64 or float32 per sample. */
    const stoker_field *fields;
    uint32_t field_count;
    const uint64_t *ids; /* [count] sample ids, in host memory */
    /* Samples: batch_size, or fewer in an epoch's last batch, after skips and with
     * batch_values_max; then possibly 0, since all ranks get the same number of batches. */
    uint32_t count;
    /* The last `padded` samples repeat others of the epoch: options.last is PAD or EVEN. */
    uint32_t padded;
    uint64_t epoch; /* 0, 1, ... */
    /* Index in the epoch, 0 .. batches_per_epoch - 1. Continues after a resume; if batch or world
     * size changed, it is chosen so that the epoch's last batch has the last index. */
    uint64_t index;
    stoker_device device;         /* where images and labels lie; never AUTO */
    uint32_t device_index;        /* the GPU; 0 on the CPU */
    const uint64_t *device_ids;   /* [count] the same ids, where images lie */
    struct stoker_loader *loader; /* private */
    void *lease;                  /* private */
    uint64_t turn;                /* private */
} stoker_batch;

#define STOKER_BATCH_DEFAULTS STOKER_DEFAULT(struct_size, sizeof(stoker_batch))

STOKER_MAKER(stoker_batch, STOKER_BATCH_DEFAULTS)
#define STOKER_BATCH_INIT STOKER_INITIALIZER(stoker_batch, STOKER_BATCH_DEFAULTS)
STOKER_API int stoker_batch_init_sized(stoker_batch *out, size_t struct_size);

/* Return the field of a batch with that name, valid until the batch is released; NULL if there is
 * none, the batch is not lent, or an argument is NULL. Any thread. */
STOKER_API const stoker_field *stoker_batch_field(const stoker_batch *batch, const char *name);

/* Return a batch to the loader. Its pointers become invalid, and *batch is zeroed except for
 * struct_size. Batches may be released in any order, also after the loader is destroyed: the last
 * release then frees their memory, so release each batch once. NULL and a released or empty batch
 * are allowed. A batch on a GPU is released as by stoker_batch_release_on() (stoker/cuda.h), on the
 * stream that last waited for it, else on the default stream. Consumer thread; any thread if
 * options.on_lent is WAIT or GROW, or once the loader is destroyed. */
STOKER_API void stoker_batch_release(stoker_batch *batch);

STOKER_END_DECLS
#endif
