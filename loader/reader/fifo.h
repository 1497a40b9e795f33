/* fifo.h - the reads that a reader has not started yet, oldest first.
 *
 *   reads: [ . . h r r r r . . ]     head = oldest, count in use, wraps at capacity
 */
#ifndef STK_READER_FIFO_H
#define STK_READER_FIFO_H

#include <assert.h>
#include <stdint.h>
#include <stoker/reader.h>

struct stk_fifo {
    uint32_t capacity;
    uint32_t head;
    uint32_t count;
    stoker_read **reads;
};

static inline void stk_fifo_push(struct stk_fifo *fifo, stoker_read *read)
{
    assert(fifo->count < fifo->capacity);
    uint32_t at = fifo->head + fifo->count++;
    fifo->reads[at < fifo->capacity ? at : at - fifo->capacity] = read;
}

/* Returns the read at position nth from the oldest; nth < count. */
static inline stoker_read *stk_fifo_at(const struct stk_fifo *fifo, uint32_t nth)
{
    assert(nth < fifo->count);
    const uint32_t at = fifo->head + nth;
    return fifo->reads[at < fifo->capacity ? at : at - fifo->capacity];
}

static inline stoker_read *stk_fifo_pop(struct stk_fifo *fifo)
{
    assert(fifo->count > 0);
    stoker_read *read = fifo->reads[fifo->head];
    fifo->head = fifo->head + 1 < fifo->capacity ? fifo->head + 1 : 0;
    fifo->count--;
    return read;
}

#endif
