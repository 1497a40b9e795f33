/* scan.c - the whole tree, folder by folder, by a few threads.
 *
 *   root ──▶ classes ──▶ ┌ folders to list ┐ ──▶ each thread: list one ──▶ listings
 *                        └────── ▲ ────────┘                │                  │ all there:
 *                                └──── folders in it ◀──────┘                  ▼ sort, copy
 *                                                                             tree
 *
 * Which thread lists what does not matter: listings are sorted by class and path.
 */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "datasets/folder/list.h"
#include "datasets/source.h"
#include "loader/base/clock.h"
#include "loader/base/cpu/thread.h"

struct scan {
    const struct stk_folder_wish *wish;
    pthread_mutex_t lock;                 /* guards all below */
    pthread_cond_t more;                  /* a folder to list, or the end */
    struct stk_folder_listing **listings; /* in the order in which they were found */
    uint64_t count;
    size_t capacity;
    uint64_t next;   /* the first that nobody has taken */
    uint64_t listed; /* those that are done */
    uint64_t bytes;  /* taken by all of them */
    int rc;
    stoker_error error; /* the first failing path's */
};

/* ---- folders to list ------------------------------------------------------------ */

/* Under the lock. Keeps the error of the first path in order, so that every run reports the
 * same. */
static void note_error(struct scan *scan, const stoker_error *error)
{
    if (scan->rc == STOKER_OK || strcmp(error->path, scan->error.path) < 0) {
        scan->rc = error->code;
        scan->error = *error;
    }
    pthread_cond_broadcast(&scan->more);
}

static void note_limit(struct scan *scan, int code, const char *path, const char *what)
{
    stoker_error error;
    (void)stk_refuse_file(&error, code, path, STOKER_NO_OFFSET, "%s", what);
    note_error(scan, &error);
}

static int make_room(struct scan *scan)
{
    struct stk_folder_listing **listings =
        stk_array_grow(scan->listings, sizeof(scan->listings[0]), scan->count, &scan->capacity, 1);
    if (listings == NULL)
        return STOKER_ENOMEM;
    scan->listings = listings;
    return STOKER_OK;
}

/* Under the lock: a further folder, PARENT/name or name. */
static void add_folder(struct scan *scan, const char *parent, const char *name, uint32_t label)
{
    const size_t bytes = (parent == NULL ? 0 : strlen(parent) + 1) + strlen(name) + 1;
    if (bytes > PATH_MAX) {
        note_limit(
            scan, STOKER_ELIMIT, parent,
            "a folder in it has a path of 4096 bytes or more: move it out, or shorten names");
        return;
    }
    struct stk_folder_listing *listing = NULL;
    if (make_room(scan) == STOKER_OK)
        listing = stk_calloc(1, sizeof(*listing));
    if (listing != NULL)
        listing->path = stk_calloc(bytes, 1);
    if (listing == NULL || listing->path == NULL) {
        stk_free(listing);
        note_limit(scan, STOKER_ENOMEM, scan->wish->root->path, "scanning");
        return;
    }
    (void)snprintf(listing->path, bytes, "%s%s%s", parent == NULL ? "" : parent,
                   parent == NULL ? "" : "/", name);
    listing->label = label;
    scan->listings[scan->count++] = listing;
    pthread_cond_signal(&scan->more);
}

/* Under the lock: one that nobody has taken; NULL = the scan is over. */
static struct stk_folder_listing *take_folder(struct scan *scan)
{
    while (scan->rc == STOKER_OK && scan->next == scan->count && scan->listed < scan->count)
        pthread_cond_wait(&scan->more, &scan->lock);
    if (scan->rc != STOKER_OK || scan->next == scan->count)
        return NULL;
    return scan->listings[scan->next++];
}

/* Under the lock. */
static void finish_folder(struct scan *scan, struct stk_folder_listing *listing)
{
    const char *names = (const char *)listing->folders.base;
    for (size_t at = 0; at < listing->folders.used; at += strlen(names + at) + 1)
        add_folder(scan, listing->path, names + at, listing->label);
    stk_folder_release(&listing->folders);
    scan->bytes += sizeof(*listing) + strlen(listing->path) + listing->names.capacity +
                   listing->entries.capacity;
    if (scan->bytes > scan->wish->bytes_max)
        note_limit(scan, STOKER_ELIMIT, scan->wish->root->path,
                   "its names take more than max_bytes");
    scan->listed++;
    if (scan->listed == scan->count)
        pthread_cond_broadcast(&scan->more);
}

static void *list_folders(void *argument)
{
    struct scan *scan = argument;
    pthread_mutex_lock(&scan->lock);
    for (struct stk_folder_listing *listing; (listing = take_folder(scan)) != NULL;) {
        pthread_mutex_unlock(&scan->lock);
        stoker_error error = { .code = 0 };
        int rc = stk_folder_list(listing, scan->wish, &error);
        pthread_mutex_lock(&scan->lock);
        if (rc != STOKER_OK && rc != STOKER_ENOENT) /* one that is gone by now has no files */
            note_error(scan, &error);
        finish_folder(scan, listing);
    }
    pthread_mutex_unlock(&scan->lock);
    return NULL;
}

/* ---- from listings to the tree -------------------------------------------------- */

static int by_class_and_path(const void *a, const void *b)
{
    const struct stk_folder_listing *left = *(struct stk_folder_listing *const *)a;
    const struct stk_folder_listing *right = *(struct stk_folder_listing *const *)b;
    if (left->label != right->label)
        return left->label < right->label ? -1 : 1;
    return strcmp(left->path, right->path);
}

static uint64_t entries_of(const struct stk_folder_listing *listing)
{
    return listing->entries.used / sizeof(struct stk_folder_entry);
}

static void measure(struct stk_folder_tree *tree, const struct scan *scan)
{
    for (uint64_t i = 0; i < scan->count; i++) {
        const struct stk_folder_listing *listing = scan->listings[i];
        const uint64_t path_bytes = strlen(listing->path) + 1; /* its 0, or the slash */
        tree->file_count += entries_of(listing);
        tree->name_bytes += path_bytes + listing->names.used + entries_of(listing) * path_bytes;
        tree->passed_over += listing->passed_over;
    }
    tree->directory_count = scan->count;
}

struct writing {
    struct stk_folder_file *file;
    uint64_t *version; /* NULL = not kept */
    char *names;
    uint64_t at;
};

static uint64_t write_name(struct writing *to, const char *folder, const char *name)
{
    const uint64_t start = to->at;
    const size_t bytes = strlen(folder);
    memcpy(to->names + to->at, folder, bytes);
    to->at += bytes;
    if (name != NULL) {
        to->names[to->at++] = '/';
        memcpy(to->names + to->at, name, strlen(name));
        to->at += strlen(name);
    }
    to->names[to->at++] = '\0';
    return start;
}

static void write_listing(struct writing *to, const struct stk_folder_listing *listing)
{
    const struct stk_folder_entry *entries = (const void *)listing->entries.base;
    const char *names = (const char *)listing->names.base;
    for (uint64_t i = 0; i < entries_of(listing); i++) {
        *to->file++ = (struct stk_folder_file){
            .path = write_name(to, listing->path, names + entries[i].name),
            .bytes = entries[i].bytes,
            .kind_label = listing->label | entries[i].raw,
        };
        if (to->version != NULL)
            *to->version++ = entries[i].version;
    }
}

/* A class's own folder is the first of its listings, and its path is the class's name. Each
 * listing is freed when it has been copied. */
static int build(struct stk_folder_tree *tree, struct scan *scan)
{
    measure(tree, scan);
    qsort(scan->listings, scan->count, sizeof(scan->listings[0]), by_class_and_path);
    int rc = stk_folder_tree_map(tree);
    if (rc == STOKER_OK && scan->wish->root->fd < 0) {
        tree->versions = stk_calloc(tree->file_count + 1, sizeof(tree->versions[0]));
        rc = tree->versions == NULL ? STOKER_ENOMEM : STOKER_OK;
    }
    if (rc != STOKER_OK)
        return rc;
    struct stk_folder_directory *directories = (void *)tree->directories;
    uint64_t *classes = (void *)tree->classes;
    struct writing to = { .file = (void *)tree->files,
                          .version = (void *)tree->versions,
                          .names = (char *)tree->names };
    for (uint64_t i = 0; i < scan->count; i++) {
        struct stk_folder_listing *listing = scan->listings[i];
        directories[i] = listing->stamp;
        directories[i].path = write_name(&to, listing->path, NULL);
        if (strchr(listing->path, '/') == NULL)
            classes[listing->label] = directories[i].path;
        write_listing(&to, listing);
        stk_folder_listing_free(listing);
    }
    return STOKER_OK;
}

/* ---- the root ------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of `folders` sorted, in memory of their own. */
static int sort_names(const struct stk_folder_buffer *folders, char **out, uint64_t *count)
{
    const char *names = (const char *)folders->base;
    *count = 0;
    for (size_t at = 0; at < folders->used; at += strlen(names + at) + 1)
        (*count)++;
    const char **order = stk_calloc(*count + 1, sizeof(order[0]));
    char *sorted = stk_calloc(folders->used + 1, 1);
    if (order == NULL || sorted == NULL) {
        stk_free(order);
        stk_free(sorted);
        return STOKER_ENOMEM;
    }
    uint64_t at = 0;
    for (uint64_t i = 0; i < *count; at += strlen(names + at) + 1)
        order[i++] = names + at;
    qsort(order, *count, sizeof(order[0]), by_name);
    at = 0;
    for (uint64_t i = 0; i < *count; at += strlen(order[i]) + 1, i++)
        memcpy(sorted + at, order[i], strlen(order[i]) + 1);
    stk_free(order);
    *out = sorted;
    return STOKER_OK;
}

int stk_folder_classes(const struct stk_folder_wish *wish, char **names, uint64_t *name_bytes,
                       uint64_t *count, stoker_error *error)
{
    struct stk_folder_listing root = { .path = stk_calloc(2, 1) };
    struct stk_folder_wish folders = *wish;
    folders.extensions[0] = '\0'; /* ignore files beside the classes */
    if (root.path == NULL)
        return stk_refuse_file(error, STOKER_ENOMEM, wish->root->path, STOKER_NO_OFFSET,
                               "scanning");
    root.path[0] = '.';
    int rc = stk_folder_list(&root, &folders, error);
    if (rc == STOKER_OK) {
        rc = sort_names(&root.folders, names, count);
        *name_bytes = root.folders.used;
        if (rc != STOKER_OK)
            (void)stk_refuse_file(error, rc, wish->root->path, STOKER_NO_OFFSET, "scanning");
    }
    stk_folder_listing_free(&root);
    return rc;
}

/* ---- all of it ------------------------------------------------------------------ */

static int64_t wall_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return stk_timespec_ns(now);
}

static int check_counts(const struct stk_folder_tree *tree, const struct stk_folder_wish *wish,
                        stoker_error *error)
{
    if (tree->file_count > 0)
        return STOKER_OK;
    return stk_refuse_file(
        error, STOKER_EEMPTY, wish->root->path, STOKER_NO_OFFSET,
        "no file that ends in one of %s in any of its %llu folders, which are the "
        "classes; %llu links out of it, pipes or devices were skipped",
        wish->extensions, (unsigned long long)tree->class_count,
        (unsigned long long)tree->passed_over);
}

static void free_listings(struct scan *scan)
{
    for (uint64_t i = 0; i < scan->count; i++) {
        stk_folder_listing_free(scan->listings[i]);
        stk_free(scan->listings[i]);
    }
    stk_free(scan->listings);
}

static int scan_classes(struct stk_folder_tree *tree, struct scan *scan, const char *names,
                        stoker_error *error)
{
    const struct stk_place place = stk_at(scan->wish->root->path, STOKER_NO_OFFSET);
    if (tree->class_count > STK_FOLDER_CLASSES_MAX)
        return stk_error_set(error, STOKER_ELIMIT, STOKER_STAGE_OPEN, &place,
                             "%llu folders, which are the classes: at most %d",
                             (unsigned long long)tree->class_count, STK_FOLDER_CLASSES_MAX);
    if (tree->class_count == 0)
        return stk_error_set(
            error, STOKER_EEMPTY, STOKER_STAGE_OPEN, &place,
            "it has no folders, which are the classes; folder:image=DIR takes the files "
            "of one folder without classes");
    assert(names != NULL);
    for (uint64_t i = 0; i < tree->class_count; names += strlen(names) + 1, i++)
        add_folder(scan, NULL, names, (uint32_t)i);
    stk_threads_run(stk_threads_together(UINT64_MAX, stk_storage_is_far(scan->wish->root->storage)),
                    "stoker-scan", list_folders, scan);
    int rc = scan->rc;
    if (rc != STOKER_OK) {
        if (error != NULL)
            *error = scan->error;
        return rc;
    }
    rc = build(tree, scan);
    return rc == STOKER_OK ? check_counts(tree, scan->wish, error)
                           : stk_error_set(error, rc, STOKER_STAGE_OPEN, &place, "scanning");
}

int stk_folder_scan(struct stk_folder_tree *tree, const struct stk_folder_wish *wish,
                    stoker_error *error)
{
    struct scan scan = { .wish = wish };
    char *names = NULL;
    uint64_t name_bytes = 0;
    *tree = (struct stk_folder_tree){ .scan_ns = wall_clock_ns() };
    int rc = stk_folder_classes(wish, &names, &name_bytes, &tree->class_count, error);
    if (rc != STOKER_OK)
        return rc;
    pthread_mutex_init(&scan.lock, NULL);
    pthread_cond_init(&scan.more, NULL);
    rc = scan_classes(tree, &scan, names, error);
    pthread_cond_destroy(&scan.more);
    pthread_mutex_destroy(&scan.lock);
    free_listings(&scan);
    stk_free(names);
    if (rc != STOKER_OK)
        stk_folder_tree_free(tree);
    return rc;
}

/* ---- the memory of a tree -------------------------------------------------------- */

uint64_t stk_folder_tree_bytes(const struct stk_folder_tree *tree)
{
    const uint64_t counts[4] = { tree->directory_count, tree->class_count, tree->file_count,
                                 tree->name_bytes };
    const uint64_t sizes[4] = { sizeof(tree->directories[0]), sizeof(tree->classes[0]),
                                sizeof(tree->files[0]), 1 };
    uint64_t total = 0;
    for (int i = 0; i < 4; i++) {
        uint64_t part;
        if (__builtin_mul_overflow(counts[i], sizes[i], &part) ||
            __builtin_add_overflow(total, part, &total))
            return UINT64_MAX;
    }
    return total;
}

/* Point the parts into memory that begins with them. */
static void point_into(struct stk_folder_tree *tree, const void *memory)
{
    tree->directories = memory;
    tree->classes = (const void *)(tree->directories + tree->directory_count);
    tree->files = (const void *)(tree->classes + tree->class_count);
    tree->names = (const void *)(tree->files + tree->file_count);
}

int stk_folder_tree_map(struct stk_folder_tree *tree)
{
    const uint64_t bytes = stk_folder_tree_bytes(tree);
    if (bytes == UINT64_MAX)
        return STOKER_ENOMEM;
    int rc = stk_region_map(&tree->memory, (size_t)bytes);
    if (rc == STOKER_OK)
        point_into(tree, tree->memory.base);
    return rc;
}

void stk_folder_tree_free(struct stk_folder_tree *tree)
{
    stk_region_unmap(&tree->memory);
    stk_free((void *)tree->versions);
    *tree = (struct stk_folder_tree){ 0 };
}
