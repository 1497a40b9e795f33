/* chain.h - whole files on their way through io_uring: three requests and a slot each.
 *
 *            ┌─────── open failed: the read and the close are cancelled ──────┐
 *            │                                                                ▼
 *   FREE ──▶ open ──LINK──▶ read ──HARDLINK──▶ close ──▶ all three told ──▶ FREE
 *
 * Between open and close a file lies in a slot of the ring's own table: it takes no descriptor
 * of the process. The slots' numbers are ours, and a file has its slot to itself until all three
 * requests have been told of.
 *
 * What decides about a read is the open's answer first. A link that broke in another way (the
 * kernel may run out of requests between two of them) makes a read without a file, which is to be
 * tried again. A slot whose close failed may still hold a file, and must be emptied before it is
 * used again: else a later open that fails could leave its read with another file's bytes.
 */
#ifndef STK_READER_CHAIN_H
#define STK_READER_CHAIN_H

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/reader.h>

enum stk_chain_step {
    STK_CHAIN_OPEN = 1, /* from 1: the low bits of a request's data, where 0 is a plain read */
    STK_CHAIN_READ,
    STK_CHAIN_CLOSE,
    STK_CHAIN_STEPS = 3
};

struct stk_chain {
    stoker_read *read;
    struct stk_chain *next_free;
    uint32_t slot;
    uint32_t steps_left;
    int32_t results[STK_CHAIN_STEPS + 1]; /* of each step */
};

_Static_assert(_Alignof(struct stk_chain) > STK_CHAIN_STEPS, "a step must fit its address");

static inline void stk_chain_begin(struct stk_chain *chain, stoker_read *read)
{
    assert(chain->steps_left == 0);
    chain->read = read;
    chain->steps_left = STK_CHAIN_STEPS;
}

/* Note one step's result. True: it was the last. */
static inline bool stk_chain_note(struct stk_chain *chain, enum stk_chain_step step, int32_t result)
{
    assert(chain->steps_left > 0);
    chain->results[step] = result;
    return --chain->steps_left == 0;
}

static inline int32_t stk_chain_result(const struct stk_chain *chain)
{
    const int32_t opened = chain->results[STK_CHAIN_OPEN];
    const int32_t got = chain->results[STK_CHAIN_READ];
    if (opened < 0)
        return opened == -ECANCELED ? -EAGAIN : opened;
    return got == -ECANCELED || got == -EBADF ? -EAGAIN : got;
}

/* Whether this kernel has no such open: then others will fail alike. */
static inline bool stk_chain_unknown(const struct stk_chain *chain)
{
    const int32_t opened = chain->results[STK_CHAIN_OPEN];
    return opened == -EINVAL || opened == -EOPNOTSUPP || opened == -ENOSYS;
}

/* Whether the read would have waited, though it was a file's: some file systems cannot tell, and
 * kernels then take a file that was opened not to wait at its word. */
static inline bool stk_chain_would_wait(const struct stk_chain *chain)
{
    return chain->results[STK_CHAIN_OPEN] >= 0 && chain->results[STK_CHAIN_READ] == -EAGAIN;
}

/* Whether the slot may still hold a file. */
static inline bool stk_chain_dirty(const struct stk_chain *chain)
{
    return chain->results[STK_CHAIN_OPEN] >= 0 && chain->results[STK_CHAIN_CLOSE] < 0;
}

#endif
