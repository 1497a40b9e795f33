/* hf.h - names of the Hugging Face Hub, as its fsspec file system has them:
 *
 *   hf://datasets/OWNER/NAME[@REVISION]/PATH ──▶ ENDPOINT/datasets/OWNER/NAME/resolve/REVISION/PATH
 *   hf://spaces/OWNER/NAME[@REVISION]/PATH
 *   hf://OWNER/NAME[@REVISION]/PATH              a model
 *
 * The token goes to the endpoint only, not to the servers that it redirects to.
 */
#ifndef STK_REMOTE_HF_H
#define STK_REMOTE_HF_H

#include <pthread.h>
#include <stdbool.h>

#include "loader/storage/remote/request.h"
#include "loader/storage/remote/url.h"

enum { STK_HF_TOKEN_BYTES = 512, STK_HF_REVISION_BYTES = 256, STK_HF_PLACES = 1024 };

/* Where a file was found. */
struct stk_hf_place {
    char *name, *url; /* NULL = none */
    uint64_t etag, size, since_ns;
};

struct stk_hf {
    pthread_mutex_t lock; /* guards all below */
    bool own_token;       /* of the options: constant */
    bool known;
    char token[STK_HF_TOKEN_BYTES];            /* "" = none: public repositories only */
    struct stk_hf_place places[STK_HF_PLACES]; /* by a hash of the name */
};

/* Copy what concerns the Hub. Returns 0 or STOKER_EINVAL; the caller destroys it in any case. */
int stk_hf_init(struct stk_hf *hf, const stoker_remote_options *options, stoker_error *error);
void stk_hf_destroy(struct stk_hf *hf);

/* stk_remote_address_of() for names that begin with hf://. */
int stk_hf_address_of(struct stk_hf *hf, const char *name, enum stk_remote_method method,
                      bool renew, struct stk_remote_address *out, stoker_error *error);

/* What a name consists of. */
struct stk_hf_path {
    const char *kind;                     /* "datasets", "spaces" or "models" */
    struct stk_piece repository;          /* OWNER/NAME */
    char revision[STK_HF_REVISION_BYTES]; /* decoded */
    const char *path;
};

int stk_hf_split(struct stk_hf_path *out, const char *name, stoker_error *error);

/* ENDPOINT[/api]/KIND/OWNER/NAME/WHAT/REVISION/PATH: what = "resolve", or "tree" with /api, of the
 * first path_bytes of the path. */
int stk_hf_request(struct stk_hf *hf, const struct stk_hf_path *place, const char *what,
                   size_t path_bytes, bool renew, struct stk_remote_address *out,
                   stoker_error *error);

/* The endpoint redirects to this URL, and said this of the file. For some minutes, ranges of it are
 * read from there: the Hub limits how often one may ask. */
void stk_hf_redirected(struct stk_hf *hf, const char *name, const char *url, uint64_t etag,
                       uint64_t size);

#endif
