/* stoker/dataset.h - where the bytes of each sample are.
 *
 * A data set knows the number of samples, what one looks like, and which extent of which file holds
 * sample i. It reads no samples itself: the loader does.
 *
 * Changes  The files of a data set must not change while it is open. The loader compares size,
 *          mtime and ctime (ns) of every open file whose samples have no checksum (a codec without
 *          verify): at create, before the last batch of an epoch, and about once a millisecond in
 *          between. A file that differs from when the data set was opened ends the run with
 *          STOKER_ECHANGED, regardless of on_bad_sample: no epoch with rows of a changed file is
 *          completed, but batches delivered before may hold some. ctime does not count if the mode,
 *          the owner or the number of links explains it (chmod, chown, link, unlink). Not noticed:
 *          in whole files (extent.path) a change that keeps the length: the read delivers the file
 *          that has the name at that moment. What a format reads into memory when it opens (labels,
 *          tables, gzip) does not change.
 *
 * Threads  A data set is immutable once open: any number of loaders and threads may use it. Close
 *          it after the last loader that uses it is destroyed.
 */
#ifndef STOKER_DATASET_H
#define STOKER_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/codec.h>
#include <stoker/error.h>
#include <stoker/rng.h>
#include <stoker/tensor.h>

STOKER_BEGIN_DECLS

typedef struct stoker_dataset stoker_dataset;

/* Start from STOKER_DATASET_OPTIONS_INIT. */
typedef struct stoker_dataset_options {
    size_t struct_size; /* set by STOKER_DATASET_OPTIONS_INIT; checked by open */
    const char *split;  /* "train", "test", ...; default NULL = the format's first split */
    uint64_t max_bytes; /* largest unpacked file that is kept in memory, >= 1; default 16 GiB */
} stoker_dataset_options;

#define STOKER_DATASET_OPTIONS_DEFAULTS                                                            \
    STOKER_DEFAULT(struct_size, sizeof(stoker_dataset_options))                                    \
    STOKER_DEFAULT(max_bytes, UINT64_C(16) << 30)

STOKER_MAKER(stoker_dataset_options, STOKER_DATASET_OPTIONS_DEFAULTS)
#define STOKER_DATASET_OPTIONS_INIT                                                                \
    STOKER_INITIALIZER(stoker_dataset_options, STOKER_DATASET_OPTIONS_DEFAULTS)
STOKER_API int stoker_dataset_options_init_sized(stoker_dataset_options *out, size_t struct_size);

/* Open the data set named by spec. datasets/README.md (installed in share/doc/stoker) documents
 * each format:
 *
 *   mnist:DIR                   the four files of MNIST, plain or gzip
 *   idx:SAMPLES[,LABELS]        any IDX array, plain or gzip
 *   npy:X.npy[,Y.npy]           NumPy arrays
 *   npy:x=X.npy,y=Y.npy         any number of them, a field each
 *   npz:FILE?fields=x,y         the arrays of a NumPy archive
 *   tokens:FILES?length=1024    windows of token files: llm.c, nanoGPT, Megatron, npy
 *   csv:FILE?label=COLUMN       rows of numbers
 *   cifar:DIR                   CIFAR-10 or CIFAR-100, the binary version
 *   folder:DIR?channels=3       images, one folder per class
 *   folder:image=DIR,mask=DIR   files matched by name, a field per folder
 *   tar:DIR/{000..099}.tar      images, arrays and text in WebDataset archives
 *   shards:DIR                  written by stoker-pack
 *   synth:digits?count=60000    generated digits
 *   synth:bytes?shape=28x28     random bytes
 *   concat:(SPEC)+(SPEC)        several, one after the other
 *   select:FILE:(SPEC)          the samples whose ids are in the file
 *   documents:FILES?eos=50256   the documents of token files, one per sample
 *   packed:2048:(SPEC)          rows of 2048 tokens, packed from whole documents
 *   mix:0.7*(SPEC)+0.3*(SPEC)   several, each with its share of the order: see stoker/mix.h
 *
 * or a plain path, whose format is recognized. options (NULL = the defaults) and error may be
 * NULL. On success *out belongs to the caller, to be closed by stoker_dataset_close(); on failure
 * *out is untouched, and *error has the cause.
 *
 * Errors: STOKER_EINVAL (out or spec is NULL, or an option), ESPEC (no such format, parameter,
 * value or split), ENOENT, EACCES, EISDIR, EIO, ENOFILE (a file cannot be opened or read), EMAGIC,
 * ETRUNCATED, EOVERSIZE, EFORMAT, ECORRUPT (a file is not what its format says), EMISMATCH (files,
 * or joined data sets, do not fit each other), EEMPTY (no samples), ETYPE, ELIMIT (a size or count
 * is above a limit), ENOTSUP (a kind of the format that is not supported, or a codec that this
 * build lacks), ECHANGED (an index no longer fits its files), ENOMEM. */
STOKER_API int stoker_dataset_open(stoker_dataset **out, const char *spec,
                                   const stoker_dataset_options *options, stoker_error *error);

/* Close it and set *dataset to NULL. NULL and a pointer to NULL are allowed. Its views
 * (stoker/views.h) and loaders share it: it is freed when the last of them has let go. */
STOKER_API void stoker_dataset_close(stoker_dataset **dataset);

/* Add an owner: each one closes the data set, and the last one frees it. Returns dataset, which may
 * be NULL. Any thread. */
STOKER_API stoker_dataset *stoker_dataset_share(stoker_dataset *dataset);

/* stoker_dataset_info.directory: see there. */
#define STOKER_DIRECTORY_OF_FILE (-2)

enum {
    STOKER_FIELDS_MAX = 128,     /* fields of a sample, and parts of one */
    STOKER_FIELD_NAME_BYTES = 64 /* a field's name with its NUL */
};

#define STOKER_NO_PART UINT32_MAX

typedef enum stoker_field_kind {
    STOKER_FIELD_KIND_ARRAY = 0, /* numbers */
    STOKER_FIELD_KIND_IMAGE = 1, /* height, width, channels: stoker_transform applies */
    STOKER_FIELD_KIND_MASK =
        2, /* as an image, but of classes: the image's geometry, the nearest pixel, no colors */
    STOKER_FIELD_KIND_BYTES = 3 /* a varying number of uint8: text, JSON, a key, a file name */
} stoker_field_kind;

/* One named field of every sample. Field 0 is the one that images, caches and transforms are
 * about. */
typedef struct stoker_field_info {
    size_t struct_size; /* set by the library before field(), which may leave it, or set it to 0 */
    /* Unique in the data set, 1..63 bytes of letters, digits and "_-."; owned by the data set. */
    const char *name;
    stoker_field_kind kind;
    stoker_dtype dtype; /* as stored */
    uint32_t rank;      /* axes of one sample, 0..STOKER_RANK_MAX - 1 */
    /* Lengths of one sample's axes; images are height, width, channels. If the field varies,
     * shape[0] is the longest first axis, >= 1. */
    uint64_t shape[STOKER_RANK_MAX];
    bool varies;          /* the first axis has another length, 0..shape[0], in every sample */
    uint32_t part;        /* the part that fills it; STOKER_NO_PART: values() or make() does */
    uint32_t class_count; /* the values are 0..class_count - 1; 0 = no classes, or unknown */
    /* Images and masks may differ in size from shape, each up to this many pixels: a loader that
     * resizes decodes them in their own size (STOKER_CODEC_ANY_SIZE), any other refuses them. 0 =
     * all have shape. */
    uint64_t pixels_max;
    bool sizes_differ; /* opening found several sizes, and the spec gives none */
} stoker_field_info;

/* What a data set is, in numbers.
 *
 * A data set of one array and, if wanted, one label needs no field(): it sets dtype to class_count
 * here, and has the fields "image" (or "row", if is_image is false) from part 0, and "label" from
 * values(). A data set with field() leaves those members alone: they are filled in from field 0,
 * and from the field "label" if it is one int64 or float32. */
typedef struct stoker_dataset_info {
    /* Set by the library before describe(), which may leave it, or set it to 0. */
    size_t struct_size;
    uint64_t count;       /* samples, >= 1 */
    uint32_t field_count; /* 1..STOKER_FIELDS_MAX; without field() filled in: 1 or 2 */
    /* Parts of every sample. 0 = none: make(). Without field() 0 or 1 mean one part; more are
     * refused. */
    uint32_t part_count;
    stoker_dtype dtype; /* field 0's, as stored */
    uint32_t rank;      /* axes of field 0 in one sample, 0..STOKER_RANK_MAX - 1 */
    /* Lengths of field 0's axes; images are height, width, channels. */
    uint64_t shape[STOKER_RANK_MAX];
    bool is_image;            /* field 0 is an image */
    uint64_t pixels_max;      /* field 0's: see stoker_field_info */
    bool sizes_differ;        /* field 0's: see stoker_field_info */
    stoker_dtype label_dtype; /* STOKER_DTYPE_INT64, STOKER_DTYPE_FLOAT32, or NONE: no label */
    uint32_t class_count;     /* labels are 0..class_count - 1; 0 = unknown */
    uint32_t file_count;      /* files that extents may name */
    /* Longest extent of any part in a file, bytes; above 2^32 - 2 create returns STOKER_ELIMIT. */
    uint64_t encoded_bytes_max;
    bool has_paths; /* parts may be files of their own: extent.path */
    /* With has_paths: an open directory that the data set owns, to which the paths are relative, or
     * AT_FDCWD. With a directory no path, and no link in it, may lead out of it: such a read fails
     * with STOKER_EACCES. STOKER_DIRECTORY_OF_FILE: each path has a directory of its own, the file
     * extent.file. */
    int directory;
    bool dense; /* one part a sample, the row of field 0 as it is, all in file 0, consecutive */
    /* One part a sample, the row of field 0 as it is, all in memory that the data set owns,
     * consecutive: row i is at rows + i x row bytes. The loader then need not call locate(). NULL =
     * they are not. */
    const void *rows;
    /* A number that differs in every version of the data set: a checksum, a seed, a date. A loader
     * refuses to resume if it differs; see stoker_loader_state(). Default 0 = none. */
    uint64_t fingerprint;
    /* What opening found out about the samples, one line of printable text: "1000 of 60000 image
     * headers read: 28x28, gray". Owned by the data set; NULL = nothing. */
    const char *description;
} stoker_dataset_info;

/* Where the bytes of a part are; the first of these that is true:
 *   memory != NULL   in memory that the data set owns
 *   bytes == 0       nowhere: the codec makes the fields from the sample id, or they are empty
 *   path != NULL     the whole file of that name, `bytes` long, opened for this read only;
 *                    STOKER_ECHANGED if its length differs by then. With STOKER_PART_RANGE: `bytes`
 *                    bytes of it at `offset`
 *   otherwise        `bytes` bytes of file number `file` at `offset`
 * In files this version reads parts of less than 4 GiB: see info.encoded_bytes_max. */
typedef struct stoker_extent {
    const void *memory;
    const char *path; /* relative to info.directory; owned by the data set */
    uint64_t offset;
    uint64_t bytes;
    uint32_t file; /* with a path: unused, but with STOKER_DIRECTORY_OF_FILE the directory */
} stoker_extent;

/* stoker_part.flags: the path of the extent names a file of which only a range is read. For data
 * sets of more files than can stay open. */
#define STOKER_PART_RANGE UINT64_C(1)

/* One part of a sample: an extent, decoded by one codec into the fields that name the part, which
 * are consecutive. Its size never changes: new members take the place of reserved ones. */
typedef struct stoker_part {
    stoker_extent extent;
    /* NULL = raw: the bytes are the part's fields, one after the other, in host byte order. A field
     * that varies must then be its part's only one: its length follows from the number of bytes. */
    const stoker_codec *codec;
    uint64_t tag; /* passed to the codec, for example a checksum. Default 0 */
    /* For views, which renumber samples: 1 + the id that the codec receives. Default 0 = the codec
     * receives the id that locate() received. */
    uint64_t codec_id;
    uint64_t flags;       /* STOKER_PART_RANGE, or 0; default 0. Other bits are refused */
    uint64_t reserved[2]; /* 0 */
} stoker_part;

/* The label of one sample. */
typedef union stoker_label {
    int64_t index; /* label_dtype STOKER_DTYPE_INT64 */
    float value;   /* label_dtype STOKER_DTYPE_FLOAT32 */
} stoker_label;

/* Its size never changes: new members take the place of reserved ones. */
typedef struct stoker_file {
    const char *path; /* for messages; owned by the data set */
    /* Open for reading, owned by the data set; with STOKER_DIRECTORY_OF_FILE some are directories.
     * -1 = none: only a loader with options.reader can read the file; any other create, and
     * stoker_dataset_read(), fail with STOKER_ENOTSUP. */
    int fd;
    uint64_t size;        /* bytes when opened */
    uint64_t reserved[2]; /* 0 */
} stoker_file;

/* The callbacks of a data set; your own data set consists of these. They are called from many
 * threads at once and must not change self visibly. Those that return an int return 0 or a
 * stoker_err < 0; any other value counts as STOKER_EINVAL, and the message names the callback. */
typedef struct stoker_dataset_ops {
    size_t struct_size; /* sizeof(stoker_dataset_ops) */
    const char *name;   /* "mnist"; static */

    /* Fill *out, which is all zero but for struct_size. Called once, by stoker_dataset_create(). */
    int (*describe)(const void *self, stoker_dataset_info *out);

    /* Fill *out for field `field` < info.field_count. Optional: see stoker_dataset_info. Called
     * once per field, after describe(). */
    int (*field)(const void *self, uint32_t field, stoker_field_info *out);

    /* Locate the parts of `count` >= 1 samples; every ids[i] < info.count. Fill all of
     * parts[0..count x part_count): part p of sample i is parts[i x part_count + p]. Required
     * unless part_count is 0. Must not allocate, lock or read: it is called for every sample. A
     * failure means that the data set is broken, not one sample: it ends the run regardless of
     * on_bad_sample. */
    int (*locate)(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error);

    /* Fill out[0..count) with field `field` of `count` >= 1 samples: dense, as stored. Required for
     * fields without a part, unless make() fills them. The rules of locate() hold. */
    int (*values)(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out);

    /* Fill all fields of sample `id`; rows[f] is the place of field f. For data sets without parts.
     * It runs in the workers, for several samples at once, and may allocate, block and read: no
     * reader is involved. `rng` is keyed by (seed, epoch, id), so what is drawn from it depends on
     * nothing else. A failure makes the sample bad, except for STOKER_ENOMEM, which ends the run
     * regardless of on_bad_sample. STOKER_INTERRUPTED: not now. Without workers next() then returns
     * STOKER_INTERRUPTED, and a later call asks for the sample again; in a worker's thread it ends
     * the run. Such a data set is never cached, since each epoch may make other rows. */
    int (*make)(const void *self, uint64_t id, stoker_row *rows, stoker_rng *rng,
                stoker_error *error);

    /* Fill *out for file number `file` < info.file_count. Optional if file_count is 0. Called when
     * the data set is created, and for each loader. */
    int (*file)(const void *self, uint32_t file, stoker_file *out);

    /* Free self. Optional. Not called if a read of a loader is stuck. */
    void (*destroy)(void *self);

    /* The name of class `index` < class_count of field `field`, owned by the data set; NULL = it
     * has none. Optional: NULL = no class has a name. */
    const char *(*class_name)(const void *self, uint32_t field, uint32_t index);

    /* The encoding of part 0 of sample `id` < info.count: see stoker_dataset_stored_as(). Optional,
     * for data sets whose codec has another name. */
    const char *(*stored_as)(const void *self, uint64_t id);

    /* Fill out[0..count) with the lengths of field `field`, which varies, in `count` >= 1 samples:
     * elements of its first axis, each at most shape[0]. The rules of locate() hold. Optional: NULL
     * = see stoker_dataset_lengths(). */
    int (*lengths)(const void *self, uint32_t field, const uint64_t *ids, uint32_t count,
                   uint64_t *out);
} stoker_dataset_ops;

/* Make a data set of your own. On success *out owns self (close calls destroy); on failure self
 * stays the caller's, *out is untouched, and *error has the cause. error may be NULL. ops must
 * outlive the data set. Errors: STOKER_EINVAL (a callback is missing, or the info of describe() is
 * inconsistent), STOKER_ELIMIT (info.encoded_bytes_max), STOKER_EEMPTY, STOKER_ENOMEM. */
STOKER_API int stoker_dataset_create(stoker_dataset **out, const stoker_dataset_ops *ops,
                                     void *self, stoker_error *error);

STOKER_API const stoker_dataset_info *stoker_dataset_get_info(const stoker_dataset *dataset);

/* Field `field`, owned by the data set; NULL if there is none. */
STOKER_API const stoker_field_info *stoker_dataset_field(const stoker_dataset *dataset,
                                                         uint32_t field);

/* The index of the field with that name; -1 if there is none. */
STOKER_API int32_t stoker_dataset_find_field(const stoker_dataset *dataset, const char *name);

/* Bytes of one sample's field as stored: elements x element size; if it varies, of the longest. 0
 * if there is none. */
STOKER_API size_t stoker_dataset_field_bytes(const stoker_dataset *dataset, uint32_t field);

/* The fingerprint that identifies the data set in a loader's state: see stoker_loader_state().
 * Equal for a data set that was moved or copied. The first call takes about 2 ms for 60,000 files,
 * of a view as much for each source. 0 if dataset is NULL. */
STOKER_API uint64_t stoker_dataset_fingerprint(const stoker_dataset *dataset);

/* The format's name: "mnist", "idx", ... */
STOKER_API const char *stoker_dataset_name(const stoker_dataset *dataset);

/* The name of class `index` of field `field`, owned by the data set; NULL if it has no name, or the
 * class or the field does not exist. Names have the bytes of the folder or file that they come
 * from: control characters, too. */
STOKER_API const char *stoker_dataset_class_name(const stoker_dataset *dataset, uint32_t field,
                                                 uint32_t index);

/* Locate the parts of one sample: parts[0..info.part_count); see stoker_dataset_ops.locate.
 * STOKER_EINVAL if id >= count. */
STOKER_API int stoker_dataset_locate(const stoker_dataset *dataset, uint64_t id, stoker_part *parts,
                                     stoker_error *error);

/* Find the lengths of field `field` in `count` samples without reading them: out[i] = elements of
 * the first axis of sample ids[i]. All are shape[0] if the field does not vary. A field that varies
 * has them from the callback lengths(), or, if there is none and its parts are raw, from the bytes
 * of its parts. Does not allocate. Any thread. Errors: STOKER_EINVAL (a NULL, no such field or
 * sample), STOKER_ENOTSUP (the lengths are only known by reading), STOKER_EFORMAT (a part is no
 * multiple of the elements, or longer than shape[0]), those of locate(). */
STOKER_API int stoker_dataset_lengths(const stoker_dataset *dataset, uint32_t field,
                                      const uint64_t *ids, uint32_t count, uint64_t *out,
                                      stoker_error *error);

/* Read and decode one sample in this thread, with pread, to look at data or to check a loader:
 * rows[f] has room for field f, stoker_dataset_field_bytes() bytes, or data NULL to leave it out.
 * Sets rows[f].length of fields that vary. make() draws as in epoch 0 with seed 0. May allocate.
 * Errors as the loader's. */
STOKER_API int stoker_dataset_read(const stoker_dataset *dataset, uint64_t id, stoker_row *rows,
                                   stoker_error *error);

/* The encoding of a sample's part 0 in storage: "raw", "png", "jpeg", "lz4" (one block), "image"
 * (PNG, JPEG or WebP, by its first bytes), or the name of another codec; static. NULL if dataset is
 * NULL, id >= count or the sample cannot be located. */
STOKER_API const char *stoker_dataset_stored_as(const stoker_dataset *dataset, uint64_t id);

/* Read the stored bytes of part `part` < info.part_count of one sample in this thread, with pread,
 * to copy them without loss. They are not decoded, so no checksum is verified. bytes_max must
 * exceed the part's length: info.encoded_bytes_max + 1 is enough for every part in a file. *size
 * becomes the length; 0 = the fields are made from the sample id alone. Errors: STOKER_EINVAL (a
 * NULL, no such sample or part, bytes_max too small), and those of reading. */
STOKER_API int stoker_dataset_read_stored(const stoker_dataset *dataset, uint64_t id, uint32_t part,
                                          void *bytes, size_t bytes_max, size_t *size,
                                          stoker_error *error);

STOKER_END_DECLS
#endif
