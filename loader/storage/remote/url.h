/* url.h - split and build URLs, with strict percent-encoding.
 *
 * Signatures cover path and query as they are sent, so exactly the characters that RFC 3986 calls
 * unreserved stay as they are; servers disagree about all others.
 */
#ifndef STK_STORAGE_REMOTE_URL_H
#define STK_STORAGE_REMOTE_URL_H

#include <stdbool.h>
#include <stddef.h>

enum stk_remote_scheme {
    STK_REMOTE_NONE, /* not the name of a remote object */
    STK_REMOTE_HTTP, /* and https */
    STK_REMOTE_S3,
    STK_REMOTE_HF
};

/* Returns the scheme that a name begins with; its case does not matter. */
enum stk_remote_scheme stk_remote_scheme_of(const char *name);

/* Text of bounded size, always ended by a 0. */
struct stk_text {
    char *at;
    size_t capacity; /* bytes, >= 1 */
    size_t used;     /* without the 0 */
    bool full;       /* something did not fit: the text is useless */
};

struct stk_text stk_text(char *at, size_t capacity);

void stk_text_add(struct stk_text *text, const char *more);
void stk_text_add_bytes(struct stk_text *text, const char *more, size_t bytes);

/* Add percent-encoded bytes; a '/' stays if keep_slash. */
void stk_text_encode(struct stk_text *text, const char *more, size_t bytes, bool keep_slash);

/* Decode %XX in place, and '+' as a space if plus_is_space, as in S3's lists. Returns false if a
 * '%' lacks its two digits, or if a character is a 0. */
bool stk_url_decode(char *text, bool plus_is_space);

/* Returns true if a text can be sent in a line of a request: it has no control characters. */
bool stk_is_header_text(const char *text);

/* A piece of another text. */
struct stk_piece {
    const char *at;
    size_t bytes;
};

/* SCHEME://HOST[:PORT][/PATH]: pieces of the text. path begins behind the '/' and is not decoded.
 * Returns false without a scheme or a host, with a user name in it, a character that no host has,
 * or a control character anywhere. */
struct stk_url {
    struct stk_piece scheme, host; /* host: with the port */
    const char *path;              /* up to the end of the text, with any query */
};

bool stk_url_split(struct stk_url *out, const char *text);

bool stk_piece_is(struct stk_piece piece, const char *text);

#endif
