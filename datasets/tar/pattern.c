/* pattern.c - see pattern.h.
 *
 *   DIR/{a,b}-{008..010}.tar     2 x 3 names: a-008, a-009, a-010, b-008, ...
 *
 * Name i is computed from i, with each pair of braces as one digit.
 */
#include "datasets/tar/pattern.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"

enum { DIGITS_MAX = 18 };

struct parse {
    struct stk_tar_pattern *pattern;
    const char *format;
    stoker_error *error;
};

static int refuse(const struct parse *in, int code, const char *what)
{
    const struct stk_place place = STK_NOWHERE;
    return stk_error_set(in->error, code, STOKER_STAGE_OPEN, &place, "%s: \"%.*s\": %s", in->format,
                         (int)in->pattern->bytes, in->pattern->text, what);
}

/* ---- one pair of braces --------------------------------------------------------- */

static bool read_number(const char *at, size_t bytes, uint64_t *out)
{
    uint64_t number = 0;
    if (bytes == 0 || bytes > DIGITS_MAX)
        return false;
    for (size_t i = 0; i < bytes; i++) {
        if (at[i] < '0' || at[i] > '9')
            return false;
        number = number * 10 + (uint64_t)(at[i] - '0');
    }
    *out = number;
    return true;
}

/* "000..099". A zero in front of either makes all as wide as the wider one, as in a shell. */
static int take_range(const struct parse *in, struct stk_tar_braces *braces, const char *inside,
                      const char *dots, size_t bytes)
{
    const size_t first_bytes = (size_t)(dots - inside);
    const size_t last_bytes = bytes - first_bytes - 2;
    uint64_t last = 0;
    if (!read_number(inside, first_bytes, &braces->first) ||
        !read_number(dots + 2, last_bytes, &last) || last < braces->first)
        return refuse(in, STOKER_ESPEC, "a range has the form {000..099}, ascending");
    if (last - braces->first >= STK_TAR_FILES_MAX)
        return refuse(in, STOKER_ELIMIT, "more than 65536 names");
    const bool padded = (first_bytes > 1 && inside[0] == '0') || (last_bytes > 1 && dots[2] == '0');
    braces->width = padded ? (uint32_t)(first_bytes > last_bytes ? first_bytes : last_bytes) : 1;
    braces->count = (uint32_t)(last - braces->first) + 1;
    return STOKER_OK;
}

/* "a,b,c": any words, none of them empty. */
static int take_words(const struct parse *in, struct stk_tar_braces *braces, const char *inside,
                      size_t bytes)
{
    braces->count = 1;
    for (size_t i = 0, begin = 0; i <= bytes; i++) {
        if (i < bytes && inside[i] != ',')
            continue;
        if (i == begin)
            return refuse(in, STOKER_ESPEC, "a word in the braces is empty");
        begin = i + 1;
        braces->count += i < bytes ? 1 : 0;
    }
    return STOKER_OK;
}

static int take_braces(const struct parse *in, size_t begin)
{
    struct stk_tar_pattern *pattern = in->pattern;
    const char *inside = pattern->text + begin + 1;
    const size_t left = pattern->bytes - begin - 1;
    const char *close = memchr(inside, '}', left);
    if (close == NULL || memchr(inside, '{', (size_t)(close - inside)) != NULL)
        return refuse(in, STOKER_ESPEC, "braces must be closed and cannot be nested");
    if (pattern->brace_count == STK_TAR_BRACES_MAX)
        return refuse(in, STOKER_ELIMIT, "more than 4 pairs of braces");
    struct stk_tar_braces *braces = &pattern->braces[pattern->brace_count++];
    const size_t bytes = (size_t)(close - inside);
    const char *dots = memmem(inside, bytes, "..", 2);
    *braces = (struct stk_tar_braces){ .begin = begin, .end = begin + bytes + 2 };
    int rc = dots != NULL ? take_range(in, braces, inside, dots, bytes)
                          : take_words(in, braces, inside, bytes);
    if (rc != STOKER_OK)
        return rc;
    if ((uint64_t)pattern->name_count * braces->count > STK_TAR_FILES_MAX)
        return refuse(in, STOKER_ELIMIT, "more than 65536 names");
    pattern->name_count *= braces->count;
    return STOKER_OK;
}

/* ---- the pattern ---------------------------------------------------------------- */

void stk_tar_pattern_plain(struct stk_tar_pattern *out, const char *text, size_t bytes)
{
    *out = (struct stk_tar_pattern){ .text = text, .bytes = bytes, .name_count = 1 };
}

int stk_tar_pattern_parse(struct stk_tar_pattern *out, const char *format, const char *text,
                          size_t bytes, stoker_error *error)
{
    const struct parse in = { .pattern = out, .format = format, .error = error };
    stk_tar_pattern_plain(out, text, bytes);
    for (size_t at = 0; at < bytes; at++) {
        if (text[at] == '}')
            return refuse(&in, STOKER_ESPEC, "a } without a {");
        if (text[at] != '{')
            continue;
        int rc = take_braces(&in, at);
        if (rc != STOKER_OK)
            return rc;
        at = out->braces[out->brace_count - 1].end - 1;
    }
    return STOKER_OK;
}

/* The `index`-th replacement of the braces. */
static int write_choice(const struct stk_tar_pattern *pattern, const struct stk_tar_braces *braces,
                        uint32_t index, char *to, size_t to_bytes)
{
    if (braces->width > 0)
        return snprintf(to, to_bytes, "%0*llu", (int)braces->width,
                        (unsigned long long)braces->first + index);
    const char *word = pattern->text + braces->begin + 1;
    for (; index > 0; word++)
        index -= *word == ',' ? 1U : 0U;
    return snprintf(to, to_bytes, "%.*s", (int)strcspn(word, ",}"), word);
}

size_t stk_tar_pattern_name(const struct stk_tar_pattern *pattern, uint32_t index, char *name,
                            size_t name_bytes)
{
    assert(index < pattern->name_count);
    uint32_t choices[STK_TAR_BRACES_MAX] = { 0 };
    size_t used = 0;
    size_t at = 0;
    for (uint32_t i = pattern->brace_count; i-- > 0; index /= pattern->braces[i].count)
        choices[i] = index % pattern->braces[i].count;
    for (uint32_t i = 0; i <= pattern->brace_count; i++) {
        const bool last = i == pattern->brace_count;
        const size_t end = last ? pattern->bytes : pattern->braces[i].begin;
        if (end - at >= name_bytes - used)
            return 0;
        memcpy(name + used, pattern->text + at, end - at);
        used += end - at;
        name[used] = '\0';
        if (last)
            break;
        const int wrote =
            write_choice(pattern, &pattern->braces[i], choices[i], name + used, name_bytes - used);
        if (wrote < 0 || (size_t)wrote >= name_bytes - used)
            return 0;
        used += (size_t)wrote;
        at = pattern->braces[i].end;
    }
    return used;
}
