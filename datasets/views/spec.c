/* spec.c - see spec.h.
 *
 *   folder:DIR?channels=3&test=0.1&seed=5   ──▶   folder:DIR?channels=3   and   test=0.1, seed=5
 *
 * Parameters begin at the last '?', unless a ')' follows: then they belong to what is in
 * parentheses.
 */
#include "datasets/views/spec.h"

#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"

/* ---- parentheses ------------------------------------------------------------------------ */

bool stk_spec_operand(const char **rest, struct stk_spec_text *operand)
{
    const char *at = *rest;
    uint32_t depth = 0;
    if (at[0] != '(')
        return false;
    for (; at[0] != '\0'; at++) {
        depth += at[0] == '(' ? 1 : 0;
        depth -= at[0] == ')' ? 1 : 0;
        if (depth == 0)
            break;
    }
    if (at[0] == '\0')
        return false;
    *operand = (struct stk_spec_text){ .at = *rest + 1, .bytes = (size_t)(at - *rest - 1) };
    *rest = at + 1;
    return true;
}

uint32_t stk_spec_depth(const char *spec)
{
    uint32_t depth = 0;
    uint32_t most = 0;
    for (; spec[0] != '\0'; spec++) {
        depth += spec[0] == '(' ? 1 : 0;
        depth -= spec[0] == ')' && depth > 0 ? 1 : 0;
        most = depth > most ? depth : most;
    }
    return most;
}

/* ---- parameters ------------------------------------------------------------------------- */

struct key {
    const char *name;
    char *value;
};

enum { KEYS = 5 };

static const struct key *key_named(const struct key keys[KEYS], struct stk_spec_text name)
{
    for (int i = 0; i < KEYS; i++)
        if (strlen(keys[i].name) == name.bytes && memcmp(keys[i].name, name.at, name.bytes) == 0)
            return &keys[i];
    return NULL;
}

static int take_value(const struct key *key, struct stk_spec_text value, stoker_error *error)
{
    if (key->value[0] != '\0')
        return stk_refuse_spec(error, STOKER_ESPEC, "%s: given twice in one spec", key->name);
    if (value.bytes == 0 || value.bytes >= STK_PARAMETER_BYTES_MAX)
        return stk_refuse_spec(error, STOKER_ESPEC,
                               "%s: the value has %zu bytes; 1 to %d are allowed", key->name,
                               value.bytes, STK_PARAMETER_BYTES_MAX - 1);
    memcpy(key->value, value.at, value.bytes);
    key->value[value.bytes] = '\0';
    return STOKER_OK;
}

/* Append one pair to `plain`, after the '?' or an '&'. */
static void append_pair(char *plain, struct stk_spec_text pair, bool *first)
{
    char *end = plain + strlen(plain);
    *end++ = *first ? '?' : '&';
    memcpy(end, pair.at, pair.bytes);
    end[pair.bytes] = '\0';
    *first = false;
}

/* The '?' before the parameters of the whole spec, or NULL. */
static const char *find_mark(const stoker_storage *storage, const char *spec, const char *rest)
{
    const char *mark = strrchr(rest, '?');
    if (mark == NULL || strchr(mark, ')') != NULL)
        return NULL;
    if (stk_storage_is_url(rest))
        return mark;
    /* A file of that name is meant: no parameters. */
    return stk_storage_has(storage, spec) || stk_storage_has(storage, rest) ? NULL : mark;
}

int stk_spec_take(struct stk_spec_wish *wish, char *plain, const stoker_storage *storage,
                  const char *spec, bool (*keeps)(const char *rest, const char *key),
                  const char *rest, stoker_error *error)
{
    *wish = (struct stk_spec_wish){ .split = "" };
    const struct key keys[KEYS] = { { "split", wish->split },
                                    { "test", wish->test },
                                    { "seed", wish->seed },
                                    { "stratified", wish->stratified },
                                    { "weighted", wish->weighted } };
    const char *mark = find_mark(storage, spec, rest);
    if (mark == NULL) {
        memcpy(plain, spec, strlen(spec) + 1);
        return STOKER_OK;
    }
    memcpy(plain, spec, (size_t)(mark - spec));
    plain[mark - spec] = '\0';
    bool first = true;
    for (const char *text = mark + 1;;) {
        const struct stk_spec_text pair = { text, strcspn(text, "&") };
        const char *equals = memchr(text, '=', pair.bytes);
        const struct stk_spec_text name = { text, equals == NULL ? 0 : (size_t)(equals - text) };
        const struct key *key = equals == NULL ? NULL : key_named(keys, name);
        const bool kept = key == NULL || (keeps != NULL && keeps(rest, key->name));
        if (key != NULL && kept) {
            wish->format_reads_seed = wish->format_reads_seed || strcmp(key->name, "seed") == 0;
            wish->format_reads_test = wish->format_reads_test || strcmp(key->name, "test") == 0;
        }
        if (kept)
            append_pair(plain, pair, &first);
        if (key != NULL && (!kept || strcmp(key->name, "seed") == 0)) {
            const struct stk_spec_text value = { equals + 1, pair.bytes - name.bytes - 1 };
            const int rc = take_value(key, value, error);
            if (rc != STOKER_OK)
                return rc;
        }
        text += pair.bytes;
        if (text[0] == '\0')
            return STOKER_OK;
        text++;
    }
}
