/* name_list.c - see name_list.h.
 *
 *   {a,b}/t*.bin ──braces──▶ a/t*.bin, b/t*.bin ──list──▶ a/t0.bin, a/t1.bin, b/t0.bin
 *
 * Names that match one pattern are sorted by their bytes: the same order on every machine.
 */
#include "datasets/name_list.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

enum { DIGITS_MAX = 18, WILD_FOLDERS_MAX = 32 };

struct expansion {
    struct stk_name_list *names;
    const stoker_storage *storage;
    const char *here; /* the folder that names without a '/' are in */
    const char *format;
    stoker_error *error;
    char text[PATH_MAX]; /* what is expanded */
    char name[PATH_MAX]; /* the current name, as far as it is known */
};

static int refuse_name(const struct expansion *in, int code, const char *what)
{
    return stk_refuse_spec(in->error, code, "%s: \"%s\": %s", in->format, in->text, what);
}

/* ---- the list ------------------------------------------------------------------- */

static int add_name(const struct expansion *in, const char *name)
{
    struct stk_name_list *names = in->names;
    const size_t bytes = strlen(name) + 1;
    if (names->count == STK_NAMES_MAX)
        return refuse_name(in, STOKER_ELIMIT, "more than 65536 files");
    char *text = stk_array_grow(names->text, 1, names->text_bytes, &names->text_capacity, bytes);
    if (text == NULL)
        return refuse_name(in, STOKER_ENOMEM, "the names");
    names->text = text;
    size_t *at = stk_array_grow(names->at, sizeof(names->at[0]), names->count, &names->capacity, 1);
    if (at == NULL)
        return refuse_name(in, STOKER_ENOMEM, "the names");
    names->at = at;
    memcpy(text + names->text_bytes, name, bytes);
    at[names->count++] = names->text_bytes;
    names->text_bytes += bytes;
    return STOKER_OK;
}

/* ---- wildcards ------------------------------------------------------------------ */

/* The search for names that match a pattern, one folder after the other. */
struct matching {
    struct expansion *in;
    const char *part; /* in the pattern: what names in this folder must match */
    size_t part_bytes;
    char *folder; /* [PATH_MAX] the folder that is searched, ending in '/', or "" */
    int depth;
};

static int match_from(struct matching *matching, const char *pattern);

/* Add an entry that matches the last part of the pattern; search one that matches another part. */
static int take_entry(void *context, struct stk_listed *entry)
{
    struct matching *matching = context;
    const char *behind = matching->part + matching->part_bytes;
    char part[PATH_MAX], found[PATH_MAX];
    (void)snprintf(part, sizeof(part), "%.*s", (int)matching->part_bytes, matching->part);
    if (fnmatch(part, entry->object.name, FNM_PERIOD | FNM_NOESCAPE) != 0)
        return STOKER_OK;
    const int bytes = snprintf(found, sizeof(found), "%s%s%s", matching->folder, entry->object.name,
                               behind[0] == '/' ? "/" : "");
    if (bytes < 0 || bytes >= PATH_MAX)
        return refuse_name(matching->in, STOKER_ELIMIT, "a name is too long");
    if (behind[0] == '\0')
        return add_name(matching->in, found);
    struct matching inner = { .in = matching->in, .folder = found, .depth = matching->depth + 1 };
    if (inner.depth == WILD_FOLDERS_MAX)
        return refuse_name(inner.in, STOKER_ELIMIT, "more than 32 wildcards");
    return match_from(&inner, behind + 1);
}

/* Search one folder. begin: what its part of the pattern begins with, up to the wildcard. */
static int list_matches(struct matching *matching, const char *begin)
{
    struct stk_storage_folder root;
    stoker_error said;
    const char *folder = matching->folder[0] != '\0' ? matching->folder : matching->in->here;
    int rc = stk_storage_enter(&root, matching->in->storage, folder, &said);
    if (rc != STOKER_OK && said.os_errno == ENOTDIR)
        return STOKER_OK; /* the name that matched was a file's */
    if (rc == STOKER_OK) {
        said.code = STOKER_OK;
        rc = stk_storage_list(&root, ".", begin, take_entry, matching, &said);
        stk_storage_leave(&root);
    }
    if (rc != STOKER_OK && said.code == rc && matching->in->error != NULL)
        *matching->in->error = said;
    return rc;
}

/* Search matching->folder for what is left of the pattern: append its plain folders, then list. */
static int match_from(struct matching *matching, const char *pattern)
{
    char begin[PATH_MAX];
    const size_t used = strlen(matching->folder);
    const size_t plain = strcspn(pattern, "*?[");
    if (used + plain >= PATH_MAX)
        return refuse_name(matching->in, STOKER_ELIMIT, "a name is too long");
    memcpy(matching->folder + used, pattern, plain);
    matching->folder[used + plain] = '\0';
    if (pattern[plain] == '\0')
        return stk_storage_has(matching->in->storage, matching->folder)
                   ? add_name(matching->in, matching->folder)
                   : STOKER_OK;
    char *slash = strrchr(matching->folder + used, '/');
    char *last = slash == NULL ? matching->folder + used : slash + 1;
    memcpy(begin, last, strlen(last) + 1);
    last[0] = '\0';
    matching->part = pattern + plain - strlen(begin);
    matching->part_bytes = strcspn(matching->part, "/");
    return list_matches(matching, begin);
}

static int by_text(const void *left, const void *right, void *text)
{
    return strcmp((const char *)text + *(const size_t *)left,
                  (const char *)text + *(const size_t *)right);
}

/* Add a name whose braces are expanded, or those that match it. */
static int add_matching(struct expansion *in)
{
    struct stk_name_list *names = in->names;
    const uint32_t before = names->count;
    char folder[PATH_MAX] = "";
    struct matching matching = { .in = in, .folder = folder };
    if (strpbrk(in->name, "*[") == NULL || stk_storage_has(in->storage, in->name))
        return add_name(in, in->name);
    const int rc = match_from(&matching, in->name);
    if (rc == STOKER_OK && names->count == before)
        return stk_refuse_file(in->error, STOKER_EEMPTY, in->name, STOKER_NO_OFFSET,
                               "%s: no file has such a name", in->format);
    if (rc == STOKER_OK)
        qsort_r(names->at + before, names->count - before, sizeof(names->at[0]), by_text,
                names->text);
    return rc;
}

/* ---- braces --------------------------------------------------------------------- */

static int expand_from(struct expansion *in, const char *text, size_t used);

/* Append a piece to the name, then expand what follows the braces. */
static int expand_choice(struct expansion *in, const char *piece, size_t bytes, const char *behind,
                         size_t used)
{
    if (bytes >= sizeof(in->name) - used)
        return refuse_name(in, STOKER_ELIMIT, "a name is too long");
    memcpy(in->name + used, piece, bytes);
    return expand_from(in, behind, used + bytes);
}

static bool read_number(const char *at, size_t bytes, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (at[i] < '0' || at[i] > '9')
            return false;
        *out = *out * 10 + (uint64_t)(at[i] - '0');
    }
    return bytes > 0;
}

/* "000..099". A zero in front of either makes all as wide as the wider one, as in a shell. */
static int expand_range(struct expansion *in, const char *inside, const char *dots,
                        const char *close, size_t used)
{
    const size_t first_bytes = (size_t)(dots - inside);
    const size_t last_bytes = (size_t)(close - dots) - 2;
    uint64_t first = 0, last = 0;
    int rc = STOKER_OK;
    if (first_bytes > DIGITS_MAX || last_bytes > DIGITS_MAX ||
        !read_number(inside, first_bytes, &first) || !read_number(dots + 2, last_bytes, &last) ||
        last < first)
        return refuse_name(in, STOKER_ESPEC, "a range has the form {000..099}, ascending");
    if (last - first >= STK_NAMES_MAX)
        return refuse_name(in, STOKER_ELIMIT, "more than 65536 files");
    const bool padded = (first_bytes > 1 && inside[0] == '0') || (last_bytes > 1 && dots[2] == '0');
    const size_t width = first_bytes > last_bytes ? first_bytes : last_bytes;
    for (uint64_t number = first; number <= last && rc == STOKER_OK; number++) {
        char digits[DIGITS_MAX + 3];
        const int bytes = snprintf(digits, sizeof(digits), "%0*llu", padded ? (int)width : 1,
                                   (unsigned long long)number);
        rc = expand_choice(in, digits, (size_t)bytes, close + 1, used);
    }
    return rc;
}

/* "a,b,c": any words, none of them empty. */
static int expand_words(struct expansion *in, const char *inside, const char *close, size_t used)
{
    for (const char *word = inside;;) {
        const size_t bytes = strcspn(word, ",}");
        if (bytes == 0)
            return refuse_name(in, STOKER_ESPEC, "a word in the braces is empty");
        const int rc = expand_choice(in, word, bytes, close + 1, used);
        if (rc != STOKER_OK || word + bytes == close)
            return rc;
        word += bytes + 1;
    }
}

/* Add all names: name[0..used), then the text, expanded. */
static int expand_from(struct expansion *in, const char *text, size_t used)
{
    const size_t plain = strcspn(text, "{}");
    if (plain >= sizeof(in->name) - used)
        return refuse_name(in, STOKER_ELIMIT, "a name is too long");
    memcpy(in->name + used, text, plain);
    in->name[used + plain] = '\0';
    if (text[plain] == '\0')
        return add_matching(in);
    const char *inside = text + plain + 1;
    const char *close = inside + strcspn(inside, "{}");
    if (text[plain] == '}')
        return refuse_name(in, STOKER_ESPEC, "a } without a {");
    if (*close != '}')
        return refuse_name(in, STOKER_ESPEC, "braces must be closed and cannot be nested");
    const char *dots = memmem(inside, (size_t)(close - inside), "..", 2);
    return dots != NULL ? expand_range(in, inside, dots, close, used + plain)
                        : expand_words(in, inside, close, used + plain);
}

/* ---- all names ------------------------------------------------------------------ */

int stk_name_list_make(struct stk_name_list *out, const stoker_storage *storage, const char *format,
                       const char *text, size_t bytes, stoker_error *error)
{
    struct expansion in = { .names = out, .storage = storage, .format = format, .error = error };
    in.here = storage == &stk_storage_local ? "." : "";
    *out = (struct stk_name_list){ .text = NULL };
    if (bytes == 0)
        return stk_refuse_spec(error, STOKER_ESPEC, "%s: the name is empty; write %s:FILE", format,
                               format);
    if (bytes >= sizeof(in.text))
        return stk_refuse_spec(error, STOKER_ELIMIT, "%s: the name is too long", format);
    memcpy(in.text, text, bytes);
    const bool exists = !stk_storage_is_url(in.text) && stk_storage_has(storage, in.text);
    const int rc = exists ? add_name(&in, in.text) : expand_from(&in, in.text, 0);
    if (rc != STOKER_OK)
        stk_name_list_free(out);
    return rc;
}

void stk_name_list_free(struct stk_name_list *names)
{
    stk_free(names->text);
    stk_free(names->at);
    *names = (struct stk_name_list){ .text = NULL };
}
