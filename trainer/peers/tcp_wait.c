/* tcp_wait.c - see tcp_peers.h: waits with a deadline, while every connection moves on. */
#include <errno.h>
#include <sys/socket.h>

#include "loader/base/clock.h"
#include "trainer/peers/tcp_peers.h"

static bool needs_any(const struct stk_tcp_peers *p, const struct stk_tcp_wait *wait)
{
    for (uint32_t i = 0; i < p->link_count; i++)
        if (wait->needs(p, &p->links[i]))
            return true;
    return false;
}

int stk_tcp_await(struct stk_tcp_peers *p, const struct stk_tcp_wait *wait, stoker_error *error)
{
    const uint64_t timeout_ns = p->options.timeout_ms * STK_TCP_NS_PER_MS;
    uint64_t end_ns = stk_now_ns() + timeout_ns;
    int rc = stk_tcp_check(p, error);
    for (bool first = true; rc == STOKER_OK; first = false) {
        const uint64_t moved_bytes = p->moved_bytes;
        const int code = stk_tcp_move(p, 0, first ? 0 : end_ns);
        if (code < 0)
            return stk_tcp_failed(p, -code, "poll", error);
        rc = stk_tcp_judge(p, wait, error);
        if (rc != STOKER_OK || (!needs_any(p, wait) && !stk_tcp_is_called(p, true)))
            return rc;
        if (stk_tcp_is_called(p, false))
            rc = stk_tcp_call_roll(p, wait, true, first, error);
        else if (wait->extends && p->moved_bytes != moved_bytes)
            end_ns = stk_now_ns() + timeout_ns;
        else if (stk_now_ns() >= end_ns)
            rc = stk_tcp_call_roll(p, wait, false, false, error);
    }
    return rc;
}

static bool needs_nothing(const struct stk_tcp_peers *p, const struct stk_tcp_link *link)
{
    (void)p;
    (void)link;
    return false;
}

int stk_tcp_look(struct stk_tcp_peers *p, stoker_error *error)
{
    static const struct stk_tcp_wait between = { .what = "between two calls",
                                                 .needs = needs_nothing };
    int rc = stk_tcp_check(p, error);
    if (rc != STOKER_OK)
        return rc;
    const int code = stk_tcp_move(p, 0, 0);
    if (code < 0)
        return stk_tcp_failed(p, -code, "poll", error);
    rc = stk_tcp_judge(p, NULL, error);
    if (rc == STOKER_OK && stk_tcp_is_called(p, false))
        rc = stk_tcp_call_roll(p, &between, true, true, error);
    return rc;
}

/* Reads a connection to its end, and throws it away. */
static void discard(struct stk_tcp_link *link)
{
    char bytes[4096];
    int64_t got = 1;
    while (got > 0)
        got = stk_tcp_receive(link->fd, bytes, sizeof(bytes));
    if (got < 0)
        link->closed = true;
}

void stk_tcp_drain(struct stk_tcp_peers *p)
{
    const uint64_t end_ns = stk_now_ns() + STK_TCP_FAREWELL_MS * STK_TCP_NS_PER_MS;
    bool open = true;
    for (uint32_t i = 0; i < p->link_count; i++)
        if (p->links[i].fd >= 0)
            (void)shutdown(p->links[i].fd, SHUT_WR);
    while (open && stk_now_ns() < end_ns) {
        open = false;
        for (uint32_t i = 0; i < p->link_count; i++) {
            const int fd = p->links[i].closed ? -1 : p->links[i].fd;
            p->polls[i] = (struct pollfd){ .fd = fd, .events = POLLIN };
            open = open || fd >= 0;
        }
        if (!open || stk_tcp_poll(p->polls, p->link_count, end_ns) < 0)
            return;
        for (uint32_t i = 0; i < p->link_count; i++)
            if (p->polls[i].fd >= 0 && p->polls[i].revents != 0)
                discard(&p->links[i]);
    }
}
