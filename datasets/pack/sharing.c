/* sharing.c - see sharing.h. */
#include "datasets/pack/sharing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "datasets/pack/lock.h"
#include "datasets/pack/shard_files.h"
#include "loader/base/clock.h"

enum { PLAN_BYTES = 8192, PARTS_MAX = 16384, PAUSE_NS = 5000000 };

#define PART_BYTES                                                                                 \
    ((uint64_t)16 << 20) /* rows of some seconds of work, so that ranks end together */

static const char FOLDER[] = ".parts";

__attribute__((format(printf, 3, 4))) static bool path_in(const char *folder,
                                                          char path[PACK_PATH_BYTES],
                                                          const char *format, ...)
{
    va_list arguments;
    const int length = snprintf(path, PACK_PATH_BYTES, "%s/", folder);
    if (length < 0 || length >= PACK_PATH_BYTES)
        return false;
    va_start(arguments, format);
    const int more =
        vsnprintf(path + length, (size_t)(PACK_PATH_BYTES - length), format, arguments);
    va_end(arguments);
    return more >= 0 && more < PACK_PATH_BYTES - length;
}

static void pause_a_moment(void)
{
    (void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
}

/* ---- what is packed ------------------------------------------------------------- */

bool pack_sharing_needed(const struct pack_arguments *arguments, const stoker_ranks *ranks)
{
    char path[PACK_PATH_BYTES];
    if (ranks->world_size > 1)
        return true;
    return arguments->form == PACK_SHARDS && path_in(arguments->target, path, "%s", FOLDER) &&
           access(path, F_OK) == 0;
}

bool pack_sharing_set(struct pack_sharing *sharing, const struct pack_plan *plan,
                      const stoker_ranks *ranks, uint32_t step, uint64_t row_bytes,
                      struct pack_failure *failure)
{
    const uint64_t count = plan->info->count;
    const uint64_t shard_bytes = plan->arguments->shard_bytes;
    const uint64_t part_bytes = shard_bytes < PART_BYTES ? shard_bytes : PART_BYTES;
    uint64_t steps = part_bytes / (row_bytes * step);
    if (steps < (count / step) / PARTS_MAX + 1)
        steps = (count / step) / PARTS_MAX + 1;
    *sharing = (struct pack_sharing){ .plan = plan, .claim = -1, .part_samples = steps * step };
    sharing->ranks =
        (struct pack_ranks){ .folder = sharing->folder,
                             .rank = ranks->rank,
                             .world_size = ranks->world_size,
                             .timeout_ns = UINT64_C(1000000000) * plan->arguments->peer_timeout_s,
                             .fd = -1 };
    sharing->part_count = (uint32_t)((count + sharing->part_samples - 1) / sharing->part_samples);
    sharing->complete = calloc(sharing->part_count, sizeof(*sharing->complete));
    if (sharing->complete == NULL)
        return pack_fail(failure, plan->arguments->target, ENOMEM, "the parts");
    return path_in(plan->arguments->target, sharing->folder, "%s", FOLDER) ||
           pack_fail(failure, plan->arguments->target, 0, "the path is too long");
}

void pack_sharing_begin_progress(struct pack_sharing *sharing, uint64_t done)
{
    const struct pack_plan *plan = sharing->plan;
    sharing->progress = pack_progress_begin("packed", done, plan->info->count,
                                            plan->arguments->quiet || sharing->ranks.rank != 0);
}

struct pack_part_place pack_sharing_place(const struct pack_sharing *sharing, uint32_t part)
{
    const uint64_t first = part * sharing->part_samples;
    const uint64_t left = sharing->plan->info->count - first;
    return (struct pack_part_place){ .set_id = sharing->plan->set_id,
                                     .number = part,
                                     .first = first,
                                     .count = left < sharing->part_samples
                                                  ? left
                                                  : sharing->part_samples };
}

/* ---- the plan ------------------------------------------------------------------- */

/* A line per thing that must be the same in all ranks and runs. */
static int describe(const struct pack_sharing *sharing, const stoker_state *state,
                    char text[PLAN_BYTES])
{
    const struct pack_arguments *arguments = sharing->plan->arguments;
    char token[2 * sizeof(state->bytes) + 1] = "";
    for (size_t i = 0; state != NULL && i < sizeof(state->bytes); i++)
        (void)snprintf(token + 2 * i, 3, "%02x", state->bytes[i]);
    return snprintf(text, PLAN_BYTES,
                    "parts of stoker-pack, version 1\nsource %s\nsplit %s\nsamples %" PRIu64
                    "\nfingerprint of the source %016" PRIx64
                    "\n--codec %s\n--quality %u\n--level %u\n--shard-bytes %" PRIu64
                    "\nsamples in a part %" PRIu64 "\nset %016" PRIx64 "\nstate %s\n",
                    arguments->source, arguments->split == NULL ? "" : arguments->split,
                    sharing->plan->info->count, stoker_dataset_fingerprint(sharing->plan->source),
                    pack_codec_name(arguments->codec), arguments->quality, arguments->level,
                    arguments->shard_bytes, sharing->part_samples, sharing->plan->set_id, token);
}

/* Names the first line that differs. */
static bool refuse_plan(const char *path, const char *found, const char *due,
                        struct pack_failure *failure)
{
    while (*found != '\0' && *due != '\0') {
        const int found_bytes = (int)strcspn(found, "\n");
        const int due_bytes = (int)strcspn(due, "\n");
        if (found_bytes != due_bytes || memcmp(found, due, (size_t)due_bytes) != 0)
            return pack_fail(failure, path, 0,
                             "an earlier run packed another set: \"%.*s\", and this is \"%.*s\"; "
                             "remove the folder, or pack elsewhere",
                             found_bytes < 150 ? found_bytes : 150, found,
                             due_bytes < 150 ? due_bytes : 150, due);
        found += found_bytes + (found[found_bytes] == '\n');
        due += due_bytes + (due[due_bytes] == '\n');
    }
    return pack_fail(failure, path, 0, "it is damaged; remove the folder, or pack elsewhere");
}

static bool write_plan(const struct pack_sharing *sharing, const char *text,
                       struct pack_failure *failure)
{
    struct pack_output output = { .file = NULL };
    const bool good = pack_output_begin(&output, sharing->folder, "plan", failure) &&
                      pack_output_write(&output, text, strlen(text), failure) &&
                      pack_output_commit(&output, true, failure);
    pack_output_drop(&output);
    return good;
}

/* Under a claim. */
static bool settle_plan(const struct pack_sharing *sharing, const char *due,
                        struct pack_failure *failure)
{
    char path[PACK_PATH_BYTES];
    char found[PLAN_BYTES + 1];
    if (!path_in(sharing->folder, path, "plan"))
        return pack_fail(failure, sharing->folder, 0, "the path is too long");
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? write_plan(sharing, due, failure)
                               : pack_fail(failure, path, errno, "opening");
    const ssize_t got = read(fd, found, PLAN_BYTES);
    const int os_errno = errno;
    close(fd);
    if (got < 0)
        return pack_fail(failure, path, os_errno, "reading");
    found[got] = '\0';
    return strcmp(found, due) == 0 || refuse_plan(path, found, due, failure);
}

static bool agree_on_plan(struct pack_sharing *sharing, const stoker_state *state,
                          struct pack_failure *failure)
{
    char text[PLAN_BYTES];
    char path[PACK_PATH_BYTES];
    const int length = describe(sharing, state, text);
    const uint64_t until_ns = stk_now_ns() + sharing->ranks.timeout_ns;
    if (length < 0 || length >= PLAN_BYTES || !path_in(sharing->folder, path, "claim-plan"))
        return pack_fail(failure, sharing->folder, 0, "the source's name is too long");
    while (stk_now_ns() < until_ns) {
        bool taken = false;
        const int claim = pack_claim(path, &taken, failure);
        if (claim < 0 && !taken)
            return false;
        if (claim >= 0) {
            const bool good = settle_plan(sharing, text, failure);
            pack_claim_end(claim, path);
            return good;
        }
        pause_a_moment();
    }
    return pack_fail(failure, path, 0, "another rank holds it");
}

/* ---- all ranks come ------------------------------------------------------------- */

/* A new shard shows that all ranks have come: some rank has seen them, and may have left since. */
static bool wait_for_all(struct pack_sharing *sharing, uint32_t published,
                         struct pack_failure *failure)
{
    struct pack_ranks *ranks = &sharing->ranks;
    const uint64_t until_ns = stk_now_ns() + ranks->timeout_ns;
    while (!pack_ranks_joined(ranks) && !pack_sharing_is_published(sharing, published)) {
        bool gone = false;
        if (!pack_ranks_watch(ranks, &gone, failure)) {
            if (!gone)
                return false;
            /* It may have found everything complete already: then so does this rank, or it notices again. */
            failure->text[0] = '\0';
            return true;
        }
        if (stk_now_ns() > until_ns) {
            const uint32_t rank = pack_ranks_missing(ranks);
            if (rank == ranks->world_size)
                return pack_fail(failure, sharing->folder, 0, "a rank does not begin");
            return pack_fail(failure, sharing->folder, 0,
                             "rank %u of %u has not come within %.0f s", rank, ranks->world_size,
                             stk_seconds(ranks->timeout_ns));
        }
        pause_a_moment();
    }
    return true;
}

bool pack_sharing_join(struct pack_sharing *sharing, uint32_t published, const stoker_state *state,
                       struct pack_failure *failure)
{
    if (mkdir(sharing->folder, 0755) != 0 && errno != EEXIST)
        return pack_fail(failure, sharing->folder, errno, "it could not be made");
    return pack_sync_parent(sharing->folder, failure) &&
           pack_ranks_enter(&sharing->ranks, failure) && agree_on_plan(sharing, state, failure) &&
           pack_ranks_say(&sharing->ranks, PACK_RANK_READY, 0, failure) &&
           wait_for_all(sharing, published, failure);
}

/* ---- shards --------------------------------------------------------------------- */

static bool exists(const char *folder, uint32_t number)
{
    char path[PACK_PATH_BYTES];
    char name[PACK_SHARD_NAME_BYTES];
    return path_in(folder, path, "%s", pack_shard_name(name, number)) && access(path, F_OK) == 0;
}

bool pack_sharing_is_published(struct pack_sharing *sharing, uint32_t number)
{
    while (sharing->published <= number &&
           exists(sharing->plan->arguments->target, sharing->published))
        sharing->published++;
    return number < sharing->published;
}

int pack_sharing_claim(struct pack_sharing *sharing, uint32_t number, struct pack_failure *failure)
{
    bool taken = false;
    if (exists(sharing->folder, number) || pack_sharing_is_published(sharing, number))
        return 0;
    if (!path_in(sharing->folder, sharing->claim_path, "claim-shard-%u", number)) {
        (void)pack_fail(failure, sharing->folder, 0, "the path is too long");
        return -1;
    }
    sharing->claim = pack_claim(sharing->claim_path, &taken, failure);
    if (sharing->claim < 0)
        return taken ? 0 : -1;
    if (!exists(sharing->folder, number) && !pack_sharing_is_published(sharing, number))
        return 1;
    pack_claim_end(sharing->claim, sharing->claim_path); /* another rank was faster */
    sharing->claim = -1;
    return 0;
}

bool pack_sharing_written(struct pack_sharing *sharing, struct pack_failure *failure)
{
    pack_claim_end(sharing->claim, sharing->claim_path);
    sharing->claim = -1;
    return pack_sharing_publish(sharing, failure);
}

/* Under a claim. */
static bool publish_all(struct pack_sharing *sharing, struct pack_failure *failure)
{
    char from[PACK_PATH_BYTES];
    char to[PACK_PATH_BYTES] = "";
    char name[PACK_SHARD_NAME_BYTES];
    bool any = false;
    for (;;) {
        while (pack_sharing_is_published(sharing, sharing->published))
            continue;
        (void)pack_shard_name(name, sharing->published);
        if (!path_in(sharing->folder, from, "%s", name) ||
            !path_in(sharing->plan->arguments->target, to, "%s", name))
            return pack_fail(failure, sharing->folder, 0, "the path is too long");
        if (rename(from, to) != 0)
            break;
        any = true;
    }
    if (errno != ENOENT)
        return pack_fail(failure, to, errno, "giving it its name");
    return !any || pack_sync_parent(to, failure);
}

bool pack_sharing_publish(struct pack_sharing *sharing, struct pack_failure *failure)
{
    char path[PACK_PATH_BYTES];
    bool taken = false;
    (void)pack_sharing_is_published(sharing, sharing->published);
    if (!exists(sharing->folder, sharing->published))
        return true;
    if (!path_in(sharing->folder, path, "claim-publish"))
        return pack_fail(failure, sharing->folder, 0, "the path is too long");
    const int claim = pack_claim(path, &taken, failure);
    if (claim < 0)
        return taken;
    const bool good = publish_all(sharing, failure);
    pack_claim_end(claim, path);
    return good;
}

/* ---- what is of no more use ----------------------------------------------------- */

void pack_sharing_forget(struct pack_sharing *sharing, uint32_t number, uint64_t first)
{
    if (sharing->pending > 0 && !pack_sharing_is_published(sharing, sharing->pending - 1))
        return;
    for (; sharing->removed < sharing->pending_part; sharing->removed++) {
        char path[PACK_PATH_BYTES];
        char name[PACK_PART_NAME_BYTES];
        if (path_in(sharing->folder, path, "%s", pack_part_name(name, sharing->removed)))
            (void)unlink(path);
    }
    sharing->pending = number;
    sharing->pending_part = (uint32_t)(first / sharing->part_samples);
}

/* True if the file is that of a rank that lives. */
static bool is_in_use(int folder, const char *name)
{
    if (strncmp(name, "rank-", 5) != 0)
        return false;
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    const bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0;
    if (fd >= 0)
        close(fd);
    return locked;
}

void pack_sharing_tidy(struct pack_sharing *sharing)
{
    pack_ranks_leave(&sharing->ranks);
    DIR *stream = opendir(sharing->folder);
    const struct dirent *entry;
    if (stream == NULL)
        return;
    while ((entry = readdir(stream)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            !is_in_use(dirfd(stream), entry->d_name))
            (void)unlinkat(dirfd(stream), entry->d_name, 0);
    closedir(stream);
    (void)rmdir(sharing->folder); /* the last rank succeeds */
}

void pack_sharing_close(struct pack_sharing *sharing)
{
    if (sharing->plan == NULL)
        return;
    if (sharing->claim >= 0)
        pack_claim_end(sharing->claim, sharing->claim_path);
    pack_ranks_leave(&sharing->ranks);
    free(sharing->complete);
    *sharing = (struct pack_sharing){ .claim = -1, .ranks = { .fd = -1 } };
}
