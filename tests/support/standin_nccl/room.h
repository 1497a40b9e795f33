/* room.h - the segment of shared memory in which the ranks of a communicator meet. A process maps
 * it once. */
#ifndef STK_TESTS_STANDIN_NCCL_ROOM_H
#define STK_TESTS_STANDIN_NCCL_ROOM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { ROOM_RANKS_MAX = 8, ROOM_CHUNK_BYTES = 1 << 16, ROOM_NAME_BYTES = 64 };

/* What a rank does. Written by it between two barriers, and read by all after the next. */
struct room_place {
    _Atomic uint64_t arrived; /* barriers that it has come to; release, read with acquire */
    _Atomic uint32_t joined;  /* 1 after `device` was written */
    int device;
    uint32_t kind, captured;
    uint64_t bytes, number, turn;
};

struct room_shared {
    struct room_place place[ROOM_RANKS_MAX];
    unsigned char data[ROOM_RANKS_MAX][ROOM_CHUNK_BYTES];
};

struct room {
    struct room *next;
    char name[ROOM_NAME_BYTES];
    struct room_shared *shared;
    uint32_t users;
};

/* A name that no other call of any process returns. */
void room_name(char name[ROOM_NAME_BYTES]);
struct room *room_enter(const char *name); /* NULL: no shared memory */
void room_leave(struct room *room);
/* No rank enters any more. */
void room_forget(const struct room *room);

/* The `number`th barrier of this rank: returns false if *gone was set while it waited. */
bool room_barrier(struct room *room, uint32_t rank, uint32_t ranks, uint64_t number,
                  const _Atomic bool *gone);

#endif
