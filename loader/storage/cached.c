/* cached.c - see cached.h. */
#include "loader/storage/cached.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/sha256.h"
#include "loader/storage/reader.h"

enum {
    KEPT_BYTES = 8 << 10, /* shorter reads at open, of headers, are not kept */
    FETCHES_MAX = 8,      /* pieces that a ring fetches at a time */
    TURN_NS = 200000,     /* wait for the ring below before looking for pieces of other rings */
    DEPTH_MAX = 1024
};

struct cached {
    stoker_storage *storage; /* whose self this is */
    stoker_storage *below;
    struct stk_disk_cache *disk;
    struct stk_storage_reader lanes; /* reads `below` with its reader, or by calls */
    stoker_reader lanes_reader;
    stoker_reader reader; /* the cached storage's */
};

/* Fetches a piece. If it has all of it (done_bytes = piece_bytes > 0), it keeps it in memory until
 * it fetches another one. */
struct fetch {
    stoker_read read; /* the next of its bytes; first member */
    struct stk_object_piece piece;
    uint8_t *bytes; /* [STK_PIECE_BYTES], from the first fetch on */
    size_t piece_bytes;
    size_t done_bytes;
    bool active;
    char why[STK_LINE_BYTES]; /* why it failed; reads that a reap has returned point here */
};

/* A read that waits for a piece. */
struct wait {
    stoker_read *read;
    struct stk_object_piece piece;
};

struct ring {
    struct cached *cached;
    stoker_file *files; /* of the setup, those of the cached storage as files of the one below */
    void *below;
    uint32_t depth;
    uint32_t fetch_max;  /* <= FETCHES_MAX */
    uint32_t fetch_next; /* the one to use next, modulo fetch_max */
    struct wait *waits;  /* [depth], wait_count of them in use */
    uint32_t wait_count;
    stoker_read **ended; /* [depth], ended_count reads that the next reap returns */
    uint32_t ended_count;
    stoker_read **batch;  /* [depth] reads to submit below */
    uint32_t below_count; /* reads that the ring below has */
    bool waits_for_others;
    struct fetch fetches[FETCHES_MAX];
};

/* ---- pieces --------------------------------------------------------------------- */

static struct stk_object_piece piece_of(const struct cached *cached, const char *name,
                                        uint64_t version, uint64_t offset)
{
    struct stk_object_piece piece = { .number = offset / STK_PIECE_BYTES };
    struct stk_sha256 sum;
    stk_sha256_begin(&sum);
    stk_sha256_add(&sum, cached->below->ops.name, strlen(cached->below->ops.name) + 1);
    stk_sha256_add(&sum, name, strlen(name) + 1);
    stk_sha256_add(&sum, &version, sizeof(version));
    stk_sha256_end(&sum, piece.digest);
    return piece;
}

/* Keep the bytes of a read that began with a piece: whole pieces, and the last one unless the read
 * was short. */
static void keep(const struct cached *cached, const char *name, uint64_t version, uint64_t offset,
                 const uint8_t *bytes, uint64_t count, bool is_short)
{
    for (uint64_t at = 0; at < count; at += STK_PIECE_BYTES) {
        const uint64_t left = count - at;
        const struct stk_object_piece piece = piece_of(cached, name, version, offset + at);
        if (left >= STK_PIECE_BYTES || !is_short)
            stk_disk_cache_put(cached->disk, &piece, bytes + at,
                               (size_t)(left < STK_PIECE_BYTES ? left : STK_PIECE_BYTES));
    }
}

/* ---- while a data set is opened ------------------------------------------------- */

static int cached_look(void *self, const char *name, stoker_object *out, stoker_error *error)
{
    const struct cached *cached = self;
    return cached->below->ops.look(cached->below->self, name, out, error);
}

static int cached_list(void *self, const char *prefix, stoker_object_found *found, void *context,
                       stoker_error *error)
{
    const struct cached *cached = self;
    return cached->below->ops.list(cached->below->self, prefix, found, context, error);
}

static int64_t cached_read(void *self, const char *name, uint64_t version, uint64_t offset,
                           void *buffer, uint64_t bytes, stoker_error *error)
{
    struct cached *cached = self;
    const size_t at = offset % STK_PIECE_BYTES;
    const uint64_t left = STK_PIECE_BYTES - at;
    if (version != 0) {
        const struct stk_object_piece piece = piece_of(cached, name, version, offset);
        const size_t got = stk_disk_cache_get(cached->disk, &piece, at, buffer,
                                              (size_t)(bytes < left ? bytes : left));
        if (got > 0)
            return (int64_t)got;
    }
    const int64_t result =
        cached->below->ops.read(cached->below->self, name, version, offset, buffer, bytes, error);
    if (version != 0 && at == 0 && bytes >= KEPT_BYTES && result > 0)
        keep(cached, name, version, offset, buffer, (uint64_t)result, (uint64_t)result < bytes);
    return result;
}

static void cached_destroy(void *self)
{
    struct cached *cached = self;
    stk_disk_cache_close(cached->disk);
    stoker_storage_close(&cached->below);
    stk_free(cached);
}

/* ---- rings ---------------------------------------------------------------------- */

static void free_ring(struct ring *ring)
{
    for (uint32_t i = 0; i < FETCHES_MAX; i++)
        stk_free(ring->fetches[i].bytes);
    stk_free(ring->files);
    stk_free(ring->waits);
    stk_free(ring->ended);
    stk_free(ring->batch);
    stk_free(ring);
}

static int cached_close(void *opened, int64_t wait_ns)
{
    struct ring *ring = opened;
    const int rc = ring->cached->lanes_reader.close(ring->below, wait_ns);
    for (uint32_t i = 0; i < FETCHES_MAX; i++)
        if (ring->fetches[i].active)
            stk_disk_cache_release(ring->cached->disk, &ring->fetches[i].piece);
    if (rc == STOKER_OK)
        free_ring(ring);
    return rc; /* else leaked: the ring below still writes to its reads */
}

static int cached_open(void *self, void **out, const stoker_reader_setup *setup,
                       stoker_error *error)
{
    struct cached *cached = self;
    struct ring *ring = stk_calloc(1, sizeof(*ring));
    if (ring == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "out of memory for the reads of cache_dir");
    ring->cached = cached;
    ring->depth = setup->depth;
    ring->files = stk_calloc(setup->file_count, sizeof(ring->files[0]));
    ring->waits = stk_calloc(setup->depth, sizeof(ring->waits[0]));
    ring->ended = stk_calloc(setup->depth, sizeof(ring->ended[0]));
    ring->batch = stk_calloc((size_t)setup->depth + FETCHES_MAX, sizeof(ring->batch[0]));
    int rc = STOKER_ENOMEM;
    if (ring->files != NULL && ring->waits != NULL && ring->ended != NULL && ring->batch != NULL) {
        stoker_reader_setup below = *setup;
        for (uint32_t i = 0; i < setup->file_count; i++) {
            ring->files[i] = setup->files[i];
            if (ring->files[i].storage == cached->storage)
                ring->files[i].storage = cached->below;
        }
        below.files = ring->files;
        ring->fetch_max = DEPTH_MAX - setup->depth;
        if (ring->fetch_max > FETCHES_MAX)
            ring->fetch_max = FETCHES_MAX;
        below.depth = setup->depth + ring->fetch_max;
        rc = cached->lanes_reader.open(cached->lanes_reader.self, &ring->below, &below, error);
    } else {
        (void)stk_refuse_option(error, rc, "out of memory for the reads of cache_dir");
    }
    if (rc != STOKER_OK)
        free_ring(ring);
    else
        *out = ring;
    return rc;
}

static int submit_below(struct ring *ring, stoker_read *const *reads, uint32_t count)
{
    ring->below_count += count;
    return count == 0 ? STOKER_OK : ring->cached->lanes_reader.submit(ring->below, reads, count);
}

/* ---- submit --------------------------------------------------------------------- */

/* Returns the name of the object that is read, in `room` if it has to be put together; NULL if its
 * version is not known. */
static const char *object_of(const struct ring *ring, const stoker_read *read, char room[PATH_MAX],
                             uint64_t *version)
{
    const stoker_file *file = &ring->files[read->file];
    *version = read->path != NULL ? read->version : file->version;
    if (*version == 0)
        return NULL;
    if (read->path == NULL)
        return file->path;
    return stk_storage_join(room, file->path, read->path) ? room : NULL;
}

static struct fetch *fetch_of(struct ring *ring, const struct stk_object_piece *piece, bool active)
{
    for (uint32_t i = 0; i < ring->fetch_max; i++) {
        struct fetch *fetch = &ring->fetches[i];
        const bool has_it = fetch->active == active && fetch->piece_bytes > 0 &&
                            (active || fetch->done_bytes == fetch->piece_bytes);
        if (has_it && stk_object_piece_equals(&fetch->piece, piece))
            return fetch;
    }
    return NULL;
}

/* Copy bytes to a read from a fetch that has reached its offset. */
static void copy(const struct fetch *fetch, stoker_read *read)
{
    const size_t at = read->offset % STK_PIECE_BYTES;
    const size_t most = fetch->done_bytes - at;
    read->result = (int64_t)(read->bytes < most ? read->bytes : most);
    memcpy(read->buffer, fetch->bytes + at, (size_t)read->result);
}

/* Answer a read from memory or the folder, up to the end of its piece. */
static bool answer(struct ring *ring, const struct stk_object_piece *piece, stoker_read *read)
{
    const size_t at = read->offset % STK_PIECE_BYTES;
    const uint64_t left = STK_PIECE_BYTES - at;
    const struct fetch *fetch = fetch_of(ring, piece, false);
    if (fetch != NULL && at < fetch->done_bytes)
        copy(fetch, read);
    else
        read->result =
            (int64_t)stk_disk_cache_get(ring->cached->disk, piece, at, read->buffer,
                                        (size_t)(read->bytes < left ? read->bytes : left));
    if (read->result > 0)
        ring->ended[ring->ended_count++] = read;
    return read->result > 0;
}

/* Returns true if the read is answered or waits; false: pass it on. */
static bool take(struct ring *ring, stoker_read *read)
{
    char room[PATH_MAX];
    uint64_t version;
    const char *name = object_of(ring, read, room, &version);
    if (name == NULL)
        return false;
    const struct stk_object_piece piece = piece_of(ring->cached, name, version, read->offset);
    if (answer(ring, &piece, read))
        return true;
    if (read->path != NULL || read->offset >= ring->files[read->file].size ||
        !stk_disk_cache_takes(ring->cached->disk))
        return false;
    ring->waits[ring->wait_count++] = (struct wait){ .read = read, .piece = piece };
    return true;
}

/* Returns a fetch that is not active: the one that was used longest ago, so that the latest pieces
 * stay in memory. NULL if there is none. */
static struct fetch *unused_fetch(struct ring *ring)
{
    for (uint32_t i = 0; i < ring->fetch_max; i++) {
        struct fetch *fetch = &ring->fetches[ring->fetch_next++ % ring->fetch_max];
        if (!fetch->active && fetch->bytes == NULL)
            fetch->bytes = stk_calloc(1, STK_PIECE_BYTES);
        if (!fetch->active && fetch->bytes != NULL)
            return fetch;
    }
    return NULL;
}

static stoker_read *fetch_read(struct fetch *fetch, uint32_t file)
{
    fetch->read =
        (stoker_read){ .buffer = fetch->bytes + fetch->done_bytes,
                       .offset = fetch->piece.number * STK_PIECE_BYTES + fetch->done_bytes,
                       .bytes = fetch->piece_bytes - fetch->done_bytes,
                       .file = file };
    return &fetch->read;
}

enum progress { WAITS, FETCHES, ENDS, PASSES };

/* Decide what a waiting read does next. FETCHES: submit *begun if it is not NULL. */
static enum progress advance_wait(struct ring *ring, const struct wait *wait, stoker_read **begun)
{
    struct stk_disk_cache *disk = ring->cached->disk;
    *begun = NULL;
    if (fetch_of(ring, &wait->piece, true) != NULL)
        return FETCHES;
    struct fetch *fetch = unused_fetch(ring);
    if (fetch ==
        NULL) /* all fetch; or memory is short: then none does, and the read is passed on */
        return ring->fetches[0].bytes == NULL ? PASSES : WAITS;
    if (!stk_disk_cache_claim(disk, &wait->piece)) {
        ring->waits_for_others = true;
        return WAITS;
    }
    if (answer(ring, &wait->piece, wait->read)) { /* another ring has just kept it */
        stk_disk_cache_release(disk, &wait->piece);
        return ENDS;
    }
    if (!stk_disk_cache_takes(disk)) {
        stk_disk_cache_release(disk, &wait->piece);
        return PASSES;
    }
    const uint64_t left = ring->files[wait->read->file].size - wait->piece.number * STK_PIECE_BYTES;
    fetch->piece = wait->piece;
    fetch->piece_bytes = left < STK_PIECE_BYTES ? (size_t)left : STK_PIECE_BYTES;
    fetch->done_bytes = 0;
    fetch->active = true;
    *begun = fetch_read(fetch, wait->read->file);
    return FETCHES;
}

static int advance_waits(struct ring *ring)
{
    uint32_t left = 0;
    uint32_t count = 0;
    ring->waits_for_others = false;
    for (uint32_t i = 0; i < ring->wait_count; i++) {
        stoker_read *begun;
        const struct wait wait = ring->waits[i];
        const enum progress progress = advance_wait(ring, &wait, &begun);
        if (progress == PASSES)
            begun = wait.read;
        if (begun != NULL)
            ring->batch[count++] = begun;
        if (progress == WAITS || progress == FETCHES)
            ring->waits[left++] = wait;
    }
    ring->wait_count = left;
    return submit_below(ring, ring->batch, count);
}

static int cached_submit(void *opened, stoker_read *const *reads, uint32_t count)
{
    struct ring *ring = opened;
    uint32_t passed = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!take(ring, reads[i]))
            ring->batch[passed++] = reads[i];
    const int rc = submit_below(ring, ring->batch, passed);
    return rc == STOKER_OK ? advance_waits(ring) : rc;
}

/* ---- reap ----------------------------------------------------------------------- */

/* End the reads that wait for a fetch. Those whose bytes have arrived get them; the others get its
 * result (0 at the end of the object) and the reason. */
static void end_waits(struct ring *ring, const struct fetch *fetch, int64_t result,
                      const char *reason)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < ring->wait_count; i++) {
        stoker_read *read = ring->waits[i].read;
        const size_t at = read->offset % STK_PIECE_BYTES;
        if (!stk_object_piece_equals(&ring->waits[i].piece, &fetch->piece)) {
            ring->waits[left++] = ring->waits[i];
            continue;
        }
        if (at < fetch->done_bytes) {
            copy(fetch, read);
        } else {
            read->result = result;
            read->reason = reason;
        }
        ring->ended[ring->ended_count++] = read;
    }
    ring->wait_count = left;
}

/* A read of a fetch has ended. */
static int advance_fetch(struct ring *ring, struct fetch *fetch)
{
    const int64_t result = fetch->read.result;
    const bool sound = result > 0 && (uint64_t)result <= fetch->read.bytes;
    if (sound)
        fetch->done_bytes += (size_t)result;
    if (sound && fetch->done_bytes < fetch->piece_bytes) {
        stoker_read *rest = fetch_read(fetch, fetch->read.file);
        return submit_below(ring, &rest, 1);
    }
    if (sound)
        stk_disk_cache_put(ring->cached->disk, &fetch->piece, fetch->bytes, fetch->done_bytes);
    fetch->why[0] = '\0';
    if (fetch->read.reason != NULL)
        (void)snprintf(fetch->why, sizeof(fetch->why), "%s", fetch->read.reason);
    end_waits(ring, fetch, result > 0 ? -EIO : result, fetch->why[0] != '\0' ? fetch->why : NULL);
    fetch->active = false;
    stk_disk_cache_release(ring->cached->disk, &fetch->piece);
    return STOKER_OK;
}

/* Keep a whole file, of which a loader asks for one byte more than it has. */
static void keep_file(const struct ring *ring, const stoker_read *read)
{
    char room[PATH_MAX];
    uint64_t version;
    if (read->path == NULL || read->result <= 0 || read->offset % STK_PIECE_BYTES != 0)
        return;
    const char *name = object_of(ring, read, room, &version);
    if (name != NULL)
        keep(ring->cached, name, version, read->offset, read->buffer, (uint64_t)read->result,
             read->result + 1 < (int64_t)read->bytes);
}

/* Reap the ring below: ends reads, and advances fetches. Returns 0, or < 0: it broke. */
static int reap_below(struct ring *ring, int64_t wait_ns)
{
    stoker_read *done[64];
    if (ring->below_count == 0)
        return STOKER_OK;
    const int got =
        ring->cached->lanes_reader.reap(ring->below, done, sizeof(done) / sizeof(done[0]), wait_ns);
    if (got < 0 || (uint32_t)got > ring->below_count)
        return STOKER_EIO;
    ring->below_count -= (uint32_t)got;
    for (int i = 0; i < got; i++) {
        const uintptr_t at = (uintptr_t)done[i] - (uintptr_t)ring->fetches;
        if (at >= sizeof(ring->fetches)) {
            keep_file(ring, done[i]);
            ring->ended[ring->ended_count++] = done[i];
        } else if (advance_fetch(ring, &ring->fetches[at / sizeof(ring->fetches[0])]) !=
                   STOKER_OK) {
            return STOKER_EIO;
        }
    }
    return STOKER_OK;
}

static uint32_t take_ended(struct ring *ring, stoker_read **done, uint32_t max)
{
    const uint32_t count = ring->ended_count < max ? ring->ended_count : max;
    memcpy(done, ring->ended, count * sizeof(done[0]));
    ring->ended_count -= count;
    memmove(ring->ended, ring->ended + count, ring->ended_count * sizeof(ring->ended[0]));
    return count;
}

static int cached_reap(void *opened, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    struct ring *ring = opened;
    const uint64_t begin_ns = stk_now_ns();
    for (int64_t left_ns = wait_ns, turn_ns = 0;;) {
        const uint32_t releases = stk_disk_cache_releases(ring->cached->disk);
        if (ring->ended_count == 0 &&
            (reap_below(ring, turn_ns) != STOKER_OK || advance_waits(ring) != STOKER_OK))
            return STOKER_EIO;
        if (ring->ended_count > 0)
            return (int)take_ended(ring, done, max);
        if ((wait_ns >= 0 && left_ns <= 0) || (ring->below_count == 0 && ring->wait_count == 0))
            return 0;
        turn_ns = ring->waits_for_others && (left_ns < 0 || left_ns > TURN_NS) ? TURN_NS : left_ns;
        if (ring->below_count == 0)
            stk_disk_cache_wait(ring->cached->disk, releases, turn_ns);
        if (wait_ns >= 0)
            left_ns = wait_ns - (int64_t)(stk_now_ns() - begin_ns);
    }
}

/* ---- life ----------------------------------------------------------------------- */

static const stoker_storage_ops operations = { .struct_size = sizeof(operations),
                                               .look = cached_look,
                                               .list = cached_list,
                                               .read = cached_read,
                                               .destroy = cached_destroy };

int stk_storage_cached(stoker_storage **out, stoker_storage *below, const char *folder,
                       uint64_t bytes_max, stoker_error *error)
{
    struct stk_disk_cache *disk = NULL;
    assert(below != &stk_storage_local);
    int rc = stk_disk_cache_open(&disk, folder, bytes_max, error);
    if (rc != STOKER_OK)
        return rc;
    struct cached *cached = stk_calloc(1, sizeof(*cached));
    if (cached == NULL) {
        stk_disk_cache_close(disk);
        return stk_refuse_option(error, STOKER_ENOMEM, "cache_dir");
    }
    cached->disk = disk;
    stk_storage_reader_init(&cached->lanes, &cached->lanes_reader, stoker_reader_pread(), NULL);
    cached->reader = (stoker_reader){ .struct_size = sizeof(cached->reader),
                                      .name = "cached",
                                      .self = cached,
                                      .open = cached_open,
                                      .submit = cached_submit,
                                      .reap = cached_reap,
                                      .close = cached_close };
    stoker_storage_ops ops = operations;
    ops.name = below->ops.name;
    ops.reader = &cached->reader;
    rc = stoker_storage_create(&cached->storage, &ops, cached, error);
    if (rc != STOKER_OK) {
        stk_disk_cache_close(disk);
        stk_free(cached);
        return rc;
    }
    cached->below = stoker_storage_share(below);
    cached->storage->urls_only = below->urls_only;
    *out = cached->storage;
    return STOKER_OK;
}
