/* error.c - see error.h. */
#include "loader/base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "loader/base/printable.h"

/* Append to a line of fixed size; the rest is cut. */
__attribute__((format(printf, 3, 4))) static void append(char *line, size_t line_bytes,
                                                         const char *format, ...)
{
    size_t used = strnlen(line, line_bytes);
    va_list arguments;
    va_start(arguments, format);
    if (used + 1 < line_bytes)
        (void)vsnprintf(line + used, line_bytes - used, format, arguments);
    va_end(arguments);
}

/* A path that is too long keeps its end, which names the file. */
static void copy_path(char *to, size_t to_bytes, const char *path)
{
    size_t length = path == NULL ? 0 : strlen(path);
    if (length < to_bytes)
        (void)snprintf(to, to_bytes, "%s", path == NULL ? "" : path);
    else
        (void)snprintf(to, to_bytes, "...%s", path + length - (to_bytes - 4));
}

/* Returns true if the text of the code would only repeat or contradict a specific message. The texts of the other
 * codes say what is wrong with the bytes that the message names. */
static bool is_general(int code, int os_errno)
{
    switch (code) {
    case STOKER_EINVAL:
    case STOKER_EMISMATCH:
    case STOKER_ESTATE:
    case STOKER_ESPEC:
    case STOKER_EDEVICE:
    case STOKER_EREADER:
    case STOKER_ENOTSUP:
    case STOKER_EPEER:
        return true;
    case STOKER_EIO:
        return os_errno != 0;
    default:
        return false;
    }
}

int stk_error_set(stoker_error *error, int code, stoker_stage stage, const struct stk_place *place,
                  const char *format, ...)
{
    if (error == NULL)
        return code;

    stk_error_clear(error);
    error->code = code;
    error->stage = stage;
    error->os_errno = place->os_errno;
    error->offset = place->offset;
    error->sample = place->sample;
    copy_path(error->path, sizeof(error->path), place->path);

    char *const line = error->message;
    const size_t line_bytes = sizeof(error->message);
    line[0] = '\0';
    if (error->path[0] != '\0')
        append(line, line_bytes, "%s: ", error->path);
    if (place->offset != STOKER_NO_OFFSET)
        append(line, line_bytes, "offset %" PRIu64 ": ", place->offset);
    if (place->sample != STOKER_NO_SAMPLE)
        append(line, line_bytes, "sample %" PRIu64 ": ", place->sample);
    if (format != NULL) {
        char what[320];
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(what, sizeof(what), format, arguments);
        va_end(arguments);
        append(line, line_bytes, "%s", what);
    }
    const bool alone = format != NULL && is_general(code, place->os_errno);
    if (!alone)
        append(line, line_bytes, "%s%s", format == NULL ? "" : ": ", stoker_strerror(code));
    if (place->os_errno != 0) {
        char text[96];
        const char *cause = strerror_r(place->os_errno, text, sizeof(text));
        if (strcasecmp(cause, stoker_strerror(code)) != 0) /* once is enough */
            append(line, line_bytes, ": %s", cause);
    }
    stk_printable(line);
    stk_printable(error->path);
    return code;
}

int stk_error_add_path(stoker_error *error, int code, const char *path)
{
    char message[sizeof(error->message)];
    if (error == NULL)
        return code;
    if (error->path[0] != '\0')
        return error->code;
    copy_path(error->path, sizeof(error->path), path);
    memcpy(message, error->message, sizeof(message));
    error->message[0] = '\0';
    append(error->message, sizeof(error->message), "%s: %s", error->path, message);
    stk_printable(error->message);
    stk_printable(error->path);
    return error->code;
}

int stk_error_from_errno(int os_errno)
{
    switch (os_errno) {
    case ENOENT:
    case ENOTDIR:
        return STOKER_ENOENT;
    case EACCES:
    case EPERM:
        return STOKER_EACCES;
    case EISDIR:
        return STOKER_EISDIR;
    case ENOMEM:
        return STOKER_ENOMEM;
    case EMFILE:
    case ENFILE:
        return STOKER_ENOFILE;
    case ESTALE:
        return STOKER_ECHANGED;
    case ETIMEDOUT:
        return STOKER_ETIMEDOUT;
    default:
        return STOKER_EIO;
    }
}
