/* s3_list.h - lists of objects of S3, by ListObjectsV2. */
#ifndef STK_REMOTE_S3_LIST_H
#define STK_REMOTE_S3_LIST_H

#include "loader/storage/remote/s3.h"

/* list() of a storage for prefixes that begin with s3://: a request for each 1,000 objects. */
int stk_s3_list(struct stk_s3 *s3, struct stk_remote *remote, const char *prefix,
                stoker_object_found *found, void *context, stoker_error *error);

#endif
