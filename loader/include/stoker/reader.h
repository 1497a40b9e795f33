/* stoker/reader.h - the interface to storage: submit reads of files, reap them in any order.
 *
 *   IDLE --submit--> SUBMITTED --reap--> IDLE
 *
 * Each worker thread opens, uses and closes its own ring. With setup.any_thread, several threads
 * use the ring, one at a time; each may have ended before the next one uses it. From submit to reap
 * a read and its buffer belong to the ring (with io_uring, to the kernel): do not touch or free
 * them.
 *
 * A reader reports every outcome unchanged: short reads, EINTR and EAGAIN are results. The loader
 * retries, so all readers share the same tested retry code.
 *
 * Your own reader (stoker_loader_options.reader, other than the three below) may decrypt, unpack or
 * download. It delivers every byte of every file. A storage (storage.h) brings a reader for its own
 * objects. The loader
 *   - continues a short read at the offset reached, until all expected bytes have arrived or a
 *     result is 0;
 *   - repeats a read that ends with -EINTR, -EAGAIN or -ECANCELED (if it has a path, also -EMFILE,
 *     -ENFILE or -ESTALE) up to 128 times in a row within 0.13 s, then reports STOKER_EIO
 *     (STOKER_ENOFILE for the first two, STOKER_ECHANGED for -ESTALE);
 *   - reports -EBADMSG, damaged bytes, as STOKER_ECORRUPT;
 *   - reads the blocks of files that consist of them (stoker_file.blocks) as they are stored;
 *   - closes the ring after a failed submit or reap, opens another one of the same reader and
 *     submits all reads again. If close or open fails, or rings fail four times without a finished
 *     read in between, next() returns STOKER_EIO;
 *   - never falls back to another reader. Only io_uring falls back to pread, which delivers the
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
    const char *path; /* NULL: read file number `file`; else open this file, read, close */
    uint64_t offset;  /* bytes from the start of the file */
    uint64_t bytes;   /* to read, >= 1; a reader may return fewer */
    int64_t result;   /* out: bytes read, at most `bytes`; 0 = end of file, < 0 = -errno */
    uint32_t file;    /* index into setup.files; with a path see setup.directory */
    uint32_t tag;     /* for the caller */
    uint64_t version; /* with a path: of that object of a storage; 0 = not known, or a file */
    /* out, with a result < 0: the reason in a line that the ring owns until the next reap or close.
     * Optional: NULL = what the errno says. */
    const char *reason;
} stoker_read;

typedef struct stoker_reader_setup {
    size_t struct_size;       /* bytes of this struct that the library fills in */
    const stoker_file *files; /* outlive the ring */
    uint32_t file_count;
    /* Open directory that paths are relative to; AT_FDCWD if no read has a path;
     * STOKER_DIRECTORY_OF_FILE: each path is relative to the directory files[read.file].fd */
    int directory;
    uint32_t depth; /* most reads in flight, 1..1024 */
    void *scratch;  /* the worker's buffers for reads; may be registered; NULL = none */
    size_t scratch_bytes;
    /* Memory into which whole rows are read directly, shared by all rings; may be registered;
     * outlives the ring; NULL = none. For your own reader it is page-locked. */
    void *slots;
    size_t slots_bytes;
    bool any_thread; /* several threads use the ring, one at a time */
} stoker_reader_setup;

typedef struct stoker_reader {
    size_t struct_size; /* sizeof(stoker_reader); create copies the table */
    const char *name;   /* "uring", "pread", "null"; static */
    void *self;         /* passed to open(); must outlive the loader; may be NULL */

    /* Open a ring; *ring may stay NULL. Returns 0, or a stoker_err < 0 with the reason in
     * error->message: STOKER_EREADER if the reader is not available here. error is never NULL. */
    int (*open)(void *self, void **ring, const stoker_reader_setup *setup, stoker_error *error);

    /* Take all `count` reads; the caller keeps at most setup.depth in flight. Returns 0, or < 0 if
     * the ring is broken: reads and buffers then belong to it until close returns 0. */
    int (*submit)(void *ring, stoker_read *const *reads, uint32_t count);

    /* Fill done[] with up to max finished reads, waiting up to wait_ns for the first one (0 = do
     * not wait, < 0 = no limit). Returns their number, 0 at the timeout, or < 0 if the ring is
     * broken, as for submit. */
    int (*reap)(void *ring, stoker_read **done, uint32_t max, int64_t wait_ns);

    /* Free the ring, waiting up to wait_ns for reads in flight. Returns 0, or STOKER_BUSY if some
     * are still in flight: the caller then leaks their buffers and never touches the ring again. */
    int (*close)(void *ring, int64_t wait_ns);
} stoker_reader;

/* The built-in readers; static. Any thread. To replace a function of one, copy its functions to a
 * table of your own with struct_size = sizeof(stoker_reader): the library's size may differ if it
 * has another version than the header. */

/* io_uring; in a build without it, open returns STOKER_EREADER. */
STOKER_API const stoker_reader *stoker_reader_uring(void);
/* One system call per read; works everywhere. */
STOKER_API const stoker_reader *stoker_reader_pread(void);
/* Complete every read at once and write nothing: for measurements. */
STOKER_API const stoker_reader *stoker_reader_null(void);

STOKER_END_DECLS
#endif
