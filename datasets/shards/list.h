/* list.h - list the shards of a folder: its files *.stk, sorted by name. */
#ifndef STK_DATASETS_SHARDS_LIST_H
#define STK_DATASETS_SHARDS_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/error.h>

enum { STK_SHARDS_MAX = 65536 };

struct stk_shard_list {
    char **paths;   /* count of them; each freed by stk_free() */
    uint32_t count; /* >= 1 */
    uint32_t room;
};

/* List a folder. STOKER_EEMPTY if there are none, STOKER_ELIMIT over STK_SHARDS_MAX. On failure the
 * list is empty. */
int stk_shard_list_make(struct stk_shard_list *list, const char *directory, stoker_error *error);
void stk_shard_list_free(struct stk_shard_list *list); /* all zero is allowed */

/* Returns true if a file of that name is a shard. */
bool stk_shard_list_takes(const char *name);

#endif
