/* stoker/mix.h - several data sets in one order, each with its share of the samples.
 *
 *   stoker_dataset_mix          0.7 of A, 0.3 of B, ...: a data set whose order keeps these shares
 *   stoker_mix_source           which source a sample of a batch comes from
 *   stoker_mix_counts           how many samples of each source a number of samples of the mix has
 *   stoker_loader_mix_counts    how many of each source a loader has delivered
 *   stoker_loader_change_mix    other weights from a position on, while the loader runs
 *   stoker_loader_state_write   a resume token that holds such changes
 *
 *   position of the mix ──▶ (source, n-th sample of it) ──▶ its epoch n / count, position n % count ──▶ sample id
 *
 * Shares     After every number of samples, each source has had its share within one sample: with
 *            weights w that add up to 1, after p samples source i has had more than p x w[i] - 1
 *            and fewer than p x w[i] + 1. Samples are counted from the start of the run, over all
 *            epochs and ranks, or from the last change of weights.
 * Order      A pure function of (seed, epoch, position, changes). A source has epochs of its own:
 *            when all its samples have come it begins again, with another permutation if the loader
 *            shuffles, while the others continue. Without shuffle each source comes in its own
 *            order. Ranks divide the positions of the mix as of any order, and a run may resume on
 *            another number of ranks.
 * Epochs     An epoch of the mix is a number of samples, epoch_samples. The next one continues
 *            where it ended: every source continues its own epoch. With STOKER_LAST_DROP the
 *            positions that an epoch leaves out are not delivered, and count as if they were.
 * Ids        As of stoker_dataset_concat(): the samples of source 0, then those of source 1, and so
 *            on. They are what stoker_dataset_read() takes, what batches report, and what caches
 *            and random transforms go by. A source that comes several times in an epoch of the mix
 *            has the same random transforms each time.
 * Threads    As for every data set; the functions of a loader: its consumer thread.
 *
 * All functions return 0 or an error < 0, with *error filled in if they have one (NULL = not
 * wanted), and write their outputs only on success.
 */
#ifndef STOKER_MIX_H
#define STOKER_MIX_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>
#include <stoker/error.h>
#include <stoker/loader.h>

STOKER_BEGIN_DECLS

enum {
    STOKER_MIX_SOURCES_MAX = 4096,
    STOKER_MIX_CHANGES_MAX = 65536,
    /* A weight that is not 0 is at least 1 / 2^20 of the sum of all. A loader works out which
     * source comes when for sum / (smallest weight) positions at a time, in each of its workers: 12
     * bytes per position. */
    STOKER_MIX_RATIO_MAX = 1 << 20
};

/* Other weights from a position on. Its size never changes. */
typedef struct stoker_mix_change {
    /* Samples of the mix before the change, from the start of the run, over all epochs and ranks:
     * epoch x epoch_samples + position in the epoch. 1..2^62. */
    uint64_t position;
    const double *weights; /* one per source; see stoker_mix.weights; copied */
} stoker_mix_change;

/* How to mix. Start from STOKER_MIX_INIT. */
typedef struct stoker_mix {
    size_t struct_size; /* set by STOKER_MIX_INIT */
    /* One per source: finite, 0 or at least 2^-20 of their sum, which is above 0; only their ratios
     * count. A source with 0 does not come. Decimal numbers of up to 9 digits behind the point are
     * taken exactly, others to 2^-60 of the sum. Copied. No default: it must be set. */
    const double *weights;
    /* Samples in an epoch of the mix, 1..2^62. Default STOKER_LENGTH_AUTO = the samples of all
     * sources together. */
    uint64_t epoch_samples;
    /* A curriculum: weights that change at positions known from the start, which must increase.
     * Default NULL, 0. */
    const stoker_mix_change *changes;
    uint32_t change_count; /* 0..65536 */
} stoker_mix;

#define STOKER_MIX_DEFAULTS                                                                        \
    STOKER_DEFAULT(struct_size, sizeof(stoker_mix))                                                \
    STOKER_DEFAULT(epoch_samples, STOKER_LENGTH_AUTO)

STOKER_MAKER(stoker_mix, STOKER_MIX_DEFAULTS)
#define STOKER_MIX_INIT STOKER_INITIALIZER(stoker_mix, STOKER_MIX_DEFAULTS)
STOKER_API int stoker_mix_init_sized(stoker_mix *out, size_t struct_size);

/* Mix `count` data sets, 1..4096, which the mix keeps; close yours when you like. One may occur
 * several times: each occurrence then has a permutation of its own. All must have the same fields,
 * as for stoker_dataset_concat(). The spec mix:0.7*(SPEC)+0.3*(SPEC)?epoch_samples=N does the same.
 *
 * The order is the loader's default one; options.order WEIGHTED or OWN replaces it. A resume token
 * knows the weights, epoch_samples and changes by the data set's fingerprint, and is refused if
 * they differ. A mix is the outermost view: mix views instead of making a view of a mix. A source
 * whose samples have weights (stoker_dataset_balance) is refused. Errors: STOKER_EINVAL (an
 * argument is NULL or out of its range; the message names it), STOKER_EMISMATCH (fields or classes
 * differ), STOKER_ENOTSUP (a mix or a weighted data set as a source; and as for concat),
 * STOKER_ELIMIT, STOKER_ENOMEM. */
STOKER_API int stoker_dataset_mix(stoker_dataset **out, stoker_dataset *const *datasets,
                                  uint32_t count, const stoker_mix *mix, stoker_error *error);

/* Number of sources of a mix; 0 if the data set is NULL or no mix. */
STOKER_API uint32_t stoker_mix_source_count(const stoker_dataset *dataset);

/* The source, 0, 1, ..., that sample `id` comes from, and its id there. Both outputs may be NULL.
 * Takes a search among the sources. STOKER_EINVAL: dataset is NULL or no mix, or id is not below
 * its count. */
STOKER_API int stoker_mix_source(const stoker_dataset *dataset, uint64_t id, uint32_t *source,
                                 uint64_t *source_id);

/* Set counts[i] to the number of samples of source i among the first `position` of the mix,
 * 0..2^62, counted from the start of the run, with the changes that it was made with. Together they
 * are `position`. Takes microseconds for any position (the time of STOKER_MIX_RATIO_MAX). `count`
 * is the number of sources. Errors: STOKER_EINVAL, STOKER_ENOMEM. */
STOKER_API int stoker_mix_counts(const stoker_dataset *dataset, uint64_t position, uint64_t *counts,
                                 uint32_t count, stoker_error *error);

/* The same for a loader, at the position of stoker_loader_state(): what all ranks together have had
 * of each source since the start of the run; with batch_values_max, which delivers a window's
 * samples in another order, at the end of each window. Also STOKER_EFORKED. */
STOKER_API int stoker_loader_mix_counts(const stoker_loader *loader, uint64_t *counts,
                                        uint32_t count, stoker_error *error);

/* Use other weights from change->position on. All ranks must make the same change. The position
 * must not be below that of an earlier change, nor in a batch that may be under way already: at
 * most prefetch_batches after the next one, with batch_values_max the windows of these; the message
 * says which position is the earliest. To change at once, write the state, destroy the loader, and
 * create one that resumes, which can change from its own earliest position; or make the mix with
 * the change. weights has one per source. Allocates. On failure nothing is changed. Errors:
 * STOKER_EINVAL, STOKER_ELIMIT (65536 changes), STOKER_ENOMEM, STOKER_EFORKED. */
STOKER_API int stoker_loader_change_mix(stoker_loader *loader, const stoker_mix_change *change,
                                        stoker_error *error);

STOKER_END_DECLS
#endif
