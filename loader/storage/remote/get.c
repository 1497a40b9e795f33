/* get.c - texts that servers answer, in the calling thread: see request.h. */
#include <string.h>

#include "loader/base/error.h"
#include "loader/storage/remote/transfer.h"

static void add_text(void *context, const uint8_t *bytes, size_t count)
{
    struct stk_remote_text *text = context;
    memcpy(text->bytes + text->count, bytes, count);
    text->count += count;
}

static void find_header(void *context, const char *line, size_t bytes)
{
    struct stk_remote_text *text = context;
    size_t value_bytes;
    const char *value = text->header_name == NULL
                            ? NULL
                            : stk_header_value(line, bytes, text->header_name, &value_bytes);
    if (bytes >= 5 && memcmp(line, "HTTP/", 5) == 0) { /* another attempt */
        text->header[0] = '\0';
        text->count = 0;
    }
    if (value != NULL && value_bytes < sizeof(text->header)) {
        memcpy(text->header, value, value_bytes);
        text->header[value_bytes] = '\0';
    }
}

int stk_remote_get(struct stk_remote *remote, const struct stk_remote_address *address,
                   const char *what, struct stk_remote_text *out, stoker_error *error)
{
    struct stk_transfer transfer = { .remote = remote,
                                     .wanted = { .size = STK_UNKNOWN },
                                     .take = add_text,
                                     .header = find_header,
                                     .context = out,
                                     .limit = out->capacity - 1 };
    out->count = 0;
    out->status = 0;
    out->header[0] = '\0';
    int rc = stk_transfer_run(&transfer, NULL, address, error);
    if (rc == STOKER_OK && transfer.verdict != STK_VERDICT_TAKE) {
        char reason[STK_LINE_BYTES];
        const int os_errno = stk_transfer_reason(&transfer, reason, sizeof(reason));
        rc = stk_refuse_spec(error,
                             transfer.too_long ? STOKER_ELIMIT : stk_error_from_errno(os_errno),
                             "%s: %s", what, reason);
    }
    out->status = transfer.answer.status;
    out->bytes[out->count] = '\0';
    stk_transfer_end(&transfer);
    return rc;
}
