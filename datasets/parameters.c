/* parameters.c - see parameters.h.
 *
 *   DIR?count=60000&shape=28x28  the last '?' ends the name
 *   count=60000&shape=28x28      '&' separates pairs, the first '=' key and value
 *
 * A value has at most STK_PARAMETER_BYTES_MAX bytes, so that it fits a buffer.
 */
#include "datasets/parameters.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/text/nearest.h"

/* ---- the name ------------------------------------------------------------------- */

struct stk_spec stk_spec_split(const stoker_storage *storage, const char *rest, char mark)
{
    const char *at = strrchr(rest, mark);
    if (at == NULL || (!stk_storage_is_url(rest) && stk_storage_has(storage, rest)))
        return (struct stk_spec){ .name_bytes = strlen(rest) };
    return (struct stk_spec){ .name_bytes = (size_t)(at - rest), .after = at + 1 };
}

/* The last name of "A", "A,B" or "a=A,b=B" may contain the mark, if there is a file of that
 * name. */
int stk_spec_no_parameters(const stoker_storage *storage, const char *rest, const char *whose,
                           stoker_error *error)
{
    const struct stk_spec spec = stk_spec_split(storage, rest, '?');
    const char *comma = strrchr(rest, ',');
    const char *last = comma == NULL ? rest : comma + 1;
    const char *equals = strchr(last, '=');
    const char *name = equals != NULL && stk_storage_is_url(equals + 1) ? equals + 1 : last;
    if (spec.after == NULL ||
        (!stk_storage_is_url(name) && (stk_storage_has(storage, last) ||
                                       (equals != NULL && stk_storage_has(storage, equals + 1)))))
        return STOKER_OK;
    if (spec.after[strspn(spec.after, "abcdefghijklmnopqrstuvwxyz_")] != '=')
        return STOKER_OK;
    return stk_parameters_read(spec.after, NULL, 0, whose, error);
}

int stk_spec_root(char *root, size_t root_bytes, const char *name, size_t name_bytes,
                  const char *split, const char *whose, stoker_error *error)
{
    if (name_bytes == 0)
        return stk_refuse_spec(error, STOKER_ESPEC, "\"%s:\" names no folder", whose);
    if (split != NULL && (split[0] == '\0' || strchr(split, '/') != NULL || split[0] == '.'))
        return stk_refuse_spec(error, STOKER_EINVAL, "%s: split \"%s\": a split is a subfolder",
                               whose, split);
    const int length = snprintf(root, root_bytes, "%.*s%s%s", (int)name_bytes, name,
                                split == NULL ? "" : "/", split == NULL ? "" : split);
    return length >= 0 && (size_t)length < root_bytes
               ? STOKER_OK
               : stk_refuse_spec(error, STOKER_ELIMIT, "%s: the folder's name is too long", whose);
}

/* ---- what is refused ------------------------------------------------------------ */

enum { KEY_BYTES_MAX = 32, KEYS_MAX = 16 };

struct pair {
    char key[KEY_BYTES_MAX];
    char value[STK_PARAMETER_BYTES_MAX];
};

struct reading {
    const struct stk_parameter *table;
    size_t table_count;
    bool seen[KEYS_MAX];
    const char *whose;
    stoker_error *error;
};

__attribute__((format(printf, 4, 5))) static int refuse_key(const struct reading *reading, int code,
                                                            const char *key, const char *format,
                                                            ...)
{
    char what[STK_LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    return stk_refuse_spec(reading->error, code, "%s: %s: %s", reading->whose, key, what);
}

/* ---- values --------------------------------------------------------------------- */

/* `bytes` decimal digits and nothing else. False if there are none, or if they overflow. */
static bool read_decimal(const char *text, size_t bytes, uint64_t *out)
{
    uint64_t number = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(number, 10U, &number) ||
            __builtin_add_overflow(number, (uint64_t)(text[i] - '0'), &number))
            return false;
    }
    *out = number;
    return bytes > 0;
}

static int read_number(const struct reading *reading, const struct stk_parameter *parameter,
                       const char *value)
{
    uint64_t number;
    if (!read_decimal(value, strlen(value), &number))
        return refuse_key(reading, STOKER_ESPEC, parameter->key,
                          "\"%s\" is not a decimal number of 64 bits", value);
    if (number < parameter->least || number > parameter->most) {
        bool over = parameter->is_size && number > parameter->most;
        return refuse_key(reading, over ? STOKER_ELIMIT : STOKER_EINVAL, parameter->key,
                          "%s is outside %llu..%llu", value, (unsigned long long)parameter->least,
                          (unsigned long long)parameter->most);
    }
    *parameter->number = number;
    return STOKER_OK;
}

static int read_shape(const struct reading *reading, const struct stk_parameter *parameter,
                      const char *value)
{
    struct stk_shape shape = { 0 };
    for (const char *at = value;; at++) {
        size_t bytes = strcspn(at, "x");
        uint64_t length;
        if (!read_decimal(at, bytes, &length) || length == 0)
            return refuse_key(reading, STOKER_ESPEC, parameter->key,
                              "\"%s\" is not a shape like 28x28x1", value);
        if (shape.rank == STOKER_RANK_MAX - 1)
            return refuse_key(reading, STOKER_ELIMIT, parameter->key, "more than %d axes",
                              STOKER_RANK_MAX - 1);
        shape.lengths[shape.rank++] = length;
        at += bytes;
        if (*at == '\0')
            break;
    }
    *parameter->shape = shape;
    return STOKER_OK;
}

static int read_dtype(const struct reading *reading, const struct stk_parameter *parameter,
                      const char *value)
{
    stoker_dtype dtype = stoker_dtype_from_name(value);
    if (dtype == STOKER_DTYPE_NONE)
        return refuse_key(reading, STOKER_ESPEC, parameter->key, "there is no element type \"%s\"",
                          value);
    *parameter->dtype = dtype;
    return STOKER_OK;
}

/* ---- pairs ---------------------------------------------------------------------- */

/* "count, shape" */
static void list_keys(const struct reading *reading, char *line, size_t line_bytes)
{
    line[0] = '\0';
    for (size_t i = 0; i < reading->table_count; i++) {
        size_t used = strlen(line);
        (void)snprintf(line + used, line_bytes - used, "%s%s", i == 0 ? "" : ", ",
                       reading->table[i].key);
    }
}

static int apply_pair(struct reading *reading, const struct pair *pair)
{
    for (size_t i = 0; i < reading->table_count; i++) {
        const struct stk_parameter *parameter = &reading->table[i];
        if (strcmp(parameter->key, pair->key) != 0)
            continue;
        if (reading->seen[i])
            return refuse_key(reading, STOKER_ESPEC, pair->key, "given twice");
        reading->seen[i] = true;
        if (parameter->number != NULL)
            return read_number(reading, parameter, pair->value);
        if (parameter->shape != NULL)
            return read_shape(reading, parameter, pair->value);
        if (parameter->text != NULL) {
            memcpy(parameter->text, pair->value, sizeof(pair->value));
            return STOKER_OK;
        }
        assert(parameter->dtype != NULL);
        return read_dtype(reading, parameter, pair->value);
    }
    char known[192];
    list_keys(reading, known, sizeof(known));
    struct stk_nearest nearest = stk_nearest_to(pair->key, strlen(pair->key));
    for (size_t i = 0; i < reading->table_count; i++)
        stk_nearest_try(&nearest, reading->table[i].key, reading->table[i].key);
    static const char *const of_views[] = { "split", "test", "seed", "stratified", "weighted" };
    for (size_t i = 0; i < sizeof(of_views) / sizeof(of_views[0]); i++)
        stk_nearest_try(&nearest, of_views[i], of_views[i]);
    char question[STK_NEAREST_BYTES];
    return refuse_key(
        reading, STOKER_ESPEC, pair->key,
        "no such parameter%s; there are %s%stest, seed, split, stratified, weighted for "
        "every data set",
        stk_nearest_question(question, &nearest, ""), known, known[0] != '\0' ? "; and " : "");
}

/* Cut one pair out of the text. */
static int cut_pair(const struct reading *reading, const char *text, size_t bytes, struct pair *out)
{
    const char *equals = memchr(text, '=', bytes);
    size_t key_bytes = equals == NULL ? bytes : (size_t)(equals - text);
    size_t value_bytes = equals == NULL ? 0 : bytes - key_bytes - 1;
    if (equals == NULL || key_bytes >= sizeof(out->key) || value_bytes >= sizeof(out->value)) {
        char quoted[48];
        (void)snprintf(quoted, sizeof(quoted), "\"%.*s\"", (int)(bytes < 40 ? bytes : 40), text);
        return refuse_key(reading, STOKER_ESPEC, quoted, "not of the form key=value");
    }
    *out = (struct pair){ 0 };
    memcpy(out->key, text, key_bytes);
    memcpy(out->value, equals + 1, value_bytes);
    return STOKER_OK;
}

int stk_parameters_read(const char *text, const struct stk_parameter *table, size_t table_count,
                        const char *whose, stoker_error *error)
{
    assert(table_count <= KEYS_MAX);
    struct reading reading = {
        .table = table, .table_count = table_count, .whose = whose, .error = error
    };
    while (text[0] != '\0') {
        struct pair pair = { .key = "" };
        size_t bytes = strcspn(text, "&");
        int rc = cut_pair(&reading, text, bytes, &pair);
        if (rc == STOKER_OK)
            rc = apply_pair(&reading, &pair);
        if (rc != STOKER_OK)
            return rc;
        text += bytes;
        text += text[0] == '&' ? 1 : 0;
    }
    return STOKER_OK;
}

/* ---- lists of named things ------------------------------------------------------- */

static size_t field_name_bytes(const char *text)
{
    const size_t bytes =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");
    return bytes >= 1 && bytes < STOKER_FIELD_NAME_BYTES && text[bytes] == '=' ? bytes : 0;
}

bool stk_named_begins(const char *text)
{
    return field_name_bytes(text) > 0;
}

bool stk_named_next(const char **at, bool all_named, struct stk_named *out)
{
    const char *text = *at;
    if (text[0] == '\0')
        return false;
    const size_t bytes = field_name_bytes(text);
    *out = (struct stk_named){ .text = bytes > 0 ? text + bytes + 1 : text };
    memcpy(out->name, text, bytes);
    const char *end = out->text + strcspn(out->text, ",");
    while (all_named && end[0] == ',' && !stk_named_begins(end + 1))
        end += 1 + strcspn(end + 1, ",");
    out->text_bytes = (size_t)(end - out->text);
    /* A comma at the end of the list has an empty item behind it: the next call returns that. */
    const bool last = end[0] == ',' && end[1] == '\0' && out->text_bytes > 0;
    *at = end[0] == ',' && !last ? end + 1 : end;
    return true;
}
