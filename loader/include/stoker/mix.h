/* stoker/mix.h - interleave data sets in given proportions.
 *
 *   stoker_dataset_mix          make a data set of 0.7 of A, 0.3 of B, ...
 *   stoker_mix_source           find the source of a sample
 *   stoker_mix_counts           count the samples of each source up to a position of the mix
 *   stoker_loader_mix_counts    count the samples of each source that a loader has delivered
 *   stoker_loader_change_mix    change the weights while the loader runs
 *
 *   position of the mix ──▶ (source, n-th sample of it) ──▶ its epoch n / count, position n % count ──▶ sample id
 *
 * Shares     At every position each source has its share to within one sample: with weights w that
 *            sum to 1, the first p samples hold more than p x w[i] - 1 and fewer than p x w[i] + 1
 *            samples of source i. Positions count from the start of the run, over all epochs and
 *            ranks, or from the last change of weights.
 * Order      A pure function of (seed, epoch, position, changes). Each source has its own epochs:
 *            it starts over once all its samples were drawn, with a new permutation if the loader
 *            shuffles, else in its own order. Ranks divide the positions as in any order, and a run
 *            may resume on another number of ranks.
 * Epochs     An epoch of the mix has epoch_samples samples. The next one continues the sources'
 *            epochs where it ended. Positions that STOKER_LAST_DROP drops count as delivered.
 * Ids        As in stoker_dataset_concat(): first the samples of source 0, then of source 1, and so
 *            on. Reads, batches, caches and random transforms use these ids, so a sample drawn
 *            several times in an epoch of the mix has the same random transforms each time.
 * Threads    As for every data set. Call functions of a loader in its consumer thread.
 *
 * All functions return 0 or an error < 0, and write outputs only on success. error may be NULL.
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
    /* Largest ratio of the sum of the weights to the smallest weight above 0. Each worker computes
     * the sources of sum / smallest positions at a time, 12 bytes per position. */
    STOKER_MIX_RATIO_MAX = 1 << 20
};

/* A change of the weights. Its size never changes. */
typedef struct stoker_mix_change {
    /* Samples before the change since the start of the run, over all epochs and ranks: epoch x
     * epoch_samples + position in the epoch; 1..2^62. */
    uint64_t position;
    const double *weights; /* one per source, as in stoker_mix.weights; copied */
} stoker_mix_change;

/* How to mix. Start from STOKER_MIX_INIT. */
typedef struct stoker_mix {
    size_t struct_size; /* set by STOKER_MIX_INIT */
    /* One per source: 0, or finite and at least 2^-20 of the sum, which must be above 0. Only their
     * ratios matter; a source of weight 0 is not drawn. Decimals of up to 9 fractional digits are
     * exact, others are rounded to 2^-60 of the sum. Copied. Required. */
    const double *weights;
    /* Samples in an epoch of the mix, 1..2^62. Default STOKER_LENGTH_AUTO = the samples of all
     * sources together. */
    uint64_t epoch_samples;
    /* Changes of the weights that are known in advance, by increasing position. Copied. Default
     * NULL and 0. */
    const stoker_mix_change *changes;
    uint32_t change_count; /* 0..65536 */
} stoker_mix;

#define STOKER_MIX_DEFAULTS                                                                        \
    STOKER_DEFAULT(struct_size, sizeof(stoker_mix))                                                \
    STOKER_DEFAULT(epoch_samples, STOKER_LENGTH_AUTO)

STOKER_MAKER(stoker_mix, STOKER_MIX_DEFAULTS)
#define STOKER_MIX_INIT STOKER_INITIALIZER(stoker_mix, STOKER_MIX_DEFAULTS)
STOKER_API int stoker_mix_init_sized(stoker_mix *out, size_t struct_size);

/* Mix `count` data sets, 1..4096. The mix shares them: close yours at any time. A data set may
 * occur several times; each occurrence has its own permutation. All must have the same fields, as
 * for stoker_dataset_concat(). The spec mix:0.7*(SPEC)+0.3*(SPEC)?epoch_samples=N does the same.
 *
 * Loaders use the order of the mix unless options.order is WEIGHTED or OWN. The fingerprint covers
 * weights, epoch_samples and changes, so a loader refuses a state saved with others. A mix cannot
 * be the source of a view or of a mix, nor can a balanced data set (stoker_dataset_balance) be the
 * source of a mix. The caller owns *out. Errors: STOKER_EINVAL (an argument is NULL or out of
 * range; the message names it), STOKER_EMISMATCH (fields or classes differ), STOKER_ENOTSUP (a
 * source is a mix or balanced; and as for concat), STOKER_ELIMIT, STOKER_ENOMEM. */
STOKER_API int stoker_dataset_mix(stoker_dataset **out, stoker_dataset *const *datasets,
                                  uint32_t count, const stoker_mix *mix, stoker_error *error);

/* Return the number of sources; 0 if the data set is NULL or no mix. */
STOKER_API uint32_t stoker_mix_source_count(const stoker_dataset *dataset);

/* Find the source, 0, 1, ..., of sample `id`, and its id there, by binary search. Both outputs may
 * be NULL. STOKER_EINVAL: dataset is NULL or no mix, or id is not below its count. */
STOKER_API int stoker_mix_source(const stoker_dataset *dataset, uint64_t id, uint32_t *source,
                                 uint64_t *source_id);

/* Set counts[i] to the number of samples of source i among the first `position`, 0..2^62, samples
 * since the start of the run, including the changes that the mix was made with. The counts sum to
 * `position`. `count` is the number of sources. Takes microseconds at any position. Errors:
 * STOKER_EINVAL, STOKER_ENOMEM. */
STOKER_API int stoker_mix_counts(const stoker_dataset *dataset, uint64_t position, uint64_t *counts,
                                 uint32_t count, stoker_error *error);

/* Count the samples of each source that all ranks together have delivered since the start of the
 * run, at the position of stoker_loader_state(); with batch_values_max, which reorders the samples
 * of a window, at the end of the window. Errors: as stoker_mix_counts(), and STOKER_EFORKED. */
STOKER_API int stoker_loader_mix_counts(const stoker_loader *loader, uint64_t *counts,
                                        uint32_t count, stoker_error *error);

/* Change the weights from change->position on. All ranks must make the same change. The position
 * must be after earlier changes and after all batches that workers may have started: up to
 * prefetch_batches beyond the next one, with batch_values_max their whole windows. The message
 * names the earliest possible position. The change becomes part of the loader's state. To change
 * sooner, save the state, destroy the loader, and resume with a stoker_mix that has the change.
 * Allocates. On failure nothing is changed. Errors: STOKER_EINVAL, STOKER_ELIMIT (65536 changes),
 * STOKER_ENOMEM, STOKER_EFORKED. */
STOKER_API int stoker_loader_change_mix(stoker_loader *loader, const stoker_mix_change *change,
                                        stoker_error *error);

STOKER_END_DECLS
#endif
