/* http.h - the storage of remote names: http, https, s3 and hf.
 *
 *   look(), read(), list()   one request at a time, in the calling thread
 *   ring.h                   many at once, in a loader's workers
 *
 * Handles of libcurl keep their connections. Those of look() and read() are kept here for the next
 * call; each ring has its own.
 */
#ifndef STK_REMOTE_HTTP_H
#define STK_REMOTE_HTTP_H

#include <pthread.h>
#include <stdint.h>
#include <stoker/reader.h>
#include <stoker/remote.h>
#include <stoker/storage.h>

#include "loader/storage/remote/curl.h"
#include "loader/storage/remote/hf.h"
#include "loader/storage/remote/s3.h"

enum { STK_REMOTE_IDLE_MAX = 64 };

struct stk_remote {
    stoker_remote_options options; /* its texts are copies, or NULL if they are in s3 and hf */
    char *texts;                   /* what they point into */
    struct stk_s3 s3;
    struct stk_hf hf;
    stoker_reader reader;            /* see ring.h; self is this */
    pthread_mutex_t lock;            /* of what follows */
    void *idle[STK_REMOTE_IDLE_MAX]; /* easy handles */
    uint32_t idle_count;
    const struct stk_curl *_Atomic curl; /* NULL = not loaded yet */
};

/* Load libcurl if that has not happened yet. Returns 0, or STOKER_ENOTSUP with the reason. */
static inline int stk_remote_ready(struct stk_remote *remote, stoker_error *error)
{
    remote->curl = stk_curl_load(error);
    return remote->curl != NULL ? STOKER_OK : STOKER_ENOTSUP;
}

/* The storage with default options, for names with a scheme; never freed. NULL = out of memory.
 */
stoker_storage *stk_remote_default(void);

#endif
