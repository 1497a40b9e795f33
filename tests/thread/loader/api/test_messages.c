/* test_messages.c - workers leave messages while the consumer takes them: each comes once, whole
 * and in its thread's order, or is counted as lost.
 */
#include <pthread.h>

#include "loader/pipeline/report/messages.h"
#include "support/thread_check.h"

enum { THREADS = 3, EACH = 3000 };

static struct stk_messages messages;
static _Atomic uint32_t at_work = THREADS;
static _Atomic uint32_t firsts;

static void *put_all(void *argument)
{
    const int thread = *(const int *)argument;
    atomic_fetch_add(&firsts, stk_messages_once(&messages, STK_SAID_LOST_RING) ? 1U : 0U);
    for (int i = 0; i < EACH; i++)
        stk_messages_put(&messages, STOKER_LOG_INFO, "thread %d, message %d.", thread, i);
    atomic_fetch_sub(&at_work, 1U);
    return NULL;
}

/* Returns the number of messages taken. */
static uint64_t take_all(int last[THREADS])
{
    struct stk_message message;
    uint64_t taken = 0;
    while (stk_messages_any(&messages) && stk_messages_take(&messages, &message)) {
        int thread, number;
        char end;
        CHECK(sscanf(message.text, "thread %d, message %d%c", &thread, &number, &end) == 3);
        CHECK(end == '.' && thread >= 0 && thread < THREADS && number > last[thread]);
        last[thread] = number;
        taken++;
    }
    return taken;
}

int main(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS], last[THREADS];
    uint64_t taken = 0, lost = 0;
    stk_messages_init(&messages, true);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        last[i] = -1;
        CHECK(pthread_create(&threads[i], NULL, put_all, &numbers[i]) == 0);
    }
    while (atomic_load(&at_work) > 0) {
        taken += take_all(last);
        lost += stk_messages_take_lost(&messages);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    taken += take_all(last);
    lost += stk_messages_take_lost(&messages);
    CHECK(taken + lost == (uint64_t)THREADS * EACH);
    CHECK(taken > 0 && atomic_load(&firsts) == 1);
    stk_messages_destroy(&messages);
    printf("%llu taken, %llu lost\n", (unsigned long long)taken, (unsigned long long)lost);
    return 0;
}
