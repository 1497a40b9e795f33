/* return_queue.h - batches and tensors on their way to the threads that return them.
 */
#ifndef STK_TEST_RETURN_QUEUE_H
#define STK_TEST_RETURN_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/loader.h>

#include "loader/api/lend/dlpack_layout.h"

enum { STK_RETURN_QUEUE = 16 };

/* A batch, or a tensor of one, that another thread is to return. */
struct stk_returned {
    stoker_batch batch; /* loader NULL: it is the tensor */
    DLManagedTensorVersioned *tensor;
};

struct stk_return_queue {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t moved;
    struct stk_returned items[STK_RETURN_QUEUE];
    uint32_t put, taken;
    bool ended;
};

#define STK_RETURN_QUEUE_INIT                                                                      \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER                       \
    }

static inline void stk_return_queue_put(struct stk_return_queue *queue, struct stk_returned item)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->put - queue->taken == STK_RETURN_QUEUE)
        pthread_cond_wait(&queue->moved, &queue->lock);
    queue->items[queue->put++ % STK_RETURN_QUEUE] = item;
    pthread_cond_broadcast(&queue->moved);
    pthread_mutex_unlock(&queue->lock);
}

/* Wait for an item. Returns false if the queue has ended and is empty. */
static inline bool stk_return_queue_take(struct stk_return_queue *queue, struct stk_returned *item)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->put == queue->taken && !queue->ended)
        pthread_cond_wait(&queue->moved, &queue->lock);
    const bool any = queue->put != queue->taken;
    if (any)
        *item = queue->items[queue->taken++ % STK_RETURN_QUEUE];
    pthread_cond_broadcast(&queue->moved);
    pthread_mutex_unlock(&queue->lock);
    return any;
}

static inline void stk_return_queue_end(struct stk_return_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->ended = true;
    pthread_cond_broadcast(&queue->moved);
    pthread_mutex_unlock(&queue->lock);
}

#endif
