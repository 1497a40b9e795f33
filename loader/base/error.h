/* error.h - fill in a stoker_error: one line with code, place and cause. */
#ifndef STK_BASE_ERROR_H
#define STK_BASE_ERROR_H

#include <stdint.h>
#include <stoker/error.h>

/* Codes are -1 .. -STK_ERROR_COUNT. */
#define STK_ERROR_COUNTED(name, value, text) +1
enum { STK_ERROR_COUNT = STOKER_ERRORS(STK_ERROR_COUNTED) };
#undef STK_ERROR_COUNTED

/* Where something went wrong. Use STK_NOWHERE as a start. */
struct stk_place {
    const char *path; /* NULL = no file */
    uint64_t offset;  /* STOKER_NO_OFFSET = unknown */
    uint64_t sample;  /* STOKER_NO_SAMPLE = none */
    int os_errno;     /* 0 = no system call was involved */
};

#define STK_NOWHERE                                                                                \
    {                                                                                              \
        .path = NULL, .offset = STOKER_NO_OFFSET, .sample = STOKER_NO_SAMPLE, .os_errno = 0        \
    }

/* Room for text that becomes part of a message: more than the message has, so that only
 * stk_error_set() cuts it, which marks the place by "...". */
enum { STK_LINE_BYTES = 640 };

/* Make *error say that nothing happened. Its texts are ended, not cleared: 800 bytes would cost a
 * span of small rows as much as finding them. */
static inline void stk_error_clear(stoker_error *error)
{
    error->code = STOKER_OK;
    error->stage = STOKER_STAGE_OPTIONS;
    error->os_errno = 0;
    error->offset = STOKER_NO_OFFSET;
    error->sample = STOKER_NO_SAMPLE;
    error->path[0] = '\0';
    error->message[0] = '\0';
    for (int i = 0; i < 4; i++)
        error->reserved[i] = 0;
}

/* Fill *error (NULL is allowed: nothing is written) and return code, so that a failure is reported
 * and returned in one line. place NULL = nowhere. The message becomes "PATH: offset O: sample S:
 * WHAT: errno text"; unknown parts are omitted. WHAT says what failed and what was expected; of
 * ENOMEM, what the memory was for. format NULL = the text of the code. Path and message are made
 * printable (printable.h): callers insert names from outside as they are. */
int stk_error_set(stoker_error *error, int code, stoker_stage stage, const struct stk_place *place,
                  const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The usual refusals, in one line each. Fill *error (NULL is allowed) and return code.
 *   stk_refuse_option   an option or argument of a call: stage OPTIONS
 *   stk_refuse_spec     a spec, or what a data set's callbacks describe: stage OPEN
 *   stk_refuse_file     a file, at offset (or STOKER_NO_OFFSET), while it is opened: stage OPEN */
int stk_refuse_option(stoker_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int stk_refuse_spec(stoker_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int stk_refuse_file(stoker_error *error, int code, const char *path, uint64_t offset,
                    const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Name the file of a failure that names none: "PATH: " before its message. NULL is allowed. Returns
 * the error's code, or `code` of NULL. */
int stk_error_add_path(stoker_error *error, int code, const char *path);

/* Check what the callback `call` of the user's code returned: 0 and the errors of stoker/error.h
 * pass, any other value becomes STOKER_EINVAL, and the message of *said explains that. */
int stk_callback_code(int rc, const char *call, stoker_error *said);

/* The same for a callback that cannot say why it failed: *said explains any code. rc is not 0. */
int stk_callback_failed(int rc, const char *call, stoker_error *said);

/* The stoker_err that says the same as an errno of open, read, mmap, ... */
int stk_error_from_errno(int os_errno);

#endif
