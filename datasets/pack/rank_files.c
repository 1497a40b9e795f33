/* rank_files.c - see rank_files.h.
 *
 * A file has one line, of a fixed length so that a shorter one leaves nothing behind:
 *   rank 3 of 8, process 4711 on NODE; state 2, samples 5120, beat 17
 */
#include "datasets/pack/rank_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "datasets/pack/lock.h"
#include "loader/base/clock.h"
#include "loader/base/printable.h"

enum { OWN_TRIES = 100, PAUSE_NS = 10000000, NODE_BYTES = 64 };

#define OFTEN_NS UINT64_C(100000000)

static bool path_of(const struct pack_ranks *ranks, uint32_t rank, char path[PACK_PATH_BYTES])
{
    const int length = snprintf(path, PACK_PATH_BYTES, "%s/rank-%u", ranks->folder, rank);
    return length >= 0 && length < PACK_PATH_BYTES;
}

/* ---- the own file --------------------------------------------------------------- */

static bool write_own(struct pack_ranks *ranks, struct pack_failure *failure)
{
    char text[PACK_RANK_TEXT_BYTES] = "";
    char node[NODE_BYTES] = "";
    (void)gethostname(node, sizeof(node) - 1);
    const int length =
        snprintf(text, sizeof(text),
                 "rank %u of %u, process %ld on %s; state %u, samples %" PRIu64 ", beat %" PRIu64,
                 ranks->rank, ranks->world_size, (long)getpid(), node, (unsigned)ranks->state,
                 ranks->samples, ranks->beat++);
    memset(text + length, ' ', sizeof(text) - 1 - (size_t)length);
    text[sizeof(text) - 1] = '\n';
    ranks->written_ns = stk_now_ns();
    return pwrite(ranks->fd, text, sizeof(text), 0) == (ssize_t)sizeof(text) ||
           pack_fail(failure, ranks->folder, errno, "writing the file of rank %u", ranks->rank);
}

/* Others look at a file by a lock of their own, for a moment. So only a lock that stays is another packer's. */
static int lock_own(const char *path, struct pack_failure *failure)
{
    for (int tried = 0; tried < OWN_TRIES; tried++) {
        bool taken = false;
        const int fd = pack_claim(path, &taken, failure);
        if (fd >= 0 || !taken)
            return fd;
        (void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
    }
    (void)pack_fail(failure, path, 0, "another stoker-pack is this rank, and is packing into it");
    return -1;
}

bool pack_ranks_enter(struct pack_ranks *ranks, struct pack_failure *failure)
{
    char path[PACK_PATH_BYTES];
    ranks->fd = -1;
    ranks->others = calloc(ranks->world_size, sizeof(*ranks->others));
    if (ranks->others == NULL)
        return pack_fail(failure, ranks->folder, ENOMEM, "the ranks");
    if (!path_of(ranks, ranks->rank, path))
        return pack_fail(failure, ranks->folder, 0, "the path is too long");
    ranks->fd = lock_own(path, failure);
    return ranks->fd >= 0 && write_own(ranks, failure);
}

bool pack_ranks_say(struct pack_ranks *ranks, enum pack_rank_state state, uint64_t samples,
                    struct pack_failure *failure)
{
    const bool same = state == ranks->state;
    ranks->samples = samples;
    ranks->state = state;
    return (same && stk_now_ns() - ranks->written_ns < OFTEN_NS) || write_own(ranks, failure);
}

void pack_ranks_leave(struct pack_ranks *ranks)
{
    char path[PACK_PATH_BYTES];
    if (ranks->fd >= 0 && path_of(ranks, ranks->rank, path))
        pack_claim_end(ranks->fd, path);
    ranks->fd = -1;
    free(ranks->others);
    ranks->others = NULL;
}

/* ---- the others ----------------------------------------------------------------- */

struct view {
    bool alive;
    unsigned world_size;
    unsigned state;
    uint64_t samples;
    char text[PACK_RANK_TEXT_BYTES];
};

/* Opened again each time: over a network, only a new descriptor is sure to see what another node wrote. */
static struct view look_at(const struct pack_ranks *ranks, uint32_t rank)
{
    struct view view = { .alive = false };
    char path[PACK_PATH_BYTES];
    const int fd = path_of(ranks, rank, path) ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd < 0)
        return view;
    view.alive = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    const ssize_t got = pread(fd, view.text, sizeof(view.text) - 1, 0);
    close(fd);
    view.text[got < 0 ? 0 : got] = '\0';
    if (sscanf(view.text, "rank %*u of %u, %*[^;]; state %u, samples %" SCNu64, &view.world_size,
               &view.state, &view.samples) != 3)
        view.alive = false; /* not written yet */
    return view;
}

/* "process 4711 on NODE", of what a rank last wrote. */
static const char *process_in(const char *text, char process[PACK_RANK_TEXT_BYTES])
{
    const char *begin = strstr(text, "process ");
    const char *end = begin == NULL ? NULL : strchr(begin, ';');
    if (end == NULL)
        (void)snprintf(process, PACK_RANK_TEXT_BYTES, "process unknown");
    else
        (void)snprintf(process, PACK_RANK_TEXT_BYTES, "%.*s", (int)(end - begin), begin);
    stk_printable(process);
    return process;
}

/* Returns false if this rank can be waited for no longer. */
static bool judge(struct pack_ranks *ranks, uint32_t rank, const struct view *view, bool *gone,
                  struct pack_failure *failure)
{
    char process[PACK_RANK_TEXT_BYTES];
    struct pack_other_rank *other = &ranks->others[rank];
    const uint64_t now = stk_now_ns();
    if (!view->alive) {
        /* Behind the join all have come, even one that ended before this rank looked. */
        *gone = other->seen || ranks->state >= PACK_RANK_WORKING;
        return !*gone || pack_fail(failure, ranks->folder, 0,
                                   "rank %u (%s) ended before the packing was complete", rank,
                                   process_in(other->seen ? other->text : view->text, process));
    }
    if (view->world_size != ranks->world_size)
        return pack_fail(failure, ranks->folder, 0,
                         "rank %u is one of %u ranks, and this is rank %u of %u", rank,
                         view->world_size, ranks->rank, ranks->world_size);
    if (!other->seen || strcmp(other->text, view->text) != 0)
        other->moved_ns = now;
    other->seen = true;
    other->samples = view->samples;
    memcpy(other->text, view->text, sizeof(other->text));
    if (ranks->state != PACK_RANK_WAITING || view->state == PACK_RANK_WAITING ||
        now - other->moved_ns < ranks->timeout_ns)
        return true;
    return pack_fail(failure, ranks->folder, 0, "rank %u (%s) has done nothing for %.0f s", rank,
                     process_in(other->text, process), stk_seconds(now - other->moved_ns));
}

bool pack_ranks_watch(struct pack_ranks *ranks, bool *gone, struct pack_failure *failure)
{
    *gone = false;
    if (stk_now_ns() - ranks->watched_ns < OFTEN_NS)
        return true;
    for (uint32_t rank = 0; rank < ranks->world_size; rank++) {
        if (rank == ranks->rank)
            continue;
        const struct view view = look_at(ranks, rank);
        if (!judge(ranks, rank, &view, gone, failure))
            return false;
    }
    ranks->watched_ns = stk_now_ns();
    return true;
}

static bool is_ready(const struct pack_other_rank *other)
{
    unsigned state = 0;
    return other->seen && sscanf(other->text, "%*[^;]; state %u", &state) == 1 &&
           state >= PACK_RANK_READY;
}

bool pack_ranks_joined(const struct pack_ranks *ranks)
{
    for (uint32_t rank = 0; rank < ranks->world_size; rank++)
        if (rank != ranks->rank && !is_ready(&ranks->others[rank]))
            return false;
    return true;
}

uint32_t pack_ranks_missing(const struct pack_ranks *ranks)
{
    uint32_t rank = 0;
    while (rank < ranks->world_size && (rank == ranks->rank || ranks->others[rank].seen))
        rank++;
    return rank;
}

uint64_t pack_ranks_samples(const struct pack_ranks *ranks)
{
    uint64_t samples = ranks->samples;
    for (uint32_t rank = 0; rank < ranks->world_size; rank++)
        samples += rank == ranks->rank ? 0 : ranks->others[rank].samples;
    return samples;
}
