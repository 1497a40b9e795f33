/* curl.h - what is called of libcurl, with the numbers of its header curl.h; a test compares them
 * with it, if it is there. So no build needs libcurl.
 *
 * libcurl.so.4 is loaded by name when the first remote name is looked up; STOKER_CURL names another
 * file. A program with elevated rights has no remote names: libcurl and its TLS library read
 * variables such as SSLKEYLOGFILE, which names a file to write keys to.
 */
#ifndef STK_REMOTE_CURL_H
#define STK_REMOTE_CURL_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

#include "loader/base/library.h"

/* Options of an easy handle. */
enum {
    STK_CURLOPT_LOW_SPEED_LIMIT = 19,
    STK_CURLOPT_LOW_SPEED_TIME = 20,
    STK_CURLOPT_NOBODY = 44,
    STK_CURLOPT_FRESH_CONNECT = 74,
    STK_CURLOPT_HTTPGET = 80,
    STK_CURLOPT_HTTP_VERSION = 84,
    STK_CURLOPT_BUFFERSIZE = 98,
    STK_CURLOPT_NOSIGNAL = 99,
    STK_CURLOPT_TIMEOUT_MS = 155,
    STK_CURLOPT_CONNECTTIMEOUT_MS = 156,
    STK_CURLOPT_HTTP_CONTENT_DECODING = 158,
    STK_CURLOPT_PROTOCOLS = 181,
    STK_CURLOPT_PATH_AS_IS = 234,
    STK_CURLOPT_PIPEWAIT = 237,
    STK_CURLOPT_DISALLOW_USERNAME_IN_URL = 278,
    STK_CURLOPT_HTTP09_ALLOWED = 285,
    STK_CURLOPT_WRITEDATA = 10001,
    STK_CURLOPT_URL = 10002,
    STK_CURLOPT_USERPWD = 10005,
    STK_CURLOPT_RANGE = 10007,
    STK_CURLOPT_ERRORBUFFER = 10010,
    STK_CURLOPT_USERAGENT = 10018,
    STK_CURLOPT_HTTPHEADER = 10023,
    STK_CURLOPT_HEADERDATA = 10029,
    STK_CURLOPT_CAINFO = 10065,
    STK_CURLOPT_PRIVATE = 10103,
    STK_CURLOPT_WRITEFUNCTION = 20011,
    STK_CURLOPT_HEADERFUNCTION = 20079
};

enum {
    STK_CURLMOPT_MAXCONNECTS = 6,
    STK_CURLINFO_REDIRECT_URL = 1048607,
    STK_CURLINFO_PRIVATE = 1048597,
    STK_CURL_HTTP_VERSION_2TLS = 4,
    STK_CURLPROTO_HTTP = 1,
    STK_CURLPROTO_HTTPS = 2,
    STK_CURL_GLOBAL_ALL = 3,
    STK_CURLMSG_DONE = 1,
    STK_CURL_ERROR_BYTES = 256
};

/* Results that are told apart; all others are failures for good. */
enum {
    STK_CURLE_OK = 0,
    STK_CURLE_COULDNT_RESOLVE_PROXY = 5,
    STK_CURLE_COULDNT_RESOLVE_HOST = 6,
    STK_CURLE_COULDNT_CONNECT = 7,
    STK_CURLE_WEIRD_SERVER_REPLY = 8,
    STK_CURLE_HTTP2 = 16,
    STK_CURLE_PARTIAL_FILE = 18,
    STK_CURLE_OUT_OF_MEMORY = 27,
    STK_CURLE_OPERATION_TIMEDOUT = 28,
    STK_CURLE_SSL_CONNECT_ERROR = 35,
    STK_CURLE_GOT_NOTHING = 52,
    STK_CURLE_SEND_ERROR = 55,
    STK_CURLE_RECV_ERROR = 56,
    STK_CURLE_HTTP2_STREAM = 92
};

struct stk_curl_message {
    int msg;
    void *easy_handle;
    union {
        void *whatever;
        int result;
    } data;
};

struct stk_curl_slist; /* a list of texts */

#define STK_CURL_FUNCTIONS(X)                                                                      \
    X(int, global_init, (long))                                                                    \
    X(void *, easy_init, (void))                                                                   \
    X(int, easy_setopt, (void *, int, ...))                                                        \
    X(int, easy_getinfo, (void *, int, ...))                                                       \
    X(int, easy_perform, (void *))                                                                 \
    X(void, easy_cleanup, (void *))                                                                \
    X(const char *, easy_strerror, (int))                                                          \
    X(struct stk_curl_slist *, slist_append, (struct stk_curl_slist *, const char *))              \
    X(void, slist_free_all, (struct stk_curl_slist *))                                             \
    X(void *, multi_init, (void))                                                                  \
    X(int, multi_setopt, (void *, int, ...))                                                       \
    X(int, multi_add_handle, (void *, void *))                                                     \
    X(int, multi_remove_handle, (void *, void *))                                                  \
    X(int, multi_perform, (void *, int *))                                                         \
    X(int, multi_poll, (void *, void *, unsigned, int, int *))                                     \
    X(struct stk_curl_message *, multi_info_read, (void *, int *))                                 \
    X(int, multi_cleanup, (void *))

struct stk_curl {
#define STK_CURL_MEMBER(type, name, arguments) type(*name) arguments;
    STK_CURL_FUNCTIONS(STK_CURL_MEMBER)
#undef STK_CURL_MEMBER
};

/* Load libcurl, once per process. Returns its functions, or NULL with the reason in *error
 * (STOKER_ENOTSUP). Any thread. */
const struct stk_curl *stk_curl_load(stoker_error *error);

#endif
