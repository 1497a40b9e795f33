/* json.c - see json.h. */
#include "loader/base/text/json.h"

#include <string.h>

#include "loader/base/text/printable.h"

bool stk_json_refuse(struct stk_json *json, size_t at, const char *why)
{
    if (json->why == NULL) {
        json->why = why;
        json->at = at;
    }
    return false;
}

static void skip_space(struct stk_json *json)
{
    while (json->at < json->size && json->text[json->at] != '\0' &&
           strchr(" \t\n\r", json->text[json->at]) != NULL)
        json->at++;
}

bool stk_json_take(struct stk_json *json, char character)
{
    if (json->why != NULL)
        return false;
    skip_space(json);
    if (json->at == json->size || json->text[json->at] != character)
        return false;
    json->at++;
    return true;
}

bool stk_json_expect(struct stk_json *json, char character)
{
    if (stk_json_take(json, character))
        return true;
    switch (character) {
    case '{':
        return stk_json_refuse(json, json->at, "expected '{'");
    case '}':
        return stk_json_refuse(json, json->at, "expected ',' or '}'");
    case '[':
        return stk_json_refuse(json, json->at, "expected '['");
    case ']':
        return stk_json_refuse(json, json->at, "expected ',' or ']'");
    case ':':
        return stk_json_refuse(json, json->at, "expected ':'");
    case '"':
        return stk_json_refuse(json, json->at, "expected a string");
    default:
        return stk_json_refuse(json, json->at, "expected ','");
    }
}

bool stk_json_end(struct stk_json *json)
{
    if (json->why != NULL)
        return false;
    skip_space(json);
    return json->at == json->size ||
           stk_json_refuse(json, json->at, "something follows the closing '}'");
}

bool stk_json_number(struct stk_json *json, uint64_t *out)
{
    if (json->why != NULL)
        return false;
    skip_space(json);
    const size_t start = json->at;
    uint64_t value = 0;
    size_t at = start;
    for (; at < json->size && json->text[at] >= '0' && json->text[at] <= '9'; at++) {
        if (__builtin_mul_overflow(value, 10U, &value) ||
            __builtin_add_overflow(value, (uint64_t)(json->text[at] - '0'), &value))
            return stk_json_refuse(json, start, "the number does not fit in 64 bits");
    }
    if (at == start)
        return stk_json_refuse(json, start, "expected a number without sign");
    if (json->text[start] == '0' && at > start + 1)
        return stk_json_refuse(json, start, "a number begins with 0");
    if (at < json->size && (json->text[at] == '.' || (json->text[at] | 0x20) == 'e'))
        return stk_json_refuse(json, start, "expected a whole number");
    json->at = at;
    *out = value;
    return true;
}

/* ---- strings -------------------------------------------------------------------- */

/* Bytes of the UTF-8 character at text, 1..4, or 0 if there is none. Reads at most size (>= 1)
 * bytes. */
static size_t utf8_length(const char *text, size_t size)
{
    char character[5] = "";
    uint32_t code;
    memcpy(character, text, size < 4 ? size : 4);
    return stk_utf8_decode(character, &code);
}

/* Four hexadecimal digits at json->at; UINT32_MAX if they are not there. */
static uint32_t hex4(const struct stk_json *json, size_t at)
{
    if (json->size - at < 4)
        return UINT32_MAX;
    uint32_t value = 0;
    for (size_t i = 0; i < 4; i++) {
        const char digit = json->text[at + i];
        if (digit >= '0' && digit <= '9')
            value = value * 16 + (uint32_t)(digit - '0');
        else if ((digit | 0x20) >= 'a' && (digit | 0x20) <= 'f')
            value = value * 16 + (uint32_t)((digit | 0x20) - 'a' + 10);
        else
            return UINT32_MAX;
    }
    return value;
}

/* The character of \u and its digits, at json->at after the 'u'; 0 = not allowed. */
static uint32_t unicode_escape(struct stk_json *json)
{
    uint32_t high = hex4(json, json->at);
    if (high == UINT32_MAX || (high >= 0xDC00 && high <= 0xDFFF))
        return 0;
    json->at += 4;
    if (high < 0xD800 || high > 0xDBFF)
        return high;
    if (json->size - json->at < 6 || memcmp(json->text + json->at, "\\u", 2) != 0)
        return 0;
    uint32_t low = hex4(json, json->at + 2);
    if (low < 0xDC00 || low > 0xDFFF)
        return 0;
    json->at += 6;
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

/* One escape, its backslash at json->at; the character goes to `to`, which is never beyond
 * it: an escape is longer than its character. Returns the bytes written; 0 = error. */
static size_t escape(struct stk_json *json, char *to)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    const size_t start = json->at;
    if (json->size - start < 2)
        return 0;
    const char letter = json->text[start + 1];
    json->at += 2;
    if (letter == 'u') {
        uint32_t c = unicode_escape(json);
        return c == 0 ? 0 : stk_utf8_encode(to, c);
    }
    const char *found = letter == '\0' ? NULL : strchr(letters, letter);
    if (found == NULL)
        return 0;
    *to = meant[found - letters];
    return 1;
}

bool stk_json_string(struct stk_json *json, const char **out)
{
    if (!stk_json_expect(json, '"'))
        return false;
    char *const begin = json->text + json->at;
    char *to = begin;
    while (json->at < json->size && json->text[json->at] != '"') {
        const size_t start = json->at;
        const char *from = json->text + start;
        if ((uint8_t)*from < 0x20)
            return stk_json_refuse(json, start, "a control character in a string");
        size_t length = 0;
        if (*from == '\\') {
            length = escape(json, to);
        } else {
            length = utf8_length(from, json->size - start);
            memmove(to, from, length);
            json->at += length;
        }
        if (length == 0)
            return stk_json_refuse(json, start, *from == '\\' ? "an unknown escape" : "not UTF-8");
        to += length;
    }
    if (json->at == json->size)
        return stk_json_refuse(json, json->at, "a string without an end");
    json->at++;
    *to = '\0'; /* at the closing quote at the latest */
    *out = begin;
    return true;
}

/* ---- values of any kind --------------------------------------------------------- */

static bool skip_word(struct stk_json *json)
{
    static const char *const words[] = { "true", "false", "null" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const size_t bytes = strlen(words[i]);
        if (json->size - json->at >= bytes && memcmp(json->text + json->at, words[i], bytes) == 0) {
            json->at += bytes;
            return true;
        }
    }
    const size_t start = json->at;
    while (json->at < json->size && json->text[json->at] != '\0' &&
           strchr("+-.0123456789Ee", json->text[json->at]) != NULL)
        json->at++;
    return json->at > start || stk_json_refuse(json, start, "expected a value");
}

static bool skip_value(struct stk_json *json, int depth)
{
    const char *text;
    const bool object = stk_json_take(json, '{');
    if (!object && !stk_json_take(json, '[')) {
        if (json->why == NULL && json->at < json->size && json->text[json->at] == '"')
            return stk_json_string(json, &text);
        return json->why == NULL && skip_word(json);
    }
    const char close = object ? '}' : ']';
    if (depth == STK_JSON_DEPTH_MAX)
        return stk_json_refuse(json, json->at, "nested too deeply");
    if (stk_json_take(json, close))
        return true;
    do {
        if (object && (!stk_json_string(json, &text) || !stk_json_expect(json, ':')))
            return false;
        if (!skip_value(json, depth + 1))
            return false;
    } while (stk_json_take(json, ','));
    return stk_json_expect(json, close);
}

bool stk_json_skip(struct stk_json *json)
{
    return skip_value(json, 0);
}

bool stk_is_utf8(const char *text)
{
    uint32_t code;
    for (size_t length; *text != '\0'; text += length) {
        length = stk_utf8_decode(text, &code);
        if (length == 0)
            return false;
    }
    return true;
}
