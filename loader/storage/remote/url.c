/* url.c - see url.h. */
#include "loader/storage/remote/url.h"

#include <string.h>
#include <strings.h>

/* ---- schemes -------------------------------------------------------------------- */

enum stk_remote_scheme stk_remote_scheme_of(const char *name)
{
    static const struct {
        const char *text;
        enum stk_remote_scheme scheme;
    } schemes[] = { { "https://", STK_REMOTE_HTTP },
                    { "http://", STK_REMOTE_HTTP },
                    { "s3://", STK_REMOTE_S3 },
                    { "hf://", STK_REMOTE_HF } };
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
        if (strncasecmp(name, schemes[i].text, strlen(schemes[i].text)) == 0)
            return schemes[i].scheme;
    return STK_REMOTE_NONE;
}

/* ---- building ------------------------------------------------------------------- */

struct stk_text stk_text(char *at, size_t capacity)
{
    at[0] = '\0';
    return (struct stk_text){ .at = at, .capacity = capacity };
}

void stk_text_add_bytes(struct stk_text *text, const char *more, size_t bytes)
{
    if (text->full || bytes >= text->capacity - text->used) {
        text->full = true;
        return;
    }
    memcpy(text->at + text->used, more, bytes);
    text->used += bytes;
    text->at[text->used] = '\0';
}

void stk_text_add(struct stk_text *text, const char *more)
{
    stk_text_add_bytes(text, more, strlen(more));
}

/* The C library's isalnum() depends on the locale. */
static bool is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static bool is_unreserved(char c)
{
    return is_alphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

void stk_text_encode(struct stk_text *text, const char *more, size_t bytes, bool keep_slash)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char c = (unsigned char)more[i];
        const char encoded[3] = { '%', digits[c >> 4], digits[c & 15] };
        const bool plain = is_unreserved(more[i]) || (keep_slash && c == '/');
        stk_text_add_bytes(text, plain ? more + i : encoded, plain ? 1 : 3);
    }
}

/* ---- taking apart --------------------------------------------------------------- */

static int hex_digit(char c)
{
    const char lower = (char)(c | 0x20);
    if (c >= '0' && c <= '9')
        return c - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool stk_url_decode(char *text, bool plus_is_space)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        char c = *from == '+' && plus_is_space ? ' ' : *from;
        if (c == '%') {
            const int high = hex_digit(from[1]);
            const int low = high < 0 ? -1 : hex_digit(from[2]);
            c = (char)(high * 16 + low);
            if (low < 0 || c == '\0')
                return false;
            from += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    return true;
}

bool stk_is_header_text(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    return true;
}

bool stk_url_split(struct stk_url *out, const char *text)
{
    const char *colon = strstr(text, "://");
    if (colon == NULL || colon == text || !stk_is_header_text(text))
        return false;
    for (const char *at = text; at < colon; at++)
        if (!is_alphanumeric(*at))
            return false;
    const char *host = colon + 3;
    const size_t host_bytes = strcspn(host, "/?#");
    for (size_t i = 0; i < host_bytes; i++)
        if (!is_unreserved(host[i]) && strchr(":[]", host[i]) == NULL)
            return false;
    out->scheme = (struct stk_piece){ text, (size_t)(colon - text) };
    out->host = (struct stk_piece){ host, host_bytes };
    out->path = host + host_bytes + (host[host_bytes] == '/' ? 1 : 0);
    return host_bytes > 0;
}

bool stk_piece_is(struct stk_piece piece, const char *text)
{
    return piece.bytes == strlen(text) && memcmp(piece.at, text, piece.bytes) == 0;
}
