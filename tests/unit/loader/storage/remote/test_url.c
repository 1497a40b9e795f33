/* test_url.c - percent-encoding, and taking URLs apart. */
#include "loader/storage/remote/url.h"
#include "support/leaks.h"

CleanTest(url, every_byte_but_the_unreserved_is_encoded)
{
    static const char unreserved[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (int byte = 1; byte < 256; byte++) {
        char buffer[8], expected[8];
        const char c = (char)byte;
        struct stk_text text = stk_text(buffer, sizeof(buffer));
        stk_text_encode(&text, &c, 1, false);
        (void)snprintf(expected, sizeof(expected), strchr(unreserved, byte) ? "%c" : "%%%02X",
                       byte);
        cr_assert_str_eq(buffer, expected);
        cr_assert(stk_url_decode(buffer, true));
        cr_assert_eq(buffer[0], c);
        cr_assert_eq(buffer[1], '\0');
    }
}

CleanTest(url, keys_keep_their_slashes)
{
    char buffer[64];
    struct stk_text text = stk_text(buffer, sizeof(buffer));
    stk_text_add(&text, "/b/");
    stk_text_encode(&text, "part=1/a+b c.tar", strlen("part=1/a+b c.tar"), true);
    cr_assert_str_eq(buffer, "/b/part%3D1/a%2Bb%20c.tar");
}

CleanTest(url, text_never_leaves_its_buffer)
{
    for (size_t capacity = 1; capacity < 40; capacity++) {
        char buffer[64];
        memset(buffer, '#', sizeof(buffer));
        struct stk_text text = stk_text(buffer, capacity);
        stk_text_add(&text, "http://");
        stk_text_encode(&text, "part=1/a+b", 10, true);
        cr_assert_eq(text.full, capacity <= strlen("http://part%3D1/a%2Bb"));
        cr_assert_lt(strlen(buffer), capacity);
        cr_assert_eq(buffer[capacity], '#');
    }
}

CleanTest(url, decoding_refuses_what_no_server_encodes)
{
    static const struct {
        const char *text;
        const char *plain, *plus; /* NULL = refused */
    } cases[] = {
        { "a%2fb%2Fc", "a/b/c", "a/b/c" },
        { "a+b%2B", "a+b+", "a b+" },
        { "%", NULL, NULL },
        { "%4", NULL, NULL },
        { "%4g", NULL, NULL },
        { "%00", NULL, NULL },
        { "", "", "" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int plus = 0; plus < 2; plus++) {
            char text[32];
            const char *expected = plus ? cases[i].plus : cases[i].plain;
            (void)snprintf(text, sizeof(text), "%s", cases[i].text);
            cr_assert_eq(stk_url_decode(text, plus == 1), expected != NULL, "%s", cases[i].text);
            if (expected != NULL)
                cr_assert_str_eq(text, expected);
        }
}

CleanTest(url, schemes_hosts_and_paths_are_told_apart)
{
    static const struct {
        const char *text;
        const char *scheme, *host, *path; /* scheme NULL = refused */
    } cases[] = {
        { "https://a.b:80/c/d?e", "https", "a.b:80", "c/d?e" },
        { "s3://bucket", "s3", "bucket", "" },
        { "s3://bucket/", "s3", "bucket", "" },
        { "s3://bucket//a", "s3", "bucket", "/a" },
        { "http://[::1]:9000/x", "http", "[::1]:9000", "x" },
        { "http://user:secret@host/x", NULL, NULL, NULL },
        { "http:///x", NULL, NULL, NULL },
        { "://x", NULL, NULL, NULL },
        { "a/b://x", NULL, NULL, NULL },
        { "http://a\r\nb/", NULL, NULL, NULL },
        { "http://a/\r\nb", NULL, NULL, NULL },
        { "http://a b/", NULL, NULL, NULL },
        { "http:/a", NULL, NULL, NULL },
        { "", NULL, NULL, NULL },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stk_url url;
        cr_assert_eq(stk_url_split(&url, cases[i].text), cases[i].scheme != NULL, "%s",
                     cases[i].text);
        if (cases[i].scheme == NULL)
            continue;
        cr_assert(stk_piece_is(url.scheme, cases[i].scheme));
        cr_assert(stk_piece_is(url.host, cases[i].host), "%s", cases[i].text);
        cr_assert_str_eq(url.path, cases[i].path);
    }
}
