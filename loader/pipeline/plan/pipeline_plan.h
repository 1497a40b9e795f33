/* pipeline_plan.h - chooses, once per loader, how rows get from storage into the batch.
 *
 *   facts: data set, options, cache ──stk_pipeline_plan_make, pure──▶ plan, constant from then on
 *
 *   GATHER          memory ─▶ transform, convert ─▶ rows of the slot, a span at a time
 *   READ_IN_PLACE   file ──read──▶ row of the slot
 *   READ_DECODE     file, memory or id ─▶ decode ─▶ transform, convert ─▶ row of the slot
 *
 * Each part of a sample has a route, chosen for the usual sample. A data set may mix raw and
 * encoded samples, in memory and in files, so row.c still looks at each sample.
 */
#ifndef STK_PIPELINE_PLAN_H
#define STK_PIPELINE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stoker/loader.h>

/* The slowest last. */
enum stk_route {
    STK_ROUTE_GATHER,        /* in memory as stored */
    STK_ROUTE_READ_IN_PLACE, /* raw, and delivered as stored */
    STK_ROUTE_READ_DECODE    /* decoded, converted or transformed on its way */
};

/* Where a part of sample 0 is, which represents all. */
enum stk_source { STK_SOURCE_MEMORY, STK_SOURCE_FILES, STK_SOURCE_IDS };

/* From a decoded row to the row of the slot. */
enum stk_finish { STK_FINISH_COPY, STK_FINISH_CONVERT, STK_FINISH_TRANSFORM };

/* What the cache holds. */
enum stk_cached {
    STK_CACHED_NOTHING,
    STK_CACHED_ENCODED, /* bytes as in the file */
    STK_CACHED_DECODED, /* rows as the data set describes them */
    STK_CACHED_RESIZED, /* images after resize, all of one size */
    STK_CACHED_PIECES,  /* of files, not samples */
    STK_CACHED_ON_GPU   /* rows as they cross the bus */
};

/* Which reader may replace one that fails. */
enum stk_reader_rule {
    STK_READER_ANY,     /* pread, when it opens or later: both deliver the same bytes */
    STK_READER_NAMED,   /* requested by name: pread only after it has opened */
    STK_READER_OWN,     /* the caller's own: no other reader may replace it */
    STK_READER_STORAGES /* OWN for files in storages or blocks, ANY for others */
};

struct stk_part_facts {
    enum stk_source source;
    bool has_codec;
    bool bytes_are_row; /* it has no codec, or one that only verifies */
    /* It fills one field, of one length, which is delivered as stored: its bytes may be read or
     * decoded in their row. */
    bool as_stored;
};

struct stk_pipeline_facts {
    enum stk_source source; /* the slowest part's */
    enum stk_route route;   /* the slowest part's */
    bool has_codec;         /* a part of sample 0 has one */
    bool has_files;         /* samples may be in files */
    bool any_size;          /* images may differ in size, and are resized */
    bool crops;             /* images of one size, of which a crop on the host leaves a part */
    bool transforms;        /* on the host */
    bool resizes_exactly;
    bool copies;   /* convert only copies: rows may be made in place */
    bool in_order; /* ids follow each other in a batch, so that neighbors may be read together */
    bool decodes_runs;  /* sample 0 has one part, and its codec decodes runs */
    bool one_part;      /* samples have one part */
    stoker_cache cache; /* the one that was made: NONE, ENCODED, DECODED or DEVICE */
    bool pieces;        /* ENCODED holds pieces of files, not samples */
    bool threads;       /* workers have threads */
    enum stk_reader_rule reader;
};

struct stk_pipeline_plan {
    enum stk_route route; /* the slowest part's */
    enum stk_source source;
    enum stk_finish finish; /* field 0's */
    enum stk_cached cached;
    enum stk_reader_rule reader;
    bool decodes;   /* time is spent in codecs, unless rows are resident */
    bool has_files; /* something may be read */
    bool any_size;  /* images are decoded in their own size */
    bool crops;     /* images of one size: only what the crop leaves is decoded, if the codec can */
    bool threads;   /* false: the only worker runs in any consumer thread */
    bool runs;      /* samples that lie side by side are read and decoded together (run.h) */
    bool runs_decode; /* the codec does them in one call, and little more than copy */
};

/* Returns true if a cache of decoded images holds them after resize: all resized to one size, and
 * not yet random. */
bool stk_pipeline_keeps_resized(const struct stk_pipeline_facts *facts);

enum stk_route stk_part_route(const struct stk_part_facts *part);

struct stk_pipeline_plan stk_pipeline_plan_make(const struct stk_pipeline_facts *facts);

/* Returns true if the cache holds samples. */
static inline bool stk_pipeline_plan_keeps_samples(const struct stk_pipeline_plan *plan)
{
    return plan->cached != STK_CACHED_NOTHING && plan->cached != STK_CACHED_PIECES;
}

/* Returns true if a sample may be read from its file every time. */
static inline bool stk_pipeline_plan_rereads(const struct stk_pipeline_plan *plan)
{
    return plan->has_files && !stk_pipeline_plan_keeps_samples(plan);
}

/* The plan in words: "read_decode: read, decoded, converted into the batch; cache: decoded
 * rows". */
void stk_pipeline_plan_print(const struct stk_pipeline_plan *plan, char *text, size_t text_bytes);

#endif
