/* error.c - see error.h. */
#include "loader/base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "loader/base/text/printable.h"
#include "loader/base/text/redact.h"

/* Append to a line of fixed size. A line that is too long ends in "...", and no character is cut in
 * two. */
static void append_list(char *line, size_t line_bytes, const char *format, va_list arguments)
{
    const size_t used = strlen(line);
    const int added = vsnprintf(line + used, line_bytes - used, format, arguments);
    if (added < 0 || (size_t)added < line_bytes - used)
        return;
    size_t cut = line_bytes - sizeof("...");
    while (cut > 0 && ((unsigned char)line[cut] & 0xc0) == 0x80) /* inside of a UTF-8 sequence */
        cut--;
    memcpy(line + cut, "...", sizeof("..."));
}

__attribute__((format(printf, 3, 4))) static void append(char *line, size_t line_bytes,
                                                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append_list(line, line_bytes, format, arguments);
    va_end(arguments);
}

/* A path that is too long keeps its end, which names the file. */
static void copy_path(char *to, size_t to_bytes, const char *path)
{
    char shown[STK_URL_SHOWN_BYTES];
    if (path != NULL && strstr(path, "://") != NULL) { /* before its start is lost */
        (void)snprintf(shown, sizeof(shown), "%s", path);
        stk_redact_urls(shown);
        path = shown;
    }
    size_t length = path == NULL ? 0 : strlen(path);
    if (length < to_bytes)
        (void)snprintf(to, to_bytes, "%s", path == NULL ? "" : path);
    else
        (void)snprintf(to, to_bytes, "...%s", path + length - (to_bytes - 4));
}

/* The message: the path, then the rest. If both are too long, the path loses its start first. */
static void join_path_and_text(stoker_error *error, const char *rest)
{
    enum { PATH_LEAST = 64 };
    const size_t room = sizeof(error->message) - 1 - strlen(rest);
    size_t path_bytes = room < PATH_LEAST ? PATH_LEAST : room - 1; /* ": ", and the final 0 */
    char path[sizeof(error->path)];
    if (path_bytes > sizeof(path))
        path_bytes = sizeof(path);
    copy_path(path, path_bytes, error->path);
    error->message[0] = '\0';
    append(error->message, sizeof(error->message), "%s%s%s", path, path[0] != '\0' ? ": " : "",
           rest);
    stk_redact_urls(error->message);
    stk_printable(error->message);
    stk_printable(error->path);
}

static int set_list(stoker_error *error, int code, stoker_stage stage,
                    const struct stk_place *place, const char *format, va_list arguments)
{
    const struct stk_place nowhere = STK_NOWHERE;
    if (error == NULL)
        return code;
    if (place == NULL)
        place = &nowhere;

    stk_error_clear(error);
    error->code = code;
    error->stage = stage;
    error->os_errno = place->os_errno;
    error->offset = place->offset;
    error->sample = place->sample;
    copy_path(error->path, sizeof(error->path), place->path);

    char rest[sizeof(error->message)] = "";
    if (place->offset != STOKER_NO_OFFSET)
        append(rest, sizeof(rest), "offset %" PRIu64 ": ", place->offset);
    if (place->sample != STOKER_NO_SAMPLE)
        append(rest, sizeof(rest), "sample %" PRIu64 ": ", place->sample);
    if (format == NULL) {
        append(rest, sizeof(rest), "%s", stoker_strerror(code));
    } else {
        if (code == STOKER_ENOMEM) /* what it was for is no reason without it */
            append(rest, sizeof(rest), "out of memory: ");
        append_list(rest, sizeof(rest), format, arguments);
    }
    if (place->os_errno != 0) {
        char text[96];
        const char *cause = strerror_r(place->os_errno, text, sizeof(text));
        const char *ours = stoker_strerror(code);
        const bool same = strcasecmp(cause, ours) == 0;
        if (!same || strstr(rest, ours) == NULL) /* once is enough */
            append(rest, sizeof(rest), ": %s", same ? ours : cause);
    }
    join_path_and_text(error, rest);
    return code;
}

int stk_error_set(stoker_error *error, int code, stoker_stage stage, const struct stk_place *place,
                  const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)set_list(error, code, stage, place, format, arguments);
    va_end(arguments);
    return code;
}

int stk_refuse_option(stoker_error *error, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)set_list(error, code, STOKER_STAGE_OPTIONS, NULL, format, arguments);
    va_end(arguments);
    return code;
}

int stk_refuse_spec(stoker_error *error, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)set_list(error, code, STOKER_STAGE_OPEN, NULL, format, arguments);
    va_end(arguments);
    return code;
}

int stk_refuse_file(stoker_error *error, int code, const char *path, uint64_t offset,
                    const char *format, ...)
{
    struct stk_place place = STK_NOWHERE;
    va_list arguments;
    place.path = path;
    place.offset = offset;
    va_start(arguments, format);
    (void)set_list(error, code, STOKER_STAGE_OPEN, &place, format, arguments);
    va_end(arguments);
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
    join_path_and_text(error, message);
    return error->code;
}

int stk_callback_code(int rc, const char *call, stoker_error *said)
{
    if (rc <= 0 && rc >= -STK_ERROR_COUNT)
        return rc;
    (void)snprintf(said->message, sizeof(said->message),
                   "%s returned %d, which is neither 0 nor an error", call, rc);
    return STOKER_EINVAL;
}

int stk_callback_failed(int rc, const char *call, stoker_error *said)
{
    const int code = stk_callback_code(rc, call, said);
    if (code == rc)
        (void)snprintf(said->message, sizeof(said->message), "%s failed: %s", call,
                       stoker_strerror(code));
    return code;
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
    case EBADMSG:
        return STOKER_ECORRUPT;
    default:
        return STOKER_EIO;
    }
}
