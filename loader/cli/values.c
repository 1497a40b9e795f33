/* values.c - see options.h. */
#include "loader/cli/options.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <stoker/error.h>

#include "loader/base/text/nearest.h"

enum { WORD_SHOWN = 60, KNOWN_BYTES = 200 };
static const char units[] = "KMGT";

int cli_complain(char message[CLI_MESSAGE_BYTES], const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(message, CLI_MESSAGE_BYTES, format, list);
    va_end(list);
    return STOKER_EINVAL;
}

/* ---- numbers -------------------------------------------------------------------- */

/* Digits up to *end. False if there are none, or too many. */
static bool read_digits(const char *text, uint64_t *out, const char **end)
{
    char *after = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &after, 10);
    if (text[0] < '0' || text[0] > '9' || errno != 0)
        return false;
    *out = value;
    *end = after;
    return true;
}

int cli_count(const char *text, uint64_t min, uint64_t max, uint64_t *out,
              char message[CLI_MESSAGE_BYTES])
{
    const char *end = "";
    uint64_t value = 0;
    if (!read_digits(text, &value, &end) || *end != '\0' || value < min || value > max)
        return cli_complain(message, "'%.60s' is not a whole number from %" PRIu64 " to %" PRIu64,
                            text, min, max);
    *out = value;
    return STOKER_OK;
}

static uint64_t whole(double value)
{
    return value < 0x1p64 ? (uint64_t)value : UINT64_MAX;
}

static const struct cli_word *find_word(const struct cli_word *words, const char *text,
                                        size_t length)
{
    for (; words != NULL && words->text != NULL; words++)
        if (strncmp(words->text, text, length) == 0 && words->text[length] == '\0')
            return words;
    return NULL;
}

static int read_count(const struct cli_option *row, const char *text, uint64_t *out, char *message)
{
    const struct cli_word *word = find_word(row->words, text, strlen(text));
    if (word != NULL) {
        *out = (uint64_t)word->value;
        return STOKER_OK;
    }
    const int rc = cli_count(text, whole(row->min), whole(row->max), out, message);
    const size_t used = strlen(message);
    if (rc != STOKER_OK && row->words != NULL)
        (void)snprintf(message + used, CLI_MESSAGE_BYTES - used, " or %s", row->words->text);
    return rc;
}

void cli_bytes_text(char text[24], uint64_t bytes)
{
    unsigned unit = 0;
    while (unit < sizeof(units) - 1 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    const char letter[2] = { unit == 0 ? '\0' : units[unit - 1] };
    (void)snprintf(text, 24, "%" PRIu64 "%s", bytes, letter);
}

static int read_bytes(const struct cli_option *row, const char *text, uint64_t *out, char *message)
{
    const char *end = "";
    uint64_t value = 0;
    bool good = read_digits(text, &value, &end);
    const char *unit = good && *end != '\0' ? strchr(units, *end) : NULL;
    if (unit != NULL) {
        good = !__builtin_mul_overflow(value, (uint64_t)1 << (10 * (unit - units + 1)), &value);
        end++;
    }
    if (!good || *end != '\0' || value < whole(row->min) || value > whole(row->max)) {
        char min[24], max[24];
        cli_bytes_text(min, whole(row->min));
        cli_bytes_text(max, whole(row->max));
        return cli_complain(message, "'%.60s' is not a size from %s to %s, like 64M or 2G", text,
                            min, max);
    }
    *out = value;
    return STOKER_OK;
}

/* A number in the row's bounds, up to *end. */
static bool read_real(const struct cli_option *row, const char *text, double *out, char **end)
{
    double value = strtod(text, end);
    if (*end == text || !isfinite(value) || value < row->min || value > row->max)
        return false;
    *out = value;
    return true;
}

static int read_one_real(const struct cli_option *row, const char *text, double *out, char *message)
{
    char *end = NULL;
    if (!read_real(row, text, out, &end) || *end != '\0')
        return cli_complain(message, "'%.60s' is not a number from %g to %.7g", text, row->min,
                            row->max);
    return STOKER_OK;
}

static int read_pair(const struct cli_option *row, const char *text, double out[2], char *message)
{
    char *comma = NULL;
    char *end = NULL;
    if (!read_real(row, text, &out[0], &comma) || *comma != ',' ||
        !read_real(row, comma + 1, &out[1], &end) || *end != '\0')
        return cli_complain(message, "'%.60s' is not two numbers from %g to %.7g, like 0.9,0.999",
                            text, row->min, row->max);
    return STOKER_OK;
}

/* ---- words ---------------------------------------------------------------------- */

int cli_not_one_of(const char *word, size_t length, const char *known, const char *alias,
                   const char *meant, char message[CLI_MESSAGE_BYTES])
{
    char list[KNOWN_BYTES];
    char question[STK_NEAREST_BYTES];
    char *rest = list;
    struct stk_nearest nearest = stk_nearest_to(word, length);
    (void)snprintf(list, sizeof(list), "%s", known);
    for (char *at; (at = strsep(&rest, ",")) != NULL;) {
        at += strspn(at, " ");
        stk_nearest_try(&nearest, at, at);
    }
    if (alias != NULL)
        stk_nearest_try(&nearest, alias, meant);
    return cli_complain(message, "'%.*s' is not one of %s%s",
                        length < WORD_SHOWN ? (int)length : WORD_SHOWN, word, known,
                        stk_nearest_question(question, &nearest, ""));
}

static int not_a_word(const struct cli_option *row, const char *text, size_t length, char *message)
{
    char known[KNOWN_BYTES] = "";
    for (const struct cli_word *word = row->words; word->text != NULL; word++) {
        const size_t used = strlen(known);
        (void)snprintf(known + used, sizeof(known) - used, "%s%s", used == 0 ? "" : ", ",
                       word->text);
    }
    return cli_not_one_of(text, length, known, NULL, NULL, message);
}

static int read_word(const struct cli_option *row, const char *text, unsigned *out, char *message)
{
    const struct cli_word *word = find_word(row->words, text, strlen(text));
    if (word == NULL)
        return not_a_word(row, text, strlen(text), message);
    *out = (unsigned)word->value;
    return STOKER_OK;
}

static int read_words(const struct cli_option *row, const char *text, struct cli_list *out,
                      char *message)
{
    struct cli_list list = { .count = 0 };
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        const struct cli_word *word = find_word(row->words, at, length);
        if (list.count == CLI_LIST_MAX)
            return cli_complain(message, "the list has more than %d values", CLI_LIST_MAX);
        if (word == NULL)
            return not_a_word(row, at, length, message);
        list.values[list.count++] = (int32_t)word->value;
        at += length;
        if (*at == '\0')
            break;
    }
    *out = list;
    return STOKER_OK;
}

static int read_switch(const char *text, bool *out, char *message)
{
    if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
        return cli_complain(message, "'%.60s' is neither on nor off", text);
    *out = strcmp(text, "on") == 0;
    return STOKER_OK;
}

/* ---- ranges --------------------------------------------------------------------- */

static bool read_bound(const char **at, int32_t min, int32_t max, int32_t *out)
{
    uint64_t value = 0;
    if (!read_digits(*at, &value, at) || value > INT32_MAX || (int32_t)value < min ||
        (int32_t)value > max)
        return false;
    *out = (int32_t)value;
    return true;
}

/* One part, from *at to the next comma: "auto", "4" or "4-8". Returns what is wrong with it, or
 * NULL. */
static const char *read_part(struct cli_list *list, const char **at, int32_t min, int32_t max,
                             const struct cli_word *words)
{
    const size_t length = strcspn(*at, ",");
    const struct cli_word *word = find_word(words, *at, length);
    int32_t first = word != NULL ? (int32_t)word->value : 0;
    int32_t last = first;
    if (word != NULL) {
        *at += length;
    } else {
        if (!read_bound(at, min, max, &first))
            return "a value that is no number or out of range";
        last = first;
        if (**at == '-') {
            (*at)++;
            if (!read_bound(at, min, max, &last))
                return "a range whose end is no number or out of range";
        }
        if (last < first)
            return "a range that runs backwards";
    }
    if (last - first >= CLI_LIST_MAX - (int32_t)list->count)
        return "more than 512 values";
    for (int32_t value = first; value <= last; value++)
        list->values[list->count++] = value;
    return **at == '\0' || **at == ',' ? NULL : "something other than a comma between values";
}

int cli_ranges(struct cli_list *out, const char *text, int32_t min, int32_t max,
               const struct cli_word *words, char message[CLI_MESSAGE_BYTES])
{
    struct cli_list list = { .count = 0 };
    for (const char *at = text;; at++) {
        const char *wrong = read_part(&list, &at, min, max, words);
        if (wrong != NULL)
            return cli_complain(
                message, "%s in the list '%.100s' of whole numbers from %" PRId32 " to %" PRId32,
                wrong, text, min, max);
        if (*at == '\0')
            break;
    }
    *out = list;
    return STOKER_OK;
}

/* ---- all kinds ------------------------------------------------------------------ */

static int read_count32(const struct cli_option *row, const char *text, uint32_t *out,
                        char *message)
{
    uint64_t value = 0;
    const int rc = read_count(row, text, &value, message);
    if (rc == STOKER_OK)
        *out = (uint32_t)value;
    return rc;
}

static int read_text(const char *text, const char **out, char *message)
{
    if (text[0] == '\0')
        return cli_complain(message, "the value is empty");
    *out = text;
    return STOKER_OK;
}

int cli_read_value(const struct cli_option *row, const char *text, void *to,
                   char message[CLI_MESSAGE_BYTES])
{
    switch (row->kind) {
    case CLI_FLAG:
        *(bool *)to = true;
        return STOKER_OK;
    case CLI_ACTION:
    case CLI_STOP:
        *(unsigned *)to = (unsigned)row->min;
        return STOKER_OK;
    case CLI_HELP:
        if (text != NULL)
            return read_word(row, text, to, message);
        *(unsigned *)to = CLI_HELP_TEXT;
        return STOKER_OK;
    case CLI_SWITCH:
        return read_switch(text, to, message);
    case CLI_COUNT32:
        return read_count32(row, text, to, message);
    case CLI_COUNT64:
        return read_count(row, text, to, message);
    case CLI_BYTES:
        return read_bytes(row, text, to, message);
    case CLI_REAL:
        return read_one_real(row, text, to, message);
    case CLI_PAIR:
        return read_pair(row, text, to, message);
    case CLI_TEXT:
        return read_text(text, to, message);
    case CLI_WORD:
        return read_word(row, text, to, message);
    case CLI_WORDS:
        return read_words(row, text, to, message);
    case CLI_RANGES:
        return cli_ranges(to, text, (int32_t)row->min, (int32_t)row->max, row->words, message);
    case CLI_OTHER:
        return row->read(row, text, to, message);
    }
    return STOKER_EINVAL;
}
