/* chain.h - reads a whole file through io_uring: a chain of three requests, and a slot.
 *
 *            ┌─────── open failed: the read and the close are canceled ──────┐
 *            │                                                                ▼
 *   FREE ──▶ open ──LINK──▶ read ──HARDLINK──▶ close ──▶ all three done ──▶ FREE
 *
 * Between open and close a file occupies a slot of the ring's own table, not a descriptor of the
 * process. We number the slots; a file keeps its slot until all three requests have completed.
 *
 * The open's result counts first. If the chain breaks for another reason (the kernel may run out of
 * requests between two of them), the read finds no file and must be tried again. A slot whose close
 * failed may still hold a file, and must be emptied before it is used again: otherwise a read after
 * a failed open could deliver another file's bytes.
 */
#ifndef STK_READER_CHAIN_H
#define STK_READER_CHAIN_H

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/reader.h>

enum stk_chain_step {
    STK_CHAIN_OPEN = 1, /* the low bits of a request's data; 0 there is a plain read */
    STK_CHAIN_READ,
    STK_CHAIN_CLOSE,
    STK_CHAIN_STEPS = 3
};

struct stk_chain {
    stoker_read *read;
    struct stk_chain *next_free;
    uint32_t slot;
    uint32_t steps_left;
    int32_t results[STK_CHAIN_STEPS + 1]; /* by step */
};

_Static_assert(_Alignof(struct stk_chain) > STK_CHAIN_STEPS, "a step must fit its address");

static inline void stk_chain_begin(struct stk_chain *chain, stoker_read *read)
{
    assert(chain->steps_left == 0);
    chain->read = read;
    chain->steps_left = STK_CHAIN_STEPS;
}

/* Record one step's result. Returns true if it was the last. */
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

/* Returns true if this kernel does not support such an open, so every other would fail, too. */
static inline bool stk_chain_unknown(const struct stk_chain *chain)
{
    const int32_t opened = chain->results[STK_CHAIN_OPEN];
    return opened == -EINVAL || opened == -EOPNOTSUPP || opened == -ENOSYS;
}

/* Returns true if the read failed with EAGAIN although a regular file never blocks: some file
 * systems cannot check for that, and the kernel then obeys O_NONBLOCK. */
static inline bool stk_chain_would_wait(const struct stk_chain *chain)
{
    return chain->results[STK_CHAIN_OPEN] >= 0 && chain->results[STK_CHAIN_READ] == -EAGAIN;
}

/* Returns true if Linux could not decide whether ".." leads out, because something was renamed or
 * mounted meanwhile, wherever that was. An open by a call of its own is tried again until Linux
 * can. */
static inline bool stk_chain_undecided(const struct stk_chain *chain)
{
    return chain->results[STK_CHAIN_OPEN] == -EAGAIN;
}

/* Returns true if the slot may still hold a file. */
static inline bool stk_chain_dirty(const struct stk_chain *chain)
{
    return chain->results[STK_CHAIN_OPEN] >= 0 && chain->results[STK_CHAIN_CLOSE] < 0;
}

#endif
