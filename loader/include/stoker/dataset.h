/* stoker/dataset.h - open a data set, or define your own: how many samples, their fields, and which
 * extent of which file holds each one.
 *
 * A data set reads no samples itself: the loader does.
 *
 * Changes  The files of a data set must not change while it is open. The loader compares size,
 *          mtime and ctime (ns) of every open file whose samples have no checksum (a codec without
 *          verify): at create, before the last batch of an epoch, and about once a millisecond in
 *          between. A changed file ends the run with STOKER_ECHANGED, regardless of on_bad_sample:
 *          no epoch with rows of a changed file is completed, but batches delivered before may hold
 *          some. A new ctime is ignored if the mode, the owner or the number of links explains it
 *          (chmod, chown, link, unlink). A whole file (extent.path) replaced by one of the same
 *          length is not noticed: a read delivers the file that has the name at that moment. Data
 *          that a format keeps in memory (labels, tables, unpacked gzip) stay as they were.
 *
 * Threads  A data set is immutable once open: any number of loaders and threads may use it. Loaders
 *          and views share it, so you may close yours before they end.
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
typedef struct stoker_storage stoker_storage; /* see storage.h */

#define STOKER_BYTES_AUTO UINT64_MAX /* of bytes: let the library choose */

/* Start from STOKER_DATASET_OPTIONS_INIT. */
typedef struct stoker_dataset_options {
    size_t struct_size; /* set by STOKER_DATASET_OPTIONS_INIT; checked by open */
    const char *split;  /* "train", "test", ...; default NULL = the format's first split */
    uint64_t max_bytes; /* largest unpacked file that is kept in memory, >= 1; default 16 GiB */
    /* Where the names in the spec are (storage.h); the data set shares it. Default NULL = paths of
     * the local file system. */
    stoker_storage *storage;
    /* A local folder that keeps what is read of a storage, for later epochs, runs and processes. It
     * is made if it does not exist, and must not be writable for everybody. Every byte is verified
     * when it is read back, and read from the storage again if it is damaged. Objects without a
     * version are not kept; local files never are. Default NULL = nothing is kept. */
    const char *cache_dir;
    /* Most bytes of files in cache_dir, >= 1. If they are used up, pieces make way that no run has
     * used since this data set was opened. Default STOKER_BYTES_AUTO = what is there, and nine
     * tenths of the free space at open. */
    uint64_t cache_dir_bytes;
} stoker_dataset_options;

#define STOKER_DATASET_OPTIONS_DEFAULTS                                                            \
    STOKER_DEFAULT(struct_size, sizeof(stoker_dataset_options))                                    \
    STOKER_DEFAULT(max_bytes, UINT64_C(16) << 30)                                                  \
    STOKER_DEFAULT(cache_dir_bytes, STOKER_BYTES_AUTO)

STOKER_MAKER(stoker_dataset_options, STOKER_DATASET_OPTIONS_DEFAULTS)
#define STOKER_DATASET_OPTIONS_INIT                                                                \
    STOKER_INITIALIZER(stoker_dataset_options, STOKER_DATASET_OPTIONS_DEFAULTS)
STOKER_API int stoker_dataset_options_init_sized(stoker_dataset_options *out, size_t struct_size);

/* Open the data set named by spec. docs/formats/README.md (installed in share/doc/stoker) documents
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
 * NULL. On success the caller owns *out and closes it with stoker_dataset_close(); on failure *out
 * is untouched, and *error has the cause.
 *
 * Errors: STOKER_EINVAL (out or spec is NULL, or an option), ESPEC (no such format, parameter,
 * value or split), ENOENT, EACCES, EISDIR, EIO, ENOFILE (a file cannot be opened or read), EMAGIC,
 * ETRUNCATED, EOVERSIZE, EFORMAT, ECORRUPT (a file is not what its format says), EMISMATCH (files,
 * or joined data sets, do not fit each other), EEMPTY (no samples), ETYPE, ELIMIT (a size or count
 * is above a limit), ENOTSUP (a kind of the format that is not supported, or a codec that this
 * build lacks), ECHANGED (an index no longer fits its files), ENOMEM. */
STOKER_API int stoker_dataset_open(stoker_dataset **out, const char *spec,
                                   const stoker_dataset_options *options, stoker_error *error);

/* Describes the formats that this build opens: for each one or more lines with a spec, a tab and
 * what it opens, such as "mnist:DIR\tthe MNIST files in DIR, packed or not\n". Writes at most
 * `capacity` bytes to text, the final 0 included; text may be NULL if capacity is 0. Returns the
 * bytes of the whole text without its 0. Any thread. */
STOKER_API size_t stoker_dataset_formats(char *text, size_t capacity);

/* Give up your share of a data set and set *dataset to NULL. NULL and a pointer to NULL are
 * allowed. It is freed once its views (stoker/views.h) and loaders have ended, too. Any thread. */
STOKER_API void stoker_dataset_close(stoker_dataset **dataset);

/* Add an owner. Every owner closes the data set; the last one frees it. Returns dataset, which may
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
        2, /* an image of class numbers: cropped and moved like the image, never interpolated */
    STOKER_FIELD_KIND_BYTES = 3 /* a varying number of uint8: text, JSON, a key, a file name */
} stoker_field_kind;

/* One named field of every sample. batch.images, options.transform and options.dtype refer to
 * field 0. */
typedef struct stoker_field_info {
    size_t struct_size; /* set by the library before field(), which may keep it or set it to 0 */
    /* Unique in the data set, 1..63 bytes of letters, digits and "_-."; owned by the data set. */
    const char *name;
    stoker_field_kind kind;
    stoker_dtype dtype; /* as stored */
    uint32_t rank;      /* axes of one sample, 0..STOKER_RANK_MAX - 1 */
    /* Lengths of one sample's axes; images are height, width, channels. If the field varies,
     * shape[0] is the longest first axis, >= 1. */
    uint64_t shape[STOKER_RANK_MAX];
    bool varies;          /* the length of the first axis differs between samples: 0..shape[0] */
    uint32_t part;        /* the part that fills it; STOKER_NO_PART: values() or make() does */
    uint32_t class_count; /* values are 0..class_count - 1; 0 = no classes, or unknown */
    /* Largest image or mask in pixels, if sizes may differ from shape: a loader that resizes
     * decodes each in its own size (STOKER_CODEC_ANY_SIZE), any other refuses them. 0 = all have
     * shape. */
    uint64_t pixels_max;
    bool sizes_differ; /* opening found several sizes, and the spec gives none */
} stoker_field_info;

/* Describes a data set.
 *
 * A data set of one array and at most one label needs no field(): it sets dtype to class_count
 * here, and has the fields "image" (or "row", if is_image is false) from part 0, and "label" from
 * values(). A data set with field() leaves those members 0: the library fills them in from field 0,
 * and from the field "label" if that is one int64 or float32. */
typedef struct stoker_dataset_info {
    /* Set by the library before describe(), which may keep it or set it to 0. */
    size_t struct_size;
    uint64_t count;       /* samples, >= 1 */
    uint32_t field_count; /* 1..STOKER_FIELDS_MAX; without field() the library sets it to 1 or 2 */
    /* Parts of every sample, 0..STOKER_FIELDS_MAX. 0 = make() fills the fields. Without field(): 0
     * or 1, both mean one part. */
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
    /* Longest extent of any part in a file, bytes. Above 2^32 - 2, stoker_dataset_create() returns
     * STOKER_ELIMIT. */
    uint64_t encoded_bytes_max;
    bool has_paths; /* parts may be named files: extent.path */
    /* With has_paths: an open directory that the data set owns, to which paths are relative, or
     * AT_FDCWD. With a directory, a read whose path or links lead out of it fails with
     * STOKER_EACCES. STOKER_DIRECTORY_OF_FILE: each path is relative to the directory that is file
     * number extent.file. */
    int directory;
    bool dense; /* each sample is one part, a raw row of field 0; all are contiguous in file 0 */
    /* If each sample is one part, a raw row of field 0, and all are contiguous in memory that the
     * data set owns: the first one. The loader then need not call locate(). Default NULL. */
    const void *rows;
    /* A number that differs in every version of the data set: a checksum, a seed, a date. A loader
     * refuses to resume if it differs; see stoker_loader_state(). Default 0 = none. */
    uint64_t fingerprint;
    /* Findings about the samples, one line of printable text: "1000 of 60000 image headers read:
     * 28x28, gray". Owned by the data set; NULL = none. */
    const char *description;
    /* Blocks: bytes that are fetched and decoded as a unit, each of one or more samples with
     * consecutive ids. At most count; with them block_first() is required. Default 0 = none. */
    uint64_t block_count;
} stoker_dataset_info;

/* Where the bytes of a part are. The first case that applies:
 *   memory != NULL   in memory that the data set owns
 *   bytes == 0       nowhere: the codec computes the fields from the sample id, or they are empty
 *   path != NULL     the whole file of that name, opened for this read only; STOKER_ECHANGED unless
 *                    it is `bytes` long. With STOKER_PART_RANGE: `bytes` bytes of it at `offset`
 *   otherwise        `bytes` bytes of file number `file` at `offset`
 * Parts in files must be smaller than 4 GiB: see info.encoded_bytes_max. */
typedef struct stoker_extent {
    const void *memory;
    const char *path; /* relative to info.directory; owned by the data set */
    uint64_t offset;
    uint64_t bytes;
    uint32_t file; /* with a path: the directory if STOKER_DIRECTORY_OF_FILE, else unused */
} stoker_extent;

/* stoker_part.flags: read a range of the file that extent.path names. For data sets of more files
 * than can stay open. */
#define STOKER_PART_RANGE UINT64_C(1)

/* One part of a sample: an extent, decoded by one codec into the consecutive fields that name the
 * part. Its size never changes: new members replace reserved ones. */
typedef struct stoker_part {
    stoker_extent extent;
    /* NULL = raw: the bytes are the part's fields, one after the other, in host byte order. A field
     * that varies must then be the only one of its part: its length follows from extent.bytes. */
    const stoker_codec *codec;
    uint64_t tag; /* passed to the codec, for example a checksum. Default 0 */
    /* For views, which renumber samples: 1 + the id that the codec receives. Default 0 = the id
     * that locate() received. */
    uint64_t codec_id;
    uint64_t flags; /* STOKER_PART_RANGE or 0; default 0. Other bits are refused */
    /* With a path in a storage: the object's version. Default 0 = not known */
    uint64_t version;
    uint64_t reserved; /* 0 */
} stoker_part;

/* The label of one sample. */
typedef union stoker_label {
    int64_t index; /* label_dtype STOKER_DTYPE_INT64 */
    float value;   /* label_dtype STOKER_DTYPE_FLOAT32 */
} stoker_label;

/* How the bytes of a block are stored. */
typedef enum stoker_block_codec {
    STOKER_BLOCK_CODEC_NONE = 0, /* as they are */
    STOKER_BLOCK_CODEC_LZ4 = 1,  /* one LZ4 block, without a frame */
    STOKER_BLOCK_CODEC_ZSTD = 2  /* one Zstandard frame that contains its unpacked size */
} stoker_block_codec;

/* One block of a file. Its size never changes: new members replace reserved ones. */
typedef struct stoker_block {
    uint64_t first_byte;   /* in the unpacked file: where the block before ends */
    uint64_t offset;       /* in the file, ... */
    uint32_t stored_bytes; /* ... of these bytes, 1..2^30 */
    stoker_block_codec codec;
    uint32_t sum; /* CRC-32C of the unpacked bytes */
    bool has_sum;
    uint64_t reserved; /* 0 */
} stoker_block;

/* A file that consists of blocks, each of which is read and unpacked as a whole. Extents count
 * bytes of the unpacked file, and may cross blocks. A loader unpacks a block once and keeps it
 * while reads wait for it: see stoker_loader_options.block_memory_bytes. A damaged block makes the
 * samples in it bad. */
typedef struct stoker_blocks {
    /* [count + 1], owned by the data set, constant. each[0].first_byte is 0; of each[count] only
     * first_byte counts: the unpacked bytes of the file. A block unpacks to 1..2^30 bytes. */
    const stoker_block *each;
    uint64_t count; /* >= 1 */
} stoker_blocks;

/* Its size never changes: new members replace reserved ones. */
typedef struct stoker_file {
    const char *path; /* for messages, and its name in a storage; owned by the data set */
    /* Open for reading, owned by the data set; a directory if STOKER_DIRECTORY_OF_FILE paths use
     * it. -1 = none: without a storage, only a loader with options.reader can read the file; other
     * loaders and stoker_dataset_read() fail with STOKER_ENOTSUP. */
    int fd;
    uint64_t size;                 /* bytes when opened */
    const stoker_storage *storage; /* without a descriptor: what reads it. Default NULL = none */
    uint64_t version;              /* in the storage, when opened; default 0 = not known */
    /* What the file consists of; size and version remain those of the stored file. Default NULL =
     * extents count its own bytes. */
    const stoker_blocks *blocks;
} stoker_file;

/* The callbacks of your own data set. Many threads may call them at once, and they must not change
 * self visibly. Those that return an int return 0 or a stoker_err < 0; any other value counts as
 * STOKER_EINVAL, and the message names the callback. */
typedef struct stoker_dataset_ops {
    size_t struct_size; /* sizeof(stoker_dataset_ops) */
    const char *name;   /* "mnist"; static */

    /* Fill *out, which is zeroed but for struct_size. Called once, by stoker_dataset_create(). */
    int (*describe)(const void *self, stoker_dataset_info *out);

    /* Fill *out for field `field` < info.field_count. Optional: see stoker_dataset_info. Called
     * once per field, after describe(). */
    int (*field)(const void *self, uint32_t field, stoker_field_info *out);

    /* Locate the parts of `count` >= 1 samples; every ids[i] < info.count. Fill all of
     * parts[0..count x part_count): part p of sample i is parts[i x part_count + p]. Required
     * unless part_count is 0. Called for every sample: must not allocate, lock or read. A failure
     * ends the run, regardless of on_bad_sample. */
    int (*locate)(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error);

    /* Fill out[0..count) with field `field` of `count` >= 1 samples: dense, as stored. Required for
     * fields without a part, unless make() fills them. The rules of locate() apply. */
    int (*values)(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out);

    /* Fill all fields of sample `id`; rows[f] has room for field f. For data sets without parts.
     * Runs in several workers at once, and may allocate, block and read; no reader is involved.
     * `rng` depends only on (seed, epoch, id). A failure makes the sample bad, except for
     * STOKER_ENOMEM, which ends the run regardless of on_bad_sample. STOKER_INTERRUPTED: without
     * workers next() returns it, and a later call makes the sample again; in a worker it ends the
     * run. Rows are never cached, since they may differ in each epoch. */
    int (*make)(const void *self, uint64_t id, stoker_row *rows, stoker_rng *rng,
                stoker_error *error);

    /* Fill *out for file number `file` < info.file_count, the same way each time. Optional if
     * file_count is 0. Called once per file by stoker_dataset_create() and for each loader, and
     * when a sample is read or the fingerprint computed. */
    int (*file)(const void *self, uint32_t file, stoker_file *out);

    /* Free self. Optional. Not called if a loader leaks reads that never ended. */
    void (*destroy)(void *self);

    /* Return the name of class `index` < class_count of field `field`, owned by the data set; NULL
     * if it has none. Optional: NULL = no class has a name. */
    const char *(*class_name)(const void *self, uint32_t field, uint32_t index);

    /* Return the encoding of part 0 of sample `id` < info.count: see stoker_dataset_stored_as().
     * Optional: NULL = the name of its codec. */
    const char *(*stored_as)(const void *self, uint64_t id);

    /* Fill out[0..count) with the lengths of field `field`, which varies, in `count` >= 1 samples:
     * elements of its first axis, at most shape[0] each. The rules of locate() apply. Optional: see
     * stoker_dataset_lengths(). */
    int (*lengths)(const void *self, uint32_t field, const uint64_t *ids, uint32_t count,
                   uint64_t *out);

    /* Return the id of the first sample of block `block` < info.block_count: 0 for block 0, then
     * rising. Called often: must take constant time, and not allocate, lock or read. Required if
     * block_count > 0. */
    uint64_t (*block_first)(const void *self, uint64_t block);
} stoker_dataset_ops;

/* Make a data set of your own. On success *out owns self (the last close calls destroy); on failure
 * self stays the caller's, *out is untouched, and *error has the cause. error may be NULL. ops is
 * copied. Errors: STOKER_EINVAL (an argument is NULL, a callback is missing or fails with an
 * unknown code, or the descriptions are inconsistent), STOKER_ELIMIT (info.encoded_bytes_max),
 * STOKER_EEMPTY, STOKER_ENOMEM, and what describe() or field() return. */
STOKER_API int stoker_dataset_create(stoker_dataset **out, const stoker_dataset_ops *ops,
                                     void *self, stoker_error *error);

/* Return the description, owned by the data set; NULL if dataset is NULL. */
STOKER_API const stoker_dataset_info *stoker_dataset_get_info(const stoker_dataset *dataset);

/* Return field `field`, owned by the data set; NULL if there is none. */
STOKER_API const stoker_field_info *stoker_dataset_field(const stoker_dataset *dataset,
                                                         uint32_t field);

/* Return the index of the field with that name; -1 if there is none. */
STOKER_API int32_t stoker_dataset_find_field(const stoker_dataset *dataset, const char *name);

/* Return the bytes of field `field` of one sample as stored: elements x element size, of the
 * longest sample if it varies; 0 if there is no such field. */
STOKER_API size_t stoker_dataset_field_bytes(const stoker_dataset *dataset, uint32_t field);

/* Return the fingerprint that identifies the data set in a loader's state: see
 * stoker_loader_state(). A moved or copied data set keeps it. The first call takes about 2 ms for
 * 60,000 files, for a view per source. 0 if dataset is NULL. */
STOKER_API uint64_t stoker_dataset_fingerprint(const stoker_dataset *dataset);

/* Return the name of the format, "mnist", "idx", ...; NULL if dataset is NULL. */
STOKER_API const char *stoker_dataset_name(const stoker_dataset *dataset);

/* Return the name of class `index` of field `field`, owned by the data set; NULL if it has no name,
 * or the class or the field does not exist. The bytes are those of the folder or file that the name
 * is from, and may include control characters. */
STOKER_API const char *stoker_dataset_class_name(const stoker_dataset *dataset, uint32_t field,
                                                 uint32_t index);

/* Locate the parts of one sample: parts[0..info.part_count); see stoker_dataset_ops.locate. Memory
 * of a mapped shard ends when another program truncates the file (docs/formats/shards.md). Errors:
 * STOKER_EINVAL (a NULL, or id >= count), and those of locate(). */
STOKER_API int stoker_dataset_locate(const stoker_dataset *dataset, uint64_t id, stoker_part *parts,
                                     stoker_error *error);

/* Find the lengths of field `field` in `count` samples without reading them: out[i] = elements of
 * the first axis of sample ids[i]; shape[0] if the field does not vary. Asks the callback lengths()
 * or, if there is none and the parts are raw, divides their bytes. Does not allocate. Any thread.
 * Errors: STOKER_EINVAL (a NULL, no such field or sample), STOKER_ENOTSUP (only decoding yields the
 * lengths), STOKER_EFORMAT (a part has a fraction of an entry, or is longer than shape[0]), and
 * those of the callbacks. */
STOKER_API int stoker_dataset_lengths(const stoker_dataset *dataset, uint32_t field,
                                      const uint64_t *ids, uint32_t count, uint64_t *out,
                                      stoker_error *error);

/* Read and decode one sample in this thread, with pread, to inspect data or check a loader. rows[f]
 * has room for field f, at least stoker_dataset_field_bytes() bytes; data NULL skips it. Sets
 * rows[f].length of fields that vary. make() draws as in epoch 0 with seed 0. Allocates. Errors:
 * STOKER_EINVAL (a NULL, no such sample, or too little room), and those of a loader's read. */
STOKER_API int stoker_dataset_read(const stoker_dataset *dataset, uint64_t id, stoker_row *rows,
                                   stoker_error *error);

/* Return the encoding of a sample's part 0 in storage: "raw", "png", "jpeg", "lz4" (one block),
 * "image" (PNG, JPEG or WebP, by its first bytes), or the name of another codec; static. NULL if
 * dataset is NULL, id >= count, or the sample has no part or cannot be located. */
STOKER_API const char *stoker_dataset_stored_as(const stoker_dataset *dataset, uint64_t id);

/* Read the stored bytes of part `part` < info.part_count of one sample in this thread, with pread,
 * to copy them without loss. Nothing is decoded or verified. bytes_max must exceed the part's
 * length: info.encoded_bytes_max + 1 is enough for every part in a file. *size becomes the length;
 * 0 = the fields are computed from the sample id alone, or empty. Errors: STOKER_EINVAL (a NULL, no
 * such sample or part, bytes_max too small), and those of a loader's read. */
STOKER_API int stoker_dataset_read_stored(const stoker_dataset *dataset, uint64_t id, uint32_t part,
                                          void *bytes, size_t bytes_max, size_t *size,
                                          stoker_error *error);

STOKER_END_DECLS
#endif
