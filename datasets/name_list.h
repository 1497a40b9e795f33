/* name_list.h - the files that a name with braces and wildcards means:
 * "{a,b}/train-{000..099}.tar", "b*.bin". */
#ifndef STK_DATASETS_NAME_LIST_H
#define STK_DATASETS_NAME_LIST_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>

#include "loader/storage/storage.h"

enum { STK_NAMES_MAX = 65536 };

struct stk_name_list {
    char *text; /* all names, each with its final 0 */
    size_t text_bytes, text_capacity;
    size_t *at; /* [count]: offset of each name in text */
    uint32_t count;
    size_t capacity;
};

/* Expand the braces of text[0..bytes), the last ones fastest, then each name with `*` or `[` to the
 * files that match, sorted by strcmp(). A name that exists as it is written is not expanded; names
 * without a wildcard need not exist. `format` is for messages. Free the list by
 * stk_name_list_free(); on failure *out is all zero. Errors: STOKER_ESPEC (malformed braces, an
 * empty name), STOKER_EEMPTY (no file matches), STOKER_ELIMIT (over STK_NAMES_MAX files, a name too
 * long), STOKER_ENOMEM, those of reading a folder. */
int stk_name_list_make(struct stk_name_list *out, const stoker_storage *storage, const char *format,
                       const char *text, size_t bytes, stoker_error *error);
void stk_name_list_free(struct stk_name_list *names); /* all zero is allowed */

static inline const char *stk_name_at(const struct stk_name_list *names, uint32_t index)
{
    return names->text + names->at[index];
}

#endif
