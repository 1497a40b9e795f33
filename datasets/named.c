/* named.c - see named.h. */
#include "datasets/named.h"

#include <string.h>

static size_t name_bytes(const char *text)
{
    const size_t bytes =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");
    return bytes >= 1 && bytes < STOKER_FIELD_NAME_BYTES && text[bytes] == '=' ? bytes : 0;
}

bool stk_named_begins(const char *text)
{
    return name_bytes(text) > 0;
}

bool stk_named_next(const char **at, bool all_named, struct stk_named *out)
{
    const char *text = *at;
    if (text[0] == '\0')
        return false;
    const size_t bytes = name_bytes(text);
    *out = (struct stk_named){ .text = bytes > 0 ? text + bytes + 1 : text };
    memcpy(out->name, text, bytes);
    const char *end = out->text + strcspn(out->text, ",");
    while (all_named && end[0] == ',' && !stk_named_begins(end + 1))
        end += 1 + strcspn(end + 1, ",");
    out->text_bytes = (size_t)(end - out->text);
    /* A comma at the end of the list has an empty item behind it: the next call returns that. */
    const bool last = end[0] == ',' && end[1] == '\0' && out->text_bytes > 0;
    *at = end[0] == ',' && !last ? end + 1 : end;
    return true;
}
