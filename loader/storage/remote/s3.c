/* s3.c - see s3.h. */
#include "loader/storage/remote/s3.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/storage/remote/listing_xml.h"
#include "loader/storage/remote/sigv4.h"
#include "loader/storage/remote/url.h"

enum { EARLY_S = 60 }; /* new credentials before the old ones expire */

#define RENEWAL_NS 5000000000U /* one renewal serves all requests that were refused meanwhile */

/* ---- settings ------------------------------------------------------------------- */

static bool copy(char *to, size_t bytes, const char *from)
{
    const int length = snprintf(to, bytes, "%s", from == NULL ? "" : from);
    return length >= 0 && (size_t)length < bytes && stk_is_header_text(to);
}

int stk_s3_init(struct stk_s3 *s3, const stoker_remote_options *options, stoker_error *error)
{
    *s3 = (struct stk_s3){ .callback = options->credentials,
                           .callback_self = options->credentials_self };
    (void)pthread_mutex_init(&s3->lock, NULL);
    return copy(s3->endpoint, sizeof(s3->endpoint), options->endpoint) &&
                   copy(s3->region, sizeof(s3->region), options->region) &&
                   copy(s3->profile_name, sizeof(s3->profile_name), options->profile)
               ? STOKER_OK
               : stk_refuse_option(error, STOKER_EINVAL,
                                   "remote storage: endpoint, region or profile is too long");
}

void stk_s3_destroy(struct stk_s3 *s3)
{
    pthread_mutex_destroy(&s3->lock);
    explicit_bzero(s3, sizeof(*s3));
}

/* ---- credentials ---------------------------------------------------------------- */

static int call_back(struct stk_s3 *s3, stoker_remote_credentials *out, stoker_error *error)
{
    stoker_error said;
    stk_error_clear(&said);
    *out = (stoker_remote_credentials){ .access_key = "" };
    const int rc = s3->callback(s3->callback_self, out, &said);
    if (rc != STOKER_OK)
        return stk_refuse_option(error, stk_callback_code(rc, "credentials()", &said),
                                 "credentials(): %s",
                                 said.message[0] != '\0' ? said.message : "no reason given");
    const bool ends = memchr(out->access_key, '\0', sizeof(out->access_key)) != NULL &&
                      memchr(out->secret_key, '\0', sizeof(out->secret_key)) != NULL &&
                      memchr(out->session_token, '\0', sizeof(out->session_token)) != NULL;
    return ends && stk_is_header_text(out->access_key) && stk_is_header_text(out->session_token)
               ? STOKER_OK
               : stk_refuse_option(error, STOKER_EINVAL,
                                   "credentials(): a text without an end, or with control "
                                   "characters");
}

static bool is_due(const struct stk_s3 *s3, bool renew)
{
    const uint64_t expires_s = s3->profile.credentials.expires_unix_s;
    const bool just_renewed = s3->renewed_ns != 0 && stk_now_ns() - s3->renewed_ns < RENEWAL_NS;
    return !s3->known || (renew && !just_renewed) ||
           (expires_s != 0 && (uint64_t)time(NULL) + EARLY_S >= expires_s);
}

/* Call with the lock held. The old ones stay if there are no new ones. */
static int refresh(struct stk_s3 *s3, bool renew, stoker_error *error)
{
    if (!is_due(s3, renew))
        return STOKER_OK;
    struct stk_profile *fresh = stk_calloc(1, sizeof(*fresh));
    if (fresh == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "credentials");
    int rc = stk_profile_read(fresh, s3->profile_name[0] == '\0' ? NULL : s3->profile_name, error);
    if (rc == STOKER_OK && s3->callback != NULL)
        rc = call_back(s3, &fresh->credentials, error);
    if (rc == STOKER_OK) {
        if (s3->known) /* as found by an answer, maybe */
            memcpy(fresh->region, s3->profile.region, sizeof(fresh->region));
        s3->profile = *fresh;
        s3->known = true;
        if (renew)
            s3->renewed_ns = stk_now_ns();
    }
    stk_wipe_free(fresh, sizeof(*fresh));
    return rc;
}

/* ---- requests ------------------------------------------------------------------- */

int stk_s3_split(struct stk_s3_place *out, const char *name, stoker_error *error)
{
    struct stk_url url;
    if (!stk_url_split(&url, name) || !stk_piece_is(url.scheme, "s3") ||
        memchr(url.host.at, ':', url.host.bytes) != NULL || url.host.bytes > 255)
        return stk_refuse_option(error, STOKER_ESPEC,
                                 "expected s3://BUCKET/KEY without control characters");
    *out = (struct stk_s3_place){ url.host, url.path };
    return STOKER_OK;
}

/* Bucket names that fit into a host name for which AWS has a certificate. */
static bool is_host_label(struct stk_piece bucket)
{
    for (size_t i = 0; i < bucket.bytes; i++)
        if (strchr("abcdefghijklmnopqrstuvwxyz0123456789-", bucket.at[i]) == NULL)
            return false;
    return bucket.bytes <= 63;
}

static bool is_region(const char *text)
{
    return text[0] != '\0' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
               strlen(text);
}

/* Write scheme and host, then the path up to the key. path_at: where the path begins. */
static int put_host(struct stk_text *url, const char *endpoint, const char *region,
                    struct stk_piece bucket, struct stk_url *out, stoker_error *error)
{
    const bool labelled = endpoint[0] == '\0' && is_host_label(bucket);
    if (endpoint[0] == '\0') {
        stk_text_add(url, "https://");
        stk_text_add_bytes(url, bucket.at, labelled ? bucket.bytes : 0);
        stk_text_add(url, labelled ? ".s3." : "s3.");
        stk_text_add(url, region);
        stk_text_add(url, strncmp(region, "cn-", 3) == 0 ? ".amazonaws.com.cn" : ".amazonaws.com");
    } else {
        const size_t bytes = strlen(endpoint);
        stk_text_add_bytes(url, endpoint, bytes - (endpoint[bytes - 1] == '/' ? 1 : 0));
    }
    if (!stk_url_split(out, url->at) || strpbrk(url->at, "?#") != NULL ||
        !(stk_piece_is(out->scheme, "https") || stk_piece_is(out->scheme, "http")))
        return stk_refuse_option(error, STOKER_EINVAL,
                                 "S3's endpoint (AWS_ENDPOINT_URL) is not http[s]://HOST[:PORT]");
    stk_text_add(url, "/");
    if (!labelled) {
        stk_text_encode(url, bucket.at, bucket.bytes, false);
        stk_text_add(url, "/");
    }
    return STOKER_OK;
}

/* As libcurl writes the Host header: without the scheme's own port. */
static bool host_header(char *out, size_t bytes, const struct stk_url *url)
{
    const char *port = stk_piece_is(url->scheme, "https") ? ":443" : ":80";
    const size_t port_bytes = strlen(port);
    struct stk_piece host = url->host;
    if (host.bytes > port_bytes && memcmp(host.at + host.bytes - port_bytes, port, port_bytes) == 0)
        host.bytes -= port_bytes;
    return (size_t)snprintf(out, bytes, "%.*s", (int)host.bytes, host.at) < bytes;
}

/* Make a request of the key or, if there is a query, of the bucket. Call with the lock held. */
static int make_request(const struct stk_s3 *s3, const struct stk_s3_place *place,
                        const char *query, enum stk_remote_method method,
                        struct stk_remote_address *out, stoker_error *error)
{
    const struct stk_profile *profile = &s3->profile;
    const char *endpoint = s3->endpoint[0] != '\0' ? s3->endpoint : profile->endpoint_url;
    const char *region = s3->region[0] != '\0'        ? s3->region
                         : profile->region[0] != '\0' ? profile->region
                                                      : "us-east-1";
    struct stk_text url = stk_text(out->url, sizeof(out->url));
    struct stk_text headers = stk_text(out->headers, sizeof(out->headers));
    struct stk_url split;
    char host[300];
    out->user[0] = '\0';
    out->renewable = true; /* there may be other keys, or another region */
    if (!is_region(region))
        return stk_refuse_option(error, STOKER_EINVAL, "S3's region has a character that none has");
    const int rc = put_host(&url, endpoint, region, place->bucket, &split, error);
    if (rc != STOKER_OK)
        return rc;
    if (query[0] == '\0')
        stk_text_encode(&url, place->key, strlen(place->key), true);
    const struct stk_signed request = { .method = method == STK_REMOTE_HEAD ? "HEAD" : "GET",
                                        .host = host,
                                        .path = split.host.at + split.host.bytes,
                                        .query = query,
                                        .region = region,
                                        .service = "s3" };
    url.full |= !host_header(host, sizeof(host), &split);
    if (!url.full && profile->credentials.access_key[0] != '\0')
        stk_sigv4_sign(&headers, &request, &profile->credentials, time(NULL));
    if (query[0] != '\0') {
        stk_text_add(&url, "?");
        stk_text_add(&url, query);
    }
    return url.full || headers.full ? stk_refuse_option(error, STOKER_ELIMIT,
                                                        "the name or the session token is too long")
                                    : STOKER_OK;
}

int stk_s3_request(struct stk_s3 *s3, const struct stk_s3_place *place, const char *query,
                   enum stk_remote_method method, bool renew, struct stk_remote_address *out,
                   stoker_error *error)
{
    pthread_mutex_lock(&s3->lock);
    int rc = refresh(s3, renew, error);
    if (rc == STOKER_OK)
        rc = make_request(s3, place, query, method, out, error);
    pthread_mutex_unlock(&s3->lock);
    return rc;
}

int stk_s3_address_of(struct stk_s3 *s3, const char *name, enum stk_remote_method method,
                      bool renew, struct stk_remote_address *out, stoker_error *error)
{
    struct stk_s3_place place = { .key = "" };
    const int rc = stk_s3_split(&place, name, error);
    return rc == STOKER_OK ? stk_s3_request(s3, &place, "", method, renew, out, error) : rc;
}

bool stk_s3_learn(struct stk_s3 *s3, const char *region, const char *text, size_t size)
{
    char copy[STK_S3_ERROR_BYTES];
    struct stk_s3_error error;
    const size_t bytes = size < sizeof(copy) ? size : sizeof(copy);
    memcpy(copy, text, bytes);
    stk_s3_error_parse(&error, copy, bytes);
    const char *named = region[0] != '\0' ? region : error.region;
    const bool elsewhere = is_region(named) && s3->region[0] == '\0';
    pthread_mutex_lock(&s3->lock);
    if (elsewhere)
        (void)snprintf(s3->profile.region, sizeof(s3->profile.region), "%s", named);
    pthread_mutex_unlock(&s3->lock);
    return elsewhere || strcmp(error.code, "ExpiredToken") == 0;
}
