/* tcp_peers.h - the parts of a TCP rank, for the files that share them.
 *
 *   tcp.c             join, leave; gather, broadcast
 *   tcp_accept.c        rank 0's start: listens until every rank has come
 *   tcp_connect.c       another rank's start: finds rank 0
 *   tcp_rendezvous.c      where that is: variables, ports
 *   tcp_roll.c          failures, and finding out which rank does not come
 *   tcp_wait.c          every wait, with a deadline
 *   tcp_move.c            all connections, once
 *   tcp_link.c            one connection: what is read, what is still to be sent
 *   tcp_socket.c            the system's calls
 *   tcp_message.c           bytes and messages
 *
 * A star: each rank has a connection to rank 0, which passes on what concerns all.
 *
 *   gather      WORD ──▶ rank 0 has all ──▶ ALL
 *   broadcast            rank 0 ──▶ DATA
 *   failure     FAILED ─▶ rank 0 ──▶ ENDED to all others      also if a connection closes
 *   roll call   rank 0 has waited too long: ROLL to all, HERE back, ENDED names the ranks that did not answer
 *               a rank has waited too long: ROLL to rank 0, which calls the roll; if it does not, it is named
 *
 * No thread: a rank reads what has come while it is in a call. One that computes answers no roll call, and rank 0
 * passes a failure on when it next calls. */
#ifndef STK_TRAINER_TCP_PEERS_H
#define STK_TRAINER_TCP_PEERS_H

#include <poll.h>
#include <stoker/ranks.h>

#include "trainer/peers/peers.h"
#include "trainer/peers/tcp_message.h"

enum {
    STK_TCP_PORTS = 9, /* MASTER_PORT and eight behind it */
    STK_TCP_HOST_BYTES = 256,
    STK_TCP_NOTES_BYTES = 4 * (sizeof(struct stk_tcp_header) + sizeof(struct stk_tcp_note)),
    STK_TCP_FAREWELL_MS = 200 /* for the last notes to leave */
};

#define STK_TCP_NS_PER_MS UINT64_C(1000000)

/* Where ranks meet. */
struct stk_tcp_rendezvous {
    char host[STK_TCP_HOST_BYTES];
    uint16_t ports[STK_TCP_PORTS]; /* in the order in which they are tried */
    uint32_t port_count;
    bool local; /* all ranks are of this node */
    struct stk_tcp_hello hello;
};

/* What is still to be sent: frames of an array, and before the next of these the notes. */
struct stk_tcp_outbox {
    uint8_t notes[STK_TCP_NOTES_BYTES]; /* whole frames */
    size_t notes_bytes, notes_sent;
    struct stk_tcp_header header; /* the current frame's */
    const uint8_t *array;         /* what remains of the array */
    uint64_t array_bytes;
    size_t header_sent, frame_left; /* the current frame's */
    bool in_frame;
};

/* A connection: rank 0 has one to each other rank, each other rank one to rank 0. */
struct stk_tcp_link {
    uint32_t rank; /* the other's */
    int fd;        /* -1 = none */
    bool closed;   /* nothing more comes, and nothing can be sent */
    int os_errno;  /* the error that closed it; 0: the other side did */
    struct stk_tcp_inbox in;
    struct stk_tcp_outbox out;
    struct stk_tcp_note note;
    struct stk_tcp_hello hello;
    const char *broken; /* what it sent and could not; static */
    bool ended;         /* note says why */
    bool rolls;         /* ROLL has come, ... */
    uint64_t roll_call; /* ... in this call */
    bool heard;         /* in a roll call */
    bool settled;       /* HERE has come: it has seen the GREETING, and tries no other port */
    bool started;       /* START has come */
    bool greeted;       /* GREETING or REFUSED has come: REFUSED also sets ended */
    /* Rank 0: the words of this call and of the next, which may come early, by the last bit of the call. */
    uint64_t word_call[2], word_bytes[2];
    uint64_t word_sent[2]; /* bytes before the zeros at its end */
};

struct stk_tcp_peers {
    struct stk_peers peers; /* first */
    struct stk_peers_options options;
    struct stk_tcp_link *links;
    uint32_t link_count;  /* world_size - 1, or 1 */
    struct pollfd *polls; /* one per link, then extra_max */
    uint64_t call;        /* begun */
    uint64_t done_call;   /* ended: of these, no roll is called */
    uint64_t moved_bytes; /* sent and received */
    uint8_t *gathered[2]; /* world_size pieces; rank 0: by the last bit of the call */
    uint8_t *packed;      /* what is sent: the word; rank 0: of all words what is not zero */
    /* Ranks: what rank 0 is to send in this call. */
    uint32_t answer_kind; /* ALL or DATA; 0 = nothing */
    uint8_t *answer;
    uint64_t answer_bytes, answer_got;
    uint64_t answer_piece; /* ALL: bytes of each word, at most; the sender's, once some have come */
    bool broken;           /* with this cause */
    stoker_error cause;
};

static inline struct stk_tcp_peers *stk_tcp_peers_of(struct stk_peers *peers)
{
    return (struct stk_tcp_peers *)peers;
}

/* ---- tcp_rendezvous.c ------------------------------------------------------------- */

/* Reads the variables. STOKER_EINVAL names them. */
int stk_tcp_find_rendezvous(struct stk_tcp_rendezvous *out, const stoker_ranks *ranks,
                            stoker_error *error);

/* ---- tcp_socket.c: every socket is non-blocking, closed by exec(), and without delay -- */

struct addrinfo;
struct sockaddr;

/* 0, or a code for gai_strerror(); a list with no entry is EAI_NONAME. */
int stk_tcp_resolve(const char *host, uint16_t port, struct addrinfo **out);
bool stk_tcp_is_loopback(const struct sockaddr *address);
/* Each returns the socket, or -errno. */
int stk_tcp_listen(const struct sockaddr *address, uint32_t address_bytes, int family);
int stk_tcp_listen_everywhere(uint16_t port);
int stk_tcp_accept(int listener);
int stk_tcp_begin_connect(const struct addrinfo *address, uint16_t port);
/* After POLLOUT: 0, or -errno. */
int stk_tcp_connected(int fd);
/* Bytes moved, > 0; 0: not now; -errno; -EPIPE: the other side has closed. */
int64_t stk_tcp_send(int fd, const void *a, size_t a_bytes, const void *b, size_t b_bytes);
int64_t stk_tcp_receive(int fd, void *to, size_t bytes);
/* Waits at most until end_ns. The number of sockets that are ready, or -errno. */
int stk_tcp_poll(struct pollfd *polls, uint32_t count, uint64_t end_ns);

/* ---- tcp_link.c -------------------------------------------------------------------- */

void stk_tcp_link_open(struct stk_tcp_link *link, int fd);
void stk_tcp_link_close(struct stk_tcp_link *link);
/* The note leaves before the next frame of the array; payload may be NULL. */
void stk_tcp_queue(struct stk_tcp_link *link, enum stk_tcp_kind kind, uint64_t call,
                   const void *payload, size_t bytes);
void stk_tcp_queue_note(struct stk_tcp_link *link, enum stk_tcp_kind kind, int code,
                        const char *text);
/* The array must stay until it is sent. The header has everything but bytes. */
void stk_tcp_queue_array(struct stk_tcp_link *link, const struct stk_tcp_header *header,
                         const void *array, uint64_t bytes);
bool stk_tcp_is_sent(const struct stk_tcp_link *link);
/* Sends and reads what is possible without waiting. */
void stk_tcp_link_write(struct stk_tcp_peers *p, struct stk_tcp_link *link);
void stk_tcp_link_read(struct stk_tcp_peers *p, struct stk_tcp_link *link);

/* ---- tcp_move.c -------------------------------------------------------------------- */

/* Moves every link on, after waiting until something can move, at most until end_ns; extra: more of p->polls to wait
 * for. 0, or -errno. */
int stk_tcp_move(struct stk_tcp_peers *p, uint32_t extra, uint64_t end_ns);

/* ---- tcp_wait.c -------------------------------------------------------------------- */

struct stk_tcp_wait {
    const char *what; /* "a meeting of all ranks" */
    bool (*needs)(const struct stk_tcp_peers *p, const struct stk_tcp_link *link);
    bool extends; /* the time-out begins again whenever bytes move */
};

/* Waits until no link is needed any more. */
int stk_tcp_await(struct stk_tcp_peers *p, const struct stk_tcp_wait *wait, stoker_error *error);
/* Looks at what has come, without waiting. */
int stk_tcp_look(struct stk_tcp_peers *p, stoker_error *error);
/* After a failure: lets the last notes arrive, since closing a connection with unread bytes discards them. */
void stk_tcp_drain(struct stk_tcp_peers *p);

/* ---- tcp_roll.c: each that returns an int returns the first cause, STOKER_EPEER ---------- */

/* The first cause again, if there was one. */
int stk_tcp_check(const struct stk_tcp_peers *p, stoker_error *error);
/* Ends the run. report: for the others; NULL: they know. */
int stk_tcp_end(struct stk_tcp_peers *p, const stoker_error *cause, const char *report,
                stoker_error *error);
/* The same for a call of the system that failed here. */
int stk_tcp_failed(struct stk_tcp_peers *p, int os_errno, const char *what, stoker_error *error);
void stk_tcp_report_failed(struct stk_peers *peers, int code, const char *text);
/* Another's note, a message that it could not send, or its end, if it is needed (wait NULL: always); or 0. */
int stk_tcp_judge(struct stk_tcp_peers *p, const struct stk_tcp_wait *wait, stoker_error *error);
/* True if a rank has called the roll; given_up: and does not wait for the answer. */
bool stk_tcp_is_called(const struct stk_tcp_peers *p, bool given_up);
/* This rank has waited too long, or another has (called); late: longer than this rank has. 0: what it waited for came in
 * time after all. */
int stk_tcp_call_roll(struct stk_tcp_peers *p, const struct stk_tcp_wait *wait, bool called,
                      bool late, stoker_error *error);
/* "rank 1", "ranks 1, 3 and 5": the links that were not heard; their number. */
uint32_t stk_tcp_list_unheard(const struct stk_tcp_peers *p, char *text, size_t bytes);

/* ---- the start ----------------------------------------------------------------------- */

/* tcp_accept.c: rank 0 */
uint32_t stk_tcp_accept_extra(uint32_t world_size); /* extra p->polls that it needs */
int stk_tcp_accept_all(struct stk_tcp_peers *p, const struct stk_tcp_rendezvous *at,
                       stoker_error *error);
/* tcp_connect.c: the others */
int stk_tcp_connect(struct stk_tcp_peers *p, const struct stk_tcp_rendezvous *at,
                    stoker_error *error);

#endif
