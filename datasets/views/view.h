/* view.h - the common part of all views: the wrapped data sets, a map of ids, and forwarded
 * callbacks.
 *
 *   id of the view ──▶ take_run ──▶ (source, ids of the source) ──▶ its callbacks
 *
 * A kind of view (select, split, ...) fills in how ids map; view.c alone calls the wrapped data
 * sets.
 */
#ifndef STK_DATASETS_VIEWS_VIEW_H
#define STK_DATASETS_VIEWS_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/views.h>

#include "loader/sampler/mix.h"
#include "loader/sampler/sampler.h"

enum { STK_VIEW_RUN_MAX = 128 }; /* ids mapped at a time: 1 KiB of the stack per view */

/* One wrapped data set. */
struct stk_view_source {
    stoker_dataset *dataset; /* held */
    uint64_t end;            /* the view's ids of this source end here; of concat and mix only */
    uint64_t block_end;      /* and so do its blocks, if all sources have some */
    uint32_t first_file;     /* number of its file 0 in the view */
    uint32_t directory; /* number of its directory among the view's files; STK_VIEW_NO_DIRECTORY */
};

#define STK_VIEW_NO_DIRECTORY UINT32_MAX

struct stk_view {
    stoker_dataset_ops ops;
    stoker_dataset_info info; /* what describe() answers; begins as that of source 0 */

    /* Map the first of `count` >= 1 ids to ids of one source: up to STK_VIEW_RUN_MAX of them.
     * Returns their number. */
    uint32_t (*take_run)(const struct stk_view *view, const uint64_t *ids, uint32_t count,
                         uint64_t *mapped, const struct stk_view_source **source);

    uint64_t *ids;                  /* select, stratified split: [info.count]; else NULL */
    struct stk_sampler permutation; /* split */
    struct stk_sampler_order order; /* split */
    uint64_t first_position;        /* split: where the side begins in the permutation */
    const double *class_weights;    /* balance: one for each label; else NULL */
    struct stk_mix_plan *mix;       /* mix: owned; else NULL */
    char *description;              /* concat, mix: owned; else NULL */
    stoker_field_info *fields; /* concat, mix: [info.field_count]; else NULL = those of source 0 */

    /* Some sources make their samples; some read them. If both are true the view makes all: it
     * reads those of the latter in make(), one by one. */
    bool makes;
    bool reads;
    uint32_t source_count;
    struct stk_view_source sources[]; /* [source_count] */
};

/* Where an error message says it comes from: "select", "split", ... */
struct stk_view_making {
    const char *name; /* static */
    stoker_error *error;
};

/* Set the error "NAME: WHAT" and return code. */
int stk_view_refuse(const struct stk_view_making *making, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Make a view of `count` data sets, which it holds from now on. Its info is that of the first,
 * without hints that a map of ids breaks (dense, rows, blocks). Errors: STOKER_EINVAL,
 * STOKER_ELIMIT (too deep), STOKER_ENOMEM. */
int stk_view_make(struct stk_view **out, const struct stk_view_making *making,
                  stoker_dataset *const *datasets, uint32_t count);

/* Make the data set of a complete view, or free the view. `key` is a hash of the view's
 * parameters. */
int stk_view_finish(stoker_dataset **out, const struct stk_view_making *making,
                    struct stk_view *view, uint64_t key);

/* Free a view that has not become a data set. */
void stk_view_free(struct stk_view *view);

/* Labels of `count` samples of a data set with class labels. */
int stk_view_class_labels(const stoker_dataset *dataset, const uint64_t *ids, uint32_t count,
                          int64_t *labels, stoker_error *error);

/* Make sample i of a view sample ids[i] of source 0; the view owns ids from now on. */
void stk_view_use_ids(struct stk_view *view, uint64_t *ids, uint64_t count);

/* Fold a word into a hash of parameters. */
uint64_t stk_view_mix(uint64_t key, uint64_t word);

/* Make the view's samples those of source 0, then those of source 1, and so on: fields, classes,
 * ids, blocks, files and description. On failure the view is half made, and the caller frees it.
 * Errors: as stoker_dataset_concat(). */
int stk_view_join(const struct stk_view_making *making, struct stk_view *view);

/* Check that all sources of a view have the same fields, and set view->fields: as in source 0, with
 * the longest length, the most pixels and the most classes of all. STOKER_EMISMATCH: the message
 * names the field, and how it differs. */
int stk_view_join_fields(struct stk_view *view, const struct stk_view_making *making);

#endif
