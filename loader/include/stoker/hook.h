/* stoker/hook.h - your own code on every row, and on every batch, in the loader's workers.
 *
 *   decoded ─▶ built-in transforms, type, layout ─▶ row of the batch ─▶ row hook
 *   all rows of a batch complete ─▶ options.blend ─────────────────────▶ batch hook ─▶ next()
 *
 * A hook sees all fields, in the data set's order: field 0 as it is delivered, in options.dtype and
 * options.layout (as stored, if it varies); the others as stored, since options.fields changes
 * their types afterwards, and rows of different lengths are packed or padded after that. A batch
 * hook also sees those of options.blend, behind them. They are in host memory. Then the GPU neither
 * converts nor caches rows (stats.convert_reason says so); finished batches are copied to it.
 *
 * Determinism  The generator that a hook gets depends only on (seed, epoch, sample id), or for a
 *              batch on (seed, epoch, position). A hook that uses nothing else but its rows gives
 *              the same bytes with any number of workers, after a resume, and for a substitute of a
 *              bad sample. What a batch holds depends on the batch size and the world size, and so
 *              does what a batch hook does.
 * Threads      apply() runs in several workers at once, each with its own scratch; with num_workers
 *              = 0 it runs in next(). `self` is shared: change it only with a lock of your own.
 * Failure      Return 0, or a stoker_err < 0 with error->message if there is more to say. Any other
 *              value counts as STOKER_EINVAL. A row that fails makes its sample bad:
 *              options.on_bad_sample decides. A batch that fails ends the run with its error.
 */
#ifndef STOKER_HOOK_H
#define STOKER_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/codec.h>
#include <stoker/error.h>
#include <stoker/export.h>
#include <stoker/rng.h>

STOKER_BEGIN_DECLS

/* Describes a sample to a row hook. */
typedef struct stoker_hook_sample {
    size_t struct_size; /* bytes that the library filled in: later members are not there */
    uint64_t id;
    uint64_t epoch;
    /* What the built-in transforms did to the image (stoker/transform.h), in this order, so that
     * boxes and points can follow it. All zero if none is set. `resize` comes before it: then these
     * are sizes and positions after it.
     *
     * The rectangle crop_height x crop_width at (crop_top, crop_left) of the source image was
     * resampled to grid_height x grid_width pixels; of these the output shows out_height x
     * out_width from (y, x) on, which may lie outside: there it is filled. Then it was flipped left
     * to right, and rotated around its center. Sizes in pixels. */
    uint32_t source_height, source_width;
    uint32_t crop_top, crop_left, crop_height, crop_width;
    uint32_t grid_height, grid_width;
    int32_t y, x;
    uint32_t out_height, out_width;
    bool flip;
    double angle; /* degrees counter-clockwise */
} stoker_hook_sample;

/* Called for every row once it is complete. Start from { .struct_size = sizeof(stoker_row_hook)
 * }. */
typedef struct stoker_row_hook {
    size_t struct_size;
    const char *name; /* for error messages; NULL = "row hook" */
    void *self;       /* passed to each call; may be NULL */

    /* Make and free the scratch of one worker. Optional: NULL = no scratch. open() is called by
     * create, once per worker; if it fails, so does create. close() is called by destroy, after all
     * workers have ended. */
    int (*open)(void *self, void **scratch);
    void (*close)(void *self, void *scratch);

    /* Change the fields of one row in place, fields[0..count). Sizes are fixed: leave data and
     * bytes_max. The length of a field that varies may change, up to the longest that the data set
     * allows. */
    int (*apply)(void *self, void *scratch, stoker_row *fields, uint32_t count,
                 const stoker_hook_sample *sample, stoker_rng *rng, stoker_error *error);
} stoker_row_hook;

/* One field of all rows of a batch: row k begins at data + k * row_bytes. New members take the
 * reserved ones' place. */
typedef struct stoker_hook_field {
    void *data;
    size_t row_bytes;
    /* [rows] elements of the first axis, if it varies; NULL = all rows have the same shape */
    uint64_t *lengths;
    uint64_t reserved;
} stoker_hook_field;

/* Describes a batch to a batch hook. */
typedef struct stoker_hook_batch {
    size_t struct_size; /* bytes that the library filled in: later members are not there */
    uint64_t epoch;
    uint64_t position;   /* the first row's, in the epoch */
    const uint64_t *ids; /* [rows] sample ids */
    uint32_t rows;       /* >= 1 */
} stoker_hook_batch;

/* Called once for every batch that has rows, by the worker that completed its last row, before
 * next() can return it. Not with on_bad_sample SKIP, which leaves gaps between the rows until the
 * batch is delivered: create refuses both. */
typedef struct stoker_batch_hook {
    size_t struct_size;
    const char *name; /* for error messages; NULL = "batch hook" */
    void *self;
    int (*open)(void *self, void **scratch); /* both as for rows */
    void (*close)(void *self, void *scratch);

    /* Change the fields of all rows in place, fields[0..count). */
    int (*apply)(void *self, void *scratch, stoker_hook_field *fields, uint32_t count,
                 const stoker_hook_batch *batch, stoker_rng *rng, stoker_error *error);
} stoker_batch_hook;

STOKER_END_DECLS
#endif
