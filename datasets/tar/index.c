/* index.c - see index.h.
 *
 *   names ─▶ ┌ next ┐ ─▶ each thread: open, walk ─▶ its part ─┐ all went well
 *            └──────┘                                         ├─▶ pieces in the order of names
 *                                                             │
 *              one after the other, by this thread ◀──────────┘ anything else
 *
 * Each thread has its share of the memory and its own counts. On any error, such as a damaged
 * archive or too many members, this thread indexes all archives again in order, so that the same
 * error is reported with any number of threads.
 */
#include "datasets/tar/index.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "datasets/tar/archive.h"
#include "loader/base/cpu/thread.h"
#include "loader/base/memory/memory.h"

/* ---- files ---------------------------------------------------------------------- */

static int make_files(struct stk_tar_index *index, uint32_t count, stoker_error *error)
{
    index->files = stk_calloc(count, sizeof(index->files[0]));
    if (index->files == NULL)
        return stk_refuse_spec(error, STOKER_ENOMEM, "tar: the list of archives");
    index->file_count = count;
    for (uint32_t i = 0; i < count; i++)
        index->files[i].source = (struct stk_source)STK_SOURCE_CLOSED;
    return STOKER_OK;
}

static int open_file(struct stk_tar_file *file, const stoker_storage *storage, const char *name,
                     stoker_error *error)
{
    const size_t bytes = strlen(name) + 1;
    file->path = stk_calloc(bytes, 1);
    if (file->path == NULL)
        return stk_refuse_file(error, STOKER_ENOMEM, name, STOKER_NO_OFFSET, "tar: the path");
    memcpy(file->path, name, bytes);
    return stk_source_open(&file->source, storage, file->path, error);
}

static void close_files(struct stk_tar_index *index)
{
    for (uint32_t i = 0; i < index->file_count; i++) {
        stk_source_close(&index->files[i].source);
        stk_free(index->files[i].path);
        index->files[i].path = NULL;
    }
}

/* ---- by several threads --------------------------------------------------------- */

/* The samples of one archive. */
struct piece {
    const struct stk_tar_part *part;
    size_t first, count;
};

/* Bytes of the keys of samples first..first + count of a part, and where they begin. */
static uint64_t keys_from(const struct stk_tar_part *part, size_t first)
{
    return first == 0 ? 0 : part->key_ends[first - 1];
}

struct scan {
    struct stk_tar_index *index;
    const struct stk_name_list *names;
    struct stk_tar_wish wish; /* for each part */
    struct piece *pieces;     /* one per archive, written by the thread that claimed it */
    pthread_mutex_t lock;     /* guards all below */
    struct stk_tar_part parts[STK_THREADS_TOGETHER_MAX];
    uint32_t part_count;
    uint32_t next; /* the first archive not taken yet */
    bool failed;
    stoker_error error; /* code 0, or that memory ran out */
};

static struct stk_tar_part *begin_part(struct scan *scan)
{
    pthread_mutex_lock(&scan->lock);
    assert(scan->part_count < STK_THREADS_TOGETHER_MAX);
    struct stk_tar_part *part = &scan->parts[scan->part_count++];
    pthread_mutex_unlock(&scan->lock);
    stk_tar_part_init(part, &scan->wish);
    return part;
}

/* UINT32_MAX: there is nothing left to do. */
static uint32_t take_archive(struct scan *scan)
{
    pthread_mutex_lock(&scan->lock);
    const bool over = scan->failed || scan->next == scan->names->count;
    const uint32_t number = over ? UINT32_MAX : scan->next++;
    pthread_mutex_unlock(&scan->lock);
    return number;
}

static void note_failure(struct scan *scan, const stoker_error *error)
{
    pthread_mutex_lock(&scan->lock);
    scan->failed = true;
    if (error->code == STOKER_ENOMEM)
        scan->error = *error;
    pthread_mutex_unlock(&scan->lock);
}

static void *scan_archives(void *argument)
{
    struct scan *scan = argument;
    struct stk_tar_part *part = begin_part(scan);
    for (uint32_t number; (number = take_archive(scan)) != UINT32_MAX;) {
        struct stk_tar_file *file = &scan->index->files[number];
        stoker_error error = { .code = 0 };
        const size_t first = part->count;
        int rc = open_file(file, scan->wish.storage, stk_name_at(scan->names, number), &error);
        if (rc == STOKER_OK)
            rc = stk_tar_part_add(part, &file->source, number, &error);
        if (rc != STOKER_OK)
            note_failure(scan, &error);
        scan->pieces[number] = (struct piece){ part, first, part->count - first };
    }
    stk_tar_groups_free(&part->groups);
    return NULL;
}

static void add_counts(struct stk_tar_counts *to, const struct stk_tar_counts *more)
{
    to->members += more->members;
    to->directories += more->directories;
    to->links += more->links;
    to->devices += more->devices;
    to->strays += more->strays;
    to->unknown += more->unknown;
    to->keyless += more->keyless;
    to->other_files += more->other_files;
    to->imageless += more->imageless;
    to->cut += more->cut;
    to->cut_samples += more->cut_samples;
}

static bool add_shapes(struct stk_tar_index *index, const struct scan *scan,
                       const struct stk_tar_wish *wish)
{
    for (uint32_t i = 0; i < scan->part_count; i++)
        for (uint32_t field = 0; field < wish->field_count; field++)
            if (!stk_npy_shape_merge(&index->shapes[field], &scan->parts[i].shapes[field]))
                return false;
    return true;
}

/* What each part kept to, all of them together may not: then false. */
static bool add_up(struct stk_tar_index *index, const struct scan *scan,
                   const struct stk_tar_wish *wish)
{
    uint64_t labeled = 0;
    uint64_t unlabeled = 0;
    uint64_t keys_bytes = 0;
    const uint64_t sample_bytes = sizeof(index->samples[0]) +
                                  (wish->field_count - 1) * sizeof(index->more[0]) +
                                  (wish->takes_keys ? sizeof(index->key_ends[0]) : 0);
    for (uint32_t i = 0; i < scan->part_count; i++) {
        const struct stk_tar_part *part = &scan->parts[i];
        index->count += part->count;
        keys_bytes += part->keys_bytes;
        labeled += part->labeled;
        unlabeled += part->unlabeled;
        add_counts(&index->counts, &part->counts);
    }
    index->has_labels = labeled > 0;
    return index->count > 0 && index->counts.members <= wish->entries_max &&
           (labeled == 0 || unlabeled == 0) && keys_bytes <= wish->bytes_max &&
           index->count <= (wish->bytes_max - keys_bytes) / sample_bytes &&
           add_shapes(index, scan, wish);
}

static bool take_memory(struct stk_tar_index *index, const struct scan *scan,
                        const struct stk_tar_wish *wish)
{
    size_t keys_bytes = 0;
    index->more_count = wish->field_count - 1;
    for (uint32_t i = 0; i < scan->part_count; i++)
        keys_bytes += scan->parts[i].keys_bytes;
    index->samples = stk_calloc(index->count, sizeof(index->samples[0]));
    if (index->samples == NULL)
        return false;
    if (index->more_count > 0) {
        index->more = stk_calloc(index->count * index->more_count, sizeof(index->more[0]));
        if (index->more == NULL)
            return false;
    }
    if (!wish->takes_keys)
        return true;
    index->keys = stk_calloc(keys_bytes, 1);
    index->key_ends = stk_calloc(index->count, sizeof(index->key_ends[0]));
    return index->keys != NULL && index->key_ends != NULL;
}

/* Copy the samples of one archive to `at`, and their keys to *keys_at. */
static void copy_piece(struct stk_tar_index *index, const struct piece *piece, size_t at,
                       uint64_t *keys_at)
{
    const struct stk_tar_part *part = piece->part;
    const size_t more = index->more_count;
    memcpy(&index->samples[at], &part->samples[piece->first],
           piece->count * sizeof(index->samples[0]));
    if (more > 0)
        memcpy(&index->more[at * more], &part->more[piece->first * more],
               piece->count * more * sizeof(index->more[0]));
    if (index->keys == NULL)
        return;
    const uint64_t from = keys_from(part, piece->first);
    const uint64_t bytes = keys_from(part, piece->first + piece->count) - from;
    memcpy(index->keys + *keys_at, part->keys + from, bytes);
    for (size_t i = 0; i < piece->count; i++)
        index->key_ends[at + i] = part->key_ends[piece->first + i] - from + *keys_at;
    *keys_at += bytes;
}

/* Report STOKER_ENOMEM; any other error is found again in order. */
static int put_together(struct stk_tar_index *index, struct scan *scan,
                        const struct stk_tar_wish *wish, stoker_error *error)
{
    if (scan->error.code == STOKER_ENOMEM) {
        if (error != NULL)
            *error = scan->error;
        return STOKER_ENOMEM;
    }
    if (scan->failed || !add_up(index, scan, wish))
        return STOKER_EFORMAT;
    if (!take_memory(index, scan, wish))
        return stk_refuse_spec(error, STOKER_ENOMEM, "tar: the index");
    size_t at = 0;
    uint64_t keys_at = 0;
    for (uint32_t i = 0; i < scan->names->count; i++) {
        const struct piece *piece = &scan->pieces[i];
        if (piece->count > 0)
            copy_piece(index, piece, at, &keys_at);
        at += piece->count;
    }
    assert(at == index->count);
    return STOKER_OK;
}

static int index_together(struct stk_tar_index *index, const struct stk_name_list *names,
                          const struct stk_tar_wish *wish, stoker_error *error)
{
    const uint32_t threads = stk_threads_together(names->count, stk_storage_is_far(wish->storage));
    struct scan *scan = stk_calloc(1, sizeof(*scan));
    struct piece *pieces = stk_calloc(names->count, sizeof(pieces[0]));
    int rc = STOKER_ENOMEM;
    if (scan == NULL || pieces == NULL) {
        (void)stk_refuse_spec(error, rc, "tar: the list of archives");
    } else {
        *scan = (struct scan){ .index = index, .names = names, .wish = *wish, .pieces = pieces };
        scan->wish.bytes_max /= threads;
        pthread_mutex_init(&scan->lock, NULL);
        stk_threads_run(threads, "stoker-index", scan_archives, scan);
        pthread_mutex_destroy(&scan->lock);
        rc = put_together(index, scan, wish, error);
        for (uint32_t i = 0; i < scan->part_count; i++)
            stk_tar_part_free(&scan->parts[i]);
    }
    stk_free(pieces);
    stk_free(scan);
    return rc;
}

/* ---- in order ------------------------------------------------------------------- */

static int check_count(const struct stk_tar_index *index, const struct stk_tar_wish *wish,
                       stoker_error *error)
{
    const struct stk_tar_counts *counts = &index->counts;
    const uint64_t others = counts->unknown + counts->keyless + counts->other_files;
    if (index->count > 0)
        return STOKER_OK;
    return stk_refuse_file(error, STOKER_EEMPTY, index->files[index->file_count - 1].path,
                           STOKER_NO_OFFSET,
                           "tar: no KEY.%s among %llu members; stepped over: %llu "
                           "links, %llu devices, %llu stray names, %llu others",
                           wish->fields[0].extensions, (unsigned long long)counts->members,
                           (unsigned long long)counts->links, (unsigned long long)counts->devices,
                           (unsigned long long)counts->strays, (unsigned long long)others);
}

static int index_in_order(struct stk_tar_index *index, const struct stk_name_list *names,
                          const struct stk_tar_wish *wish, stoker_error *error)
{
    struct stk_tar_part part;
    int rc = STOKER_OK;
    stk_tar_part_init(&part, wish);
    for (uint32_t i = 0; rc == STOKER_OK && i < names->count; i++) {
        rc = open_file(&index->files[i], wish->storage, stk_name_at(names, i), error);
        if (rc == STOKER_OK)
            rc = stk_tar_part_add(&part, &index->files[i].source, i, error);
    }
    index->samples = part.samples;
    index->count = part.count;
    index->more = part.more;
    index->more_count = part.more_count;
    index->keys = part.keys;
    index->key_ends = part.key_ends;
    memcpy(index->shapes, part.shapes, sizeof(index->shapes));
    index->counts = part.counts;
    index->has_labels = part.labeled > 0;
    part.samples = NULL; /* they are the index's now */
    part.more = NULL;
    part.keys = NULL;
    part.key_ends = NULL;
    stk_tar_part_free(&part);
    return rc == STOKER_OK ? check_count(index, wish, error) : rc;
}

/* ---- all of it ------------------------------------------------------------------ */

int stk_tar_index_build(struct stk_tar_index *out, const struct stk_name_list *names,
                        const struct stk_tar_wish *wish, stoker_error *error)
{
    *out = (struct stk_tar_index){ 0 };
    int rc = make_files(out, names->count, error);
    if (rc == STOKER_OK) {
        rc = names->count > 1 ? index_together(out, names, wish, error) : STOKER_EFORMAT;
        if (rc != STOKER_OK && rc != STOKER_ENOMEM) {
            close_files(out);
            memset(out->shapes, 0, sizeof(out->shapes));
            rc = index_in_order(out, names, wish, error);
        }
    }
    if (rc != STOKER_OK)
        stk_tar_index_free(out);
    return rc;
}

void stk_tar_index_free(struct stk_tar_index *index)
{
    close_files(index);
    stk_free(index->files);
    stk_free(index->samples);
    stk_free(index->more);
    stk_free(index->keys);
    stk_free(index->key_ends);
    *index = (struct stk_tar_index){ 0 };
}
