/* messages.c - see messages.h. */
#include "loader/pipeline/report/messages.h"

#include <stdarg.h>
#include <stdio.h>

void stk_messages_init(struct stk_messages *messages, bool on)
{
    messages->on = on;
    atomic_init(&messages->said, 0U);
    atomic_init(&messages->count, 0U);
    pthread_mutex_init(&messages->lock, NULL);
    messages->lost = 0;
    messages->first = 0;
}

void stk_messages_destroy(struct stk_messages *messages)
{
    pthread_mutex_destroy(&messages->lock);
}

bool stk_messages_once(struct stk_messages *messages, enum stk_message_once what)
{
    return messages->on &&
           (atomic_fetch_or_explicit(&messages->said, (uint32_t)what, memory_order_relaxed) &
            (uint32_t)what) == 0;
}

void stk_messages_put(struct stk_messages *messages, stoker_log_level level, const char *format,
                      ...)
{
    if (!messages->on)
        return;
    pthread_mutex_lock(&messages->lock);
    const uint32_t count = atomic_load_explicit(&messages->count, memory_order_relaxed);
    if (count == STK_MESSAGES_MAX) {
        messages->lost++;
    } else {
        struct stk_message *message = &messages->each[(messages->first + count) % STK_MESSAGES_MAX];
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(message->text, sizeof(message->text), format, arguments);
        va_end(arguments);
        message->level = level;
        atomic_store_explicit(&messages->count, count + 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&messages->lock);
}

bool stk_messages_take(struct stk_messages *messages, struct stk_message *out)
{
    pthread_mutex_lock(&messages->lock);
    const uint32_t count = atomic_load_explicit(&messages->count, memory_order_relaxed);
    if (count > 0) {
        *out = messages->each[messages->first];
        messages->first = (messages->first + 1) % STK_MESSAGES_MAX;
        atomic_store_explicit(&messages->count, count - 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&messages->lock);
    return count > 0;
}

uint64_t stk_messages_take_lost(struct stk_messages *messages)
{
    pthread_mutex_lock(&messages->lock);
    const uint64_t lost = messages->lost;
    messages->lost = 0;
    pthread_mutex_unlock(&messages->lock);
    return lost;
}
