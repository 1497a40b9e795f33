/* messages.h - messages of workers to the user, kept until the consumer's thread hands it to
 * options.on_log.
 *
 *   workers ── put ──▶ | message | message | ...... |  STK_MESSAGES_MAX ── take ──▶ consumer, in next()
 *                       full: counted as lost
 */
#ifndef STK_PIPELINE_MESSAGES_H
#define STK_PIPELINE_MESSAGES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/loader.h>

enum { STK_MESSAGES_MAX = 32, STK_MESSAGE_BYTES = 512 };

/* What a loader says once. */
enum stk_message_once { STK_SAID_OPEN_FILES = 1, STK_SAID_NO_RING = 2, STK_SAID_LOST_RING = 4 };

struct stk_message {
    stoker_log_level level;
    char text[STK_MESSAGE_BYTES];
};

struct stk_messages {
    bool on;                /* someone listens; constant while workers run */
    _Atomic uint32_t said;  /* messages that came once: enum stk_message_once; relaxed */
    _Atomic uint32_t count; /* waiting; relaxed: a hint, the lock orders the messages */
    pthread_mutex_t lock;   /* guards all below */
    uint64_t lost;          /* since the last stk_messages_take_lost() */
    uint32_t first;
    struct stk_message each[STK_MESSAGES_MAX];
};

void stk_messages_init(struct stk_messages *messages, bool on);
void stk_messages_destroy(struct stk_messages *messages); /* not initialized is not allowed */

/* Returns true if somebody listens, and this is the first time. Any thread. */
bool stk_messages_once(struct stk_messages *messages, enum stk_message_once what);

/* Add a message. Any thread; does not wait for the user's code. */
void stk_messages_put(struct stk_messages *messages, stoker_log_level level, const char *format,
                      ...) __attribute__((format(printf, 3, 4)));

static inline bool stk_messages_any(const struct stk_messages *messages)
{
    return atomic_load_explicit(&messages->count, memory_order_relaxed) > 0;
}

/* Take the oldest message; false if there is none. */
bool stk_messages_take(struct stk_messages *messages, struct stk_message *out);

/* Returns the number of messages lost since the last call. */
uint64_t stk_messages_take_lost(struct stk_messages *messages);

#endif
