/* room.c - see room.h. */
#include "support/standin_nccl/room.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct room *rooms; /* guarded by lock */

void room_name(char name[ROOM_NAME_BYTES])
{
    static _Atomic uint32_t names;
    (void)snprintf(name, ROOM_NAME_BYTES, "/standin_nccl.%ld.%u", (long)getpid(),
                   atomic_fetch_add(&names, 1U));
}

/* The first process makes it; new memory is zero. */
static struct room_shared *map(const char *name)
{
    const int file = shm_open(name, O_CREAT | O_RDWR, 0600);
    if (file < 0)
        return NULL;
    void *memory = MAP_FAILED;
    if (ftruncate(file, (off_t)sizeof(struct room_shared)) == 0)
        memory =
            mmap(NULL, sizeof(struct room_shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    (void)close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Under the lock. */
static struct room *make(const char *name)
{
    struct room_shared *const shared = map(name);
    struct room *const room = shared == NULL ? NULL : calloc(1, sizeof(*room));
    if (room == NULL)
        return NULL;
    (void)snprintf(room->name, sizeof(room->name), "%s", name);
    room->shared = shared;
    room->next = rooms;
    rooms = room;
    return room;
}

struct room *room_enter(const char *name)
{
    (void)pthread_mutex_lock(&lock);
    struct room *room = rooms;
    while (room != NULL && strcmp(room->name, name) != 0)
        room = room->next;
    if (room == NULL)
        room = make(name);
    if (room != NULL)
        room->users++;
    (void)pthread_mutex_unlock(&lock);
    return room;
}

void room_leave(struct room *room)
{
    (void)pthread_mutex_lock(&lock);
    if (--room->users == 0) {
        struct room **link = &rooms;
        while (*link != room)
            link = &(*link)->next;
        *link = room->next;
        (void)shm_unlink(room->name); /* if the ranks never were all there */
        (void)munmap(room->shared, sizeof(*room->shared));
        free(room);
    }
    (void)pthread_mutex_unlock(&lock);
}

void room_forget(const struct room *room)
{
    (void)shm_unlink(room->name);
}

bool room_barrier(struct room *room, uint32_t rank, uint32_t ranks, uint64_t number,
                  const _Atomic bool *gone)
{
    enum { YIELDS = 100, SLEEP_NS = 50000 };
    struct room_place *const place = room->shared->place;
    atomic_store_explicit(&place[rank].arrived, number, memory_order_release);
    for (uint32_t r = 0; r < ranks; r++)
        for (uint32_t turn = 0;
             atomic_load_explicit(&place[r].arrived, memory_order_acquire) < number; turn++) {
            if (atomic_load(gone))
                return false;
            if (turn < YIELDS)
                (void)sched_yield();
            else
                (void)nanosleep(&(struct timespec){ .tv_nsec = SLEEP_NS }, NULL);
        }
    return true;
}
