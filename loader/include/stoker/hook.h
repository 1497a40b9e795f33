/* stoker/hook.h - call your own code for every row and every batch, in the loader's workers.
 *
 *   decoded ─▶ built-in transforms, type, layout ─▶ row of the batch ─▶ row hook
 *   all rows of a batch complete ─▶ options.blend ─────────────────────▶ batch hook ─▶ next()
 *
 * A hook receives all fields in host memory, in the data set's order: field 0 as delivered, in
 * options.dtype and options.layout (as stored, if it varies); the others as stored, since
 * options.fields is applied and rows of different lengths are packed or padded later. A batch hook
 * also receives the fields of options.blend, after the others. With a hook the GPU neither converts
 * nor caches rows (stats.convert_reason says so); finished batches are copied to it.
 *
 * Determinism  A hook's generator depends only on (seed, epoch, sample id), for a batch on (seed,
 *              epoch, position). A row hook that uses only it and its row gives the same bytes with
 *              any number of workers, after a resume, and for a substitute of a bad sample. A batch
 *              hook's result also depends on batch size and world size, which decide what a batch
 *              holds.
 * Threads      apply() runs in several workers at once, each with its own scratch; with num_workers
 *              = 0 it runs in next(). `self` is shared: lock it to change it.
 * Failure      Return 0, or a stoker_err < 0, optionally with error->message. Any other value
 *              counts as STOKER_EINVAL. If a row hook fails, the sample is bad and
 *              options.on_bad_sample decides. If a batch hook fails, the run ends with its error.
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
    size_t struct_size; /* bytes filled in by the library: do not read later members */
    uint64_t id;
    uint64_t epoch;
    /* How the built-in transforms (stoker/transform.h) changed the image, to move boxes and points
     * along; all zero if none is set. Sizes and positions in pixels, after `resize` if it is set.
     *
     * The rectangle crop_height x crop_width at (crop_top, crop_left) of the source image was
     * resampled to grid_height x grid_width. The output shows out_height x out_width of that from
     * (y, x) on, filled outside of it. Then it was flipped left to right, and rotated around its
     * center. */
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

/* One field of all rows of a batch: row k begins at data + k * row_bytes. Its size never changes:
 * new members replace the reserved one. */
typedef struct stoker_hook_field {
    void *data;
    size_t row_bytes;
    /* [rows] elements of the first axis, if it varies; NULL = all rows have the same shape */
    uint64_t *lengths;
    uint64_t reserved;
} stoker_hook_field;

/* Describes a batch to a batch hook. */
typedef struct stoker_hook_batch {
    size_t struct_size; /* bytes filled in by the library: do not read later members */
    uint64_t epoch;
    uint64_t position;   /* position in the epoch of the batch's first row */
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
    int (*open)(void *self, void **scratch); /* open and close as in stoker_row_hook */
    void (*close)(void *self, void *scratch);

    /* Change the fields of all rows in place, fields[0..count). */
    int (*apply)(void *self, void *scratch, stoker_hook_field *fields, uint32_t count,
                 const stoker_hook_batch *batch, stoker_rng *rng, stoker_error *error);
} stoker_batch_hook;

STOKER_END_DECLS
#endif
