/* credentials.h - who asks S3: keys from the environment or from the files of the AWS tools.
 *
 *   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY  ─▶  profile  ─▶  nobody: requests are not signed
 *
 * Secrets appear in no message, and memory that held them is wiped.
 */
#ifndef STK_STORAGE_REMOTE_CREDENTIALS_H
#define STK_STORAGE_REMOTE_CREDENTIALS_H

#include <stdbool.h>
#include <stoker/error.h>
#include <stoker/remote.h>

/* Who asks, and whom. */
struct stk_profile {
    stoker_remote_credentials credentials; /* access_key "" = nobody: not signed */
    char region[64];                       /* "" = not said */
    char endpoint_url[256];                /* "" = not said: AWS */
};

/* Read the environment, and the profile `name` (NULL = AWS_PROFILE, else "default") from the files
 * that the environment names. The environment precedes ~/.aws/credentials, and that ~/.aws/config;
 * but keys are not the environment's if `name` says whose. A file that is missing is empty. Returns
 * 0, or the code < 0 that *error explains: STOKER_EFORMAT or STOKER_ELIMIT with the file and its
 * line, STOKER_ENOENT if no file has a profile that is named. */
int stk_profile_read(struct stk_profile *out, const char *name, stoker_error *error);

/* Fill what is still "" in *out from section [NAME] or [profile NAME] of an INI file's text, which
 * is overwritten. Returns 0, or the line in error, which *why explains. */
unsigned stk_profile_parse(struct stk_profile *out, char *text, const char *name, bool *found,
                           const char **why);

/* Wipe and free a block of stk_calloc(). NULL is allowed. */
void stk_wipe_free(void *block, size_t bytes);

#endif
