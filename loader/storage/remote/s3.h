/* s3.h - s3://BUCKET/KEY: whom to ask, signed by whose keys.
 *
 *   s3://b/part=1/x ──▶ https://b.s3.REGION.amazonaws.com/part%3D1/x     bucket in the host name
 *                       ENDPOINT/b/part%3D1/x       of other servers, and if the bucket has dots
 */
#ifndef STK_REMOTE_S3_H
#define STK_REMOTE_S3_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/storage/remote/credentials.h"
#include "loader/storage/remote/request.h"
#include "loader/storage/remote/url.h"

struct stk_s3 {
    /* The options; "" = what the profile says. Constant. */
    char endpoint[256], region[64], profile_name[128];
    int (*callback)(void *self, stoker_remote_credentials *out, stoker_error *error);
    void *callback_self;

    pthread_mutex_t lock;       /* guards all below; held while the callback runs */
    struct stk_profile profile; /* empty until `known` */
    bool known;                 /* the profile was read */
    uint64_t renewed_ns;        /* when it was read anew because a server refused it; 0 = never */
};

/* Copy what concerns S3. Nothing is read before the first request. Returns 0 or
 * STOKER_EINVAL; the caller destroys it in any case. */
int stk_s3_init(struct stk_s3 *s3, const stoker_remote_options *options, stoker_error *error);
void stk_s3_destroy(struct stk_s3 *s3);

/* stk_remote_address_of() for names that begin with s3://. */
int stk_s3_address_of(struct stk_s3 *s3, const char *name, enum stk_remote_method method,
                      bool renew, struct stk_remote_address *out, stoker_error *error);

/* What a name consists of. */
struct stk_s3_place {
    struct stk_piece bucket;
    const char *key; /* or prefix; not encoded */
};

int stk_s3_split(struct stk_s3_place *out, const char *name, stoker_error *error);

/* The same for the key or, if there is a query, for the bucket. */
int stk_s3_request(struct stk_s3 *s3, const struct stk_s3_place *place, const char *query,
                   enum stk_remote_method method, bool renew, struct stk_remote_address *out,
                   stoker_error *error);

/* Learn where the bucket is, from the header that says it ("" = none) or from the beginning of an
 * error document. Returns true if the request may succeed with a signature for that region, or with
 * new keys. */
bool stk_s3_learn(struct stk_s3 *s3, const char *region, const char *text, size_t size);

#endif
