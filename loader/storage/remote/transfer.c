/* transfer.c - see transfer.h. */
#include "loader/storage/remote/transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"
#include "loader/storage/remote/url.h"

enum {
    REDIRECTS_MAX = 5,
    STALL_BYTES = 1024,      /* per second: fewer are a stall */
    RATE_LEAST = 64 << 10,   /* bytes per second beyond the request's timeout */
    FIRST_WAIT_MS = 200,     /* before the second attempt at most, then twice as much, */
    WAIT_MAX_MS = 10000,     /* up to this */
    RETRY_AFTER_MAX_S = 60,  /* what a server may ask for */
    LARGE_BYTES = 128 << 10, /* such a body gets a buffer of this size, others BUFFER_BYTES */
    BUFFER_BYTES = 32 << 10
};

/* ---- libcurl's callbacks -------------------------------------------------------- */

static size_t on_header(char *line, size_t one, size_t bytes, void *context)
{
    struct stk_transfer *transfer = context;
    stk_answer_take(&transfer->answer, line, one * bytes, time(NULL));
    if (transfer->header != NULL)
        transfer->header(transfer->context, line, one * bytes);
    return transfer->answer.malformed ? 0 : one * bytes;
}

static void judge(struct stk_transfer *transfer)
{
    transfer->judged = true;
    transfer->verdict =
        stk_answer_judge(&transfer->answer, &transfer->wanted, &transfer->expected, &transfer->why);
}

static void keep_said(struct stk_transfer *transfer, const char *bytes, size_t count)
{
    const size_t room = sizeof(transfer->said) - transfer->said_bytes;
    const size_t kept = count < room ? count : room;
    memcpy(transfer->said + transfer->said_bytes, bytes, kept);
    transfer->said_bytes += (uint32_t)kept;
}

/* Returning less than was offered ends the transfer, and its connection. */
static size_t on_body(char *bytes, size_t one, size_t count, void *context)
{
    struct stk_transfer *transfer = context;
    count *= one;
    if (!transfer->judged)
        judge(transfer);
    const bool good = transfer->verdict == STK_VERDICT_TAKE;
    const bool known = good && transfer->expected != STK_UNKNOWN;
    const uint64_t end = known ? transfer->expected : transfer->limit;
    const uint64_t room = end > transfer->received ? end - transfer->received : 0;
    const size_t taken = count < room ? count : (size_t)room;
    if (taken > 0)
        transfer->take(transfer->context, (const uint8_t *)bytes, taken);
    if (!good)
        keep_said(transfer, bytes, count);
    transfer->received += good ? taken : count;
    transfer->too_long |= good && taken < count;
    /* An error's short text is read to its end, so that the connection can stay. */
    return good ? taken : transfer->received <= STK_ANSWER_BYTES_MAX ? count : 0;
}

/* ---- begin ---------------------------------------------------------------------- */

static bool add_header(struct stk_transfer *transfer, const char *line)
{
    struct stk_curl_slist *more = transfer->remote->curl->slist_append(transfer->headers, line);
    if (more == NULL)
        return false;
    transfer->headers = more;
    return true;
}

/* The text is cut into lines. */
static bool add_headers(struct stk_transfer *transfer, char *lines)
{
    bool fits = add_header(transfer, "Accept-Encoding: identity");
    char *rest = NULL;
    for (char *line = strtok_r(lines, "\r\n", &rest); line != NULL && fits;
         line = strtok_r(NULL, "\r\n", &rest))
        fits = add_header(transfer, line);
    return fits;
}

static bool is_https(const char *url)
{
    return strncasecmp(url, "https:", 6) == 0;
}

static long whole_timeout_ms(const struct stk_transfer *transfer)
{
    const uint64_t more_ms = transfer->wanted.bytes / RATE_LEAST * 1000;
    const uint64_t all_ms = transfer->remote->options.request_timeout_ms + more_ms;
    return all_ms > STOKER_REMOTE_TIMEOUT_MAX_MS ? STOKER_REMOTE_TIMEOUT_MAX_MS : (long)all_ms;
}

static void set_limits(const struct stk_transfer *transfer)
{
    const struct stk_curl *curl = transfer->remote->curl;
    const stoker_remote_options *options = &transfer->remote->options;
    const bool large = transfer->wanted.bytes >= LARGE_BYTES;
    void *easy = transfer->easy;
    curl->easy_setopt(easy, STK_CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(easy, STK_CURLOPT_PROTOCOLS,
                      (long)(STK_CURLPROTO_HTTP | STK_CURLPROTO_HTTPS));
    curl->easy_setopt(easy, STK_CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    curl->easy_setopt(easy, STK_CURLOPT_HTTP09_ALLOWED, 0L);
    curl->easy_setopt(easy, STK_CURLOPT_HTTP_CONTENT_DECODING, 0L);
    curl->easy_setopt(easy, STK_CURLOPT_PATH_AS_IS, 1L);
    curl->easy_setopt(easy, STK_CURLOPT_HTTP_VERSION, (long)STK_CURL_HTTP_VERSION_2TLS);
    curl->easy_setopt(easy, STK_CURLOPT_PIPEWAIT, transfer->fresh ? 0L : 1L);
    curl->easy_setopt(easy, STK_CURLOPT_FRESH_CONNECT, transfer->fresh ? 1L : 0L);
    curl->easy_setopt(easy, STK_CURLOPT_BUFFERSIZE, large ? (long)LARGE_BYTES : (long)BUFFER_BYTES);
    curl->easy_setopt(easy, STK_CURLOPT_CONNECTTIMEOUT_MS, (long)options->connect_timeout_ms);
    curl->easy_setopt(easy, STK_CURLOPT_TIMEOUT_MS, whole_timeout_ms(transfer));
    curl->easy_setopt(easy, STK_CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES);
    curl->easy_setopt(easy, STK_CURLOPT_LOW_SPEED_TIME, (long)options->stall_timeout_ms / 1000);
    curl->easy_setopt(easy, STK_CURLOPT_USERAGENT, options->user_agent);
    if (options->ca_file != NULL)
        curl->easy_setopt(easy, STK_CURLOPT_CAINFO, options->ca_file);
}

static bool set_request(struct stk_transfer *transfer, const char *url, const char *user)
{
    const struct stk_curl *curl = transfer->remote->curl;
    const struct stk_wanted *wanted = &transfer->wanted;
    void *easy = transfer->easy;
    char range[48];
    (void)snprintf(range, sizeof(range), "%" PRIu64 "-%" PRIu64, wanted->offset,
                   wanted->offset + wanted->bytes - 1);
    set_limits(transfer);
    curl->easy_setopt(easy, STK_CURLOPT_WRITEFUNCTION, on_body);
    curl->easy_setopt(easy, STK_CURLOPT_WRITEDATA, transfer);
    curl->easy_setopt(easy, STK_CURLOPT_HEADERFUNCTION, on_header);
    curl->easy_setopt(easy, STK_CURLOPT_HEADERDATA, transfer);
    curl->easy_setopt(easy, STK_CURLOPT_PRIVATE, transfer);
    curl->easy_setopt(easy, STK_CURLOPT_ERRORBUFFER, transfer->curl_said);
    curl->easy_setopt(easy, STK_CURLOPT_USERPWD, user[0] != '\0' ? user : NULL);
    curl->easy_setopt(easy, STK_CURLOPT_HTTPHEADER, transfer->headers);
    if (transfer->method == STK_REMOTE_HEAD)
        curl->easy_setopt(easy, STK_CURLOPT_NOBODY, 1L);
    else
        curl->easy_setopt(easy, STK_CURLOPT_HTTPGET, 1L);
    return curl->easy_setopt(easy, STK_CURLOPT_RANGE, wanted->bytes > 0 ? range : NULL) ==
               STK_CURLE_OK &&
           curl->easy_setopt(easy, STK_CURLOPT_URL, url) == STK_CURLE_OK;
}

/* Returns true if both URLs have the same scheme, host and port. */
static bool same_origin(const char *left, const char *right)
{
    const size_t scheme = strcspn(left, "/") + 2;
    const size_t origin = scheme + strcspn(left + scheme, "/?#");
    return strncasecmp(left, right, origin) == 0 &&
           (right[origin] == '\0' || strchr("/?#", right[origin]) != NULL);
}

/* Errors name the object, which names its host only with http and https, and without a redirect. */
static void note_host(struct stk_transfer *transfer, const char *url)
{
    struct stk_url parts;
    transfer->host[0] = '\0';
    if ((transfer->name == NULL || !same_origin(transfer->name, url)) && stk_url_split(&parts, url))
        (void)snprintf(transfer->host, sizeof(transfer->host), "%.*s", (int)parts.host.bytes,
                       parts.host.at);
}

/* Begin an attempt, or follow its redirect. */
static void start(struct stk_transfer *transfer)
{
    if (transfer->begin_ns == 0) {
        transfer->begin_ns = stk_now_ns();
        transfer->asked = transfer->wanted;
    }
    if (transfer->location == NULL)
        transfer->attempts++;
    const bool follows = transfer->location != NULL;
    transfer->answer = (struct stk_answer){
        .linked_etag = follows ? transfer->answer.linked_etag : 0,
        .linked_size = follows ? transfer->answer.linked_size : 0,
    };
    transfer->judged = transfer->too_long = false;
    transfer->verdict = STK_VERDICT_FAIL;
    transfer->expected = transfer->received = 0;
    transfer->why = "";
    transfer->curl_said[0] = '\0';
    transfer->said_bytes = 0;
}

int stk_transfer_begin(struct stk_transfer *transfer, void *easy, const char *name,
                       struct stk_remote_address *address, stoker_error *error)
{
    start(transfer);
    transfer->easy = easy;
    transfer->name = name;
    if (name != NULL) {
        const int rc = stk_remote_address_of(transfer->remote, name, transfer->method,
                                             transfer->renew, address, error);
        if (rc != STOKER_OK)
            return rc;
    }
    transfer->renew = false;
    transfer->renewable = address->renewable;
    if (transfer->location == NULL && name != NULL) {
        transfer->answer.linked_etag = address->linked_etag;
        transfer->answer.linked_size = address->linked_size;
    }
    if (transfer->location != NULL && !same_origin(transfer->location, address->url))
        address->headers[0] = address->user[0] = '\0'; /* secrets of the first host */
    const char *url = transfer->location != NULL ? transfer->location : address->url;
    transfer->secure = is_https(url);
    note_host(transfer, url);
    if (add_headers(transfer, address->headers) && set_request(transfer, url, address->user))
        return STOKER_OK;
    return stk_refuse_spec(error, STOKER_ENOMEM, "a request");
}

/* ---- settle --------------------------------------------------------------------- */

static bool may_pass(int result)
{
    static const uint8_t passing[] = { STK_CURLE_COULDNT_RESOLVE_PROXY,
                                       STK_CURLE_COULDNT_RESOLVE_HOST,
                                       STK_CURLE_COULDNT_CONNECT,
                                       STK_CURLE_WEIRD_SERVER_REPLY,
                                       STK_CURLE_HTTP2,
                                       STK_CURLE_PARTIAL_FILE,
                                       STK_CURLE_OPERATION_TIMEDOUT,
                                       STK_CURLE_SSL_CONNECT_ERROR,
                                       STK_CURLE_GOT_NOTHING,
                                       STK_CURLE_SEND_ERROR,
                                       STK_CURLE_RECV_ERROR,
                                       STK_CURLE_HTTP2_STREAM };
    return memchr(passing, result, sizeof(passing)) != NULL;
}

/* Account for the body of an answer that was accepted. */
static void settle_body(struct stk_transfer *transfer, int result)
{
    const bool to_end = transfer->expected == STK_UNKNOWN;
    const bool whole_is_longer = transfer->wanted.bytes > 0 && !transfer->answer.has_range &&
                                 transfer->answer.length > transfer->expected;
    if (transfer->wanted.bytes > 0) {
        transfer->wanted.offset += transfer->received;
        transfer->wanted.bytes -= transfer->received;
    }
    if (transfer->too_long && !whole_is_longer) { /* which of its bytes are right? */
        transfer->verdict = STK_VERDICT_FAIL;
        transfer->why = "the body is longer than was asked for";
    } else if (to_end ? result != STK_CURLE_OK : transfer->received != transfer->expected) {
        transfer->verdict =
            may_pass(result) || result == STK_CURLE_OK ? STK_VERDICT_RETRY : STK_VERDICT_FAIL;
        transfer->why = "";
        if (result == STK_CURLE_OK || result == STK_CURLE_PARTIAL_FILE)
            transfer->why = "the body is shorter than announced";
    }
}

/* S3 says by 400 and 301 that a session has expired, or where the bucket is. */
static bool wants_other_signature(const struct stk_transfer *transfer)
{
    const int status = transfer->answer.status;
    return (status == 400 || status == 301) && transfer->name != NULL &&
           stk_remote_scheme_of(transfer->name) == STK_REMOTE_S3 &&
           stk_s3_learn(&transfer->remote->s3, transfer->answer.region, transfer->said,
                        transfer->said_bytes);
}

/* Set the verdict of this attempt, regardless of earlier ones. */
static void settle_attempt(struct stk_transfer *transfer, int result)
{
    if (transfer->answer.malformed || (transfer->answer.status != 0 && !transfer->judged))
        judge(transfer); /* without a body */
    if (!transfer->judged) {
        transfer->verdict = may_pass(result) ? STK_VERDICT_RETRY : STK_VERDICT_FAIL;
        return;
    }
    if (wants_other_signature(transfer))
        transfer->verdict = STK_VERDICT_DENIED;
    if (transfer->method == STK_REMOTE_HEAD)
        return;
    if (transfer->verdict == STK_VERDICT_TAKE)
        settle_body(transfer, result);
}

static void forget_location(struct stk_transfer *transfer)
{
    stk_free(transfer->location);
    transfer->location = NULL;
    transfer->redirects = 0;
}

static const char *check_redirect(const struct stk_transfer *transfer, const char *url)
{
    if (transfer->redirects == REDIRECTS_MAX)
        return "more than 5 redirects";
    if (url == NULL || stk_remote_scheme_of(url) != STK_REMOTE_HTTP ||
        strlen(url) >= STK_REMOTE_URL_BYTES)
        return "a redirect to what is not http or https";
    return transfer->secure && !is_https(url) ? "a redirect from https to http" : "";
}

/* Keep the URL of a redirect. Returns false if it must not be followed (with the reason) or need
 * not. */
static bool follow(struct stk_transfer *transfer)
{
    char *url = NULL;
    const struct stk_curl *curl = transfer->remote->curl;
    const struct stk_answer *answer = &transfer->answer;
    (void)curl->easy_getinfo(transfer->easy, STK_CURLINFO_REDIRECT_URL, &url);
    transfer->why = check_redirect(transfer, url);
    if (transfer->why[0] == '\0' && transfer->name != NULL && answer->linked_etag != 0)
        stk_hf_redirected(&transfer->remote->hf, transfer->name, url, answer->linked_etag,
                          answer->linked_size);
    if (transfer->method == STK_REMOTE_HEAD && answer->linked_size > 0) {
        transfer->verdict = STK_VERDICT_TAKE; /* it said all that a look asks for */
        return false;
    }
    const size_t room = url == NULL ? 0 : strlen(url) + 1;
    char *location = transfer->why[0] == '\0' ? stk_calloc(1, room) : NULL;
    if (location == NULL) {
        transfer->verdict = STK_VERDICT_FAIL;
        return false;
    }
    const size_t scheme = (size_t)(strstr(url, "://") - url) + 3;
    const char *host = url + scheme; /* libcurl may have put the user before it */
    const char *at = memrchr(host, '@', strcspn(host, "/?#"));
    (void)snprintf(location, room, "%.*s%s", (int)scheme, url, at == NULL ? host : at + 1);
    stk_free(transfer->location);
    transfer->location = location;
    transfer->redirects++;
    return true;
}

static uint64_t wait_ns(const struct stk_transfer *transfer, uint64_t now_ns)
{
    const uint32_t doublings = transfer->attempts < 10 ? transfer->attempts - 1 : 9;
    uint64_t most_ms = (uint64_t)FIRST_WAIT_MS << doublings;
    most_ms = most_ms < WAIT_MAX_MS ? most_ms : WAIT_MAX_MS;
    uint64_t asked_s = transfer->answer.retry_after_s;
    asked_s = asked_s < RETRY_AFTER_MAX_S ? asked_s : RETRY_AFTER_MAX_S;
    /* Full jitter: many readers that failed together do not come back together. */
    const uint64_t random = stk_mix64(now_ns ^ (uint64_t)(uintptr_t)transfer);
    return asked_s * 1000000000 + random % (most_ms * 1000000);
}

/* Decide if there is another attempt, and when. */
static bool try_again(struct stk_transfer *transfer)
{
    transfer->due_ns = stk_now_ns();
    if (transfer->verdict == STK_VERDICT_REDIRECT)
        return follow(transfer);
    if (transfer->verdict == STK_VERDICT_DENIED && transfer->renewable && !transfer->renewed) {
        transfer->renew = transfer->renewed = true;
    } else if (transfer->verdict == STK_VERDICT_RETRY &&
               transfer->attempts <= transfer->remote->options.retries) {
        transfer->due_ns += wait_ns(transfer, transfer->due_ns);
    } else {
        return false;
    }
    forget_location(transfer); /* a signed one may have expired */
    return true;
}

bool stk_transfer_settle(struct stk_transfer *transfer, int result)
{
    settle_attempt(transfer, result);
    if (transfer->why[0] == '\0' && transfer->curl_said[0] == '\0')
        (void)snprintf(transfer->curl_said, sizeof(transfer->curl_said), "%s",
                       transfer->remote->curl->easy_strerror(result));
    const bool again = try_again(transfer);
    transfer->remote->curl->slist_free_all(transfer->headers);
    transfer->headers = NULL;
    return !again;
}

void stk_transfer_end(struct stk_transfer *transfer)
{
    if (transfer->headers != NULL)
        transfer->remote->curl->slist_free_all(transfer->headers);
    transfer->headers = NULL;
    forget_location(transfer);
}

int stk_transfer_reason(const struct stk_transfer *transfer, char *out, size_t out_bytes)
{
    char range[64] = "", status[24] = "", tries[64] = "", server[STK_S3_REASON_BYTES];
    const struct stk_wanted *asked = &transfer->asked;
    const bool by_status =
        transfer->judged && transfer->verdict != STK_VERDICT_TAKE && transfer->answer.status >= 300;
    if (asked->bytes > 0)
        (void)snprintf(range, sizeof(range), "bytes %" PRIu64 "-%" PRIu64 ": ", asked->offset,
                       asked->offset + asked->bytes - 1);
    if (by_status)
        (void)snprintf(status, sizeof(status), "HTTP status %d", transfer->answer.status);
    if (transfer->attempts > 1)
        (void)snprintf(tries, sizeof(tries), ", after %u attempts in %.1f s", transfer->attempts,
                       stk_seconds(stk_now_ns() - transfer->begin_ns));
    stk_s3_reason(server, transfer->said, transfer->said_bytes);
    (void)snprintf(out, out_bytes, "%s%s%s%s%s%s%s", range,
                   transfer->why[0] != '\0' ? transfer->why
                   : by_status              ? status
                                            : transfer->curl_said,
                   server, transfer->redirects > 0 ? " (after a redirect)" : "",
                   transfer->host[0] != '\0' ? ", from " : "", transfer->host, tries);
    switch (transfer->verdict) {
    case STK_VERDICT_CHANGED:
        return ESTALE;
    case STK_VERDICT_ABSENT:
        return ENOENT;
    case STK_VERDICT_DENIED:
        return EACCES;
    default:
        return EIO;
    }
}

/* ---- in the calling thread ------------------------------------------------------ */

static void sleep_until(uint64_t due_ns)
{
    const struct timespec due = { .tv_sec = (time_t)(due_ns / 1000000000),
                                  .tv_nsec = (long)(due_ns % 1000000000) };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
        ;
}

static void *take_easy(struct stk_remote *remote)
{
    pthread_mutex_lock(&remote->lock);
    void *easy = remote->idle_count > 0 ? remote->idle[--remote->idle_count] : NULL;
    pthread_mutex_unlock(&remote->lock);
    return easy != NULL ? easy : remote->curl->easy_init();
}

static void give_easy_back(struct stk_remote *remote, void *easy)
{
    pthread_mutex_lock(&remote->lock);
    const bool kept = remote->idle_count < STK_REMOTE_IDLE_MAX;
    if (kept)
        remote->idle[remote->idle_count++] = easy;
    pthread_mutex_unlock(&remote->lock);
    if (!kept)
        remote->curl->easy_cleanup(easy);
}

int stk_transfer_run(struct stk_transfer *transfer, const char *name,
                     const struct stk_remote_address *address, stoker_error *error)
{
    struct stk_remote *remote = transfer->remote;
    struct stk_remote_address *room = stk_calloc(1, sizeof(*room));
    void *easy = room == NULL ? NULL : take_easy(remote);
    int rc = STOKER_OK;
    if (easy == NULL) {
        stk_free(room);
        return stk_refuse_spec(error, STOKER_ENOMEM, "a request");
    }
    for (bool done = false; rc == STOKER_OK && !done;) {
        if (address != NULL)
            *room = *address;
        rc = stk_transfer_begin(transfer, easy, name, room, error);
        if (rc == STOKER_OK)
            done = stk_transfer_settle(transfer, remote->curl->easy_perform(easy));
        if (rc == STOKER_OK && !done)
            sleep_until(transfer->due_ns);
    }
    give_easy_back(remote, easy);
    stk_free(room);
    return rc;
}
