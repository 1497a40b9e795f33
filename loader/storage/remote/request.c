/* request.c - see request.h. */
#include "loader/storage/remote/request.h"

#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/storage/remote/http.h"
#include "loader/storage/remote/url.h"

/* ---- http and https ------------------------------------------------------------- */

static int hex_of(char digit)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = digit == '\0' ? NULL : strchr(digits, digit | 0x20);
    return found == NULL ? -1 : (int)(found - digits);
}

/* The value of "%41" at text, or -1. */
static int escape_at(const char *text)
{
    const int high = text[0] == '%' ? hex_of(text[1]) : -1;
    const int low = high < 0 ? -1 : hex_of(text[2]);
    return low < 0 ? -1 : high << 4 | low;
}

/* Decode "user:password". Returns false if it is too long, or contains a 0. */
static bool take_user(char out[STK_REMOTE_USER_BYTES], const char *from, const char *end)
{
    size_t used = 0;
    while (from < end && used + 1 < STK_REMOTE_USER_BYTES) {
        const int escaped = escape_at(from);
        const int byte = escaped >= 0 ? escaped : (unsigned char)*from;
        from += escaped >= 0 ? 3 : 1;
        out[used++] = (char)byte;
    }
    out[used] = '\0';
    return from == end && strlen(out) == used;
}

/* Copy what follows the host: escapes stay, but for that of '?', behind which the server's own
 * query begins; what no URL may contain is escaped. Returns false if it is too long. */
static bool take_path(char *to, const char *end, const char *from)
{
    while (*from != '\0') {
        const unsigned char byte = (unsigned char)*from;
        const int escaped = escape_at(from);
        if (end - to < 4)
            return false;
        if (escaped == '?') {
            *to++ = '?';
            from += 3;
        } else if (byte <= 0x20 || byte >= 0x7f || strchr("\"<>\\^`{|}#", byte) != NULL ||
                   (byte == '%' && escaped < 0)) {
            to += snprintf(to, 4, "%%%02X", byte);
            from++;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return true;
}

static int http_address(const char *name, struct stk_remote_address *out, stoker_error *error)
{
    const char *host = strstr(name, "://") + 3;
    const char *path = host + strcspn(host, "/?");
    const char *at = memrchr(host, '@', (size_t)(path - host));
    if (at != NULL && !take_user(out->user, host, at))
        return stk_refuse_spec(error, STOKER_ESPEC, "the user and password in it are too long");
    const char *server = at == NULL ? host : at + 1;
    const size_t used = (size_t)(host - name) + (size_t)(path - server);
    if (server == path)
        return stk_refuse_spec(error, STOKER_ESPEC, "it names no host");
    if (used + 8 >= sizeof(out->url))
        return stk_refuse_spec(error, STOKER_ELIMIT, "the URL is too long");
    memcpy(out->url, name, (size_t)(host - name));
    memcpy(out->url + (host - name), server, (size_t)(path - server));
    return take_path(out->url + used, out->url + sizeof(out->url), path)
               ? STOKER_OK
               : stk_refuse_spec(error, STOKER_ELIMIT, "the URL is too long");
}

/* ---- any ------------------------------------------------------------------------ */

int stk_remote_address_of(struct stk_remote *remote, const char *name,
                          enum stk_remote_method method, bool renew, struct stk_remote_address *out,
                          stoker_error *error)
{
    out->url[0] = out->headers[0] = out->user[0] = '\0';
    out->linked_etag = out->linked_size = 0;
    out->renewable = false;
    switch (stk_remote_scheme_of(name)) {
    case STK_REMOTE_HTTP:
        return http_address(name, out, error);
    case STK_REMOTE_S3:
        return stk_s3_address_of(&remote->s3, name, method, renew, out, error);
    case STK_REMOTE_HF:
        return stk_hf_address_of(&remote->hf, name, method, renew, out, error);
    case STK_REMOTE_NONE:
        break;
    }
    return stk_refuse_spec(error, STOKER_ESPEC,
                           "not a URL: it begins with none of http://, https://, s3:// and hf://");
}
