/* tcp_move.c - see tcp_peers.h: moves every connection on, once. */
#include "trainer/peers/tcp_peers.h"

static void ask(struct stk_tcp_peers *p)
{
    for (uint32_t i = 0; i < p->link_count; i++) {
        struct stk_tcp_link *const link = &p->links[i];
        if (stk_tcp_inbox_is_full(&link->in)) /* perhaps its call has begun */
            stk_tcp_link_read(p, link);
        const bool reads =
            !link->ended && link->broken == NULL && !stk_tcp_inbox_is_full(&link->in);
        const short events = (short)((reads ? POLLIN : 0) | (stk_tcp_is_sent(link) ? 0 : POLLOUT));
        p->polls[i] = (struct pollfd){ .fd = link->closed ? -1 : link->fd, .events = events };
    }
}

/* A write that fails does not keep what has arrived from being read. */
static void move_link(struct stk_tcp_peers *p, struct stk_tcp_link *link, short ready)
{
    const short over = POLLERR | POLLHUP | POLLNVAL;
    if ((ready & POLLOUT) != 0)
        stk_tcp_link_write(p, link);
    if ((ready & (POLLIN | over)) != 0 || link->closed)
        stk_tcp_link_read(p, link);
    if ((ready & over) != 0 && link->ended)
        link->closed = true;
}

int stk_tcp_move(struct stk_tcp_peers *p, uint32_t extra, uint64_t end_ns)
{
    ask(p);
    const int ready = stk_tcp_poll(p->polls, p->link_count + extra, end_ns);
    for (uint32_t i = 0; i < p->link_count && ready > 0; i++)
        if (p->polls[i].fd >= 0 && p->polls[i].revents != 0)
            move_link(p, &p->links[i], p->polls[i].revents);
    return ready < 0 ? ready : 0;
}
