/* json.h - reads JSON of a known shape, strictly (RFC 8259), in place.
 *
 * The caller names what must come next and gets it, or an error with its offset. There is no tree.
 * Strings are decoded in place and end with 0.
 */
#ifndef STK_BASE_JSON_H
#define STK_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STK_JSON_DEPTH_MAX = 16 };

struct stk_json {
    char *text; /* written to by stk_json_string */
    size_t size;
    size_t at;       /* next byte; after an error, the byte in error */
    const char *why; /* the first error; every later call fails. NULL = none */
};

/* Skips white space and then this character, which must follow. */
bool stk_json_expect(struct stk_json *json, char character);

/* Skips white space, and then the character if it follows; false is no error. */
bool stk_json_take(struct stk_json *json, char character);

/* A string: escapes decoded, valid UTF-8, no character U+0000. Lies in text, ends with 0. */
bool stk_json_string(struct stk_json *json, const char **out);

/* An integer 0..2^64-1 in plain digits: no sign, fraction, exponent or leading zero. */
bool stk_json_number(struct stk_json *json, uint64_t *out);

/* Skip a value of any kind, nested at most STK_JSON_DEPTH_MAX deep. Its strings are checked. */
bool stk_json_skip(struct stk_json *json);

/* Checks that only white space is left. */
bool stk_json_end(struct stk_json *json);

/* Records an error at `at`, unless there is one already; returns false. */
bool stk_json_refuse(struct stk_json *json, size_t at, const char *why);

bool stk_is_utf8(const char *text);

#endif
