/* test_sigv4.c - SHA-256, HMAC and signatures of requests.
 *
 * Method: published vectors (FIPS 180-4's examples, RFC 4231, "Signature Calculations" in the S3
 * API reference), and requests that botocore 1.44 signed.
 */
#include "loader/base/sha256.h"
#include "loader/storage/remote/sigv4.h"
#include "support/leaks.h"

static void check_hex(const uint8_t sum[STK_SHA256_BYTES], const char *expected)
{
    char text[2 * STK_SHA256_BYTES + 1];
    stk_sha256_hex(sum, text);
    cr_assert_str_eq(text, expected);
}

/* In one piece, and byte by byte. */
static void check_sum(const char *text, size_t bytes, const char *expected)
{
    struct stk_sha256 sum;
    uint8_t out[STK_SHA256_BYTES];
    stk_sha256_begin(&sum);
    stk_sha256_add(&sum, text, bytes);
    stk_sha256_end(&sum, out);
    check_hex(out, expected);
    stk_sha256_begin(&sum);
    for (size_t i = 0; i < bytes; i++)
        stk_sha256_add(&sum, text + i, 1);
    stk_sha256_end(&sum, out);
    check_hex(out, expected);
}

CleanTest(sigv4, sha256_has_the_published_sums)
{
    static char many[1000000];
    memset(many, 'a', sizeof(many));
    check_sum("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_sum("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_sum("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check_sum(many, sizeof(many),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

CleanTest(sigv4, hmac_has_the_sums_of_rfc_4231)
{
    static const struct {
        char key, text;
        size_t key_bytes, text_bytes; /* of one character */
        const char *whole_key, *whole_text, *sum;
    } cases[] = {
        { '\x0b', 0, 20, 0, NULL, "Hi There",
          "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
        { 0, 0, 0, 0, "Jefe", "what do ya want for nothing?",
          "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
        { '\xaa', '\xdd', 20, 50, NULL, NULL,
          "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
        { '\xaa', 0, 131, 0, NULL, "Test Using Larger Than Block-Size Key - Hash Key First",
          "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char key[160], text[160];
        uint8_t out[STK_SHA256_BYTES];
        memset(key, cases[i].key, sizeof(key));
        memset(text, cases[i].text, sizeof(text));
        const char *k = cases[i].whole_key == NULL ? key : cases[i].whole_key;
        const char *t = cases[i].whole_text == NULL ? text : cases[i].whole_text;
        stk_hmac_sha256(k, k == key ? cases[i].key_bytes : strlen(k), t,
                        t == text ? cases[i].text_bytes : strlen(t), out);
        check_hex(out, cases[i].sum);
    }
}

#define KEY_ID "AKIAIOSFODNN7EXAMPLE"
#define SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

CleanTest(sigv4, requests_are_signed_as_published)
{
    enum { PUBLISHED = 1369353600 }; /* 2013-05-24 00:00 */
    static const struct {
        const char *method, *host, *path, *query, *region, *token, *signature;
    } cases[] = {
        { "GET", "examplebucket.s3.amazonaws.com", "/", "lifecycle=", "us-east-1", "",
          "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543" },
        { "GET", "examplebucket.s3.amazonaws.com", "/", "max-keys=2&prefix=J", "us-east-1", "",
          "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7" },
        { "GET", "127.0.0.1:9000", "/bucket/part%3D1/a%2Bb%20c.tar", "", "eu-central-1", "",
          "c53be4dfddbb93384bf530efd2cbe7239a727c40907f0575e11ce40d09687574" },
        { "HEAD", "bucket.s3.eu-central-1.amazonaws.com", "/part%3D1/%C3%A4%27%28%29%2A%21~.tar",
          "", "eu-central-1", "FwoGZXIvYXdzEXAMPLE//token==",
          "4ee1d812a3f68b96f05b4157eaff9f83bf84a0d60ed8198cd7e35ac20ab3a03b" },
        { "GET", "s3.example.org", "/b/",
          "continuation-token=1ueGcxLPRx1Tr%2FXYExHnhbYLgveDs2J%2Fwm36Hy4vbOwM%3D&delimiter=%2F&"
          "encoding-type=url&list-type=2&max-keys=1000&prefix=part%3D1%2F",
          "us-west-2", "t", "f873a473670d095368ddd9694df11a8dc74b35003decc128f3075c61b9c9fddb" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char buffer[2048], expected[512];
        struct stk_text headers = stk_text(buffer, sizeof(buffer));
        stoker_remote_credentials credentials = { .access_key = KEY_ID, .secret_key = SECRET };
        const struct stk_signed request = { .method = cases[i].method,
                                            .host = cases[i].host,
                                            .path = cases[i].path,
                                            .query = cases[i].query,
                                            .region = cases[i].region,
                                            .service = "s3" };
        (void)snprintf(credentials.session_token, sizeof(credentials.session_token), "%s",
                       cases[i].token);
        stk_sigv4_sign(&headers, &request, &credentials, PUBLISHED);
        cr_assert_not(headers.full);
        (void)snprintf(expected, sizeof(expected),
                       "Authorization: AWS4-HMAC-SHA256 Credential=" KEY_ID
                       "/20130524/%s/s3/aws4_request,"
                       "SignedHeaders=host;x-amz-content-sha256;x-amz-date%s,Signature=%s\n"
                       "x-amz-date: 20130524T000000Z\nx-amz-content-sha256: ",
                       cases[i].region, cases[i].token[0] == '\0' ? "" : ";x-amz-security-token",
                       cases[i].signature);
        cr_assert_eq(strncmp(buffer, expected, strlen(expected)), 0, "%d: %s\n%s", (int)i, buffer,
                     expected);
        cr_assert_null(strstr(buffer, SECRET));
        cr_assert_eq(strstr(buffer, "x-amz-security-token: ") != NULL, cases[i].token[0] != '\0');
    }
}

CleanTest(sigv4, headers_that_do_not_fit_are_noticed)
{
    stoker_remote_credentials credentials = { .access_key = KEY_ID, .secret_key = SECRET };
    char region[200], buffer[600];
    memset(region, 'r', sizeof(region) - 1);
    region[sizeof(region) - 1] = '\0';
    for (size_t capacity = 1; capacity < sizeof(buffer); capacity += 7) {
        struct stk_text headers = stk_text(buffer, capacity);
        const struct stk_signed request = { "GET", "host", "/", "", "us-east-1", "s3" };
        memset(buffer + capacity, '#', sizeof(buffer) - capacity);
        stk_sigv4_sign(&headers, &request, &credentials, 0);
        cr_assert_eq(buffer[capacity], '#');
        cr_assert_eq(headers.full, strstr(buffer, "b7852b855\n") == NULL);
    }
    struct stk_text headers = stk_text(buffer, sizeof(buffer));
    const struct stk_signed far = { "GET", "host", "/", "", region, "s3" };
    stk_sigv4_sign(&headers, &far, &credentials, 0);
    cr_assert(headers.full);
}
