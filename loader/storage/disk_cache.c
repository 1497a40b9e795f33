/* disk_cache.c - see disk_cache.h. */
#include "loader/storage/disk_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/dataset.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/cpu/thread.h"
#include "loader/base/crc32c/crc32c.h"
#include "loader/base/error.h"
#include "loader/base/io/pread.h"
#include "loader/base/io/write_all.h"
#include "loader/base/memory/memory.h"

enum {
    SUM_BYTES = 64 << 10, /* covered by one sum: what a small read has to verify */
    SUMS = STK_PIECE_BYTES / SUM_BYTES,
    NAME_BYTES = 2 * STK_PIECE_DIGEST_BYTES + 32,
    FOLDERS = 256,
    CLAIMS_MAX = 1024,
    ABANDONED_S = 60 /* a file that is still being written is never older */
};
static const uint64_t REST_NS =
    UINT64_C(60) * 1000000000; /* after which a full cache is counted again */
static const char MAGIC[8] = { 'S', 'T', 'K', 'P', 'I', 'E', 'C', '1' };

struct header {
    char magic[sizeof(MAGIC)];
    uint8_t digest[STK_PIECE_DIGEST_BYTES];
    uint64_t number;
    uint64_t bytes;
    uint32_t sums[SUMS];
    uint32_t zero;
    uint32_t sum; /* of all above */
};
_Static_assert(sizeof(struct header) == 128, "as it lies in the file");

struct stk_disk_cache {
    int folder;
    uint64_t bytes_max;
    int64_t opened_ns;               /* wall clock: pieces with an older time may be evicted */
    _Atomic uint64_t used_bytes;     /* of all files, when they were last counted, and since */
    _Atomic uint64_t rests_until_ns; /* monotonic: nothing is kept before */
    _Atomic uint64_t next_name;
    pthread_mutex_t making_room; /* held by the thread that counts and evicts */
    pthread_mutex_t claiming;    /* guards the claims */
    uint32_t claim_count;
    _Atomic uint32_t releases; /* a futex */
    struct stk_object_piece claims[CLAIMS_MAX];
    _Atomic uint64_t hits, misses, damaged, kept, refused, evicted;
};

static void add(_Atomic uint64_t *count)
{
    (void)atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

/* ---- names and headers ---------------------------------------------------------- */

/* "3f/3f0c...-12", relative to the folder. */
static void name_of(const struct stk_object_piece *piece, char out[NAME_BYTES])
{
    size_t used = (size_t)snprintf(out, NAME_BYTES, "%02x/", piece->digest[0]);
    for (int i = 0; i < STK_PIECE_DIGEST_BYTES; i++)
        used += (size_t)snprintf(out + used, NAME_BYTES - used, "%02x", piece->digest[i]);
    (void)snprintf(out + used, NAME_BYTES - used, "-%" PRIu64, piece->number);
}

/* Bytes under one sum, of which the first is at `at` of `bytes`. */
static size_t sum_bytes(uint64_t bytes, size_t at)
{
    return bytes - at < SUM_BYTES ? (size_t)(bytes - at) : SUM_BYTES;
}

static struct header header_of(const struct stk_object_piece *piece, const uint8_t *at,
                               size_t bytes)
{
    struct header header = { .number = piece->number, .bytes = bytes };
    memcpy(header.magic, MAGIC, sizeof(MAGIC));
    memcpy(header.digest, piece->digest, sizeof(header.digest));
    for (size_t done = 0, i = 0; done < bytes; done += SUM_BYTES, i++)
        header.sums[i] = stk_crc32c(0, at + done, sum_bytes(bytes, done));
    header.sum = stk_crc32c(0, &header, offsetof(struct header, sum));
    return header;
}

static bool is_header_of(const struct header *header, const struct stk_object_piece *piece)
{
    return memcmp(header->magic, MAGIC, sizeof(MAGIC)) == 0 && header->number == piece->number &&
           header->bytes >= 1 && header->bytes <= STK_PIECE_BYTES &&
           memcmp(header->digest, piece->digest, sizeof(header->digest)) == 0 &&
           header->sum == stk_crc32c(0, header, offsetof(struct header, sum));
}

/* ---- get ------------------------------------------------------------------------ */

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
    struct stk_place place = STK_NOWHERE;
    place.offset = offset;
    return stk_pread_all(fd, to, bytes, place, NULL) == STOKER_OK;
}

/* Verify all bytes that share a sum with the wanted ones. Returns how many of these there are, or
 * < 0: the piece is damaged. */
static ssize_t read_verified(int fd, const struct stk_object_piece *piece, size_t offset,
                             uint8_t *to, size_t bytes)
{
    uint8_t scratch[SUM_BYTES];
    struct header header;
    if (!read_at(fd, &header, sizeof(header), 0) || !is_header_of(&header, piece))
        return -1;
    if (offset >= header.bytes)
        return 0;
    if (bytes > header.bytes - offset)
        bytes = header.bytes - offset;
    for (size_t at = offset / SUM_BYTES * SUM_BYTES; at < offset + bytes; at += SUM_BYTES) {
        const size_t size = sum_bytes(header.bytes, at);
        const size_t from = at > offset ? at : offset;
        const size_t end = at + size < offset + bytes ? at + size : offset + bytes;
        if (!read_at(fd, scratch, size, sizeof(header) + at) ||
            stk_crc32c(0, scratch, size) != header.sums[at / SUM_BYTES])
            return -1;
        memcpy(to + (from - offset), scratch + (from - at), end - from);
    }
    return (ssize_t)bytes;
}

/* A piece that this run uses must not look old, or it might be evicted. */
static void mark_used(const struct stk_disk_cache *cache, int fd)
{
    struct stat status;
    if (fstat(fd, &status) == 0 && stk_timespec_ns(status.st_mtim) < cache->opened_ns)
        (void)futimens(fd, NULL);
}

size_t stk_disk_cache_get(struct stk_disk_cache *cache, const struct stk_object_piece *piece,
                          size_t offset, void *to, size_t bytes)
{
    char name[NAME_BYTES];
    name_of(piece, name);
    const int fd = openat(cache->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const ssize_t got = fd < 0 ? 0 : read_verified(fd, piece, offset, to, bytes);
    if (got < 0)
        (void)unlinkat(cache->folder, name, 0);
    else if (got > 0)
        mark_used(cache, fd);
    if (fd >= 0)
        close(fd);
    add(got < 0 ? &cache->damaged : got == 0 ? &cache->misses : &cache->hits);
    return got < 0 ? 0 : (size_t)got;
}

/* ---- room ----------------------------------------------------------------------- */

struct entry {
    int64_t time_ns;
    uint64_t bytes;
    char name[NAME_BYTES];
};

struct entries {
    struct entry *each; /* those that may be evicted */
    size_t count, room;
    uint64_t all_bytes; /* of all files */
};

static void note_entry(struct entries *entries, const char *folder, const char *name,
                       const struct stat *status)
{
    if (entries->count == entries->room) {
        const size_t room = entries->room == 0 ? 1024 : entries->room * 2;
        struct entry *each = stk_calloc(room, sizeof(*each));
        if (each == NULL)
            return; /* it stays */
        if (entries->count > 0)
            memcpy(each, entries->each, entries->count * sizeof(*each));
        stk_free(entries->each);
        entries->each = each;
        entries->room = room;
    }
    struct entry *entry = &entries->each[entries->count];
    const int length = snprintf(entry->name, sizeof(entry->name), "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof(entry->name))
        return; /* not ours */
    entry->time_ns = stk_timespec_ns(status->st_mtim);
    entry->bytes = (uint64_t)status->st_size;
    entries->count++;
}

/* Count the files of one folder; remove what a process that was killed has left. */
static void look_into(const struct stk_disk_cache *cache, int number, struct entries *entries)
{
    char folder[4];
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    (void)snprintf(folder, sizeof(folder), "%02x", (unsigned)number);
    const int fd = openat(cache->folder, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (stream == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        struct stat status;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (entry->d_name[0] == '.' && status.st_mtim.tv_sec < now.tv_sec - ABANDONED_S &&
            unlinkat(fd, entry->d_name, 0) == 0)
            continue;
        entries->all_bytes += (uint64_t)status.st_size;
        if (entry->d_name[0] != '.' && stk_timespec_ns(status.st_mtim) < cache->opened_ns)
            note_entry(entries, folder, entry->d_name, &status);
    }
    closedir(stream);
}

static int older_first(const void *left, const void *right)
{
    const int64_t a = ((const struct entry *)left)->time_ns;
    const int64_t b = ((const struct entry *)right)->time_ns;
    return (a > b) - (a < b);
}

/* Count all files. If the room is used up, evict pieces from before this run until a tenth is
 * free. */
static void make_room(struct stk_disk_cache *cache, uint64_t wanted_bytes)
{
    struct entries entries = { .each = NULL };
    for (int number = 0; number < FOLDERS; number++)
        look_into(cache, number, &entries);
    if (entries.all_bytes + wanted_bytes > cache->bytes_max && entries.count > 0) {
        qsort(entries.each, entries.count, sizeof(entries.each[0]), older_first);
        const uint64_t target = cache->bytes_max - cache->bytes_max / 10;
        for (size_t i = 0; i < entries.count && entries.all_bytes + wanted_bytes > target; i++)
            if (unlinkat(cache->folder, entries.each[i].name, 0) == 0) {
                entries.all_bytes -= entries.each[i].bytes;
                add(&cache->evicted);
            }
    }
    atomic_store_explicit(&cache->used_bytes, entries.all_bytes, memory_order_relaxed);
    stk_free(entries.each);
}

static void rest(struct stk_disk_cache *cache)
{
    atomic_store_explicit(&cache->rests_until_ns, stk_now_ns() + REST_NS, memory_order_relaxed);
}

bool stk_disk_cache_takes(const struct stk_disk_cache *cache)
{
    return stk_now_ns() >= atomic_load_explicit(&cache->rests_until_ns, memory_order_relaxed);
}

/* Returns true if `bytes` more may be written, and counts them. */
static bool take_room(struct stk_disk_cache *cache, uint64_t bytes)
{
    if (!stk_disk_cache_takes(cache))
        return false;
    for (int looks = 0;; looks++) {
        uint64_t used = atomic_load_explicit(&cache->used_bytes, memory_order_relaxed);
        while (used + bytes <= cache->bytes_max)
            if (atomic_compare_exchange_weak_explicit(&cache->used_bytes, &used, used + bytes,
                                                      memory_order_relaxed, memory_order_relaxed))
                return true;
        if (looks > 0)
            break;
        if (pthread_mutex_trylock(&cache->making_room) != 0)
            return false; /* another thread looks */
        make_room(cache, bytes);
        pthread_mutex_unlock(&cache->making_room);
    }
    rest(cache);
    return false;
}

/* ---- put ------------------------------------------------------------------------ */

/* Create a file beside `name`, under a name that begins with a dot. */
static int create_beside(struct stk_disk_cache *cache, const char *name, char out[NAME_BYTES])
{
    const uint64_t number = atomic_fetch_add_explicit(&cache->next_name, 1, memory_order_relaxed);
    (void)snprintf(out, NAME_BYTES, "%.3s.%ld-%" PRIx64 "-%" PRIu64, name, (long)getpid(),
                   (uint64_t)(uintptr_t)cache, number);
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int fd = openat(cache->folder, out, flags, 0600);
    if (fd < 0 && errno == ENOENT) {
        const char folder[3] = { name[0], name[1], '\0' };
        (void)mkdirat(cache->folder, folder, 0700);
        fd = openat(cache->folder, out, flags, 0600);
    }
    return fd;
}

static bool write_piece(int fd, const struct stk_object_piece *piece, const void *at, size_t bytes)
{
    const struct header header = header_of(piece, at, bytes);
    return stk_write_all(fd, &header, sizeof(header)) && stk_write_all(fd, at, bytes);
}

void stk_disk_cache_put(struct stk_disk_cache *cache, const struct stk_object_piece *piece,
                        const void *bytes_of_piece, size_t bytes)
{
    char name[NAME_BYTES], temporary[NAME_BYTES];
    const uint64_t size = sizeof(struct header) + bytes;
    if (!take_room(cache, size)) {
        add(&cache->refused);
        return;
    }
    name_of(piece, name);
    const int fd = create_beside(cache, name, temporary);
    bool kept = fd >= 0 && write_piece(fd, piece, bytes_of_piece, bytes);
    kept = fd >= 0 && close(fd) == 0 && kept;
    kept = kept && renameat(cache->folder, temporary, cache->folder, name) == 0;
    if (!kept) { /* most likely the disk is full */
        if (fd >= 0)
            (void)unlinkat(cache->folder, temporary, 0);
        (void)atomic_fetch_sub_explicit(&cache->used_bytes, size, memory_order_relaxed);
        rest(cache);
    }
    add(kept ? &cache->kept : &cache->refused);
}

/* ---- claims --------------------------------------------------------------------- */

/* Returns the claim of a piece; claim_count = none. The caller holds claiming. */
static uint32_t find_claim(const struct stk_disk_cache *cache, const struct stk_object_piece *piece)
{
    uint32_t i = 0;
    while (i < cache->claim_count && !stk_object_piece_equals(&cache->claims[i], piece))
        i++;
    return i;
}

bool stk_disk_cache_claim(struct stk_disk_cache *cache, const struct stk_object_piece *piece)
{
    pthread_mutex_lock(&cache->claiming);
    const bool is_new =
        find_claim(cache, piece) == cache->claim_count && cache->claim_count < CLAIMS_MAX;
    if (is_new)
        cache->claims[cache->claim_count++] = *piece;
    pthread_mutex_unlock(&cache->claiming);
    return is_new;
}

void stk_disk_cache_release(struct stk_disk_cache *cache, const struct stk_object_piece *piece)
{
    pthread_mutex_lock(&cache->claiming);
    const uint32_t at = find_claim(cache, piece);
    if (at < cache->claim_count)
        cache->claims[at] = cache->claims[--cache->claim_count];
    pthread_mutex_unlock(&cache->claiming);
    (void)atomic_fetch_add(&cache->releases, 1U);
    stk_futex_wake(&cache->releases, UINT32_MAX);
}

uint32_t stk_disk_cache_releases(const struct stk_disk_cache *cache)
{
    return atomic_load(&cache->releases);
}

void stk_disk_cache_wait(struct stk_disk_cache *cache, uint32_t releases, int64_t wait_ns)
{
    stk_futex_wait(&cache->releases, releases, wait_ns);
}

/* ---- open and close ------------------------------------------------------------- */

static int failed(const char *folder, int os_errno, const char *what, stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    place.path = folder;
    place.os_errno = os_errno;
    return stk_error_set(error, stk_error_from_errno(os_errno), STOKER_STAGE_OPEN, &place,
                         "cache_dir: %s", what);
}

static int check_owner(int fd, const char *folder, stoker_error *error)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return failed(folder, errno, "fstat", error);
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return stk_refuse_file(error, STOKER_EACCES, folder, STOKER_NO_OFFSET,
                               "cache_dir: it belongs to user %lu, who could change what is read",
                               (unsigned long)status.st_uid);
    if ((status.st_mode & S_IWOTH) != 0)
        return stk_refuse_file(error, STOKER_EACCES, folder, STOKER_NO_OFFSET,
                               "cache_dir: every user may write to it (mode %03o), and could "
                               "change what is read",
                               (unsigned)status.st_mode & 0777);
    return STOKER_OK;
}

/* A write beyond this limit would send SIGXFSZ. */
static bool pieces_fit_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           limit.rlim_cur >= sizeof(struct header) + STK_PIECE_BYTES;
}

static uint64_t choose_bytes_max(const struct stk_disk_cache *cache, uint64_t bytes_max)
{
    struct statvfs status;
    if (bytes_max != STOKER_BYTES_AUTO || fstatvfs(cache->folder, &status) != 0)
        return bytes_max;
    return atomic_load_explicit(&cache->used_bytes, memory_order_relaxed) +
           (uint64_t)status.f_bavail * status.f_frsize / 10 * 9;
}

int stk_disk_cache_open(struct stk_disk_cache **out, const char *folder, uint64_t bytes_max,
                        stoker_error *error)
{
    struct timespec now;
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return failed(folder, errno, "making the folder", error);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return failed(folder, errno, "opening the folder", error);
    int rc = check_owner(fd, folder, error);
    struct stk_disk_cache *cache = rc == STOKER_OK ? stk_calloc(1, sizeof(*cache)) : NULL;
    if (cache == NULL) {
        close(fd);
        return rc != STOKER_OK
                   ? rc
                   : stk_refuse_file(error, STOKER_ENOMEM, folder, STOKER_NO_OFFSET, "cache_dir");
    }
    /* The clock of file times, which lags behind the exact one. */
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    cache->folder = fd;
    cache->opened_ns = stk_timespec_ns(now);
    cache->bytes_max = UINT64_MAX;
    pthread_mutex_init(&cache->making_room, NULL);
    pthread_mutex_init(&cache->claiming, NULL);
    make_room(cache, 0);
    cache->bytes_max = !pieces_fit_limit() ? 0 : choose_bytes_max(cache, bytes_max);
    *out = cache;
    return STOKER_OK;
}

void stk_disk_cache_close(struct stk_disk_cache *cache)
{
    if (cache == NULL)
        return;
    pthread_mutex_destroy(&cache->making_room);
    pthread_mutex_destroy(&cache->claiming);
    close(cache->folder);
    stk_free(cache);
}

struct stk_disk_cache_counts stk_disk_cache_count(const struct stk_disk_cache *cache)
{
    return (struct stk_disk_cache_counts){
        .hits = atomic_load_explicit(&cache->hits, memory_order_relaxed),
        .misses = atomic_load_explicit(&cache->misses, memory_order_relaxed),
        .damaged = atomic_load_explicit(&cache->damaged, memory_order_relaxed),
        .kept = atomic_load_explicit(&cache->kept, memory_order_relaxed),
        .refused = atomic_load_explicit(&cache->refused, memory_order_relaxed),
        .evicted = atomic_load_explicit(&cache->evicted, memory_order_relaxed)
    };
}
