/* stoker/views.h - select, split, concatenate, balance and pack data sets without copying samples.
 *
 *   stoker_dataset_select   the samples with the given ids, in the given order
 *   stoker_dataset_split    the training or test side of a random split
 *   stoker_dataset_concat   several data sets, one after the other
 *   stoker_dataset_balance  the same samples, whose classes a shuffling loader draws equally often
 *   stoker_dataset_pack     rows of one length, packed from documents of tokens
 *
 * A view is a data set: pass it to loaders, stoker_dataset_read() or other views. It maps its ids,
 * 0..count - 1, to the ids of its sources, and has their fields, class names, files and
 * description. Its fingerprint depends on theirs and on the view's parameters, so a loader refuses
 * a state saved with another selection, seed or order of sources.
 *
 * Order      A view is a pure function of its parameters: the same on every machine, for every
 *            rank, in every epoch. The loader shuffles the ids of the view.
 * Ownership  A view shares its sources. Close yours at any time, before or after the view.
 * Threads    As for every data set. Several threads may make views of one data set.
 * Limits     2^62 samples; views nested up to STOKER_VIEW_DEPTH_MAX deep.
 * Caches     A loader caches by id: a sample with several ids is cached once per id.
 *
 * All functions return 0 or an error < 0. On failure *out is untouched, and *error has the cause;
 * error may be NULL. All return STOKER_EINVAL (an argument is NULL or out of range), STOKER_ENOMEM,
 * STOKER_ELIMIT (one of the limits) and the errors listed with each.
 */
#ifndef STOKER_VIEWS_H
#define STOKER_VIEWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>
#include <stoker/error.h>

STOKER_BEGIN_DECLS

enum { STOKER_VIEW_DEPTH_MAX = 16 };

/* Make sample i of the view sample ids[i] of the data set, for i < count; count >= 1. Ids may
 * repeat. Copies ids, 8 bytes each. STOKER_EINVAL: an id is not below the data set's count; the
 * message names the id and its index. */
STOKER_API int stoker_dataset_select(stoker_dataset **out, stoker_dataset *dataset,
                                     const uint64_t *ids, uint64_t count, stoker_error *error);

typedef enum stoker_side {
    STOKER_SIDE_TRAIN = 0, /* the samples that are not on the test side */
    STOKER_SIDE_TEST = 1   /* the share stoker_split.test of the samples */
} stoker_side;

/* How to split. Start from STOKER_SPLIT_INIT. */
typedef struct stoker_split {
    size_t struct_size; /* set by STOKER_SPLIT_INIT */
    /* Share of the samples on the test side, 0 < test < 1, rounded to the nearest sample; each side
     * has at least one. Required. */
    double test;
    uint64_t seed;    /* of the random choice; default 0 */
    stoker_side side; /* default STOKER_SIDE_TRAIN */
    /* Split each class in the same ratio, to within one sample. Requires class labels. Default
     * false. */
    bool stratified;
} stoker_split;

#define STOKER_SPLIT_DEFAULTS STOKER_DEFAULT(struct_size, sizeof(stoker_split))

STOKER_MAKER(stoker_split, STOKER_SPLIT_DEFAULTS)
#define STOKER_SPLIT_INIT STOKER_INITIALIZER(stoker_split, STOKER_SPLIT_DEFAULTS)
STOKER_API int stoker_split_init_sized(stoker_split *out, size_t struct_size);

/* Make one side of a random split. The two sides with the same `test`, `seed` and `stratified` are
 * disjoint, and together hold all samples. To split into more parts, split a side again.
 *
 * A plain split takes the two ends of a keyed permutation: it needs no memory per sample, and its
 * samples are in random order. A stratified split reads all labels, needs 8 bytes per sample of its
 * side, and keeps the order of the data set. Errors: STOKER_EEMPTY (the data set has one sample),
 * STOKER_EINVAL (stratified, but there are no class labels, or a label is negative). */
STOKER_API int stoker_dataset_split(stoker_dataset **out, stoker_dataset *dataset,
                                    const stoker_split *split, stoker_error *error);

/* Concatenate `count` >= 1 data sets. A data set may occur several times: each occurrence of a
 * sample has its own id, and so its own random transforms.
 *
 * All must have the same fields: names, element types, shapes and kinds. Images that differ in size
 * (pixels_max > 0) only need the same number of channels. Class labels are not renumbered, so a
 * class must have the same name in all data sets that name it. If some data sets make their samples
 * (stoker_dataset_ops.make) and others read them, the view makes all: workers read samples one by
 * one, and nothing is cached. Errors: STOKER_EMISMATCH (a field or class differs; the message says
 * which and how), STOKER_ENOTSUP (paths of one data set are relative to the working directory,
 * AT_FDCWD, and of another to a folder; or images differ in size and a data set makes its
 * samples). */
STOKER_API int stoker_dataset_concat(stoker_dataset **out, stoker_dataset *const *datasets,
                                     uint32_t count, stoker_error *error);

/* Weight the samples so that a shuffling loader draws all classes equally often: it draws with
 * replacement, sample i with a probability proportional to 1 / (samples of its class). For your own
 * weights see stoker_order. A loader that does not shuffle delivers each sample once, in order.
 * Reads all labels; needs 8 bytes per class. Views of a balanced data set keep the weights; in a
 * concat, samples of a data set without weights have weight 1. Errors: STOKER_EINVAL (no class
 * labels, or a negative one), STOKER_ENOTSUP (labels are read sample by sample). */
STOKER_API int stoker_dataset_balance(stoker_dataset **out, stoker_dataset *dataset,
                                      stoker_error *error);

/* How to pack documents that are longer than a row. */
typedef enum stoker_long_documents {
    STOKER_PACKING_LONG_REFUSE = 0, /* fail with STOKER_ELIMIT; the message names the document */
    STOKER_PACKING_LONG_SPLIT = 1,  /* split into documents of `length` elements and a remainder */
    STOKER_PACKING_LONG_CROP = 2    /* keep the first `length` elements */
} stoker_long_documents;

/* Fields of a packed row, of `length` elements unless stated. */
typedef enum stoker_packed_fields {
    STOKER_PACKED_TOKENS = 1,      /* "tokens": the documents, then padding */
    STOKER_PACKED_INPUTS = 1 << 1, /* "inputs": the same as "tokens" */
    STOKER_PACKED_TARGETS =
        1 << 2, /* "targets": the next token of the same document, or `ignored` */
    STOKER_PACKED_POSITIONS =
        1 << 3, /* "positions", int32: 0, 1, ... in each document; 0 in padding */
    /* "documents", int32: the document's index in the row, 0, 1, ...; -1 in padding */
    STOKER_PACKED_DOCUMENTS = 1 << 4,
    /* "cu_seqlens", int32, varies: the offset of each document in the row, then of the padding */
    STOKER_PACKED_CU_SEQLENS = 1 << 5,
    STOKER_PACKED_MAX_SEQLEN =
        1 << 6 /* "max_seqlen", int32, scalar: the length of the row's longest document */
} stoker_packed_fields;

/* How to pack. Start from STOKER_PACKING_INIT. */
typedef struct stoker_packing {
    size_t struct_size; /* set by STOKER_PACKING_INIT */
    uint64_t length;    /* elements of a row, 1..2^23. Required */
    /* Documents per block, 1..2^32 - 1; all documents of a row are from one block. Default 65536. 0
     * = one block: the least padding, but each row reads documents from all over the files. */
    uint64_t block;
    stoker_long_documents long_documents; /* default STOKER_PACKING_LONG_REFUSE */
    /* Bits of stoker_packed_fields, including TOKENS or INPUTS; default TOKENS and CU_SEQLENS. */
    uint32_t fields;
    /* Type of tokens, inputs and targets: STOKER_DTYPE_INT32 or INT64; default STOKER_DTYPE_NONE =
     * as stored. Targets require a signed type. A token out of its range is STOKER_EFORMAT. */
    stoker_dtype dtype;
    /* Token that fills the rest of a row, within the range of the type. Default 0. */
    int64_t padding;
    /* Target of a document's last token and of padding. Default -100, as in PyTorch. */
    int64_t ignored;
    /* Field to pack. Default NULL = "tokens" if the data set has it, else field 0. */
    const char *field;
} stoker_packing;

#define STOKER_PACKING_DEFAULTS                                                                    \
    STOKER_DEFAULT(struct_size, sizeof(stoker_packing))                                            \
    STOKER_DEFAULT(block, 65536)                                                                   \
    STOKER_DEFAULT(fields, STOKER_PACKED_TOKENS | STOKER_PACKED_CU_SEQLENS)                        \
    STOKER_DEFAULT(ignored, -100)

STOKER_MAKER(stoker_packing, STOKER_PACKING_DEFAULTS)
#define STOKER_PACKING_INIT STOKER_INITIALIZER(stoker_packing, STOKER_PACKING_DEFAULTS)
STOKER_API int stoker_packing_init_sized(stoker_packing *out, size_t struct_size);

/* Pack documents, samples of an integer field with one axis that varies, into rows of `length`
 * elements. A document lies whole in one row unless it is longer than a row; empty documents are
 * skipped. Each block of consecutive documents is packed by best-fit decreasing, which depends on
 * their lengths only: rows are the same on every machine and in every epoch. A shuffling loader
 * permutes the rows.
 *
 * Reads all lengths, and keeps 4 bytes per document (8 if some are split) and 8 per row. Workers
 * gather the rows with one read per document; stoker-pack writes rows to shards, which need one
 * read per row. The view's description has the number of rows and the share of padding. Errors:
 * STOKER_EINVAL (an option; no such field), STOKER_ETYPE (the field or type), STOKER_ELIMIT (a
 * document is too long; 2^32 documents or more), STOKER_EEMPTY (all documents are empty), and those
 * of stoker_dataset_lengths(). */
STOKER_API int stoker_dataset_pack(stoker_dataset **out, stoker_dataset *documents,
                                   const stoker_packing *packing, stoker_error *error);

STOKER_END_DECLS
#endif
