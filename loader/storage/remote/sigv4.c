/* sigv4.c - see sigv4.h.
 *
 *   secret ─▶ date ─▶ region ─▶ service ─▶ "aws4_request" ─▶ key     a chain of HMACs
 *   request ─▶ SHA-256 ─▶ string to sign ─▶ HMAC by the key ─▶ signature
 */
#include "loader/storage/remote/sigv4.h"

#include <stdio.h>
#include <string.h>

#include "loader/base/sha256.h"

#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

enum { DATE_BYTES = 8, SCOPE_BYTES = 128 };

/* The request as both sides hash it; headers in order of their names. */
static void hash_request(const struct stk_signed *request, const char *token, const char *names,
                         const char *when, char out[2 * STK_SHA256_BYTES + 1])
{
    const char *const pieces[] = { request->method,
                                   "\n",
                                   request->path,
                                   "\n",
                                   request->query,
                                   "\nhost:",
                                   request->host,
                                   "\nx-amz-content-sha256:",
                                   EMPTY_SHA256,
                                   "\nx-amz-date:",
                                   when,
                                   token[0] != '\0' ? "\nx-amz-security-token:" : "",
                                   token,
                                   "\n\n",
                                   names,
                                   "\n",
                                   EMPTY_SHA256 };
    struct stk_sha256 sum;
    uint8_t hash[STK_SHA256_BYTES];
    stk_sha256_begin(&sum);
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
        stk_sha256_add(&sum, pieces[i], strlen(pieces[i]));
    stk_sha256_end(&sum, hash);
    stk_sha256_hex(hash, out);
}

static void derive_key(uint8_t key[STK_SHA256_BYTES], const struct stk_signed *request,
                       const char *secret, const char *when)
{
    char first[4 + sizeof(((stoker_remote_credentials *)NULL)->secret_key)];
    const int bytes = snprintf(first, sizeof(first), "AWS4%s", secret);
    stk_hmac_sha256(first, (size_t)bytes, when, DATE_BYTES, key);
    stk_hmac_sha256(key, STK_SHA256_BYTES, request->region, strlen(request->region), key);
    stk_hmac_sha256(key, STK_SHA256_BYTES, request->service, strlen(request->service), key);
    stk_hmac_sha256(key, STK_SHA256_BYTES, "aws4_request", strlen("aws4_request"), key);
    explicit_bzero(first, sizeof(first));
}

static void add_header(struct stk_text *headers, const char *name, const char *value)
{
    stk_text_add(headers, name);
    stk_text_add(headers, value);
    stk_text_add(headers, "\n");
}

void stk_sigv4_sign(struct stk_text *headers, const struct stk_signed *request,
                    const stoker_remote_credentials *credentials, time_t now)
{
    struct tm utc;
    char when[sizeof("20130524T000000Z")] = "", scope[SCOPE_BYTES];
    char hash[2 * STK_SHA256_BYTES + 1], text[sizeof(when) + sizeof(scope) + sizeof(hash) + 32];
    uint8_t key[STK_SHA256_BYTES], signature[STK_SHA256_BYTES];
    const char *token = credentials->session_token;
    const char *names = token[0] != '\0'
                            ? "host;x-amz-content-sha256;x-amz-date;x-amz-security-token"
                            : "host;x-amz-content-sha256;x-amz-date";
    if (gmtime_r(&now, &utc) == NULL || strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &utc) == 0) {
        headers->full = true; /* a year beyond 9999 */
        return;
    }
    const int scope_bytes = snprintf(scope, sizeof(scope), "%.*s/%s/%s/aws4_request", DATE_BYTES,
                                     when, request->region, request->service);
    if (scope_bytes >= (int)sizeof(scope)) {
        headers->full = true;
        return;
    }
    hash_request(request, token, names, when, hash);
    const int bytes =
        snprintf(text, sizeof(text), "AWS4-HMAC-SHA256\n%s\n%s\n%s", when, scope, hash);
    derive_key(key, request, credentials->secret_key, when);
    stk_hmac_sha256(key, sizeof(key), text, (size_t)bytes, signature);
    explicit_bzero(key, sizeof(key));
    stk_sha256_hex(signature, hash);

    stk_text_add(headers, "Authorization: AWS4-HMAC-SHA256 Credential=");
    stk_text_add(headers, credentials->access_key);
    stk_text_add(headers, "/");
    stk_text_add(headers, scope);
    stk_text_add(headers, ",SignedHeaders=");
    stk_text_add(headers, names);
    add_header(headers, ",Signature=", hash);
    add_header(headers, "x-amz-date: ", when);
    add_header(headers, "x-amz-content-sha256: ", EMPTY_SHA256);
    if (token[0] != '\0')
        add_header(headers, "x-amz-security-token: ", token);
}
