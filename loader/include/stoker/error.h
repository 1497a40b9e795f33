/* stoker/error.h - return codes, and an error with its location.
 *
 * Every function that can fail returns an int: STOKER_OK (0), a normal stop (> 0) or an error
 * (< 0). Most functions also fill in a stoker_error with the first cause.
 */
#ifndef STOKER_ERROR_H
#define STOKER_ERROR_H

#include <stdint.h>
#include <stoker/export.h>

STOKER_BEGIN_DECLS

enum {
    STOKER_OK = 0,
    STOKER_EPOCH_END = 1,   /* next: the epoch is over; the following call starts the next one */
    STOKER_FINISHED = 2,    /* next: options.epochs epochs are over */
    STOKER_INTERRUPTED = 3, /* next: stoker_loader_interrupt() was called; nothing is lost */
    STOKER_TIMEOUT = 4,     /* next: no batch became ready in time; call again, nothing is lost */
    STOKER_BUSY = 5         /* next: the slot of the next batch is lent; release its batch */
};

/* X(name, value, text). Values never change; new errors are added at the end. */
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

/* The stage of the pipeline that failed. */
typedef enum stoker_stage {
    STOKER_STAGE_OPTIONS,  /* arguments and options of a call */
    STOKER_STAGE_OPEN,     /* opening a data set and its files */
    STOKER_STAGE_LOCATE,   /* finding the bytes of a sample */
    STOKER_STAGE_READ,     /* reading them from storage */
    STOKER_STAGE_DECODE,   /* decoding them */
    STOKER_STAGE_TRANSFER, /* copying or converting on a GPU */
    STOKER_STAGE_WAIT,     /* the consumer's calls */
    STOKER_STAGE_HOOK      /* code of the user */
} stoker_stage;

#define STOKER_NO_OFFSET UINT64_MAX
#define STOKER_NO_SAMPLE UINT64_MAX

/* One error and its location. The caller provides the object, which owns nothing. A function fills
 * it in if it fails, and leaves it unchanged if it succeeds.
 *
 * path and message are safe to print on a terminal: one line of valid UTF-8, in which '?' replaces
 * control characters, characters that change the direction of text, and invalid bytes. */
typedef struct stoker_error {
    int32_t code; /* a stoker_err */
    stoker_stage stage;
    int32_t os_errno;     /* errno of the failed system call; 0 = none */
    uint64_t offset;      /* bytes from the start of the file; STOKER_NO_OFFSET = unknown */
    uint64_t sample;      /* sample id; STOKER_NO_SAMPLE = none */
    char path[256];       /* the file, or the end of its path if that is longer; "" = none */
    char message[512];    /* everything above in words */
    uint64_t reserved[4]; /* 0; for new members: the size never changes */
} stoker_error;

/* Return the text of a code, also of STOKER_OK and the normal stops; "unknown error code" for any
 * other value. Static. Any thread. */
STOKER_API const char *stoker_strerror(int code);

/* Return the name of a code, such as "STOKER_EINVAL"; "STOKER_UNKNOWN" for any other value. Static.
 * Any thread. */
STOKER_API const char *stoker_error_name(int code);

/* Return "options", "open", "locate", "read", "decode", "transfer", "wait" or "hook"; "unknown" for
 * any other value. Static. Any thread. */
STOKER_API const char *stoker_stage_name(stoker_stage stage);

STOKER_END_DECLS
#endif
