/* stoker/reader.h - how bytes come from files: submit many, reap in any order.
 *
 *   IDLE --submit--> SUBMITTED --reap--> IDLE
 *
 * One ring per worker thread, opened, used and closed in that thread; with setup.any_thread, used
 * by one thread after another, each of which may have ended before the next one comes. Between
 * submit and reap a read and its buffer belong to the ring (with io_uring, to the kernel): no one
 * else may touch or free them.
 *
 * A reader reports what happened and hides nothing: a short read is a short result, EINTR and
 * EAGAIN are results. The caller retries, so that the same tested code retries for every reader.
 *
 * Your own reader (stoker_loader_options.reader, none of the three below) may decrypt, unpack or
 * fetch: it delivers every byte of a file. The loader
 *   - continues a short read with another one for the rest (a named file by its name, at the offset
 *     reached) until all expected bytes are there or a result is 0;
 *   - repeats a read that ends with -EINTR, -EAGAIN or -ECANCELED, for a whole file also -EMFILE,
 *     -ENFILE and -ESTALE, up to 128 times in a row over 0.13 s, then reports STOKER_EIO;
 *   - closes the ring after a failed submit or reap, opens another of the same reader and submits
 *     all reads again. If close or open fails, or the ring fails four times without a read in
 *     between, next() returns STOKER_EIO;
 *   - never reads a file by other means. Only io_uring may be replaced by pread, which delivers the
 *     same bytes.
 * Files may have no descriptor: stoker_file.fd = -1.
 */
#ifndef STOKER_READER_H
#define STOKER_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>
#include <stoker/error.h>

STOKER_BEGIN_DECLS

/* Its size never changes. */
typedef struct stoker_read {
    void *buffer;
    const char *path;     /* NULL: read file number `file`; else open this, read, close */
    uint64_t offset;      /* bytes from the start of the file */
    uint64_t bytes;       /* to read, >= 1; a reader may read fewer at once */
    int64_t result;       /* out: bytes read, at most `bytes`; 0 = end of file, < 0 = -errno */
    uint32_t file;        /* index into setup.files; with a path see setup.directory */
    uint32_t tag;         /* for the caller */
    uint64_t reserved[2]; /* 0; for a priority or a deadline */
} stoker_read;

typedef struct stoker_reader_setup {
    size_t struct_size;       /* bytes of this struct that the library fills in */
    const stoker_file *files; /* outlive the ring */
    uint32_t file_count;
    /* that paths are relative to; AT_FDCWD if no read has a path; STOKER_DIRECTORY_OF_FILE: each
     * path is relative to the open directory files[read.file].fd */
    int directory;
    uint32_t depth; /* most reads in flight, 1..1024 */
    void *scratch;  /* the worker's own memory for reads; may be registered; NULL = none */
    size_t scratch_bytes;
    /* Memory that whole rows are read into directly, shared by all rings; may be registered;
     * outlives the ring; NULL = none. Page-locked for your own reader, else perhaps only by being
     * registered. */
    void *slots;
    size_t slots_bytes;
    bool any_thread; /* several threads use the ring, one after another */
} stoker_reader_setup;

typedef struct stoker_reader {
    size_t struct_size; /* sizeof(stoker_reader); create copies the table */
    const char *name;   /* "uring", "pread", "null"; static */
    void *self;         /* passed to open(); must outlive the loader; may be NULL */

    /* Make a ring; *ring may stay NULL. STOKER_EREADER if not available on this system
     * (error->message says why). error is never NULL. */
    int (*open)(void *self, void **ring, const stoker_reader_setup *setup, stoker_error *error);

    /* Take all `count` reads; the caller keeps at most setup.depth in flight.
     * < 0: the ring is broken; reads and buffers belong to it until close returns 0. */
    int (*submit)(void *ring, stoker_read *const *reads, uint32_t count);

    /* Fill done[] with up to max finished reads. Waits up to wait_ns for the first one (0 = do not
     * wait, < 0 = no limit). Returns their number; 0 = none in time; a stoker_err < 0 = the ring
     * failed, and reads in flight belong to it. */
    int (*reap)(void *ring, stoker_read **done, uint32_t max, int64_t wait_ns);

    /* Free the ring, waiting up to wait_ns for reads in flight. STOKER_BUSY: some are still in
     * flight; the ring and their buffers must never be touched again. */
    int (*close)(void *ring, int64_t wait_ns);
} stoker_reader;

/* The readers of the library. To change a function of one, fill in a table of your own with its
 * functions, and set its struct_size to sizeof(stoker_reader): the library's may be larger or, if
 * it is older than the header, smaller. Any thread. */

/* io_uring; in a build without it, open returns STOKER_EREADER. */
STOKER_API const stoker_reader *stoker_reader_uring(void);
/* One system call per read; works everywhere. */
STOKER_API const stoker_reader *stoker_reader_pread(void);
/* Completes every read and writes nothing: for measurements. */
STOKER_API const stoker_reader *stoker_reader_null(void);

STOKER_END_DECLS
#endif
