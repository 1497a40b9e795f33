/* file.h - open an IDX file and check its header. */
#ifndef STK_DATASETS_IDX_FILE_H
#define STK_DATASETS_IDX_FILE_H

#include <stdint.h>
#include <stoker/dataset.h>

#include "datasets/source.h"
#include "loader/base/memory/memory.h"

enum {
    STK_IDX_RANK_MAX = STOKER_RANK_MAX - 1,
    STK_IDX_HEADER_BYTES_MAX = 4 + 4 * STK_IDX_RANK_MAX
};

/* The checked header. */
struct stk_idx_header {
    stoker_dtype dtype;
    uint32_t rank;                      /* 1..7, with the axis of samples */
    uint32_t lengths[STK_IDX_RANK_MAX]; /* per axis, >= 1 */
    uint32_t header_bytes;              /* 4 + 4 x rank */
    uint32_t row_bytes;                 /* one sample, 1 byte..1 GiB */
};

/* Plain file: source stays open, unpacked.base is NULL. Gzip: source is closed. */
struct stk_idx_file {
    char *path;
    struct stk_source source;
    struct stk_region unpacked;
    struct stk_idx_header header;
};

/* Open a plain or gzip file of at most options->max_bytes unpacked. On failure everything is
 * closed. */
int stk_idx_file_open(struct stk_idx_file *out, const char *path,
                      const stoker_dataset_options *options, stoker_error *error);
void stk_idx_file_close(struct stk_idx_file *file);

#endif
