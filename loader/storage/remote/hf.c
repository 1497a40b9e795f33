/* hf.c - see hf.h. */
#include "loader/storage/remote/hf.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "loader/base/clock.h"
#include "loader/base/environment.h"
#include "loader/base/error.h"
#include "loader/base/io/number_file.h"
#include "loader/base/memory/memory.h"
#include "loader/storage/remote/etag.h"
#include "loader/storage/remote/url.h"

#define PLACE_NS 600000000000U /* URLs of files hold for an hour */

/* ---- token ---------------------------------------------------------------------- */

static void read_token_file(char out[STK_HF_TOKEN_BYTES], const char *folder, const char *name)
{
    char path[PATH_MAX];
    const int bytes = snprintf(path, sizeof(path), "%s%s", folder, name);
    if (bytes < (int)sizeof(path) && stk_text_file_read(path, out, STK_HF_TOKEN_BYTES) > 0)
        out[strcspn(out, " \t\r\n")] = '\0';
}

/* From the environment, or from the file that `hf auth login` writes. */
static void find_token(char out[STK_HF_TOKEN_BYTES])
{
    static const char *const places[][2] = { { "HF_TOKEN_PATH", "" },
                                             { "HF_HOME", "/token" },
                                             { "XDG_CACHE_HOME", "/huggingface/token" },
                                             { "HOME", "/.cache/huggingface/token" } };
    const char *token = stk_environment("HF_TOKEN");
    out[0] = '\0';
    if (token != NULL) {
        (void)snprintf(out, STK_HF_TOKEN_BYTES, "%s", token);
        return;
    }
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const char *folder = stk_environment(places[i][0]);
        if (folder == NULL)
            continue;
        read_token_file(out, folder, places[i][1]);
        return;
    }
}

/* ---- where files are ------------------------------------------------------------ */

static void forget(struct stk_hf_place *place)
{
    stk_free(place->name);
    stk_free(place->url);
    *place = (struct stk_hf_place){ .name = NULL };
}

static struct stk_hf_place *place_of(struct stk_hf *hf, const char *name)
{
    return &hf->places[stk_etag_version(name, strlen(name)) % STK_HF_PLACES];
}

static char *copy_of(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = stk_calloc(1, bytes);
    return copy == NULL ? NULL : memcpy(copy, text, bytes);
}

void stk_hf_redirected(struct stk_hf *hf, const char *name, const char *url, uint64_t etag,
                       uint64_t size)
{
    if (strncasecmp(name, "hf://", 5) != 0)
        return;
    pthread_mutex_lock(&hf->lock);
    struct stk_hf_place *place = place_of(hf, name);
    forget(place);
    *place = (struct stk_hf_place){ copy_of(name), copy_of(url), etag, size, stk_now_ns() };
    if (place->name == NULL || place->url == NULL)
        forget(place);
    pthread_mutex_unlock(&hf->lock);
}

/* Fill *out if it is known where the file is. forgets: it is not there any more. */
static bool recall(struct stk_hf *hf, const char *name, bool forgets,
                   struct stk_remote_address *out)
{
    pthread_mutex_lock(&hf->lock);
    struct stk_hf_place *place = place_of(hf, name);
    bool known = place->name != NULL && strcmp(place->name, name) == 0;
    if (known && (forgets || stk_now_ns() - place->since_ns > PLACE_NS)) {
        forget(place);
        known = false;
    }
    known = known && strlen(place->url) < sizeof(out->url);
    if (known) {
        memcpy(out->url, place->url, strlen(place->url) + 1);
        out->linked_etag = place->etag;
        out->linked_size = place->size;
        out->renewable = true;
    }
    pthread_mutex_unlock(&hf->lock);
    return known;
}

/* ---- life ----------------------------------------------------------------------- */

int stk_hf_init(struct stk_hf *hf, const stoker_remote_options *options, stoker_error *error)
{
    *hf = (struct stk_hf){ .own_token = options->token != NULL, .known = options->token != NULL };
    (void)pthread_mutex_init(&hf->lock, NULL);
    if (options->token == NULL)
        return STOKER_OK;
    if (strlen(options->token) >= sizeof(hf->token) || !stk_is_header_text(options->token))
        return stk_refuse_option(error, STOKER_EINVAL,
                                 "remote storage: the token is too long or has control characters");
    (void)snprintf(hf->token, sizeof(hf->token), "%s", options->token);
    return STOKER_OK;
}

void stk_hf_destroy(struct stk_hf *hf)
{
    for (int i = 0; i < STK_HF_PLACES; i++)
        forget(&hf->places[i]);
    pthread_mutex_destroy(&hf->lock);
    explicit_bzero(hf, sizeof(*hf));
}

static int add_token(struct stk_hf *hf, bool renew, struct stk_text *headers, stoker_error *error)
{
    int rc = STOKER_OK;
    pthread_mutex_lock(&hf->lock);
    if (!hf->known || (renew && !hf->own_token))
        find_token(hf->token);
    hf->known = true;
    if (!stk_is_header_text(hf->token)) {
        rc = stk_refuse_option(error, STOKER_EINVAL, "HF_TOKEN has control characters");
    } else if (hf->token[0] != '\0') {
        stk_text_add(headers, "Authorization: Bearer ");
        stk_text_add(headers, hf->token);
        stk_text_add(headers, "\n");
    }
    pthread_mutex_unlock(&hf->lock);
    return rc;
}

/* ---- names ---------------------------------------------------------------------- */

static bool is_repository(struct stk_piece text)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    const char *slash = memchr(text.at, '/', text.bytes);
    const char *end = text.at + text.bytes;
    return slash != NULL && slash != text.at && slash + 1 != end &&
           strspn(text.at, allowed) == (size_t)(slash - text.at) &&
           slash + 1 + strspn(slash + 1, allowed) >= end && text.at[0] != '.' && slash[1] != '.';
}

/* Copy a revision that begins at text: up to a '/', but refs/pr/N and refs/convert/NAME have two.
 * Returns what follows it, or NULL. */
static const char *take_revision(char out[STK_HF_REVISION_BYTES], const char *text)
{
    const size_t begin = strncmp(text, "refs/pr/", 8) == 0         ? 8
                         : strncmp(text, "refs/convert/", 13) == 0 ? 13
                                                                   : 0;
    const size_t bytes = begin + strcspn(text + begin, "/");
    if (bytes == begin || bytes >= STK_HF_REVISION_BYTES)
        return NULL;
    memcpy(out, text, bytes);
    out[bytes] = '\0';
    return stk_url_decode(out, false) ? text + bytes : NULL;
}

int stk_hf_split(struct stk_hf_path *out, const char *name, stoker_error *error)
{
    const char *at = name + strlen("hf://");
    const char *end = NULL;
    bool valid = stk_is_header_text(name);
    out->kind = strncmp(at, "datasets/", 9) == 0 ? "datasets"
                : strncmp(at, "spaces/", 7) == 0 ? "spaces"
                                                 : "models";
    if (strcmp(out->kind, "models") != 0)
        at += strlen(out->kind) + 1;
    const char *slash = strchr(at, '/');
    if (slash != NULL)
        end = slash + 1 + strcspn(slash + 1, "/@");
    memcpy(out->revision, "main", sizeof("main"));
    valid = valid && end != NULL && is_repository((struct stk_piece){ at, (size_t)(end - at) });
    if (valid) {
        out->repository = (struct stk_piece){ at, (size_t)(end - at) };
        out->path = *end == '@' ? take_revision(out->revision, end + 1) : end;
    }
    if (!valid || out->path == NULL)
        return stk_refuse_option(error, STOKER_ESPEC,
                                 "expected hf://[datasets/|spaces/]OWNER/NAME[@REVISION]/PATH");
    out->path += *out->path == '/' ? 1 : 0;
    return STOKER_OK;
}

/* ---- requests ------------------------------------------------------------------- */

static int put_endpoint(struct stk_text *url, stoker_error *error)
{
    struct stk_url split;
    const char *named = stk_environment("HF_ENDPOINT");
    const char *endpoint = named == NULL ? "https://huggingface.co" : named;
    const size_t bytes = strlen(endpoint);
    if (!stk_url_split(&split, endpoint) || strpbrk(endpoint, "?#") != NULL ||
        !(stk_piece_is(split.scheme, "https") || stk_piece_is(split.scheme, "http")))
        return stk_refuse_option(error, STOKER_EINVAL, "HF_ENDPOINT is not http[s]://HOST[:PORT]");
    stk_text_add_bytes(url, endpoint, bytes - (endpoint[bytes - 1] == '/' ? 1 : 0));
    return STOKER_OK;
}

int stk_hf_request(struct stk_hf *hf, const struct stk_hf_path *place, const char *what,
                   size_t path_bytes, bool renew, struct stk_remote_address *out,
                   stoker_error *error)
{
    const bool tree = strcmp(what, "tree") == 0;
    struct stk_text url = stk_text(out->url, sizeof(out->url));
    struct stk_text headers = stk_text(out->headers, sizeof(out->headers));
    out->user[0] = '\0';
    int rc = put_endpoint(&url, error);
    if (rc == STOKER_OK)
        rc = add_token(hf, renew, &headers, error);
    if (rc != STOKER_OK)
        return rc;
    out->renewable = !hf->own_token;
    stk_text_add(&url, tree ? "/api/" : "/");
    if (tree || strcmp(place->kind, "models") != 0) {
        stk_text_add(&url, place->kind);
        stk_text_add(&url, "/");
    }
    stk_text_add_bytes(&url, place->repository.at, place->repository.bytes);
    stk_text_add(&url, tree ? "/tree/" : "/resolve/");
    stk_text_encode(&url, place->revision, strlen(place->revision), false);
    if (path_bytes > 0) {
        stk_text_add(&url, "/");
        stk_text_encode(&url, place->path, path_bytes, true);
    }
    if (tree)
        stk_text_add(&url, "?limit=1000");
    return url.full || headers.full
               ? stk_refuse_option(error, STOKER_ELIMIT, "the name is too long")
               : STOKER_OK;
}

int stk_hf_address_of(struct stk_hf *hf, const char *name, enum stk_remote_method method,
                      bool renew, struct stk_remote_address *out, stoker_error *error)
{
    struct stk_hf_path place = { .path = "" };
    if (method == STK_REMOTE_GET && recall(hf, name, renew, out))
        return STOKER_OK;
    const int rc = stk_hf_split(&place, name, error);
    return rc == STOKER_OK
               ? stk_hf_request(hf, &place, "resolve", strlen(place.path), renew, out, error)
               : rc;
}
