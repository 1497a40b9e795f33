/* s3_list.c - see s3_list.h. */
#include "loader/storage/remote/s3_list.h"

#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/storage/remote/credentials.h"
#include "loader/storage/remote/etag.h"
#include "loader/storage/remote/listing_xml.h"
#include "loader/storage/remote/url.h"

enum {
    PAGE_BYTES_MAX = 8 << 20, /* 1000 keys of 1024 bytes, each encoded as three, and more */
    PAGES_MAX = 100000,       /* 100 million objects */
    NAME_BYTES = 4096
};

/* A list in progress. */
struct listing {
    struct stk_s3 *s3;
    struct stk_remote *remote;
    struct stk_s3_place place; /* its key is the prefix */
    size_t folder_bytes;       /* of the prefix, up to the last '/' */
    stoker_object_found *found;
    void *context;
    bool stray; /* a key that does not begin with the prefix was listed */
    struct stk_list_page page;
    struct stk_remote_address address;
    struct stk_remote_text text;
};

static int take_key(void *context, const struct stk_listed_key *key)
{
    struct listing *listing = context;
    char name[NAME_BYTES];
    listing->stray = strncmp(key->key, listing->place.key, strlen(listing->place.key)) != 0;
    if (listing->stray)
        return STOKER_EFORMAT;
    const char *rest = key->key + listing->folder_bytes;
    size_t bytes = strlen(rest);
    if (key->is_prefix && bytes > 0 && rest[bytes - 1] == '/')
        bytes--;
    /* The folder's own marker ("a/"), empty names ("a//b") and dots have no name in a folder. */
    if (bytes == 0 || bytes >= sizeof(name) || strcmp(rest, ".") == 0 || strcmp(rest, "..") == 0 ||
        (key->is_prefix && (strcmp(rest, "./") == 0 || strcmp(rest, "../") == 0)))
        return STOKER_OK;
    memcpy(name, rest, bytes);
    name[bytes] = '\0';
    const stoker_object object = {
        .name = name,
        .kind = key->is_prefix ? STOKER_OBJECT_KIND_FOLDER : STOKER_OBJECT_KIND_FILE,
        .size = key->is_prefix ? 0 : key->size,
        .version = key->etag == NULL ? 0 : stk_etag_version(key->etag, strlen(key->etag)),
    };
    return listing->found(listing->context, &object);
}

/* Names in order, as signatures want them. */
static bool put_query(char *out, size_t bytes, const char *prefix, const char *continuation)
{
    struct stk_text query = stk_text(out, bytes);
    if (continuation[0] != '\0') {
        stk_text_add(&query, "continuation-token=");
        stk_text_encode(&query, continuation, strlen(continuation), false);
        stk_text_add(&query, "&");
    }
    stk_text_add(&query, "delimiter=%2F&encoding-type=url&list-type=2&max-keys=1000&prefix=");
    stk_text_encode(&query, prefix, strlen(prefix), false);
    return !query.full;
}

/* Ask for a page; once more if it may be had with other keys or from another region. */
static int get_page(struct listing *listing, const char *query, stoker_error *error)
{
    struct stk_remote_text *text = &listing->text;
    int rc = STOKER_OK;
    bool again = false;
    for (int attempt = 0; attempt == 0 || (attempt == 1 && again); attempt++) {
        rc = stk_s3_request(listing->s3, &listing->place, query, STK_REMOTE_GET, again,
                            &listing->address, error);
        if (rc != STOKER_OK)
            return rc;
        listing->address.renewable = false; /* done here */
        rc = stk_remote_get(listing->remote, &listing->address, "the list", text, error);
        again = rc != STOKER_OK && (rc == STOKER_EACCES || stk_s3_learn(listing->s3, text->header,
                                                                        text->bytes, text->count));
    }
    return rc;
}

static int take_page(struct listing *listing, stoker_error *error)
{
    const char *why = NULL;
    size_t at = 0;
    const int rc = stk_list_parse(listing->text.bytes, listing->text.count, take_key, listing,
                                  &listing->page, &why, &at);
    if (listing->stray)
        why = "a key that does not begin as asked for";
    return why == NULL ? rc
                       : stk_refuse_option(error, STOKER_EFORMAT,
                                           "the list of the server: byte %zu: %s", at, why);
}

static int list_pages(struct listing *listing, stoker_error *error)
{
    char query[STK_REMOTE_URL_BYTES], before[STK_CONTINUATION_BYTES] = "";
    int rc = STOKER_OK;
    for (int page = 0; page < PAGES_MAX; page++) {
        if (!put_query(query, sizeof(query), listing->place.key, before))
            return stk_refuse_option(error, STOKER_ELIMIT, "the prefix is too long");
        rc = get_page(listing, query, error);
        if (rc == STOKER_OK)
            rc = take_page(listing, error);
        if (rc != STOKER_OK || !listing->page.truncated)
            return rc;
        if (strcmp(before, listing->page.continuation) == 0)
            break;
        memcpy(before, listing->page.continuation, sizeof(before));
    }
    return stk_refuse_option(error, STOKER_ELIMIT, "the list of the server has no end");
}

int stk_s3_list(struct stk_s3 *s3, struct stk_remote *remote, const char *prefix,
                stoker_object_found *found, void *context, stoker_error *error)
{
    struct listing *listing = stk_calloc(1, sizeof(*listing));
    char *bytes = stk_calloc(1, PAGE_BYTES_MAX);
    int rc = STOKER_ENOMEM;
    if (listing == NULL || bytes == NULL) {
        (void)stk_refuse_option(error, rc, "a page of a list (8.0 MB)");
    } else if ((rc = stk_s3_split(&listing->place, prefix, error)) == STOKER_OK) {
        const char *slash = strrchr(listing->place.key, '/');
        listing->s3 = s3;
        listing->remote = remote;
        listing->folder_bytes = slash == NULL ? 0 : (size_t)(slash - listing->place.key) + 1;
        listing->found = found;
        listing->context = context;
        listing->text = (struct stk_remote_text){ .bytes = bytes,
                                                  .capacity = PAGE_BYTES_MAX,
                                                  .header_name = "x-amz-bucket-region" };
        rc = list_pages(listing, error);
    }
    stk_wipe_free(listing, listing == NULL ? 0 : sizeof(*listing));
    stk_free(bytes);
    return rc;
}
