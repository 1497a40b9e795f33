/* tcp_socket.c - see tcp_peers.h: the system's calls for sockets. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "trainer/peers/tcp_peers.h"

enum {
    BACKLOG = 4096, /* the system lowers it to what it allows */
    KEEP_IDLE_SECONDS =
        60, /* a connection that is silent for so long is probed: routers forget them */
    KEEP_INTERVAL_SECONDS = 10,
};

int stk_tcp_resolve(const char *host, uint16_t port, struct addrinfo **out)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                                    .ai_family = AF_UNSPEC,
                                    .ai_flags = AI_NUMERICSERV };
    char service[8];
    (void)snprintf(service, sizeof(service), "%u", port);
    *out = NULL;
    const int code = getaddrinfo(host, service, &hints, out);
    return code == 0 && *out == NULL ? EAI_NONAME : code;
}

bool stk_tcp_is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *const in = (const struct sockaddr_in *)(const void *)address;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *const in = (const struct sockaddr_in6 *)(const void *)address;
        return IN6_IS_ADDR_LOOPBACK(&in->sin6_addr);
    }
    return false;
}

static int set(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof(value));
}

/* Closes a socket after a call that failed. */
static int give_up(int fd)
{
    const int cause = errno;
    (void)close(fd);
    return -cause;
}

static int open_socket(int family)
{
    const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
}

/* A word is a packet: it leaves at once. The probes are a convenience: their intervals may be refused. */
static int prepare(int fd)
{
    if (set(fd, IPPROTO_TCP, TCP_NODELAY, 1) != 0 || set(fd, SOL_SOCKET, SO_KEEPALIVE, 1) != 0)
        return give_up(fd);
    (void)set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_SECONDS);
    (void)set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL_SECONDS);
    return fd;
}

static int listen_at(int fd, const struct sockaddr *address, uint32_t address_bytes)
{
    if (set(fd, SOL_SOCKET, SO_REUSEADDR, 1) != 0 || bind(fd, address, address_bytes) != 0 ||
        listen(fd, BACKLOG) != 0)
        return give_up(fd);
    return fd;
}

int stk_tcp_listen(const struct sockaddr *address, uint32_t address_bytes, int family)
{
    const int fd = open_socket(family);
    return fd < 0 ? fd : listen_at(fd, address, address_bytes);
}

static int listen_everywhere_4(uint16_t port)
{
    const struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    return stk_tcp_listen((const struct sockaddr *)&address, sizeof(address), AF_INET);
}

/* One socket for both families; a system without IPv6 has the other. */
int stk_tcp_listen_everywhere(uint16_t port)
{
    const struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    const int fd = open_socket(AF_INET6);
    if (fd == -EAFNOSUPPORT)
        return listen_everywhere_4(port);
    if (fd < 0)
        return fd;
    if (set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0) != 0)
        return give_up(fd);
    const int listener = listen_at(fd, (const struct sockaddr *)&address, sizeof(address));
    return listener == -EADDRNOTAVAIL ? listen_everywhere_4(port) : listener;
}

int stk_tcp_accept(int listener)
{
    const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return fd < 0 ? -errno : prepare(fd);
}

static void set_port(struct sockaddr_storage *address, uint16_t port)
{
    if (address->ss_family == AF_INET)
        ((struct sockaddr_in *)address)->sin_port = htons(port);
    else if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = htons(port);
}

int stk_tcp_begin_connect(const struct addrinfo *address, uint16_t port)
{
    struct sockaddr_storage to = { 0 };
    int fd = open_socket(address->ai_family);
    if (fd >= 0)
        fd = prepare(fd);
    if (fd < 0)
        return fd;
    memcpy(&to, address->ai_addr, address->ai_addrlen);
    set_port(&to, port);
    if (connect(fd, (const struct sockaddr *)&to, address->ai_addrlen) != 0 &&
        errno != EINPROGRESS && errno != EINTR) /* both: it continues */
        return give_up(fd);
    return fd;
}

int stk_tcp_connected(int fd)
{
    int cause = 0;
    socklen_t bytes = sizeof(cause);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &cause, &bytes) != 0)
        return -errno;
    return -cause;
}

static bool is_not_now(int os_errno)
{
    return os_errno == EAGAIN || os_errno == EWOULDBLOCK || os_errno == EINTR;
}

int64_t stk_tcp_send(int fd, const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    struct iovec pieces[2] = { { (void *)a, a_bytes }, { (void *)b, b_bytes } };
    const struct msghdr message = { .msg_iov = pieces, .msg_iovlen = 2 };
    const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
        return sent;
    return is_not_now(errno) ? 0 : -errno;
}

int64_t stk_tcp_receive(int fd, void *to, size_t bytes)
{
    const ssize_t got = recv(fd, to, bytes, MSG_DONTWAIT);
    if (got > 0)
        return got;
    if (got == 0)
        return -EPIPE;
    return is_not_now(errno) ? 0 : -errno;
}

int stk_tcp_poll(struct pollfd *polls, uint32_t count, uint64_t end_ns)
{
    const uint64_t now_ns = stk_now_ns();
    const uint64_t left_ns = end_ns > now_ns ? end_ns - now_ns : 0;
    const uint64_t left_ms = (left_ns + STK_TCP_NS_PER_MS - 1) / STK_TCP_NS_PER_MS;
    const int ready = poll(polls, count, left_ms > 60000 ? 60000 : (int)left_ms);
    if (ready >= 0)
        return ready;
    return errno == EINTR ? 0 : -errno;
}
