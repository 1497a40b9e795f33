/* segment.c - see segment.h. */
#include "loader/cache/segment.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <stoker/error.h>

#include "loader/base/cpu/thread.h"
#include "loader/base/fault.h"
#include "loader/base/memory/memory.h"

enum {
    BACKLOG = 64,
    ANSWER_SECONDS = 2, /* that a peer may take to answer */
    RETRY_NS =
        2 * 1000000, /* between two attempts while the first process is still binding, or ending */
    RETRIES = 500
};

/* ---- the address ---- */

/* An abstract address: it starts with a NUL, lies in no folder, and is free again when its socket
 * is closed. */
static socklen_t address_of(struct sockaddr_un *address, const char *key)
{
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    const int length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
                                "stoker/%u/%s", (unsigned)geteuid(), key);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Interrupted calls are made again. */
static int failed(void)
{
    return errno == EINTR ? -EAGAIN : errno > 0 ? -errno : -EIO;
}

/* Returns a listening socket, -EADDRINUSE if another process has the address, or another -errno. */
static int listen_at(const struct sockaddr_un *address, socklen_t size)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return failed();
    if (bind(fd, (const struct sockaddr *)address, size) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    const int rc = failed();
    close(fd);
    return rc;
}

/* Returns true if a process is in this one's namespace `kind`: "pid" or "user". */
static bool shares_namespace(pid_t process, const char *kind)
{
    char path[64];
    struct stat own, its;
    (void)snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
    if (stat(path, &own) != 0)
        return false;
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)process, kind);
    return stat(path, &its) == 0 && its.st_dev == own.st_dev && its.st_ino == own.st_ino;
}

/* Returns true if the peer could as well attach to this process as a debugger does. An address is
 * no secret, and does not depend on namespaces: containers that share a network see each other's.
 * Of a process outside of this PID namespace the kernel gives the number 0. */
static bool is_own(int connection)
{
    struct ucred peer = { 0 };
    socklen_t size = sizeof(peer);
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           peer.uid == geteuid() && peer.pid > 0 && shares_namespace(peer.pid, "pid") &&
           shares_namespace(peer.pid, "user");
}

/* ---- the first process ---- */

static int make_memory(uint64_t bytes)
{
    if (stk_fault_hit(STK_FAULT_MEMORY))
        return -ENOMEM;
    const int fd = memfd_create("stoker-cache", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return failed();
    if (bytes <= INT64_MAX && ftruncate(fd, (off_t)bytes) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    const int rc = failed();
    close(fd);
    return rc;
}

/* A message of one byte, beside which a descriptor travels. */
struct parcel {
    char byte;
    struct iovec payload;
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    struct msghdr message;
};

/* The message points into the parcel, which stays where it is. */
static void wrap(struct parcel *parcel)
{
    *parcel = (struct parcel){ .byte = 0 };
    parcel->payload = (struct iovec){ .iov_base = &parcel->byte, .iov_len = 1 };
    parcel->message = (struct msghdr){ .msg_iov = &parcel->payload,
                                       .msg_iovlen = 1,
                                       .msg_control = parcel->control,
                                       .msg_controllen = sizeof(parcel->control) };
}

static void send_memory(int connection, int memory)
{
    struct parcel parcel;
    wrap(&parcel);
    struct cmsghdr *rights = CMSG_FIRSTHDR(&parcel.message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &memory, sizeof(int));
    /* A peer that is gone is no failure of this process. */
    (void)sendmsg(connection, &parcel.message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Copies of the segment's descriptors, since that may be moved while the thread runs. */
struct stk_segment_served {
    int memory;
    int socket;
    int stop;
};

static void *serve(void *argument)
{
    const struct stk_segment_served *served = argument;
    struct pollfd both[] = { { .fd = served->socket, .events = POLLIN },
                             { .fd = served->stop, .events = POLLIN } };
    const struct timespec pause = { .tv_nsec = RETRY_NS };
    for (;;) {
        if (poll(both, 2, -1) < 0)
            continue; /* EINTR alone: signals are blocked here, but a debugger stops threads */
        if (both[1].revents != 0)
            return NULL;
        const int connection = accept4(served->socket, NULL, NULL, SOCK_CLOEXEC);
        if (connection < 0) {
            (void)nanosleep(&pause, NULL); /* too many files are open: do not spin */
            continue;
        }
        if (is_own(connection))
            send_memory(connection, served->memory);
        close(connection);
    }
}

int stk_segment_serve(struct stk_segment *segment)
{
    assert(segment->socket >= 0);
    struct stk_segment_served *served = stk_calloc(1, sizeof(*served));
    if (served == NULL)
        return STOKER_ENOMEM;
    *served = (struct stk_segment_served){ segment->memory, segment->socket, segment->stop };
    const int rc = stk_thread_start(&segment->server, "stoker-share", serve, served);
    if (rc == 0)
        segment->served = served;
    else
        stk_free(served);
    return rc;
}

/* Takes the socket over, also on failure. */
static int make_segment(struct stk_segment *segment, int listening, uint64_t bytes)
{
    segment->socket = listening;
    segment->memory = make_memory(bytes);
    if (segment->memory < 0)
        return segment->memory;
    segment->bytes = bytes;
    segment->stop = eventfd(0, EFD_CLOEXEC);
    return segment->stop < 0 ? failed() : 1;
}

/* ---- the others ---- */

static int receive_memory(int connection)
{
    struct parcel parcel;
    wrap(&parcel);
    const ssize_t got = recvmsg(connection, &parcel.message, MSG_CMSG_CLOEXEC);
    if (got < 0)
        return errno == EAGAIN ? -ETIMEDOUT : failed();
    const struct cmsghdr *rights = CMSG_FIRSTHDR(&parcel.message);
    if (got == 0 || rights == NULL || rights->cmsg_level != SOL_SOCKET ||
        rights->cmsg_type != SCM_RIGHTS || rights->cmsg_len != CMSG_LEN(sizeof(int)))
        return -ECONNRESET;
    int memory;
    memcpy(&memory, CMSG_DATA(rights), sizeof(int));
    return memory;
}

/* Returns the size of memory that cannot shrink, or -EPROTO. */
static int64_t sealed_bytes(int memory)
{
    struct stat status;
    const int seals = fcntl(memory, F_GET_SEALS);
    const bool sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
    return sealed && fstat(memory, &status) == 0 && status.st_size > 0 ? status.st_size : -EPROTO;
}

/* Returns 0 with the memory, -EAGAIN if the first process is not there yet or any more, or another
 * -errno. */
static int join_segment(struct stk_segment *segment, const struct sockaddr_un *address,
                        socklen_t size)
{
    const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0)
        return failed();
    const struct timeval patience = { .tv_sec = ANSWER_SECONDS };
    (void)setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    int rc;
    if (connect(connection, (const struct sockaddr *)address, size) != 0)
        rc = errno == ECONNREFUSED ? -EAGAIN : errno == EAGAIN ? -ETIMEDOUT : failed();
    else if (!is_own(connection))
        rc = -EACCES;
    else
        rc = receive_memory(connection);
    close(connection);
    if (rc < 0)
        return rc == -ECONNRESET ? -EAGAIN : rc;
    segment->memory = rc;
    const int64_t bytes = sealed_bytes(segment->memory);
    segment->bytes = bytes < 0 ? 0 : (uint64_t)bytes;
    return bytes < 0 ? (int)bytes : 0;
}

/* ---- both ---- */

int stk_segment_open(struct stk_segment *segment, const char key[STK_SEGMENT_KEY_BYTES],
                     uint64_t bytes)
{
    *segment = (struct stk_segment){ .memory = -1, .socket = -1, .stop = -1 };
    struct sockaddr_un address;
    const socklen_t size = address_of(&address, key);
    int rc = -EAGAIN;
    for (int attempt = 0; attempt < RETRIES && rc == -EAGAIN; attempt++) {
        const int listening = bytes > 0 ? listen_at(&address, size) : -EADDRINUSE;
        if (listening >= 0)
            rc = make_segment(segment, listening, bytes);
        else
            rc = listening == -EADDRINUSE ? join_segment(segment, &address, size) : listening;
        if (rc == -EAGAIN && bytes == 0)
            rc = -ENOENT;
        if (rc == -EAGAIN)
            (void)nanosleep(&(struct timespec){ .tv_nsec = RETRY_NS }, NULL);
    }
    if (rc < 0)
        stk_segment_close(segment);
    return rc == -EAGAIN ? -ETIMEDOUT : rc;
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void stk_segment_close(struct stk_segment *segment)
{
    if (segment->served != NULL) {
        const uint64_t one = 1;
        ssize_t written = write(segment->stop, &one, sizeof(one));
        assert(written == sizeof(one));
        (void)written;
        pthread_join(segment->server, NULL);
        stk_free(segment->served);
        segment->served = NULL;
    }
    close_one(&segment->socket);
    close_one(&segment->stop);
    close_one(&segment->memory);
}
