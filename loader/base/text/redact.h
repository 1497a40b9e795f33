/* redact.h - removes secrets from the URLs in a message.
 *
 *   http://me:word@host/a?X-Amz-Signature=41f0&part=1   the user, the password and 41f0 become stars
 *
 * Names of remote objects are URLs, and every message may show one. User and password go, and the
 * values of parameters whose names suggest a secret. A query may follow "%3F", too: docs/http.md.
 */
#ifndef STK_BASE_REDACT_H
#define STK_BASE_REDACT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

enum { STK_URL_SHOWN_BYTES = 8192 };

/* Replace `bytes` bytes at `at` by at most three stars. Returns the position behind them. */
static inline char *stk_redact_bytes(char *at, size_t bytes)
{
    const size_t stars = bytes < 3 ? bytes : 3;
    memset(at, '*', stars);
    memmove(at + stars, at + bytes, strlen(at + bytes) + 1);
    return at + stars;
}

static inline bool stk_is_secret(const char *name, size_t bytes)
{
    static const char *const words[] = { "sig",  "token", "secret", "cred",
                                         "pass", "key",   "auth",   "pwd" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        for (size_t at = 0; at + strlen(words[i]) <= bytes; at++)
            if (strncasecmp(name + at, words[i], strlen(words[i])) == 0)
                return true;
    return false;
}

/* Bytes of a parameter's value; the ':' behind a name in a message is none of them. */
static inline size_t stk_value_bytes(const char *value)
{
    const size_t bytes = strcspn(value, "&; \t\r\n\"'<>");
    return bytes > 0 && value[bytes - 1] == ':' ? bytes - 1 : bytes;
}

/* Works in place; the text becomes no longer. */
static inline void stk_redact_urls(char *text)
{
    static const char behind[] = " \t\r\n\"'<>"; /* a URL ends before these */
    for (char *at = strstr(text, "://"); at != NULL; at = strstr(at, "://")) {
        at += 3;
        for (size_t bytes = strcspn(at, "/ \t\r\n\"'<>"); bytes > 0; bytes--)
            if (at[bytes - 1] == '@') { /* the last one: a password may contain others */
                at = stk_redact_bytes(at, bytes - 1);
                break;
            }
        bool query = false;
        while (*at != '\0' && strchr(behind, *at) == NULL) {
            const bool encoded = strncasecmp(at, "%3F", 3) == 0;
            if (*at == '?' || encoded || (query && (*at == '&' || *at == ';'))) {
                query = true;
                at += encoded ? 3 : 1;
                const size_t name = strcspn(at, "=&; \t\r\n\"'<>");
                if (at[name] == '=' && stk_is_secret(at, name))
                    at = stk_redact_bytes(at + name + 1, stk_value_bytes(at + name + 1));
            } else {
                at++;
            }
        }
    }
}

#endif
