/* test_remote.c - what servers say, and what is shown of URLs; check_remote.py reads from servers.
 */
#include <string.h>

#include <stoker/remote.h>

#include "loader/base/text/redact.h"
#include "loader/storage/remote/answer.h"
#include "loader/storage/remote/curl.h"
#include "loader/storage/remote/late.h"
#include "loader/storage/remote/request.h"
#include "loader/storage/storage.h"
#include "support/leaks.h"

#if __has_include(<curl/curl.h>)
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

#define SAME(name) _Static_assert((long)STK_##name == (long)(name), #name)
SAME(CURLOPT_LOW_SPEED_LIMIT);
SAME(CURLOPT_LOW_SPEED_TIME);
SAME(CURLOPT_NOBODY);
SAME(CURLOPT_FRESH_CONNECT);
SAME(CURLOPT_HTTPGET);
SAME(CURLOPT_HTTP_VERSION);
SAME(CURLOPT_BUFFERSIZE);
SAME(CURLOPT_NOSIGNAL);
SAME(CURLOPT_TIMEOUT_MS);
SAME(CURLOPT_CONNECTTIMEOUT_MS);
SAME(CURLOPT_HTTP_CONTENT_DECODING);
SAME(CURLOPT_PROTOCOLS);
SAME(CURLOPT_PATH_AS_IS);
SAME(CURLOPT_PIPEWAIT);
SAME(CURLOPT_DISALLOW_USERNAME_IN_URL);
SAME(CURLOPT_HTTP09_ALLOWED);
SAME(CURLOPT_WRITEDATA);
SAME(CURLOPT_URL);
SAME(CURLOPT_USERPWD);
SAME(CURLOPT_RANGE);
SAME(CURLOPT_ERRORBUFFER);
SAME(CURLOPT_USERAGENT);
SAME(CURLOPT_HTTPHEADER);
SAME(CURLOPT_HEADERDATA);
SAME(CURLOPT_CAINFO);
SAME(CURLOPT_PRIVATE);
SAME(CURLOPT_WRITEFUNCTION);
SAME(CURLOPT_HEADERFUNCTION);
SAME(CURLMOPT_MAXCONNECTS);
SAME(CURLINFO_REDIRECT_URL);
SAME(CURLINFO_PRIVATE);
SAME(CURL_HTTP_VERSION_2TLS);
SAME(CURLPROTO_HTTP);
SAME(CURLPROTO_HTTPS);
SAME(CURL_GLOBAL_ALL);
SAME(CURLMSG_DONE);
SAME(CURLE_OK);
SAME(CURLE_COULDNT_RESOLVE_PROXY);
SAME(CURLE_COULDNT_RESOLVE_HOST);
SAME(CURLE_COULDNT_CONNECT);
SAME(CURLE_WEIRD_SERVER_REPLY);
SAME(CURLE_HTTP2);
SAME(CURLE_PARTIAL_FILE);
SAME(CURLE_OUT_OF_MEMORY);
SAME(CURLE_OPERATION_TIMEDOUT);
SAME(CURLE_SSL_CONNECT_ERROR);
SAME(CURLE_GOT_NOTHING);
SAME(CURLE_SEND_ERROR);
SAME(CURLE_RECV_ERROR);
SAME(CURLE_HTTP2_STREAM);
_Static_assert(STK_CURL_ERROR_BYTES == CURL_ERROR_SIZE, "CURL_ERROR_SIZE");
_Static_assert(sizeof(struct stk_curl_message) == sizeof(CURLMsg), "CURLMsg");
_Static_assert(offsetof(struct stk_curl_message, easy_handle) == offsetof(CURLMsg, easy_handle) &&
                   offsetof(struct stk_curl_message, data) == offsetof(CURLMsg, data),
               "CURLMsg");
#endif

/* ---- answers -------------------------------------------------------------------- */

/* Lines that end with '\n'; "206|Content-Range: ..." is a short form. */
static struct stk_answer answer_of(const char *text, time_t now)
{
    struct stk_answer answer = { .status = 0 };
    char line[256];
    const char *rest = text + strcspn(text, "|");
    (void)snprintf(line, sizeof(line), "HTTP/1.1 %.*s\r\n", (int)(rest - text), text);
    stk_answer_take(&answer, line, strlen(line), now);
    while (rest[0] == '|') {
        const size_t bytes = strcspn(rest + 1, "|");
        (void)snprintf(line, sizeof(line), "%.*s\r\n", (int)bytes, rest + 1);
        stk_answer_take(&answer, line, strlen(line), now);
        rest += bytes + 1;
    }
    return answer;
}

enum {
    TAKE = STK_VERDICT_TAKE,
    END = STK_VERDICT_END,
    AGAIN = STK_VERDICT_RETRY,
    CHANGED = STK_VERDICT_CHANGED,
    FAIL = STK_VERDICT_FAIL
};
static const struct {
    const char *answer;
    uint64_t offset, bytes, size;
    int verdict;
    uint64_t expected;
} answers[] = {
    /* the range that was asked for */
    { "206|Content-Range: bytes 10-19/100", 10, 10, 100, TAKE, 10 },
    { "206|content-range:BYTES 10-19/100|content-length:10", 10, 10, 100, TAKE, 10 },
    { "206|Content-Range: bytes 10-19/*", 10, 10, 100, TAKE, 10 },
    { "206|Content-Range: bytes 10-19/*", 10, 10, STK_UNKNOWN, TAKE, 10 },
    { "200|Content-Range: bytes 10-19/100", 10, 10, 100, TAKE, 10 },
    { "206|Content-Range: bytes 90-99/100", 90, 20, 100, TAKE, 10 },
    { "206|Content-Range: bytes 90-99/100", 90, 20, STK_UNKNOWN, TAKE, 10 },
    /* another one */
    { "206|Content-Range: bytes 11-20/100", 10, 10, 100, AGAIN, 0 },
    { "206|Content-Range: bytes 10-18/100", 10, 10, 100, AGAIN, 0 },
    { "206|Content-Range: bytes 10-20/100", 10, 10, 100, AGAIN, 0 },
    { "206|Content-Range: bytes 90-99/*", 90, 10, 80, AGAIN, 0 },
    { "206|Content-Range: bytes 10-29/*", 10, 10, STK_UNKNOWN, AGAIN, 0 },
    { "206|Content-Range: bytes 10-19/100|Content-Length: 11", 10, 10, 100, AGAIN, 0 },
    { "206|Content-Range: bytes 10-19/100|Content-Range: bytes 10-19/100", 10, 10, 100, AGAIN, 0 },
    { "206", 10, 10, 100, AGAIN, 0 },
    { "206|Content-Range: bytes 10-19/101", 10, 10, 100, CHANGED, 0 },
    { "206|Content-Range: bytes 10-19/100|Content-Encoding: gzip", 10, 10, 100, FAIL, 0 },
    { "206|Content-Range: bytes 10-19/100|Content-Encoding: identity", 10, 10, 100, TAKE, 10 },
    /* malformed */
    { "206|Content-Range: bytes 19-10/100", 10, 10, 100, AGAIN, 0 },
    { "206|Content-Range: bytes 10-100/100", 10, 91, 100, AGAIN, 0 },
    { "206|Content-Range: bytes 10-19/100x", 10, 10, 100, AGAIN, 0 },
    { "206|Content-Range: bytes -19/100", 10, 10, 100, AGAIN, 0 },
    { "206|Content-Range: items 10-19/100", 10, 10, 100, AGAIN, 0 },
    { "206|Content-Range: bytes 18446744073709551626-18446744073709551635/*", 10, 10, 100, AGAIN,
      0 },
    { "206|Content-Range: bytes 10-19/100|Content-Length: -1", 10, 10, 100, AGAIN, 0 },
    { "2x6", 10, 10, 100, AGAIN, 0 },
    { "", 10, 10, 100, AGAIN, 0 },
    /* the whole object */
    { "200|Content-Length: 100", 0, 100, 100, TAKE, 100 },
    { "200|Content-Length: 100", 0, 101, 100, TAKE, 100 },
    { "200|Content-Length: 100", 0, 10, 100, TAKE, 10 },
    { "200", 0, 100, 100, TAKE, 100 },
    { "200", 0, 10, STK_UNKNOWN, AGAIN, 0 },
    { "200|Content-Length: 100", 10, 10, 100, AGAIN, 0 },
    { "200|Content-Length: 99", 0, 100, 100, CHANGED, 0 },
    { "200|Content-Length: 100", 0, 0, STK_UNKNOWN, TAKE, 100 },
    { "200", 0, 0, STK_UNKNOWN, TAKE, STK_UNKNOWN },
    { "200|Content-Length: 0", 0, 10, STK_UNKNOWN, TAKE, 0 },
    /* its end */
    { "416|Content-Range: bytes */100", 100, 10, 100, END, 0 },
    { "416|Content-Range: bytes */100", 100, 10, STK_UNKNOWN, END, 0 },
    { "416", 100, 10, 100, END, 0 },
    { "416", 100, 10, STK_UNKNOWN, FAIL, 0 },
    { "416|Content-Range: bytes */50", 60, 10, 100, CHANGED, 0 },
    { "416|Content-Range: bytes */100", 60, 10, 100, AGAIN, 0 },
    /* no body */
    { "302", 0, 10, 100, STK_VERDICT_REDIRECT, 0 },
    { "304", 0, 10, 100, FAIL, 0 },
    { "400", 0, 10, 100, FAIL, 0 },
    { "401", 0, 10, 100, STK_VERDICT_DENIED, 0 },
    { "404", 0, 10, 100, STK_VERDICT_ABSENT, 0 },
    { "412", 0, 10, 100, CHANGED, 0 },
    { "429", 0, 10, 100, AGAIN, 0 },
    { "501", 0, 10, 100, FAIL, 0 },
    { "503", 0, 10, 100, AGAIN, 0 },
};

CleanTest(remote, an_answer_is_taken_only_if_it_is_what_was_asked_for)
{
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        const struct stk_answer answer = answer_of(answers[i].answer, 0);
        const struct stk_wanted wanted = { answers[i].offset, answers[i].bytes, answers[i].size,
                                           0 };
        uint64_t expected;
        const char *why;
        cr_assert_eq((int)stk_answer_judge(&answer, &wanted, &expected, &why), answers[i].verdict,
                     "%s: %s", answers[i].answer, why);
        if (answers[i].verdict == TAKE)
            cr_assert_eq(expected, answers[i].expected, "%s", answers[i].answer);
    }
}

CleanTest(remote, a_version_is_that_of_a_strong_etag_else_of_a_date_and_a_size)
{
    const struct stk_answer one = answer_of("200|ETag: \"a\"|Last-Modified: x", 0);
    const struct stk_answer two = answer_of("200|ETag: \"b\"|Last-Modified: x", 0);
    const struct stk_answer weak = answer_of("200|ETag: W/\"a\"|Last-Modified: x", 0);
    const struct stk_answer date = answer_of("200|Last-Modified: x", 0);
    const struct stk_answer none = answer_of("200", 0);
    cr_assert_eq(stk_answer_version(&one, 1), stk_answer_version(&one, 2));
    cr_assert_neq(stk_answer_version(&one, 1), stk_answer_version(&two, 1));
    cr_assert_eq(stk_answer_version(&weak, 1), stk_answer_version(&date, 1));
    cr_assert_neq(stk_answer_version(&date, 1), stk_answer_version(&date, 2));
    cr_assert_eq(stk_answer_version(&none, 1), 0U);
    const struct stk_wanted wanted = { 0, 0, 100, stk_answer_version(&one, 100) };
    uint64_t expected;
    const char *why;
    cr_assert_eq(stk_answer_judge(&one, &wanted, &expected, &why), STK_VERDICT_TAKE);
    cr_assert_eq(stk_answer_judge(&two, &wanted, &expected, &why), STK_VERDICT_CHANGED);
    cr_assert_eq(stk_answer_judge(&none, &wanted, &expected, &why), STK_VERDICT_RETRY);
}

CleanTest(remote, retry_after_is_seconds_or_a_date)
{
    static const struct {
        const char *answer;
        uint64_t wait_s;
    } cases[] = {
        { "503|Retry-After: 7", 7 },
        { "503|Retry-After: Sun, 06 Nov 1994 08:49:37 GMT", 37 },
        { "503|Retry-After: Sun, 06 Nov 1994 08:48:00 GMT", 0 },
        { "503|Retry-After: Sun, 06 Foo 1994 08:49:37 GMT", 0 },
        { "503|Retry-After: soon", 0 },
        { "503|Retry-After: -7", 0 },
        { "503", 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_assert_eq(answer_of(cases[i].answer, 784111740).retry_after_s, cases[i].wait_s, "%s",
                     cases[i].answer);
}

CleanTest(remote, endless_headers_are_refused)
{
    struct stk_answer answer = answer_of("200", 0);
    for (int i = 0; i < STK_ANSWER_BYTES_MAX / 10 && !answer.malformed; i++)
        stk_answer_take(&answer, "X: 456789\n", 10, 0);
    cr_assert(answer.malformed);
}

/* ---- names ---------------------------------------------------------------------- */

CleanTest(remote, names_become_urls)
{
    static const struct {
        const char *name, *url, *user; /* url NULL = refused */
    } cases[] = {
        { "https://host/a/b.tar", "https://host/a/b.tar", "" },
        { "HTTP://host:8080", "HTTP://host:8080", "" },
        { "http://host/a b\xc3\xa9#\"", "http://host/a%20b%C3%A9%23%22", "" },
        { "http://host/%41%20%zz%", "http://host/%41%20%25zz%25", "" },
        { "http://host/a%3Fx=1&y=%3f", "http://host/a?x=1&y=?", "" },
        { "http://me:p%40ss@host/a", "http://host/a", "me:p@ss" },
        { "http://me@you:word@host/a@b", "http://host/a@b", "me@you:word" },
        { "http:///a", NULL, "" },
        { "http://me@/a", NULL, "" },
        { "http://a%00b@host/", NULL, "" },
        { "file:///etc/passwd", NULL, "" },
        { "a.tar", NULL, "" },
    };
    static struct stk_remote_address address;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int rc =
            stk_remote_address_of(NULL, cases[i].name, STK_REMOTE_GET, false, &address, NULL);
        cr_assert_eq(rc == STOKER_OK, cases[i].url != NULL, "%s", cases[i].name);
        if (rc != STOKER_OK)
            continue;
        cr_assert_str_eq(address.url, cases[i].url);
        cr_assert_str_eq(address.user, cases[i].user);
    }
}

CleanTest(remote, secrets_are_not_shown)
{
    static const char *const cases[][2] = {
        { "a.tar: no such file", "a.tar: no such file" },
        { "http://host/a.tar: 404", "http://host/a.tar: 404" },
        { "http://me:word@host/a@b", "http://***@host/a@b" },
        { "http://me:w@rd@host", "http://***@host" },
        { "npy:http://h/a%3Fpart=1&X-Amz-Signature=41f0&x=2: bad",
          "npy:http://h/a%3Fpart=1&X-Amz-Signature=***&x=2: bad" },
        { "http://h/a?token=abcdef", "http://h/a?token=***" },
        { "http://h/a?token=ab", "http://h/a?token=**" },
        { "http://h/a?AWSAccessKeyId=abcdef;se=1", "http://h/a?AWSAccessKeyId=***;se=1" },
        { "\"http://u:p@h/a\" \"https://u:p@g/b?sig=0123\"",
          "\"http://***@h/a\" \"https://***@g/b?sig=***\"" },
        { "http://h/a?token=", "http://h/a?token=" },
        { "://", "://" },
    };
    char text[256];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)snprintf(text, sizeof(text), "%s", cases[i][0]);
        stk_redact_urls(text);
        cr_assert_str_eq(text, cases[i][1]);
    }
    /* also where a long path loses its start */
    stoker_error error;
    char path[600] = "http://h/a?token=";
    memset(path + strlen(path), 'S', 500);
    (void)stk_refuse_file(&error, STOKER_EIO, path, STOKER_NO_OFFSET, "it failed");
    cr_assert_null(strstr(error.message, "SSSS"), "%s", error.message);
    cr_assert_null(strstr(error.path, "SSSS"), "%s", error.path);
}

/* ---- hedges and options --------------------------------------------------------- */

CleanTest(remote, few_requests_are_sent_twice)
{
    struct stk_late late = { .after_ns = UINT64_MAX };
    for (uint64_t i = 1; i <= 100; i++) {
        cr_assert(i > STK_LATE_FIRST || !stk_late_may_hedge(&late));
        stk_late_note(&late, i * 1000000);
    }
    cr_assert_geq(late.after_ns, 90000000U);
    cr_assert_leq(late.after_ns, 100000000U);
    for (; stk_late_may_hedge(&late); late.hedges++)
        ;
    cr_assert_leq(late.hedges * 25, late.count);
    for (int i = 0; i < 100; i++)
        stk_late_note(&late, 1000);
    cr_assert_eq(late.after_ns, (uint64_t)STK_LATE_LEAST_NS);
}

CleanTest(remote, options_are_checked)
{
    stoker_storage *storage = NULL;
    stoker_error error;
    cr_assert_eq(stoker_storage_remote_create(&storage, NULL, &error), STOKER_OK);
    stoker_storage_close(&storage);
    for (int i = 0; i < 5; i++) {
        stoker_remote_options options = STOKER_REMOTE_OPTIONS_INIT;
        options.connections = i == 0 ? STOKER_REMOTE_CONNECTIONS_MAX + 1 : options.connections;
        options.retries = i == 1 ? STOKER_REMOTE_RETRIES_MAX + 1 : options.retries;
        options.connect_timeout_ms = i == 2 ? 0 : options.connect_timeout_ms;
        options.stall_timeout_ms = i == 3 ? 999 : options.stall_timeout_ms;
        options.struct_size = i == 4 ? 0 : options.struct_size;
        cr_assert_eq(stoker_storage_remote_create(&storage, &options, &error), STOKER_EINVAL);
        cr_assert_null(storage);
    }
}
