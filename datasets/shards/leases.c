/* leases.c - see leases.h. */
#include "datasets/shards/leases.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "datasets/shards/set.h"
#include "loader/base/cpu/thread.h"
#include "loader/dataset/format.h"

enum { POLL_NS = 100000000, POLL_FILE_NS = 100000 }; /* 0.3 % of a CPU for any number of files */

static bool take(int fd)
{
    struct statfs in;
    /* On overlayfs a lease does not stop writers of the lower layer. */
    if (fstatfs(fd, &in) != 0 || in.f_type == OVERLAYFS_SUPER_MAGIC)
        return false;
    /* The kernel sends a signal to the file's owner: first one that does nothing by default, in
     * case someone writes between the calls, then none. */
    if (fcntl(fd, F_SETSIG, SIGURG) != 0 || fcntl(fd, F_SETLEASE, F_RDLCK) != 0)
        return false;
    if (fcntl(fd, F_SETOWN, 0) == 0)
        return true;
    (void)fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
}

static void give_back(struct stk_shard_file *file)
{
    (void)fcntl(file->source.fd, F_SETLEASE, F_UNLCK);
    file->leased = false;
}

/* Stop handing out mappings of files that someone wants to write to. Returns true if there are
 * any. */
static bool find_wanted(const struct stk_shard_leases *leases)
{
    bool found = false;
    for (uint32_t i = 0; i < leases->count; i++) {
        struct stk_shard_file *file = &leases->files[i];
        if (!file->leased || fcntl(file->source.fd, F_GETLEASE) == F_RDLCK)
            continue;
        /* Relaxed: readers see it once they see the turn that stk_recall() begins. */
        atomic_store_explicit(&file->mapped, NULL, memory_order_relaxed);
        found = true;
    }
    return found;
}

static void *watch(void *argument)
{
    struct stk_shard_leases *leases = argument;
    const int64_t pause_ns = POLL_NS + (int64_t)leases->count * POLL_FILE_NS;
    while (atomic_load(&leases->stop) == 0) {
        const bool recalled = find_wanted(leases) && stk_recall(&leases->stop);
        for (uint32_t i = 0; recalled && i < leases->count; i++) {
            struct stk_shard_file *file = &leases->files[i];
            if (file->leased && atomic_load_explicit(&file->mapped, memory_order_relaxed) == NULL)
                give_back(file);
        }
        stk_futex_wait(&leases->stop, 0, pause_ns);
    }
    return NULL;
}

void stk_shard_leases_begin(struct stk_shard_leases *leases, struct stk_shard_file *files,
                            uint32_t count)
{
    leases->files = files;
    leases->count = count;
    leases->maker = getpid();
    for (uint32_t i = 0; i < count; i++) {
        files[i].leased = take(files[i].source.fd);
        leases->watched = leases->watched || files[i].leased;
    }
    if (!leases->watched ||
        stk_thread_start(&leases->watch, "stoker-leases", watch, leases) == STOKER_OK)
        return;
    leases->watched = false;
    for (uint32_t i = 0; i < count; i++)
        if (files[i].leased)
            give_back(&files[i]);
}

void stk_shard_leases_end(struct stk_shard_leases *leases)
{
    if (!leases->watched || leases->maker != getpid())
        return;
    atomic_store(&leases->stop, 1U);
    stk_futex_wake(&leases->stop, 1U);
    pthread_join(leases->watch, NULL);
    for (uint32_t i = 0; i < leases->count;
         i++) /* closing keeps those that a child has inherited */
        if (leases->files[i].leased)
            give_back(&leases->files[i]);
    leases->watched = false;
}
