/* remote_objects.c - lists a prefix of a remote storage, looks at each object in it and reads it,
 * by the storage's own callbacks.
 *
 * usage: remote_objects PREFIX [TOKENS]
 *
 * TOKENS: credentials come from a callback, whose n-th call gives the session token "token-n".
 * Prints "NAME KIND SIZE" of each entry, sorted, and the number of calls. Fails unless look() says
 * the same as list(), and every read gives all bytes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <string.h>

#include "loader/storage/storage.h"

enum { ENTRIES_MAX = 20000 };

static stoker_object entries[ENTRIES_MAX];
static size_t count;
static int calls;

static void stop(const char *what, const char *why)
{
    (void)fprintf(stderr, "remote_objects: %s: %s\n", what, why);
    exit(1);
}

static int give(void *self, stoker_remote_credentials *out, stoker_error *error)
{
    (void)self;
    (void)error;
    (void)snprintf(out->access_key, sizeof(out->access_key), "KEY");
    (void)snprintf(out->secret_key, sizeof(out->secret_key), "SECRET");
    (void)snprintf(out->session_token, sizeof(out->session_token), "token-%d", ++calls);
    return STOKER_OK;
}

static int take(void *context, const stoker_object *object)
{
    (void)context;
    if (count == ENTRIES_MAX)
        stop(object->name, "too many entries");
    entries[count] = *object;
    entries[count++].name = strdup(object->name);
    return STOKER_OK;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const stoker_object *)left)->name, ((const stoker_object *)right)->name);
}

static void read_object(const stoker_storage *storage, const char *name,
                        const stoker_object *object)
{
    struct stk_place place = STK_NOWHERE;
    stoker_error error = { .message = "" };
    uint8_t *bytes = malloc(object->size + 1);
    place.path = name;
    place.offset = 0;
    if (stk_storage_read(storage, name, object->version, bytes, object->size, &place, &error) !=
        STOKER_OK)
        stop(name, error.message);
    free(bytes);
}

static void look_again(const stoker_storage *storage, const char *folder,
                       const stoker_object *listed)
{
    char name[4096];
    stoker_object seen;
    stoker_error error = { .message = "" };
    (void)snprintf(name, sizeof(name), "%s%s", folder, listed->name);
    if (stk_storage_look(storage, name, &seen, &error) != STOKER_OK)
        stop(name, error.message);
    if (seen.size != listed->size || seen.version != listed->version || seen.version == 0)
        stop(name, "look() and list() do not agree");
    read_object(storage, name, listed);
}

int main(int words, char **word)
{
    char folder[4096];
    stoker_remote_options options = STOKER_REMOTE_OPTIONS_INIT;
    stoker_storage *storage = NULL;
    stoker_error error = { .message = "" };
    if (words < 2)
        stop("usage", "remote_objects PREFIX [TOKENS]");
    if (words > 2)
        options.credentials = give;
    if (stoker_storage_remote_create(&storage, &options, &error) != STOKER_OK)
        stop("create", error.message);
    const int rc = storage->ops.list(storage->self, word[1], take, NULL, &error);
    if (rc != STOKER_OK)
        stop(stoker_error_name(rc), error.message);
    (void)snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(word[1], '/') + 1 - word[1]),
                   word[1]);
    qsort(entries, count, sizeof(entries[0]), by_name);
    for (size_t i = 0; i < count; i++) {
        (void)printf("%s %d %" PRIu64 "\n", entries[i].name, (int)entries[i].kind, entries[i].size);
        if (entries[i].kind == STOKER_OBJECT_KIND_FILE && count < 100)
            look_again(storage, folder, &entries[i]);
        free((char *)(uintptr_t)entries[i].name);
    }
    (void)printf("%d calls\n", calls);
    stoker_storage_close(&storage);
    return 0;
}
