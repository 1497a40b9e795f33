/* hf_list.h - lists of files of the Hugging Face Hub, by its tree API. */
#ifndef STK_REMOTE_HF_LIST_H
#define STK_REMOTE_HF_LIST_H

#include "loader/storage/remote/hf.h"

/* list() of a storage for prefixes that begin with hf://: a request for each 1,000 entries. */
int stk_hf_list(struct stk_hf *hf, struct stk_remote *remote, const char *prefix,
                stoker_object_found *found, void *context, stoker_error *error);

/* Read an answer of the tree API, which is overwritten, and call found() for each entry whose path
 * begins with `prefix`, named by what follows its last '/'. Returns 0, what found() returned, or
 * STOKER_EFORMAT: then *why explains byte *at. */
int stk_hf_tree_parse(char *text, size_t size, const char *prefix, stoker_object_found *found,
                      void *context, const char **why, size_t *at);

/* Write the URL of the next page, out of the value of a Link header, if it begins with `begin`.
 * Returns false if there is none; *out is "" then. */
bool stk_hf_next_page(char *out, size_t bytes, const char *link, const char *begin);

#endif
