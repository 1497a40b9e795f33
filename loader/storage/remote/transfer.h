/* transfer.h - one request until its bytes are there or it has failed for good.
 *
 *   begin ──▶ libcurl ──▶ settle ──▶ DONE
 *     ▲                      │
 *     └── not before due_ns ─┴─ AGAIN: a redirect, or a failure that may pass
 *
 * What has arrived is not asked for again: a new attempt wants the rest. libcurl runs between begin
 * and settle, by an easy handle in the calling thread, or by a multi handle in a ring.
 *
 * A server cannot make it wait without end: each attempt has limits for connecting, for time with
 * hardly any bytes, and as a whole; their number is limited, and so is the wait before each.
 */
#ifndef STK_REMOTE_TRANSFER_H
#define STK_REMOTE_TRANSFER_H

#include "loader/storage/remote/answer.h"
#include "loader/storage/remote/http.h"
#include "loader/storage/remote/listing_xml.h"
#include "loader/storage/remote/request.h"

/* Takes the next bytes of the body, never more than were asked for. */
typedef void stk_transfer_take(void *context, const uint8_t *bytes, size_t count);
/* Sees each header line. */
typedef void stk_transfer_header(void *context, const char *line, size_t bytes);

struct stk_transfer {
    /* ---- set by the caller; all others 0 ---- */
    struct stk_remote *remote;
    enum stk_remote_method method;
    struct stk_wanted wanted; /* what is still missing */
    stk_transfer_take *take;
    stk_transfer_header *header; /* NULL = none */
    void *context;
    uint64_t limit; /* with wanted.bytes = 0: longest body */
    bool fresh;     /* on a connection of its own */

    /* ---- this attempt ---- */
    void *easy;       /* the caller's, between begin and settle */
    const char *name; /* the caller's, as well; NULL = none */
    struct stk_curl_slist *headers;
    struct stk_answer answer;
    enum stk_verdict verdict;
    bool judged;
    bool too_long;
    uint64_t expected, received; /* bytes of the body */
    const char *why;
    char curl_said[STK_CURL_ERROR_BYTES];
    char host[256];                /* that was asked; "" = the name says it */
    char said[STK_S3_ERROR_BYTES]; /* the beginning of an error's own text */
    uint32_t said_bytes;

    /* ---- all attempts ---- */
    uint32_t attempts;         /* begun; redirects do not count */
    uint32_t redirects;        /* followed in this attempt */
    char *location;            /* where the latest one leads, or NULL */
    bool secure;               /* the URL is https: a redirect must be, too */
    bool renewable;            /* other credentials may be had, once: */
    bool renew, renewed;       /* the next attempt asks for them; has asked */
    uint64_t begin_ns, due_ns; /* of the first attempt; of the next one */
    struct stk_wanted asked;   /* by the caller */
};

/* Give easy the request for what is still missing. address is only memory, filled here; with name
 * NULL it is the address, and its headers are overwritten. Returns 0, or the code < 0 that *error
 * explains. */
int stk_transfer_begin(struct stk_transfer *transfer, void *easy, const char *name,
                       struct stk_remote_address *address, stoker_error *error);

/* The attempt has ended as libcurl's result says. Returns true if it is done: transfer->verdict is
 * TAKE with all bytes, END, or an error. Returns false to begin again at due_ns. */
bool stk_transfer_settle(struct stk_transfer *transfer, int result);

/* Free what it holds, except easy, which is the caller's. */
void stk_transfer_end(struct stk_transfer *transfer);

/* Explain a failure in one line: "bytes 0-4095: 503 Service Unavailable, after 6 attempts in
 * 12.3 s". Returns the errno that says the same. */
int stk_transfer_reason(const struct stk_transfer *transfer, char *out, size_t out_bytes);

/* Run it in the calling thread until it is done; either name or address is NULL. Returns 0, or the
 * code < 0 that *error explains. The caller then checks the verdict and calls
 * stk_transfer_end(). */
int stk_transfer_run(struct stk_transfer *transfer, const char *name,
                     const struct stk_remote_address *address, stoker_error *error);

#endif
