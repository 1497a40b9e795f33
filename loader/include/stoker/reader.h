/* stoker/reader.h - how bytes come from files: submit many, reap in any order.
 *
 *   IDLE --submit--> SUBMITTED --reap--> IDLE
 *
 * One ring per worker thread, opened, used and closed on that thread; or, with
 * setup.any_thread, by one thread after another, each of which may have ended when the next
 * one comes. Between submit and reap the read and its buffer belong to the ring (to the kernel,
 * with io_uring): nobody may touch or free them.
 *
 * A reader reports what happened and hides nothing: a short read is a short
 * result, EINTR and EAGAIN are results. Retrying is the caller's job, so that
 * every reader is retried by the same tested code.
 *
 * A reader of your own (stoker_loader_options.reader, not one of the three below) may decrypt, unpack or fetch: every byte
 * of a file that the loader delivers comes from it. The loader
 *   - continues a short read with another one for the rest. A whole file (path) is continued by
 *     its name, at the offset reached; all bytes that were expected, or a result of 0, end it;
 *   - repeats a read that ends with -EINTR, -EAGAIN or -ECANCELED up to 128 times in a row, over
 *     0.13 s, then reports STOKER_EIO; for a whole file also -EMFILE, -ENFILE and -ESTALE;
 *   - after a submit or reap that failed closes the ring, opens another of the same reader and
 *     submits all reads again. If close or open fails, or the ring breaks four times without a
 *     read between them, next returns STOKER_EIO;
 *   - never reads a file by itself instead. Only io_uring may be replaced by plain pread, which
 *     delivers the same bytes.
 * Its files may have no descriptor: stoker_file.fd = -1.
 */
#ifndef STOKER_READER_H
#define STOKER_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>
#include <stoker/error.h>

STOKER_BEGIN_DECLS

typedef struct stoker_read {
    void *buffer;
    const char *path; /* NULL = file number `file`; else open this, read, close */
    uint64_t offset;  /* bytes from the start of the file */
    uint32_t bytes;   /* wanted, >= 1 */
    uint32_t file;    /* index into setup.files */
    int32_t result;   /* out: bytes read, at most `bytes`; 0 = end of file, < 0 = -errno */
    uint32_t tag;     /* the caller's own */
} stoker_read;

typedef struct stoker_reader_setup {
    const stoker_file *files; /* outlive the ring */
    uint32_t file_count;
    int directory;  /* where paths of reads start; AT_FDCWD if no read has one */
    uint32_t depth; /* most reads in flight, 1..1024 */
    void *scratch; /* memory of the worker's own that reads go to, may be registered; NULL = none */
    size_t scratch_bytes;
    void *slots; /* page-locked memory that reads of whole rows go to straight, shared by all rings,
                    may be registered, too; outlives the ring; NULL = none */
    size_t slots_bytes;
    /* A loader without workers is used, and destroyed, by whichever thread has it. */
    bool any_thread;
} stoker_reader_setup;

typedef struct stoker_reader {
    const char *name; /* "uring", "pread", "null"; static */

    /* Make a ring; *ring may stay NULL. STOKER_EREADER if this system has none (error->message
     * says why). error is never NULL. */
    int (*open)(void **ring, const stoker_reader_setup *setup, stoker_error *error);

    /* Take all `count` reads; the caller keeps at most setup.depth in flight.
     * < 0: the ring is broken; reads and buffers belong to it until close answers 0. */
    int (*submit)(void *ring, stoker_read *const *reads, uint32_t count);

    /* Fill done[] with up to max finished reads. Waits up to wait_ns for the first
     * (0 = only look, < 0 = no limit). Returns their number, 0 = none in time,
     * < 0 = the ring failed (-> stoker_err) and reads in flight are lost to it. */
    int (*reap)(void *ring, stoker_read **done, uint32_t max, int64_t wait_ns);

    /* Free the ring, waiting up to wait_ns for reads in flight. STOKER_EBUSY: some
     * are still in flight; the ring and their buffers must be left alone for good. */
    int (*close)(void *ring, int64_t wait_ns);
} stoker_reader;

STOKER_API extern const stoker_reader
    stoker_reader_uring; /* built without: open = STOKER_EREADER */
STOKER_API extern const stoker_reader stoker_reader_pread; /* plain system calls, works anywhere */
STOKER_API extern const stoker_reader stoker_reader_null; /* completes every read, writes nothing */

STOKER_END_DECLS
#endif
