/* thread_mpi.h - the functions of mpi_functions.h, for ranks that are threads of one process; each
 * call can be made to fail.
 *
 *   collective call n of communicator c one struct op, which the last rank to come completes for
 *   all
 *   message                               a copy in the list of the world, until its rank receives
 *                                         it
 *
 * A world has its own memory, so what ranks abandon is freed with it. */
#ifndef STK_TEST_THREAD_MPI_H
#define STK_TEST_THREAD_MPI_H

#include <pthread.h>

#include "support/thread_check.h"
#include "trainer/peers/mpi/functions.h"

enum { RANKS_MAX = 4, FAILED_CODE = 7 };

struct stk_mpi_communicator {
    uint32_t id, calls; /* calls: of this rank, on this communicator */
};

enum op_kind { OP_SUM, OP_GATHER, OP_EXCHANGE, OP_PARTS, OP_BROADCAST, OP_DUPLICATE };

struct op {
    struct op *next;
    uint32_t communicator, call, come, made; /* made: the duplicate's id */
    enum op_kind kind;
    size_t bytes;
    const void *from[RANKS_MAX];
    void *to[RANKS_MAX];
    const struct stk_mpi_parts *from_parts[RANKS_MAX], *to_parts[RANKS_MAX];
    bool done;
};

struct message {
    struct message *next;
    uint32_t to, communicator;
    size_t bytes;
    uint8_t data[512];
    bool taken;
};

struct block {
    struct block *next;
    uint64_t memory[]; /* as aligned as malloc's */
};

/* All of it is guarded by the lock. */
struct world {
    pthread_mutex_t lock;
    uint32_t ranks, communicators;
    struct op *ops;
    struct message *messages;
    struct block *blocks;
    /* The call that fails, on the last rank; counts down. Of tests only, or of all other calls. */
    uint32_t left, tests_left;
    bool failed;
};

static struct world *world;
static _Thread_local uint32_t my_rank;

static const uint32_t NEVER = UINT32_MAX;

static inline void world_begin(uint32_t ranks, uint32_t failing_call, uint32_t failing_test)
{
    world = calloc(1, sizeof(*world));
    CHECK(world != NULL);
    CHECK(pthread_mutex_init(&world->lock, NULL) == 0);
    world->ranks = ranks;
    world->communicators = 1; /* 0: all */
    world->left = failing_call;
    world->tests_left = failing_test;
}

/* Zeroed memory of the world. The lock is held. */
static inline void *world_memory(size_t bytes)
{
    struct block *const block = calloc(1, sizeof(*block) + bytes);
    CHECK(block != NULL);
    block->next = world->blocks;
    world->blocks = block;
    return block->memory;
}

/* An array that lives as long as the world. */
static inline float *world_floats(size_t count)
{
    (void)pthread_mutex_lock(&world->lock);
    float *const floats = world_memory(count * sizeof(*floats));
    (void)pthread_mutex_unlock(&world->lock);
    return floats;
}

static inline void world_end(void)
{
    while (world->blocks != NULL) {
        struct block *const next = world->blocks->next;
        free(world->blocks);
        world->blocks = next;
    }
    (void)pthread_mutex_destroy(&world->lock);
    free(world);
    world = NULL;
}

/* Takes the lock; true: this call fails. */
static inline bool enter(uint32_t *left)
{
    (void)pthread_mutex_lock(&world->lock);
    if (my_rank + 1 != world->ranks || *left == NEVER || (*left)-- != 0)
        return false;
    *left = NEVER;
    world->failed = true;
    return true;
}

static inline int leave_with(int code)
{
    (void)pthread_mutex_unlock(&world->lock);
    return code;
}

/* Rank r's part of what `other` sends; in place, `other` sends its own part. */
static inline void copy_part(const struct op *op, uint32_t r, uint32_t other)
{
    const uint32_t part = op->kind == OP_PARTS ? other : r;
    const struct stk_mpi_parts *const from = op->from_parts[other];
    const struct stk_mpi_parts *const to = op->to_parts[r];
    CHECK(from->count[part] == to->count[other]);
    memcpy((float *)op->to[r] + to->at[other], (const float *)op->from[other] + from->at[part],
           (size_t)from->count[part] * sizeof(float));
}

static inline void add_all(struct op *op)
{
    for (size_t i = 0; i < op->bytes / sizeof(float); i++) {
        float sum = 0;
        for (uint32_t r = 0; r < world->ranks; r++)
            sum += ((const float *)op->from[r])[i];
        for (uint32_t r = 0; r < world->ranks; r++)
            ((float *)op->to[r])[i] = sum;
    }
}

static inline void complete(struct op *op)
{
    if (op->kind == OP_SUM)
        add_all(op);
    for (uint32_t r = 0; r < world->ranks; r++)
        for (uint32_t other = 0; other < world->ranks; other++) {
            uint8_t *const to = op->to[r];
            if (op->kind == OP_GATHER)
                memcpy(to + other * op->bytes, op->from[other], op->bytes);
            else if ((op->kind == OP_EXCHANGE || op->kind == OP_PARTS) && other != r)
                copy_part(op, r, other);
            else if (op->kind == OP_BROADCAST && other == 0 && r != 0)
                memcpy(to, op->to[0], op->bytes);
        }
    op->done = true;
}

/* What one rank brings. */
struct sides {
    const void *from;
    void *to;
    const struct stk_mpi_parts *from_parts, *to_parts;
};

/* The lock is held. */
static inline struct op *begin_op(struct stk_mpi_communicator *communicator, enum op_kind kind,
                                  struct sides sides, size_t bytes)
{
    struct op *op = world->ops;
    /* Calls of communicator 0, which nobody has made. */
    static _Thread_local struct world *of_world;
    static _Thread_local uint32_t calls_of_all;
    if (of_world != world)
        calls_of_all = 0;
    of_world = world;
    const uint32_t id = communicator == NULL ? 0 : communicator->id;
    const uint32_t call = communicator == NULL ? calls_of_all++ : communicator->calls++;
    while (op != NULL && (op->communicator != id || op->call != call))
        op = op->next;
    if (op == NULL) {
        op = world_memory(sizeof(*op));
        *op = (struct op){ .next = world->ops, .communicator = id, .call = call, .kind = kind };
        op->made = kind == OP_DUPLICATE ? world->communicators++ : 0;
        op->bytes = bytes;
        world->ops = op;
    }
    CHECK(op->kind == kind); /* the order of collective calls is everywhere the same */
    CHECK(op->bytes == bytes);
    op->from[my_rank] = sides.from;
    op->to[my_rank] = sides.to;
    op->from_parts[my_rank] = sides.from_parts;
    op->to_parts[my_rank] = sides.to_parts;
    if (++op->come == world->ranks)
        complete(op);
    return op;
}

static inline int collective_of(struct stk_mpi_communicator *communicator, enum op_kind kind,
                                struct sides sides, size_t bytes, struct stk_mpi_request *request)
{
    if (enter(&world->left))
        return leave_with(FAILED_CODE);
    request->bits = (uint64_t)(uintptr_t)begin_op(communicator, kind, sides, bytes);
    return leave_with(0);
}

static inline int collective(struct stk_mpi_communicator *communicator, enum op_kind kind,
                             const void *from, void *to, size_t bytes,
                             struct stk_mpi_request *request)
{
    return collective_of(communicator, kind, (struct sides){ .from = from, .to = to }, bytes,
                         request);
}

static inline int world_start(uint32_t *rank, uint32_t *world_size)
{
    if (enter(&world->left))
        return leave_with(FAILED_CODE);
    *rank = my_rank;
    *world_size = world->ranks;
    return leave_with(0);
}

static inline void world_describe(char text[STK_MPI_TEXT_BYTES])
{
    (void)snprintf(text, STK_MPI_TEXT_BYTES, "threads");
}

static inline void world_error_text(int code, char text[STK_MPI_TEXT_BYTES])
{
    (void)snprintf(text, STK_MPI_TEXT_BYTES, "code %d", code);
}

static inline int world_duplicate(struct stk_mpi_communicator *from,
                                  struct stk_mpi_communicator **out,
                                  struct stk_mpi_request *request)
{
    if (enter(&world->left))
        return leave_with(FAILED_CODE);
    struct op *const op = begin_op(from, OP_DUPLICATE, (struct sides){ .from = NULL }, 0);
    *out = world_memory(sizeof(**out));
    (*out)->id = op->made;
    request->bits = (uint64_t)(uintptr_t)op;
    return leave_with(0);
}

static inline int world_release(struct stk_mpi_communicator *communicator, bool abandon)
{
    (void)communicator;
    (void)abandon;
    return 0;
}

static inline void *world_allocate(size_t bytes)
{
    void *const memory = enter(&world->left) ? NULL : world_memory(bytes);
    (void)leave_with(0);
    return memory;
}

static inline void world_free(void *memory)
{
    (void)memory;
}

static inline int world_sum(struct stk_mpi_communicator *communicator, const float *from, float *to,
                            uint64_t count, struct stk_mpi_request *request)
{
    return collective(communicator, OP_SUM, from, to, count * sizeof(float), request);
}

static inline int world_gather(struct stk_mpi_communicator *communicator, const void *from,
                               void *to, size_t bytes, struct stk_mpi_request *request)
{
    return collective(communicator, OP_GATHER, from, to, bytes, request);
}

static inline int world_exchange(struct stk_mpi_communicator *communicator, const float *from,
                                 const struct stk_mpi_parts *from_parts, float *to,
                                 const struct stk_mpi_parts *to_parts,
                                 struct stk_mpi_request *request)
{
    return collective_of(communicator, OP_EXCHANGE,
                         (struct sides){ from, to, from_parts, to_parts }, 0, request);
}

static inline int world_gather_parts(struct stk_mpi_communicator *communicator, float *floats,
                                     const struct stk_mpi_parts *parts,
                                     struct stk_mpi_request *request)
{
    return collective_of(communicator, OP_PARTS, (struct sides){ floats, floats, parts, parts }, 0,
                         request);
}

static inline int world_broadcast(struct stk_mpi_communicator *communicator, void *memory,
                                  size_t bytes, uint32_t root, struct stk_mpi_request *request)
{
    CHECK(root == 0);
    return collective(communicator, OP_BROADCAST, NULL, memory, bytes, request);
}

static inline int world_send(struct stk_mpi_communicator *communicator, const void *from,
                             size_t bytes, uint32_t to, int tag, struct stk_mpi_request *request)
{
    (void)tag;
    (void)pthread_mutex_lock(&world->lock); /* a lost message is not heard: presence checks */
    struct message *const message = world_memory(sizeof(*message));
    CHECK(bytes <= sizeof(message->data));
    message->to = to;
    message->communicator = communicator->id;
    message->bytes = bytes;
    memcpy(message->data, from, bytes);
    message->next = world->messages;
    world->messages = message;
    request->bits = 0;
    return leave_with(0);
}

struct receiving {
    struct stk_mpi_communicator *communicator;
    void *to;
};

/* An odd address: something to receive. */
static inline int world_receive(struct stk_mpi_communicator *communicator, void *to, size_t bytes,
                                int from, int tag, struct stk_mpi_request *request)
{
    (void)bytes;
    (void)from;
    (void)tag;
    if (enter(&world->left))
        return leave_with(FAILED_CODE);
    struct receiving *const receiving = world_memory(sizeof(*receiving));
    *receiving = (struct receiving){ communicator, to };
    request->bits = (uint64_t)(uintptr_t)receiving | 1;
    return leave_with(0);
}

static inline bool take_message(const struct receiving *receiving)
{
    for (struct message *m = world->messages; m != NULL; m = m->next)
        if (!m->taken && m->to == my_rank && m->communicator == receiving->communicator->id) {
            memcpy(receiving->to, m->data, m->bytes);
            m->taken = true;
            return true;
        }
    return false;
}

static inline int world_test(struct stk_mpi_request *request, bool *done)
{
    if (enter(&world->tests_left))
        return leave_with(FAILED_CODE);
    if (request->bits == 0)
        *done = true;
    else if (request->bits % 2 != 0)
        *done = take_message((const struct receiving *)(uintptr_t)(request->bits - 1));
    else
        *done = ((const struct op *)(uintptr_t)request->bits)->done;
    return leave_with(0);
}

static inline int world_cancel(struct stk_mpi_request *request)
{
    request->bits = 0;
    return 0;
}

static const struct stk_mpi_functions thread_mpi = { .version = STK_MPI_TABLE_VERSION,
                                                     .start = world_start,
                                                     .describe = world_describe,
                                                     .error_text = world_error_text,
                                                     .duplicate = world_duplicate,
                                                     .release = world_release,
                                                     .allocate = world_allocate,
                                                     .free = world_free,
                                                     .sum_floats = world_sum,
                                                     .gather = world_gather,
                                                     .exchange = world_exchange,
                                                     .gather_parts = world_gather_parts,
                                                     .broadcast = world_broadcast,
                                                     .send = world_send,
                                                     .receive = world_receive,
                                                     .test = world_test,
                                                     .cancel = world_cancel };

#endif
