/* hf_list.c - see hf_list.h. */
#include "loader/storage/remote/hf_list.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/text/json.h"
#include "loader/storage/remote/credentials.h"
#include "loader/storage/remote/etag.h"
#include "loader/storage/remote/url.h"

enum { PAGE_BYTES_MAX = 4 << 20, PAGES_MAX = 100000 };

/* What is wanted of an entry. */
struct entry {
    const char *type, *path, *oid, *lfs_oid;
    uint64_t size, lfs_size;
    bool has_size;
};

static bool take_lfs(struct stk_json *json, struct entry *entry)
{
    const char *key = NULL;
    if (!stk_json_take(json, '{')) /* null: not in LFS */
        return stk_json_skip(json);
    if (stk_json_take(json, '}'))
        return true;
    do {
        if (!stk_json_string(json, &key) || !stk_json_expect(json, ':'))
            return false;
        const bool taken =
            strcmp(key, "oid") == 0 ? stk_json_string(json, &entry->lfs_oid) : stk_json_skip(json);
        if (!taken)
            return false;
    } while (stk_json_take(json, ','));
    return stk_json_expect(json, '}');
}

static bool take_entry(struct stk_json *json, struct entry *entry)
{
    const char *key = NULL;
    *entry = (struct entry){ .type = "" };
    if (!stk_json_expect(json, '{'))
        return false;
    if (stk_json_take(json, '}'))
        return true;
    do {
        if (!stk_json_string(json, &key) || !stk_json_expect(json, ':'))
            return false;
        bool taken = true;
        if (strcmp(key, "type") == 0)
            taken = stk_json_string(json, &entry->type);
        else if (strcmp(key, "path") == 0)
            taken = stk_json_string(json, &entry->path);
        else if (strcmp(key, "oid") == 0)
            taken = stk_json_string(json, &entry->oid);
        else if (strcmp(key, "size") == 0)
            taken = entry->has_size = stk_json_number(json, &entry->size);
        else
            taken = strcmp(key, "lfs") == 0 ? take_lfs(json, entry) : stk_json_skip(json);
        if (!taken)
            return false;
    } while (stk_json_take(json, ','));
    return stk_json_expect(json, '}');
}

static int pass_on(const struct entry *entry, const char *prefix, stoker_object_found *found,
                   void *context)
{
    const bool folder = strcmp(entry->type, "directory") == 0;
    const char *oid = entry->lfs_oid != NULL ? entry->lfs_oid : entry->oid;
    const char *slash = strrchr(prefix, '/');
    const size_t folder_bytes = slash == NULL ? 0 : (size_t)(slash - prefix) + 1;
    if (strncmp(entry->path, prefix, strlen(prefix)) != 0)
        return STOKER_OK;
    const stoker_object object = {
        .name = entry->path + folder_bytes,
        .kind = folder ? STOKER_OBJECT_KIND_FOLDER : STOKER_OBJECT_KIND_FILE,
        .size = folder ? 0 : entry->size,
        .version = folder || oid == NULL ? 0 : stk_etag_version(oid, strlen(oid)),
    };
    return found(context, &object);
}

int stk_hf_tree_parse(char *text, size_t size, const char *prefix, stoker_object_found *found,
                      void *context, const char **why, size_t *at)
{
    struct stk_json json = { .text = text, .size = size };
    struct entry entry;
    int rc = STOKER_OK;
    bool more = stk_json_expect(&json, '[') && !stk_json_take(&json, ']');
    while (more && rc == STOKER_OK && take_entry(&json, &entry)) {
        const bool file = strcmp(entry.type, "file") == 0;
        if (entry.path == NULL || (file && !entry.has_size))
            (void)stk_json_refuse(&json, json.at, "an entry without a path or a size");
        else if (file || strcmp(entry.type, "directory") == 0)
            rc = pass_on(&entry, prefix, found, context);
        more = stk_json_take(&json, ',');
        if (!more && rc == STOKER_OK)
            (void)stk_json_expect(&json, ']');
    }
    if (rc == STOKER_OK)
        (void)stk_json_end(&json);
    *why = rc == STOKER_OK ? json.why : NULL;
    *at = json.at;
    return *why == NULL ? rc : STOKER_EFORMAT;
}

bool stk_hf_next_page(char *out, size_t bytes, const char *link, const char *begin)
{
    out[0] = '\0';
    for (const char *at = strchr(link, '<'); at != NULL; at = strchr(at + 1, '<')) {
        const char *end = strchr(at, '>');
        if (end == NULL)
            return false;
        const size_t parameters = strcspn(end, ",");
        const char *rel = strstr(end, "rel=\"next\"");
        const size_t length = (size_t)(end - at) - 1;
        if (rel == NULL || rel > end + parameters || length >= bytes)
            continue;
        memcpy(out, at + 1, length);
        out[length] = '\0';
        if (strncmp(out, begin, strlen(begin)) == 0 && stk_is_header_text(out))
            return true;
        out[0] = '\0'; /* another host: the token is not for it */
    }
    return false;
}

static int get_page(struct stk_remote *remote, const struct stk_remote_address *address,
                    const struct stk_hf_path *place, struct stk_remote_text *text,
                    stoker_object_found *found, void *context, stoker_error *error)
{
    const char *why = NULL;
    size_t at = 0;
    stoker_error said;
    stk_error_clear(&said);
    text->count = 0;
    int rc = stk_remote_get(remote, address, "the list", text, &said);
    if (rc != STOKER_OK)
        return stk_refuse_option(error, rc, "%s%s", said.message,
                                 rc == STOKER_EACCES ? ": it is private or gated, or there is no "
                                                       "such repository: set HF_TOKEN"
                                                     : "");
    rc = stk_hf_tree_parse(text->bytes, text->count, place->path, found, context, &why, &at);
    return why == NULL ? rc
                       : stk_refuse_option(error, STOKER_EFORMAT,
                                           "the list of the server: byte %zu: %s", at, why);
}

static int list_pages(struct stk_hf *hf, struct stk_remote *remote, const struct stk_hf_path *place,
                      struct stk_remote_address *address, struct stk_remote_text *text,
                      stoker_object_found *found, void *context, stoker_error *error)
{
    char begin[512];
    const char *slash = strrchr(place->path, '/');
    const size_t folder_bytes = slash == NULL ? 0 : (size_t)(slash - place->path);
    int rc = stk_hf_request(hf, place, "tree", folder_bytes, false, address, error);
    if (rc != STOKER_OK)
        return rc;
    const char *api = strstr(address->url, "/api/");
    assert(api != NULL);
    (void)snprintf(begin, sizeof(begin), "%.*s", (int)(api + 5 - address->url), address->url);
    for (int page = 0; page < PAGES_MAX; page++) {
        rc = get_page(remote, address, place, text, found, context, error);
        if (rc != STOKER_OK ||
            !stk_hf_next_page(address->url, sizeof(address->url), text->header, begin))
            return rc;
    }
    return stk_refuse_option(error, STOKER_ELIMIT, "the list of the server has no end");
}

int stk_hf_list(struct stk_hf *hf, struct stk_remote *remote, const char *prefix,
                stoker_object_found *found, void *context, stoker_error *error)
{
    struct stk_hf_path place;
    struct stk_remote_address *address = stk_calloc(1, sizeof(*address));
    struct stk_remote_text *text = stk_calloc(1, sizeof(*text) + PAGE_BYTES_MAX);
    int rc = STOKER_ENOMEM;
    if (address == NULL || text == NULL) {
        (void)stk_refuse_option(error, rc, "a page of a list (4.0 MB)");
    } else if ((rc = stk_hf_split(&place, prefix, error)) == STOKER_OK) {
        text->bytes = (char *)(text + 1);
        text->capacity = PAGE_BYTES_MAX;
        text->header_name = "link";
        rc = list_pages(hf, remote, &place, address, text, found, context, error);
    }
    stk_wipe_free(address, address == NULL ? 0 : sizeof(*address));
    stk_free(text);
    return rc;
}
