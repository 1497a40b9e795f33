/* json.h - read JSON whose shape is known beforehand, strictly (RFC 8259), in place.
 *
 * The reader says what must come next and gets it, or a refusal with its offset. There is no tree
 * and no recursion: nesting costs nothing. Strings are decoded where they stand and end with 0.
 */
#ifndef STK_TRAINER_JSON_H
#define STK_TRAINER_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stk_json {
    char *text; /* written to by stk_json_string */
    size_t size;
    size_t at;       /* next byte; after a refusal, the byte that was refused */
    const char *why; /* NULL = all well so far; else every call refuses */
};

/* White space, then just this character. */
bool stk_json_expect(struct stk_json *json, char character);

/* White space; then take the character if it comes next. False is no refusal. */
bool stk_json_take(struct stk_json *json, char character);

/* A string: escapes decoded, valid UTF-8, no character U+0000. Lies in text, ends with 0. */
bool stk_json_string(struct stk_json *json, const char **out);

/* An integer 0..2^64-1 in plain digits: no sign, fraction, exponent or leading zero. */
bool stk_json_number(struct stk_json *json, uint64_t *out);

/* Nothing but white space is left. */
bool stk_json_end(struct stk_json *json);

/* Refuse what stands at `at`; returns false. The first refusal is kept. */
bool stk_json_refuse(struct stk_json *json, size_t at, const char *why);

bool stk_is_utf8(const char *text);

#endif
