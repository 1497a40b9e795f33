/* request.h - turns the name of a remote object into an HTTP request.
 *
 *   "https://host/a b.tar" ─┐
 *   "s3://bucket/key"      ─┼─▶ stk_remote_address_of ──▶ URL, headers ──▶ transfer.h, ring.h
 *   "hf://datasets/u/r/f"  ─┘
 *
 * Messages show a URL only through stk_redact_url(), and never the headers.
 */
#ifndef STK_REMOTE_REQUEST_H
#define STK_REMOTE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/remote.h>
#include <stoker/storage.h>

enum stk_remote_method { STK_REMOTE_GET, STK_REMOTE_HEAD };

enum {
    STK_REMOTE_URL_BYTES = 8192,
    STK_REMOTE_HEADERS_BYTES = 12288, /* a session token has up to 8 KiB */
    STK_REMOTE_USER_BYTES = 512
};

/* An HTTP request but for its range. */
struct stk_remote_address {
    char url[STK_REMOTE_URL_BYTES];         /* percent-encoded, without user and password */
    char headers[STK_REMOTE_HEADERS_BYTES]; /* "Name: value\n" each; not sent to another host */
    char user[STK_REMOTE_USER_BYTES];       /* "user:password" for basic authentication, or "" */
    /* Of a URL that Hugging Face redirected to before: what it said of the object; 0 = nothing. */
    uint64_t linked_etag, linked_size;
    bool renewable; /* after 401 or 403 a call with renew = true may give other credentials */
};

struct stk_remote; /* http.h: a storage's settings, and what its threads share */

/* Fill *out for one request, in any thread, before each attempt: signatures are valid for some
 * minutes only. renew: the credentials were refused, ask for new ones. Returns 0, or the code < 0
 * that *error explains. */
int stk_remote_address_of(struct stk_remote *remote, const char *name,
                          enum stk_remote_method method, bool renew, struct stk_remote_address *out,
                          stoker_error *error);

/* The text that a server answers: a list of objects. */
struct stk_remote_text {
    char *bytes; /* the caller's memory; a 0 is put behind the text */
    size_t capacity;
    size_t count;
    const char *header_name; /* also wanted: this header, "link"; NULL = none */
    char header[2048];       /* its value, or "" */
    int status;              /* of the last answer; 0 = none */
};

/* GET a URL in the calling thread, with retries. What is longer than the memory is an error. `what`
 * names it in messages. Returns 0, or the code < 0 that *error explains: STOKER_ENOENT (404, 410),
 * STOKER_EACCES (401, 403), STOKER_ELIMIT (too long), STOKER_EIO, ...; then out->bytes has the
 * first bytes of the error's own text. */
int stk_remote_get(struct stk_remote *remote, const struct stk_remote_address *address,
                   const char *what, struct stk_remote_text *out, stoker_error *error);

#endif
