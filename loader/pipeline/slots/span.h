/* span.h - rows of one batch that one worker fills, and what its loop passes between row and fetch.
 *
 *   worker ──▶ claim ──▶ span: ids ──▶ row ──▶ orders ──▶ fetch ──▶ completions ──▶ row
 *
 * A sample has part_count parts, each an extent that is read and decoded for itself. A span
 * belongs to one worker.
 */
#ifndef STK_PIPELINE_SPAN_H
#define STK_PIPELINE_SPAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/dataset.h>

#include "loader/dataset/dataset.h"
#include "loader/pipeline/report/bad_samples.h"
#include "loader/pipeline/slots/slots.h"

enum { STK_SPAN_ROWS_MAX = 512, STK_AHEAD_ROWS_MAX = 16 };

/* Some of the rows of a ticket, in progress. */
struct stk_span {
    bool active;
    bool resident;          /* every row is in memory, at sources[]; samples[] is unused */
    bool from_cache;        /* resident: sources[] are records of the cache, not parts as stored */
    bool on_device;         /* resident in GPU memory: nothing to do on the host */
    uint32_t capacity;      /* rows that fit */
    uint32_t ticket_shares; /* shares of the ticket that the span holds */
    uint64_t batch;
    struct stk_slot *slot;
    uint64_t epoch;
    uint64_t position;  /* position of row first_row in the epoch */
    uint32_t first_row; /* its first row's number in the batch */
    uint32_t rows;
    uint32_t part_count; /* parts of each sample */
    uint32_t started;    /* rows started, in order */
    uint32_t left;       /* rows not complete yet */
    uint32_t turn;       /* when the rows not started were located: see recall.h */
    /* resident: stk_span_sources() */
    const void **sources;
    stoker_part *samples; /* not resident: [row x part_count + part], where each part is */
    uint8_t *attempts;    /* substitutes tried, per row */
    stoker_size *sizes;   /* each row's image before the transforms; NULL without a row hook */
    uint8_t *parts_left;  /* parts not complete yet, per row */
    /* [row x part_count + part] size of each image or mask as stored; NULL unless masks differ in
     * size. */
    stoker_size *part_sizes;
    uint8_t **records; /* per row, the sample's record in the cache while it is filled, or NULL */
};

/* The addresses of a part in all rows of a resident span, then in the first rows of the next
 * span. With from_cache part 0 has the records, and the other parts have none. */
static inline const void **stk_span_sources(const struct stk_span *span, uint32_t part)
{
    return span->sources + (size_t)part * (span->capacity + STK_AHEAD_ROWS_MAX);
}

static inline stoker_part *stk_span_part(const struct stk_span *span, uint32_t row, uint32_t part)
{
    return &span->samples[(uint64_t)row * span->part_count + part];
}

static inline uint64_t *stk_span_id(const struct stk_span *span, uint32_t row)
{
    return &span->slot->ids[span->first_row + row];
}

/* One part of a row. */
struct stk_part_ref {
    struct stk_span *span;
    uint32_t row; /* in the span */
    uint32_t part;
    const uint8_t *bytes; /* as stored; NULL until they are in memory */
    size_t size;
};

static inline const stoker_part *stk_ref_part(const struct stk_part_ref *ref)
{
    return stk_span_part(ref->span, ref->row, ref->part);
}

static inline uint64_t stk_ref_id(const struct stk_part_ref *ref)
{
    return *stk_span_id(ref->span, ref->row);
}

/* What a codec gets of a part whose bytes are in memory. */
static inline stoker_encoded stk_ref_encoded(const struct stk_part_ref *ref)
{
    const stoker_part *part = stk_ref_part(ref);
    return (stoker_encoded){ .bytes = ref->bytes,
                             .size = ref->size,
                             .sample = stk_codec_id(part, stk_ref_id(ref)),
                             .tag = part->tag };
}

/* A read that row asks for. */
struct stk_read_order {
    struct stk_span *span;
    uint32_t row; /* in the span */
    uint32_t part;
    uint8_t *to; /* NULL = memory of fetch, until the completion is given back */
    uint64_t offset;
    uint32_t bytes;
    uint32_t block_rows; /* > 0: fills a cache block of this many samples; passed through */
    /* > 1: rows from `row` on are read together; passed through, with run_step. */
    uint32_t run_rows;
    uint32_t run_step; /* bytes from one of them to the next */
};

/* A read that has ended. */
struct stk_completion {
    struct stk_fetch *fetch; /* to be given back */
    struct stk_span *span;   /* NULL: the read continues, there is nothing to take yet */
    uint32_t row;
    uint32_t part;
    uint32_t block_rows;
    uint32_t run_rows;
    uint32_t run_step;
    uint32_t size;        /* bytes; all that were ordered, unless it failed */
    const uint8_t *bytes; /* until the completion is given back */
    int code;             /* 0, or a stoker_err, which the four fields below explain */
    int os_errno;
    uint64_t offset;      /* first missing byte in the file */
    bool alone_may_work;  /* the read of a block or run failed, perhaps because of another row */
    bool nothing_is_read; /* there is no ring any more */
    char what[256];       /* details beyond the code, or "" */
};

#endif
