/* names.c - see names.h.
 *
 *   {a,b}/train_*.bin ──braces──▶ a/train_*.bin, b/train_*.bin ──glob──▶ a/train_0.bin, a/train_1.bin, b/train_0.bin
 *
 * glob() would sort by the locale's rules, so its names are sorted here: the same order on every machine.
 */
#include "datasets/tokens/names.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "datasets/source.h"
#include "datasets/tar/pattern.h"
#include "loader/base/error.h"
#include "loader/base/memory.h"

enum { FIRST_NAMES = 16, FIRST_TEXT_BYTES = 1024 };

static int refuse(stoker_error *error, int code, const char *name, const char *what)
{
    const struct stk_place place = stk_at(name, STOKER_NO_OFFSET);
    return stk_error_set(error, code, STOKER_STAGE_OPEN, &place, "%s", what);
}

/* ---- the list ------------------------------------------------------------------- */

/* Make room for `more` units of `unit` bytes behind `used`: at least twice what there was. Returns false if there is none. */
static bool grow(void **block, size_t used, size_t *room, size_t more, size_t first, size_t unit)
{
    if (more <= *room - used)
        return true;
    size_t wanted = *room == 0 ? first : *room * 2;
    wanted = wanted < used + more ? used + more : wanted;
    void *larger = stk_calloc(wanted, unit);
    if (larger == NULL)
        return false;
    if (used > 0)
        memcpy(larger, *block, used * unit);
    stk_free(*block);
    *block = larger;
    *room = wanted;
    return true;
}

static int add(struct stk_token_names *names, const char *name, stoker_error *error)
{
    const size_t bytes = strlen(name) + 1;
    size_t room = names->room;
    if (names->count == STK_TAR_FILES_MAX)
        return refuse(error, STOKER_ELIMIT, NULL, "tokens: more than 65536 files");
    if (!grow((void **)&names->text, names->text_bytes, &names->text_room, bytes, FIRST_TEXT_BYTES,
              1) ||
        !grow((void **)&names->at, names->count, &room, 1, FIRST_NAMES, sizeof(names->at[0])))
        return refuse(error, STOKER_ENOMEM, name, "tokens: the list of files");
    names->room = (uint32_t)room;
    memcpy(names->text + names->text_bytes, name, bytes);
    names->at[names->count++] = names->text_bytes;
    names->text_bytes += bytes;
    return STOKER_OK;
}

/* ---- wildcards ------------------------------------------------------------------ */

static int compare(const void *left, const void *right)
{
    const char *const *a = left;
    const char *const *b = right;
    return strcmp(*a, *b);
}

static int add_sorted(struct stk_token_names *names, glob_t *found, const char *pattern,
                      stoker_error *error)
{
    int rc = STOKER_OK;
    if (found->gl_pathc == 0)
        return refuse(error, STOKER_EEMPTY, pattern, "tokens: no file has such a name");
    qsort(found->gl_pathv, found->gl_pathc, sizeof(found->gl_pathv[0]), compare);
    for (size_t i = 0; i < found->gl_pathc && rc == STOKER_OK; i++)
        rc = add(names, found->gl_pathv[i], error);
    return rc;
}

static int add_matching(struct stk_token_names *names, const char *pattern, stoker_error *error)
{
    glob_t found = { .gl_pathc = 0 };
    errno = 0;
    int rc = glob(pattern, GLOB_NOSORT | GLOB_ERR, NULL, &found);
    if (rc == 0 || rc == GLOB_NOMATCH) {
        rc = add_sorted(names, &found, pattern, error);
    } else if (rc == GLOB_NOSPACE) {
        rc = refuse(error, STOKER_ENOMEM, pattern, "tokens: the names that match");
    } else {
        struct stk_place place = stk_at(pattern, STOKER_NO_OFFSET);
        place.os_errno = errno == 0 ? EIO : errno;
        rc = stk_error_set(error, stk_error_from_errno(place.os_errno), STOKER_STAGE_OPEN, &place,
                           "tokens: a folder cannot be read");
    }
    globfree(&found);
    return rc;
}

/* ---- all names ------------------------------------------------------------------ */

static bool exists(const char *name)
{
    struct stat status;
    return stat(name, &status) == 0;
}

static int expand(struct stk_token_names *names, const struct stk_tar_pattern *pattern,
                  stoker_error *error)
{
    char name[PATH_MAX];
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < pattern->name_count && rc == STOKER_OK; i++) {
        if (stk_tar_pattern_name(pattern, i, name, sizeof(name)) == 0)
            return refuse(error, STOKER_ELIMIT, NULL, "tokens: a file's name is too long");
        rc = strpbrk(name, "*[") == NULL || exists(name) ? add(names, name, error)
                                                         : add_matching(names, name, error);
    }
    return rc;
}

int stk_token_names_expand(struct stk_token_names *names, const char *text, size_t bytes,
                           stoker_error *error)
{
    char literal[PATH_MAX];
    struct stk_tar_pattern pattern;
    *names = (struct stk_token_names){ 0 };
    if (bytes == 0)
        return refuse(error, STOKER_ESPEC, NULL, "tokens: the name is empty; write tokens:FILE");
    if (bytes >= sizeof(literal))
        return refuse(error, STOKER_ELIMIT, NULL, "tokens: the name is too long");
    memcpy(literal, text, bytes);
    literal[bytes] = '\0';
    int rc = STOKER_OK;
    if (exists(literal)) {
        rc = add(names, literal, error);
    } else {
        rc = stk_tar_pattern_parse(&pattern, "tokens", literal, bytes, error);
        if (rc == STOKER_OK)
            rc = expand(names, &pattern, error);
    }
    if (rc != STOKER_OK)
        stk_token_names_free(names);
    return rc;
}

void stk_token_names_free(struct stk_token_names *names)
{
    stk_free(names->text);
    stk_free(names->at);
    *names = (struct stk_token_names){ 0 };
}
