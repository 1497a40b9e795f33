/* stoker/error.h - what can go wrong, and where it did.
 *
 * Every function that can fail returns an int: 0 is done, > 0 a normal stop (STOKER_EPOCH_END), < 0
 * one of the errors below. A stoker_error keeps the first cause with its file, offset, sample and
 * stage.
 */
#ifndef STOKER_ERROR_H
#define STOKER_ERROR_H

#include <stdint.h>
#include <stoker/export.h>

STOKER_BEGIN_DECLS

enum {
    STOKER_OK = 0,
    STOKER_EPOCH_END = 1,   /* next: the epoch is over; the following call starts another */
    STOKER_FINISHED = 2,    /* next: options.epochs epochs are over */
    STOKER_INTERRUPTED = 3, /* next: stoker_loader_interrupt() was called; nothing is lost */
    STOKER_TIMEOUT = 4,     /* next: no batch became ready in time; call again, nothing is lost */
    STOKER_BUSY = 5         /* next: the slot of the next batch is still lent: release its batch */
};

/* X(name, value, text). Values never change; new ones are added at the end. */
#define STOKER_ERRORS(X)                                                                           \
    X(STOKER_EINVAL, -1, "an argument or option is out of its range")                              \
    X(STOKER_ENOMEM, -2, "out of memory")                                                          \
    X(STOKER_ENOENT, -3, "no such file or directory")                                              \
    X(STOKER_EACCES, -4, "permission denied")                                                      \
    X(STOKER_EISDIR, -5, "a directory where a file is needed")                                     \
    X(STOKER_EIO, -6, "the storage could not deliver the bytes")                                   \
    X(STOKER_EMAGIC, -7, "the file does not start with its format's magic number")                 \
    X(STOKER_ETRUNCATED, -8, "the file ends too early")                                            \
    X(STOKER_EOVERSIZE, -9, "the file has unexpected bytes at its end")                            \
    X(STOKER_EFORMAT, -10, "the file breaks the rules of its format")                              \
    X(STOKER_ECORRUPT, -11, "the bytes do not match their checksum or do not decompress")          \
    X(STOKER_EMISMATCH, -12, "inputs are inconsistent")                                            \
    X(STOKER_EEMPTY, -13, "the data set holds no samples")                                         \
    X(STOKER_ELIMIT, -14, "a limit on size or count is exceeded")                                  \
    X(STOKER_EBATCH, -15, "the batch is larger than the data set")                                 \
    X(STOKER_ETYPE, -16, "the element type cannot be converted to the requested one")              \
    X(STOKER_EPIN, -17, "the memory could not be page-locked")                                     \
    X(STOKER_ETHREAD, -18, "a thread could not be started")                                        \
    X(STOKER_EFORKED, -19, "the loader belongs to the parent process")                             \
    X(STOKER_EBADSAMPLES, -20, "too many samples are bad")                                         \
    X(STOKER_ESTATE, -21, "the state is damaged or belongs to another data set or version")        \
    X(STOKER_ESPEC, -22, "the data set's spec is not understood")                                  \
    X(STOKER_EDEVICE, -23, "the device is missing or failed")                                      \
    X(STOKER_EREADER, -24, "the requested reader is not available")                                \
    X(STOKER_ENOTSUP, -25, "not supported here")                                                   \
    X(STOKER_ENOFILE, -26, "too many open files")                                                  \
    X(STOKER_ECHANGED, -27, "the file changed after it was opened")                                \
    X(STOKER_EDIVERGED, -28, "training diverged: a number is NaN or infinite")                     \
    X(STOKER_EPEER, -29, "another rank failed or did not come")

#define STOKER_ERROR_ENUM(name, value, text) name = (value),
typedef enum stoker_err { STOKER_ERRORS(STOKER_ERROR_ENUM) } stoker_err;
#undef STOKER_ERROR_ENUM

/* The stage of the pipeline in which something went wrong. */
typedef enum stoker_stage {
    STOKER_STAGE_OPTIONS,
    STOKER_STAGE_OPEN,
    STOKER_STAGE_LOCATE,
    STOKER_STAGE_READ,
    STOKER_STAGE_DECODE,
    STOKER_STAGE_TRANSFER,
    STOKER_STAGE_WAIT,
    STOKER_STAGE_HOOK
} stoker_stage;

#define STOKER_NO_OFFSET UINT64_MAX
#define STOKER_NO_SAMPLE UINT64_MAX

/* One error and its location. Plain data that owns nothing. The caller provides it; a function that
 * fails fills it in, one that succeeds leaves it unchanged. */
typedef struct stoker_error {
    int32_t code; /* a stoker_err */
    stoker_stage stage;
    int32_t os_errno;     /* errno of the failed system call; 0 = none */
    uint64_t offset;      /* bytes from the start of the file; STOKER_NO_OFFSET = unknown */
    uint64_t sample;      /* sample id; STOKER_NO_SAMPLE = none */
    char path[256];       /* the file; of a longer path the end. "" = none */
    char message[512];    /* the complete message, one line */
    uint64_t reserved[4]; /* 0; the size never changes: new members take their place */
    /* Both texts are safe to print on a terminal: valid UTF-8 on one line. '?' replaces control
     * characters, characters that change the direction of text, and bytes that are not UTF-8. */
} stoker_error;

/* The text of a code, STOKER_OK and the normal stops included. Never NULL; any thread. */
STOKER_API const char *stoker_strerror(int code);

/* The name of a code: "STOKER_EINVAL"; "STOKER_UNKNOWN" for any other value. Static; any thread. */
STOKER_API const char *stoker_error_name(int code);

/* "options", "open", "locate", "read", "decode", "transfer", "wait" or "hook"; "unknown" for any
 * other value. Static; any thread. */
STOKER_API const char *stoker_stage_name(stoker_stage stage);

STOKER_END_DECLS
#endif
