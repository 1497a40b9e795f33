/* names.h - the files that a name with braces and wildcards means. */
#ifndef STK_DATASETS_TOKENS_NAMES_H
#define STK_DATASETS_TOKENS_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

struct stk_token_names {
    char *text; /* all names, each with its final 0 */
    size_t text_bytes, text_room;
    size_t *at; /* [count]: offset of each name in text */
    uint32_t count, room;
};

/* Expand the braces of the first `bytes` bytes of text, then each name with `*` or `[` to the files that match, sorted by
 * strcmp(). A file that has a name as it is written comes first: nothing of it is expanded. Names without a wildcard need
 * not exist. On failure *names is all zero. Errors: STOKER_ESPEC (malformed braces, an empty name), STOKER_EEMPTY (no
 * file matches), STOKER_ELIMIT (over 65536 files), STOKER_ENOMEM, those of reading a folder. */
int stk_token_names_expand(struct stk_token_names *names, const char *text, size_t bytes,
                           stoker_error *error);
void stk_token_names_free(struct stk_token_names *names); /* all zero is allowed */

static inline const char *stk_token_name(const struct stk_token_names *names, uint32_t index)
{
    return names->text + names->at[index];
}

#endif
