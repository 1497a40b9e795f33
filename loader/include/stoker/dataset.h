/* stoker/dataset.h - where the bytes of each sample are.
 *
 * A data set knows how many samples there are, what one looks like, and in which
 * extent of which file sample i lies. It reads no samples itself: the loader does.
 *
 * Changes  The files of a data set must stay as they are while it is open. The loader looks at size
 *          and time of the last write (ns) of every open file that it reads samples without a
 *          checksum from (a codec without verify): when it is created, before it delivers the last
 *          batch of an epoch, and about once a millisecond in between. One that differs from what
 *          it was when the data set was opened ends the run with STOKER_ECHANGED, whatever
 *          on_bad_sample says: no epoch with rows of a changed file comes to its end, but batches
 *          delivered before may hold some. Not noticed: a change that leaves size and time as they
 *          were; and in whole files (extent.path) any that leaves the length: such a read
 *          delivers the file that has the name then. What a format reads into memory when it
 *          opens (labels, tables, gzip) stays as it was.
 *
 * Threads  A data set is immutable once open: any number of loaders and threads
 *          may use it. Close it after the last loader that uses it.
 */
#ifndef STOKER_DATASET_H
#define STOKER_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/codec.h>
#include <stoker/error.h>
#include <stoker/tensor.h>

STOKER_BEGIN_DECLS

typedef struct stoker_dataset stoker_dataset;

typedef struct stoker_dataset_options {
    const char *split;   /* "train", "test", ...; NULL = the format's first split */
    uint64_t max_bytes;  /* most memory an unpacked file may take; 0 = 16 GiB */
    stoker_error *error; /* filled in when opening fails; NULL = not wanted */
} stoker_dataset_options;

/* Open the data set named by spec; datasets/README.md (installed in share/doc/stoker) says what each format
 * promises:
 *
 *   mnist:DIR                   the four files of MNIST, plain or gzip
 *   idx:SAMPLES[,LABELS]        any IDX array, plain or gzip
 *   npy:X.npy[,Y.npy]           arrays of NumPy
 *   csv:FILE?label=COLUMN       rows of numbers
 *   cifar:DIR                   CIFAR-10 or CIFAR-100, the binary version
 *   folder:DIR?channels=3       images, a folder a class
 *   tar:DIR/{000..099}.tar      images in archives, as WebDataset writes them
 *   shards:DIR                  what stoker-pack makes of any of these
 *   synth:digits?count=60000    drawn digits
 *   synth:bytes?shape=28x28     random bytes
 *
 * or a plain path, which is recognised by looking at it.
 * options may be NULL. On success *out belongs to the caller, who gives it to
 * stoker_dataset_close(); on failure *out is untouched. */
STOKER_API int stoker_dataset_open(stoker_dataset **out, const char *spec,
                                   const stoker_dataset_options *options);

/* Close it and set *dataset to NULL. NULL and a pointer to NULL are allowed. One that a loader could not let
 * go of, because a read never came back, is only forgotten. */
STOKER_API void stoker_dataset_close(stoker_dataset **dataset);

/* What a data set is, in numbers. */
typedef struct stoker_dataset_info {
    uint64_t count;                  /* samples, >= 1 */
    stoker_dtype dtype;              /* element type of a row */
    uint32_t rank;                   /* axes of one sample, 0..STOKER_RANK_MAX - 1 */
    uint64_t shape[STOKER_RANK_MAX]; /* of one sample; images are height, width, channels */
    bool is_image;                   /* the axes are height, width, channels */
    uint64_t pixels_max;             /* images may have other sizes than shape, each at most so many
                                        pixels: a loader that resizes takes them by the codec's
                                        decode_any(), any other refuses them. 0 = all have shape */
    stoker_dtype label_dtype;        /* STOKER_INT64, STOKER_FLOAT32, or NONE: no labels */
    uint32_t class_count;            /* labels are 0..class_count - 1; 0 = unknown */
    uint32_t file_count;             /* files that extents may name */
    uint32_t encoded_bytes_max;      /* longest extent of any sample in a file */
    bool has_paths;                  /* samples may be files of their own: extent.path */
    int directory;                   /* with has_paths: where those paths start, an open directory
                                        that the data set owns, or AT_FDCWD. With a directory
                                        no path, and no link in it, may lead out of it: such a
                                        read fails with STOKER_EACCES */
    bool dense;                      /* all samples are raw rows of file 0, one after the other */
    const void *rows;     /* all samples are raw rows in memory that the data set owns, one
                                   after the other: row i begins at rows + i x row bytes. Spares
                                   the loader locate(). NULL = they are not */
    uint64_t fingerprint; /* any number that another version of the same data set does not have: a
                             checksum, a seed, a date. A resume token is refused if it differs; see
                             stoker_state. Default 0 = none */
    /* Opening found images of several sizes, and the spec names none: a loader that does not
     * resize refuses the set. Default false. */
    bool sizes_differ;
    const char
        *description; /* what opening found out about the samples, in one line of printable text:
                                "1000 of 60000 image headers read: 28x28, gray". Owned by the data set; NULL =
                                nothing */
} stoker_dataset_info;

/* Where the bytes of a sample are. Four kinds, tried in this order:
 *   memory != NULL   they lie there, in memory that the data set owns
 *   bytes == 0       there are none: the codec makes the row from the sample id
 *   path != NULL     the whole file of that name, `bytes` long, opened for this read alone;
 *                    a file that is longer or shorter by then gives STOKER_ECHANGED
 *   otherwise        read `bytes` bytes of file number `file` at `offset` */
typedef struct stoker_extent {
    const void *memory;
    const char *path; /* relative to info.directory; owned by the data set */
    uint64_t offset;
    uint32_t bytes;
    uint32_t file;
} stoker_extent;

typedef union stoker_label {
    int64_t index; /* label_dtype STOKER_INT64 */
    float value;   /* label_dtype STOKER_FLOAT32 */
} stoker_label;

typedef struct stoker_sample {
    stoker_extent extent;
    const stoker_codec *codec; /* NULL = raw: the bytes are the row */
    stoker_label label;
    uint64_t tag; /* for the codec: a checksum, for example, which it need not look up. Default 0 */
} stoker_sample;

typedef struct stoker_file {
    const char *path; /* for messages; owned by the data set */
    int fd;           /* open for reading, owned by the data set; -1 = none: then only a loader
                         with options.reader can read it, any other create fails with
                         STOKER_ENOTSUP, stoker_dataset_read() as well */
    uint64_t size;    /* bytes when opened */
} stoker_file;

/* The callbacks of a data set. A user's own set is these few functions. All are
 * called from many threads at once and must not change what self shows. Those that return an int
 * return 0, or a stoker_err below 0; anything above 0 counts as STOKER_EINVAL. */
typedef struct stoker_dataset_ops {
    const char *name; /* "mnist"; static */

    /* Fill *out; called once, by stoker_dataset_create. */
    int (*describe)(const void *self, stoker_dataset_info *out);

    /* Locate `count` >= 1 samples; every ids[i] < info.count. Fill all of out[0..count).
     * Must not allocate, lock or read: it is called for every sample. A failure ends the run whatever
     * on_bad_sample says: it tells that the data set is broken, not one sample. */
    int (*locate)(const void *self, const uint64_t *ids, uint32_t count, stoker_sample *out,
                  stoker_error *error);

    /* Fill out[0..count) with the labels of `count` >= 1 samples: int64_t or float, as label_dtype
     * says. Optional, a faster way to what locate() tells; the same rules. */
    void (*labels)(const void *self, const uint64_t *ids, uint32_t count, void *out);

    /* File number `file` < info.file_count. Optional when file_count is 0. Called when the data set
     * is made, and for each loader. */
    int (*file)(const void *self, uint32_t file, stoker_file *out);

    /* Free self. Optional. Not called where a loader's read never came back. */
    void (*destroy)(void *self);

    /* The name of class `index` < info.class_count; owned by the data set. Optional. */
    const char *(*class_name)(const void *self, uint32_t index);

    /* What the bytes of sample `id` < info.count are: see stoker_dataset_stored_as(). Optional:
     * for a set where the codec's name does not tell. */
    const char *(*stored_as)(const void *self, uint64_t id);
} stoker_dataset_ops;

/* Make a data set of your own. On success *out owns self (destroy is called by
 * close); on failure self stays the caller's and *out is untouched. ops must
 * outlive the data set. Errors: STOKER_EINVAL (a callback is missing, or what
 * describe() said is not consistent), STOKER_EEMPTY, STOKER_ENOMEM. */
STOKER_API int stoker_dataset_create(stoker_dataset **out, const stoker_dataset_ops *ops,
                                     void *self);

STOKER_API const stoker_dataset_info *stoker_dataset_get_info(const stoker_dataset *dataset);

/* "mnist", "idx", ...: the format's name. */
STOKER_API const char *stoker_dataset_name(const stoker_dataset *dataset);

/* Bytes of one decoded row as stored: elements x element size. */
STOKER_API size_t stoker_dataset_row_bytes(const stoker_dataset *dataset);

/* The name of a class, owned by the data set; NULL if it has none or index is no class. */
STOKER_API const char *stoker_dataset_class_name(const stoker_dataset *dataset, uint32_t index);

/* Locate one sample; see stoker_dataset_ops.locate. STOKER_EINVAL if id >= count. */
STOKER_API int stoker_dataset_locate(const stoker_dataset *dataset, uint64_t id, stoker_sample *out,
                                     stoker_error *error);

/* Read and decode one sample now, in this thread, by plain pread: for looking at
 * data and for checking a loader. row takes stoker_dataset_row_bytes() bytes;
 * label may be NULL. May allocate. Errors as the loader's. */
STOKER_API int stoker_dataset_read(const stoker_dataset *dataset, uint64_t id, void *row,
                                   size_t row_bytes, stoker_label *label, stoker_error *error);

/* What the bytes of a sample are as they lie in storage: "raw", "png", "jpeg", "lz4" (one block),
 * "image" (PNG, JPEG or WebP: the bytes tell), or the name of another codec; static. NULL if dataset is
 * NULL, id >= count or the sample cannot be located. */
STOKER_API const char *stoker_dataset_stored_as(const stoker_dataset *dataset, uint64_t id);

/* Read the bytes of one sample as they lie in storage now, in this thread, by plain pread: to hand
 * them on without loss. They are not decoded, so no checksum is verified. bytes takes the
 * sample's and one more: info.encoded_bytes_max + 1 bytes do for each sample in a file. *size
 * tells how many there are; 0 = the row is made from the sample id alone.
 * Errors: STOKER_EINVAL (a NULL, id >= count, bytes_max too small), and those of reading. */
STOKER_API int stoker_dataset_read_stored(const stoker_dataset *dataset, uint64_t id, void *bytes,
                                          size_t bytes_max, size_t *size, stoker_error *error);

STOKER_END_DECLS
#endif
