/* printable.h - makes text from outside safe to print on a terminal.
 *
 * Names of files, members and columns come from the maker of the data set. Printed as they are,
 * they could move the cursor, retitle the window, forge a line of output, or reverse the direction
 * of the text behind them. Used only where messages, progress lines and tables are made.
 */
#ifndef STK_BASE_PRINTABLE_H
#define STK_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decode the UTF-8 character at text, which ends with a 0. Returns its bytes, 1..4, and sets *code;
 * 0 if the bytes are not valid UTF-8. */
static inline size_t stk_utf8_decode(const char *text, uint32_t *code)
{
    static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    const uint8_t *bytes = (const uint8_t *)text;
    const uint8_t lead = bytes[0];
    const size_t length = lead < 0x80 ? 1 : lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (length == 0 || lead >= 0xf8)
        return 0;
    uint32_t value = length == 1 ? lead : lead & (0x7fU >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80) /* the final 0 stops here, too */
            return 0;
        value = value << 6 | (bytes[i] & 0x3fU);
    }
    if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
        return 0;
    *code = value;
    return length;
}

/* Write a character as UTF-8. Returns its bytes, 1..4. */
static inline size_t stk_utf8_encode(char *to, uint32_t code)
{
    static const uint8_t lead[5] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    const size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)(lead[length] | code);
    return length;
}

/* Returns true unless the character is a control (C0, DEL, C1), a line or paragraph separator, or
 * one that changes the direction of text. */
static inline bool stk_is_printable(uint32_t code)
{
    return code >= 0x20 && (code < 0x7f || code > 0x9f) && (code < 0x2028 || code > 0x202e) &&
           (code < 0x2066 || code > 0x2069);
}

/* Replace each character that is not printable, and each byte that is not UTF-8, by '?'. Works in
 * place; the text becomes no longer. */
static inline void stk_printable(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        uint32_t code = 0;
        const size_t length = stk_utf8_decode(from, &code);
        if (length == 0 || !stk_is_printable(code)) {
            *to++ = '?';
            from += length == 0 ? 1 : length;
        } else {
            for (size_t i = 0; i < length; i++)
                *to++ = *from++;
        }
    }
    *to = '\0';
}

#endif
