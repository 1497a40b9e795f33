/* test_s3.c - requests that names of S3 become: URLs, hosts, and by whose keys they are signed. */
#include <stoker/remote.h>

#include "loader/storage/remote/etag.h"
#include "loader/storage/remote/s3.h"
#include "support/leaks.h"
#include "support/sweep.h"

static struct stk_remote_address address;
static stoker_error error;

/* Nothing of this machine's. */
static void begin(void)
{
    static const char *const variables[] = { "AWS_PROFILE",        "AWS_ENDPOINT_URL",
                                             "AWS_REGION",         "AWS_ACCESS_KEY_ID",
                                             "AWS_DEFAULT_REGION", "HOME",
                                             "AWS_ENDPOINT_URL_S3" };
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        cr_assert_eq(unsetenv(variables[i]), 0);
}

static struct stk_s3 *s3_of(const stoker_remote_options *options)
{
    static struct stk_s3 s3;
    cr_assert_eq(stk_s3_init(&s3, options, &error), STOKER_OK);
    return &s3;
}

CleanTest(s3, names_become_urls)
{
    static const struct {
        const char *name, *endpoint, *region;
        const char *url; /* NULL = refused */
    } cases[] = {
        { "s3://bucket/part=1/a+b c.tar", NULL, NULL,
          "https://bucket.s3.us-east-1.amazonaws.com/part%3D1/a%2Bb%20c.tar" },
        { "s3://bucket/k", NULL, "eu-west-3", "https://bucket.s3.eu-west-3.amazonaws.com/k" },
        { "s3://bucket/k", NULL, "cn-north-1", "https://bucket.s3.cn-north-1.amazonaws.com.cn/k" },
        { "s3://with.dots/k", NULL, NULL, "https://s3.us-east-1.amazonaws.com/with.dots/k" },
        { "s3://Upper_case/k", NULL, NULL, "https://s3.us-east-1.amazonaws.com/Upper_case/k" },
        { "s3://b/a//../%2F?\xc3\xa4", "http://127.0.0.1:9000/", NULL,
          "http://127.0.0.1:9000/b/a//../%252F%3F%C3%A4" },
        { "s3://b/k", "https://host/base", NULL, "https://host/base/b/k" },
        { "s3://b", "https://host", NULL, "https://host/b/" },
        { "s3:///k", NULL, NULL, NULL },
        { "s3://b:1/k", NULL, NULL, NULL },
        { "s3://b/k\n", NULL, NULL, NULL },
        { "s3://user@b/k", NULL, NULL, NULL },
        { "s3://b/k", "host:9000", NULL, NULL },
        { "s3://b/k", "ftp://host", NULL, NULL },
        { "s3://b/k", "http://user:secret@host", NULL, NULL },
        { "s3://b/k", "http://host/?a", NULL, NULL },
        { "s3://b/k", NULL, "evil.example/", NULL },
    };
    begin();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stoker_remote_options options = STOKER_REMOTE_OPTIONS_INIT;
        options.endpoint = cases[i].endpoint;
        options.region = cases[i].region;
        struct stk_s3 *s3 = s3_of(&options);
        const int rc =
            stk_s3_address_of(s3, cases[i].name, STK_REMOTE_GET, false, &address, &error);
        cr_assert_eq(rc == STOKER_OK, cases[i].url != NULL, "%s: %s", cases[i].name, error.message);
        cr_assert_null(strstr(error.message, "secret"));
        if (rc == STOKER_OK) {
            cr_assert_str_eq(address.url, cases[i].url);
            cr_assert_str_empty(address.headers); /* nobody's keys */
        }
        stk_s3_destroy(s3);
    }
}

CleanTest(s3, names_that_are_too_long_are_refused)
{
    stoker_remote_options options = STOKER_REMOTE_OPTIONS_INIT;
    static char name[9000] = "s3://b/";
    begin();
    memset(name + 7, '+', 3000);
    struct stk_s3 *s3 = s3_of(&options);
    cr_assert_eq(stk_s3_address_of(s3, name, STK_REMOTE_GET, false, &address, &error),
                 STOKER_ELIMIT);
    stk_s3_destroy(s3);
    memset(name, 'r', sizeof(name) - 1);
    options.region = name;
    cr_assert_eq(stk_s3_init(s3, &options, &error), STOKER_EINVAL);
    stk_s3_destroy(s3);
}

CleanTest(s3, the_environment_signs)
{
    stoker_remote_options options = STOKER_REMOTE_OPTIONS_INIT;
    begin();
    setenv("AWS_ACCESS_KEY_ID", "ID", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "SECRET", 1);
    setenv("AWS_DEFAULT_REGION", "eu-west-1", 1);
    setenv("AWS_ENDPOINT_URL", "https://host:443", 1);
    struct stk_s3 *s3 = s3_of(&options);
    cr_assert_eq(stk_s3_address_of(s3, "s3://b/k", STK_REMOTE_HEAD, false, &address, &error),
                 STOKER_OK);
    cr_assert_str_eq(address.url, "https://host:443/b/k");
    cr_assert_not_null(strstr(address.headers, "Credential=ID/"));
    cr_assert_not_null(strstr(address.headers, "/eu-west-1/s3/aws4_request,"));
    cr_assert_null(strstr(address.headers, "SECRET"));
    cr_assert(address.renewable);
    stk_s3_destroy(s3);
}

static void sign(const char *endpoint, char headers[STK_REMOTE_HEADERS_BYTES])
{
    stoker_remote_options options = STOKER_REMOTE_OPTIONS_INIT;
    options.endpoint = endpoint;
    struct stk_s3 *s3 = s3_of(&options);
    cr_assert_eq(stk_s3_address_of(s3, "s3://b/k", STK_REMOTE_GET, false, &address, &error),
                 STOKER_OK);
    memcpy(headers, address.headers, STK_REMOTE_HEADERS_BYTES);
    stk_s3_destroy(s3);
}

/* libcurl leaves the scheme's own port out of the Host header, which is signed. */
CleanTest(s3, the_host_is_signed_as_it_is_sent)
{
    static const struct {
        const char *with, *without;
        bool equal;
    } cases[] = { { "https://h:443", "https://h", true },
                  { "http://h:80", "http://h", true },
                  { "http://h:443", "http://h", false } };
    begin();
    setenv("AWS_ACCESS_KEY_ID", "ID", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "SECRET", 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        static char with[STK_REMOTE_HEADERS_BYTES], without[STK_REMOTE_HEADERS_BYTES];
        do { /* both in the same second */
            sign(cases[i].with, with);
            sign(cases[i].without, without);
        } while (strcmp(strstr(with, "\nx-amz-date"), strstr(without, "\nx-amz-date")) != 0);
        cr_assert_eq(strcmp(with, without) == 0, cases[i].equal, "%s", cases[i].with);
    }
}

/* ---- the callback ---------------------------------------------------------------- */

struct caller {
    int calls;
    uint64_t expires_unix_s;
    int rc;
};

static int credentials(void *self, stoker_remote_credentials *out, stoker_error *why)
{
    struct caller *caller = self;
    caller->calls++;
    (void)snprintf(out->access_key, sizeof(out->access_key), "ID%d", caller->calls);
    (void)snprintf(out->secret_key, sizeof(out->secret_key), "SECRET");
    (void)snprintf(out->session_token, sizeof(out->session_token), "TOKEN");
    out->expires_unix_s = caller->expires_unix_s;
    if (caller->rc != STOKER_OK)
        (void)snprintf(why->message, sizeof(why->message), "the vault is sealed");
    return caller->rc;
}

static const char *key_of(struct stk_s3 *s3, bool renew)
{
    static char key[16];
    cr_assert_eq(stk_s3_address_of(s3, "s3://b/k", STK_REMOTE_GET, renew, &address, &error),
                 STOKER_OK, "%s", error.message);
    const char *at = strstr(address.headers, "Credential=");
    cr_assert_not_null(at);
    cr_assert_not_null(strstr(address.headers, "\nx-amz-security-token: TOKEN\n"));
    (void)snprintf(key, sizeof(key), "%.*s", (int)strcspn(at + 11, "/"), at + 11);
    return key;
}

CleanTest(s3, the_callback_is_asked_when_needed)
{
    stoker_remote_options options = STOKER_REMOTE_OPTIONS_INIT;
    struct caller caller = { .calls = 0 };
    begin();
    options.credentials = credentials;
    options.credentials_self = &caller;
    struct stk_s3 *s3 = s3_of(&options);
    cr_assert_eq(caller.calls, 0);
    cr_assert_str_eq(key_of(s3, false), "ID1");
    cr_assert_str_eq(key_of(s3, false), "ID1");
    cr_assert_str_eq(key_of(s3, true), "ID2");
    cr_assert_str_eq(key_of(s3, true), "ID2"); /* another request that was refused before */
    s3->renewed_ns = 1;
    cr_assert_str_eq(key_of(s3, true), "ID3");
    caller.expires_unix_s = 1; /* each is old from the beginning */
    s3->renewed_ns = 1;
    cr_assert_str_eq(key_of(s3, true), "ID4");
    cr_assert_str_eq(key_of(s3, false), "ID5");
    caller.rc = STOKER_EACCES;
    cr_assert_eq(stk_s3_address_of(s3, "s3://b/k", STK_REMOTE_GET, false, &address, &error),
                 STOKER_EACCES);
    cr_assert_not_null(strstr(error.message, "credentials(): the vault is sealed"));
    caller.rc = 17;
    cr_assert_eq(stk_s3_address_of(s3, "s3://b/k", STK_REMOTE_GET, false, &address, &error),
                 STOKER_EINVAL);
    stk_s3_destroy(s3);
}

CleanTest(s3, errors_teach_the_region)
{
    static const struct {
        const char *document, *header, *region;
        bool pass;
        const char *url;
    } cases[] = {
        { "<Error><Code>PermanentRedirect</Code></Error>", "eu-west-1", NULL, true,
          "https://b.s3.eu-west-1.amazonaws.com/k" },
        { "", "eu-west-1", NULL, true, "https://b.s3.eu-west-1.amazonaws.com/k" },
        { "", "evil.example/", NULL, false, "https://b.s3.us-east-1.amazonaws.com/k" },
        { "<Error><Code>PermanentRedirect</Code><Region>eu-west-1</Region><End", "", NULL, true,
          "https://b.s3.eu-west-1.amazonaws.com/k" },
        { "<Error><Region>eu-west-1</Region>", "", "us-west-2", false,
          "https://b.s3.us-west-2.amazonaws.com/k" },
        { "<Error><Region>evil.example/</Region>", "", NULL, true,
          "https://b.s3.evil.amazonaws.com/k" },
        { "<Error><Code>ExpiredToken</Code>", "", NULL, true,
          "https://b.s3.us-east-1.amazonaws.com/k" },
        { "<Error><Code>AccessDenied</Code>", "", NULL, false,
          "https://b.s3.us-east-1.amazonaws.com/k" },
        { "", "", NULL, false, "https://b.s3.us-east-1.amazonaws.com/k" },
    };
    begin();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stoker_remote_options options = STOKER_REMOTE_OPTIONS_INIT;
        options.region = cases[i].region;
        struct stk_s3 *s3 = s3_of(&options);
        cr_assert_eq(stk_s3_address_of(s3, "s3://b/k", STK_REMOTE_GET, false, &address, &error),
                     STOKER_OK);
        cr_assert_eq(
            stk_s3_learn(s3, cases[i].header, cases[i].document, strlen(cases[i].document)),
            cases[i].pass);
        cr_assert_eq(stk_s3_address_of(s3, "s3://b/k", STK_REMOTE_GET, true, &address, &error),
                     STOKER_OK);
        cr_assert_str_eq(address.url, cases[i].url);
        stk_s3_destroy(s3);
    }
}

CleanTest(s3, memory_that_is_out_is_reported)
{
    stoker_remote_options options = STOKER_REMOTE_OPTIONS_INIT;
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    begin();
    struct stk_s3 *s3 = s3_of(&options);
    while (stk_sweep_next(&sweep))
        sweep.rc = stk_s3_address_of(s3, "s3://b/k", STK_REMOTE_GET, false, &address, &sweep.error);
    cr_assert_eq(sweep.failed, 1);
    stk_s3_destroy(s3);
}

CleanTest(s3, lists_and_headers_agree_about_versions)
{
    static const struct {
        const char *tag, *other;
        bool equal;
    } cases[] = { { "\"abc\"", "abc", true },
                  { "\"abc\"", "\"abd\"", false },
                  { "\"a-2\"", "\"a\"", false },
                  { "abc", "\"abc", false } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_assert_eq(stk_etag_version(cases[i].tag, strlen(cases[i].tag)) ==
                         stk_etag_version(cases[i].other, strlen(cases[i].other)),
                     cases[i].equal);
    cr_assert_eq(stk_etag_version("", 0), 0);
    cr_assert_eq(stk_etag_version("\"\"", 2), 0);
    cr_assert_eq(stk_etag_version("W/\"a\"", 5), 0);
    cr_assert_neq(stk_etag_version("a", 1), 0);
}
