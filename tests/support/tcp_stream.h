/* tcp_stream.h - bytes as what another rank sends over TCP, read as the library reads them: by a link at one end of a pair of
 * sockets. For the fuzz target and for the sweep over damaged streams.
 *
 * Memory is exactly as large as a rank's, so that AddressSanitizer finds what is written behind it. */
#ifndef STK_TEST_TCP_STREAM_H
#define STK_TEST_TCP_STREAM_H

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "trainer/peers/tcp_peers.h"

enum {
    TCP_STREAM_WORLD = 3,
    TCP_STREAM_WORD_BYTES = 64,
    TCP_STREAM_ANSWER_BYTES = 192,
    TCP_STREAM_PART = 32768
};

enum tcp_stream_role {
    TCP_STREAM_RANK_0,     /* reads what rank 2 sends */
    TCP_STREAM_GATHERS,    /* rank 1 reads what rank 0 sends, and waits for all words */
    TCP_STREAM_BROADCASTS, /* ... for a broadcast */
    TCP_STREAM_IDLE,       /* ... between two calls */
    TCP_STREAM_ROLES
};

struct tcp_stream {
    struct stk_tcp_peers p;
    struct stk_tcp_link link;
    struct pollfd polls[1];
    int other; /* the other end */
};

static inline bool tcp_stream_open(struct tcp_stream *stream, enum tcp_stream_role role)
{
    int fd[2];
    const bool first = role == TCP_STREAM_RANK_0;
    struct stk_tcp_peers *const p = &stream->p;
    *stream = (struct tcp_stream){ .other = -1 };
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
        return false;
    p->peers = (struct stk_peers){ .rank = first ? 0 : 1,
                                   .world_size = TCP_STREAM_WORLD,
                                   .gather_bytes_max = TCP_STREAM_WORD_BYTES };
    p->links = &stream->link;
    p->link_count = 1;
    p->polls = stream->polls;
    p->call = 5;
    for (int i = 0; i < 2; i++)
        p->gathered[i] = calloc(TCP_STREAM_WORLD, TCP_STREAM_WORD_BYTES);
    p->answer = calloc(1, TCP_STREAM_ANSWER_BYTES);
    p->answer_bytes =
        role == TCP_STREAM_GATHERS || role == TCP_STREAM_BROADCASTS ? TCP_STREAM_ANSWER_BYTES : 0;
    p->answer_piece = role == TCP_STREAM_GATHERS ? TCP_STREAM_WORD_BYTES : 0;
    p->answer_kind = role == TCP_STREAM_GATHERS      ? STK_TCP_ALL
                     : role == TCP_STREAM_BROADCASTS ? STK_TCP_DATA
                                                     : 0;
    stream->link.rank = first ? 2 : 0;
    stk_tcp_link_open(&stream->link, fd[0]);
    stream->other = fd[1];
    return p->gathered[0] != NULL && p->gathered[1] != NULL && p->answer != NULL;
}

static inline void tcp_stream_close(struct tcp_stream *stream)
{
    stk_tcp_link_close(&stream->link);
    if (stream->other >= 0)
        (void)close(stream->other);
    free(stream->p.gathered[0]);
    free(stream->p.gathered[1]);
    free(stream->p.answer);
}

/* Sends the bytes, ends the stream, and reads all of it, unless something in it ends the reading. */
static inline bool tcp_stream_read(struct tcp_stream *stream, const uint8_t *bytes, size_t size)
{
    while (size > 0) { /* what a pair of sockets holds at least */
        const size_t part = size < TCP_STREAM_PART ? size : TCP_STREAM_PART;
        const ssize_t sent = send(stream->other, bytes, part, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0) /* nothing more is read: the message that counts has come */
            break;
        bytes += sent;
        size -= (size_t)sent;
        stk_tcp_link_read(&stream->p, &stream->link);
    }
    (void)shutdown(stream->other, SHUT_WR);
    stk_tcp_link_read(&stream->p, &stream->link);
    stk_tcp_link_read(&stream->p, &stream->link);
    return true;
}

/* NULL, or what must not be after any bytes. */
static inline const char *tcp_stream_check(const struct tcp_stream *stream)
{
    const struct stk_tcp_link *const link = &stream->link;
    const struct stk_tcp_peers *const p = &stream->p;
    if (p->answer_got > p->answer_bytes)
        return "more bytes than were asked for";
    for (int i = 0; i < 2; i++)
        if (link->word_bytes[i] > TCP_STREAM_WORD_BYTES ||
            link->word_sent[i] > link->word_bytes[i] ||
            (link->word_call[i] != 0 && link->word_call[i] != 5 && link->word_call[i] != 6))
            return "a word that no call has";
    if (link->ended && memchr(link->note.text, '\0', sizeof(link->note.text)) == NULL)
        return "a text without an end";
    if (link->broken != NULL && link->broken[0] == '\0')
        return "no reason";
    if (p->peers.rank == 0 && link->started)
        return "what rank 0 alone sends";
    return NULL;
}

#endif
