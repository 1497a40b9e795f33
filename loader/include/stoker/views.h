/* stoker/views.h - data sets made from other data sets: some samples, both sides of a split,
 * several sets in a row.
 *
 *   stoker_dataset_select   the samples with these ids, in this order
 *   stoker_dataset_split    the training or the test side of a random split
 *   stoker_dataset_concat   several data sets, one after the other
 *   stoker_dataset_balance  the same samples; a loader that shuffles draws all classes equally
 *                           often
 *   stoker_dataset_pack     rows of one length, packed from samples that differ in length:
 *                           documents of tokens
 *
 * A view is a data set: loaders, stoker_dataset_read() and other views take it. It has its own ids,
 * 0..count - 1, and maps them to the ids of the data sets that it wraps; it copies no sample.
 * Fields, class names, files and the description are theirs. Its fingerprint is a function of
 * theirs and of the view's parameters, so a resume token of another selection, seed or order of
 * data sets is refused.
 *
 * Order      A view is a pure function of its parameters: the same on every machine, for every
 *            rank, in every epoch. The loader shuffles the ids of the view.
 * Ownership  A view keeps the data sets that it wraps. Close yours when you like, before or after
 *            the view.
 * Threads    As for every data set. Views may be made of one data set in several threads.
 * Limits     2^62 samples; views of views up to STOKER_VIEW_DEPTH_MAX deep.
 * Caches     A loader caches by id, so a cache holds a sample once for each of its ids.
 *
 * All functions return 0, or an error with *error filled in (NULL = not wanted); then *out is
 * untouched. Besides those listed: STOKER_EINVAL (an argument is NULL or out of its range),
 * STOKER_ENOMEM, STOKER_ELIMIT (one of the limits).
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

/* Sample i is sample ids[i] of the data set. An id may occur several times. ids has `count` >= 1 of
 * them and is copied: 8 bytes each. STOKER_EINVAL: an id is not below the data set's count; the
 * message names it and its index. */
STOKER_API int stoker_dataset_select(stoker_dataset **out, stoker_dataset *dataset,
                                     const uint64_t *ids, uint64_t count, stoker_error *error);

typedef enum stoker_side {
    STOKER_SIDE_TRAIN = 0, /* what the test side leaves */
    STOKER_SIDE_TEST = 1   /* `test` of all samples */
} stoker_side;

/* How to split. Start from STOKER_SPLIT_INIT. */
typedef struct stoker_split {
    size_t struct_size; /* set by STOKER_SPLIT_INIT */
    /* Share of the samples on the test side, above 0 and below 1; that number of samples is rounded
     * to the nearest, but each side has at least one. No default: it must be set. */
    double test;
    uint64_t seed;    /* another seed chooses other samples; default 0 */
    stoker_side side; /* default STOKER_SIDE_TRAIN */
    /* true: each class has its share of the test side, within one sample. Needs class labels.
     * Default false. */
    bool stratified;
} stoker_split;

#define STOKER_SPLIT_DEFAULTS STOKER_DEFAULT(struct_size, sizeof(stoker_split))

STOKER_MAKER(stoker_split, STOKER_SPLIT_DEFAULTS)
#define STOKER_SPLIT_INIT STOKER_INITIALIZER(stoker_split, STOKER_SPLIT_DEFAULTS)
STOKER_API int stoker_split_init_sized(stoker_split *out, size_t struct_size);

/* One side of a random split. The two sides of the same `test`, `seed` and `stratified` have no
 * sample in common and hold all samples together. To split in more than two, split a side.
 *
 * Plain: the sides are the two ends of a keyed permutation, so a view takes no memory for 10^12
 * samples as for 10, and its samples have a random order. Stratified: reads all labels, takes 8
 * bytes per sample of its side, and keeps the order of the data set. Errors: STOKER_EEMPTY (one
 * sample cannot be split), STOKER_EINVAL (stratified without class labels, or with a negative
 * one). */
STOKER_API int stoker_dataset_split(stoker_dataset **out, stoker_dataset *dataset,
                                    const stoker_split *split, stoker_error *error);

/* The samples of `count` >= 1 data sets, one after the other. A data set may occur several times:
 * each copy of a sample has an id of its own, and so its own random transforms.
 *
 * All must have the same fields: names, element types, shapes, kinds. Images that differ in size
 * (pixels_max > 0) need the same number of channels only. Class labels keep their numbers, so if
 * two data sets name a class differently, that is an error. If some data sets make their samples
 * (stoker_dataset_ops.make) and others read them, the view makes all: a worker reads the latter's
 * rows one by one, and no cache keeps them. STOKER_EMISMATCH: a field or class differs; the message
 * names it, and how it differs. STOKER_ENOTSUP: one has paths relative to the working directory
 * (AT_FDCWD), another relative to a folder; or images that differ in size beside a data set that
 * makes its samples. */
STOKER_API int stoker_dataset_concat(stoker_dataset **out, stoker_dataset *const *datasets,
                                     uint32_t count, stoker_error *error);

/* The same samples with weights: a loader that shuffles draws them with replacement instead of each
 * once, sample i with a probability proportional to 1 / (samples of its class); see stoker_order,
 * which also takes weights of your own. Other loaders deliver each sample once, in order. Reads all
 * labels; takes 8 bytes per class. Views of a balanced data set keep the weights; in a concat, a
 * data set without weights has 1 for every sample. Errors: STOKER_EINVAL (no class labels, or a
 * negative one), STOKER_ENOTSUP (labels that are read sample by sample). */
STOKER_API int stoker_dataset_balance(stoker_dataset **out, stoker_dataset *dataset,
                                      stoker_error *error);

/* Documents that are longer than a row. */
typedef enum stoker_long_documents {
    STOKER_PACKING_LONG_REFUSE = 0, /* STOKER_ELIMIT; the message names the document */
    STOKER_PACKING_LONG_SPLIT = 1,  /* pieces of `length` and a rest, each placed like a document */
    STOKER_PACKING_LONG_CROP = 2    /* the first `length` elements; the others are lost */
} stoker_long_documents;

/* The fields of a packed row, [length] each if not said otherwise. */
typedef enum stoker_packed_fields {
    STOKER_PACKED_TOKENS = 1,      /* "tokens": the documents, one after the other, then padding */
    STOKER_PACKED_INPUTS = 1 << 1, /* "inputs": the same under another name */
    STOKER_PACKED_TARGETS =
        1 << 2, /* "targets": the next token of the same document, or `ignored` */
    STOKER_PACKED_POSITIONS =
        1 << 3, /* "positions", int32: 0, 1, ... in each document; 0 in padding */
    /* "documents", int32: the document's index in the row, 0, 1, ...; -1 in padding */
    STOKER_PACKED_DOCUMENTS = 1 << 4,
    /* "cu_seqlens", int32, varying: where each document begins in the row, and at the end where
     * padding begins */
    STOKER_PACKED_CU_SEQLENS = 1 << 5,
    STOKER_PACKED_MAX_SEQLEN =
        1 << 6 /* "max_seqlen", int32, a number: the row's longest document */
} stoker_packed_fields;

/* How to pack. Start from STOKER_PACKING_INIT. */
typedef struct stoker_packing {
    size_t struct_size; /* set by STOKER_PACKING_INIT */
    uint64_t length;    /* elements of a row, 1..2^23. No default: it must be set */
    /* Documents per block, 1..2^32 - 1: rows hold documents of one block. Default 65536; 0 = all
     * documents are one block, which wastes least, and reads documents from all over the files for
     * each row. */
    uint64_t block;
    stoker_long_documents long_documents; /* default STOKER_PACKING_LONG_REFUSE */
    /* Bits of stoker_packed_fields, TOKENS or INPUTS among them; default TOKENS and CU_SEQLENS. */
    uint32_t fields;
    /* Type of tokens, inputs and targets: STOKER_DTYPE_INT32 or INT64, or the default,
     * STOKER_DTYPE_NONE = as stored. Targets need a signed type. A token that does not fit gives
     * STOKER_EFORMAT. */
    stoker_dtype dtype;
    /* Token in what documents leave free; it must fit the type. Default 0. */
    int64_t padding;
    /* Target of a document's last token and of padding. Default -100, as in PyTorch. */
    int64_t ignored;
    /* The field to pack. Default NULL = "tokens" if there is one, else field 0. */
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

/* Rows of `length` elements, packed from the samples of a data set: from its field of integers with
 * one axis that varies. Each sample is a document and lies in one row, whole, unless it is longer
 * than a row; empty ones are left out. Documents are placed by best-fit decreasing inside each
 * block of consecutive documents, which is a function of their lengths alone: the same rows on
 * every machine, in every epoch. A loader that shuffles permutes the rows.
 *
 * Opening asks for all lengths, and takes 4 bytes per document (8 if some are split) and 8 per row.
 * Rows are gathered by the workers, with a read per document; pack them into shards (stoker-pack)
 * to read each in one piece. The data set's description says how many rows there are and what share
 * is padding. Errors: STOKER_EINVAL (an option; no such field), STOKER_ETYPE (the field or type),
 * STOKER_ELIMIT (a document is too long; 2^32 documents or more), STOKER_EEMPTY (all documents are
 * empty), those of stoker_dataset_lengths(). */
STOKER_API int stoker_dataset_pack(stoker_dataset **out, stoker_dataset *documents,
                                   const stoker_packing *packing, stoker_error *error);

STOKER_END_DECLS
#endif
