/* json_read.c - see json_read.h. */
#include "bench/compare/json_read.h"

#include <stdlib.h>
#include <string.h>

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* Returns the end of the string that starts here, or NULL. */
static const char *skip_string(const char *at)
{
    if (*at++ != '"')
        return NULL;
    for (; *at != '"'; at++) {
        if (*at == '\\')
            at++;
        if (*at == '\0')
            return NULL;
    }
    return at + 1;
}

/* Returns the comma or bracket that ends the value that starts here. NULL = the line ends before. */
static const char *skip_value(const char *at)
{
    for (size_t depth = 0;;) {
        switch (*at) {
        case '\0':
            return NULL;
        case '"':
            at = skip_string(at);
            if (at == NULL)
                return NULL;
            continue;
        case '{':
        case '[':
            depth++;
            break;
        case '}':
        case ']':
            if (depth == 0)
                return at;
            depth--;
            break;
        case ',':
            if (depth == 0)
                return at;
            break;
        default:
            break;
        }
        at++;
    }
}

const char *bench_json_find(const char *line, const char *key)
{
    const size_t length = strlen(key);
    const char *at = skip_blanks(line);
    if (*at != '{')
        return NULL;
    do {
        const char *name = skip_blanks(at + 1);
        const char *end = skip_string(name);
        if (end == NULL)
            return NULL;
        at = skip_blanks(end);
        if (*at != ':')
            return NULL;
        const char *value = skip_blanks(at + 1);
        if ((size_t)(end - name) == length + 2 && strncmp(name + 1, key, length) == 0)
            return value;
        at = skip_value(value);
    } while (at != NULL && *at == ',');
    return NULL;
}

bool bench_json_read_number(const char *line, const char *key, double *out)
{
    const char *value = bench_json_find(line, key);
    if (value == NULL || strchr("-0123456789", *value) == NULL || *value == '\0')
        return false;
    *out = strtod(value, NULL);
    return true;
}

bool bench_json_read_bool(const char *line, const char *key, bool *out)
{
    const char *value = bench_json_find(line, key);
    if (value == NULL || (strncmp(value, "true", 4) != 0 && strncmp(value, "false", 5) != 0))
        return false;
    *out = *value == 't';
    return true;
}

bool bench_json_read_text(const char *line, const char *key, char *out, size_t size)
{
    const char *at = bench_json_find(line, key);
    size_t used = 0;
    if (at == NULL || *at != '"' || skip_string(at) == NULL)
        return false;
    for (at++; *at != '"' && used + 1 < size; at++) {
        if (*at == '\\') {
            at++;
            out[used++] = *at == '"' || *at == '\\' || *at == '/' ? *at : '?';
            if (*at == 'u') /* the digits */
                at += strspn(at + 1, "0123456789abcdefABCDEF") >= 4 ? 4 : 0;
        } else {
            out[used++] = *at;
        }
    }
    out[used] = '\0';
    return true;
}

size_t bench_json_read_numbers(const char *line, const char *key, double *out, size_t max)
{
    const char *at = bench_json_find(line, key);
    size_t count = 0;
    if (at == NULL || *at != '[')
        return 0;
    do {
        char *end = NULL;
        const double value = strtod(at + 1, &end);
        if (end == at + 1)
            return count;
        if (count < max)
            out[count++] = value;
        at = skip_blanks(end);
    } while (*at == ',');
    return count;
}
