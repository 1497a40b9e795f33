/* tcp_message.h - what ranks send each other over TCP, and how bytes become messages again. It knows no socket.
 *
 *   frame     header, then `bytes` bytes
 *
 *   kind      from     payload                call
 *   HELLO     ranks    stk_tcp_hello          0     I am rank R of W
 *   GREETING  rank 0   stk_tcp_hello          0     this is the run that you look for
 *   REFUSED   rank 0   stk_tcp_note           0     you cannot join, because ...; code 0: it is another run
 *   START     rank 0                          0     every rank is here
 *   WORD      ranks    up to word_bytes_max   n     its piece of a gather
 *   ALL       rank 0   up to the frame's max  n     the pieces of all, in frames
 *   DATA      rank 0   up to the frame's max  n     what it broadcasts, in frames
 *   FAILED    ranks    stk_tcp_note           n     this rank cannot continue, because ...
 *   ENDED     rank 0   stk_tcp_note           n     the run has ended, because ...
 *   ROLL      both                            n     it has waited too long: answer
 *   HERE      ranks                           n     the answer; 0: it has read the GREETING
 *
 * Words mostly end with zeros: these are not sent. WORD has as many bytes as the word without them, ALL has as many of
 * each word as the longest of these.
 *
 * call: gathers and broadcasts are numbered 1, 2, ... on every rank. All ranks are of one kind of machine: numbers are
 * sent as they lie in memory, and the magic number differs between kinds. */
#ifndef STK_TRAINER_TCP_MESSAGE_H
#define STK_TRAINER_TCP_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stk_tcp_kind {
    STK_TCP_HELLO = 1,
    STK_TCP_GREETING,
    STK_TCP_REFUSED,
    STK_TCP_START,
    STK_TCP_WORD,
    STK_TCP_ALL,
    STK_TCP_DATA,
    STK_TCP_FAILED,
    STK_TCP_ENDED,
    STK_TCP_ROLL,
    STK_TCP_HERE,
    STK_TCP_KINDS
};

enum {
    STK_TCP_VERSION = 1, /* grows whenever a message changes */
    STK_TCP_FRAME_BYTES_MAX = 1 << 20,
    STK_TCP_TEXT_BYTES = 320
};

#define STK_TCP_MAGIC UINT32_C(0x6b725453)

struct stk_tcp_header {
    uint32_t magic; /* STK_TCP_MAGIC */
    uint32_t kind;  /* an stk_tcp_kind */
    uint64_t call;
    uint64_t bytes; /* the payload's */
    uint64_t piece; /* WORD: the word's bytes; ALL: those of each rank that are sent; else 0 */
};

struct stk_tcp_hello {
    uint32_t version; /* STK_TCP_VERSION */
    uint32_t rank, world_size;
    uint32_t word_bytes; /* sizeof(struct stk_word) */
    uint64_t run;        /* a hash that the ranks of one run share */
    uint64_t process;    /* a number that two processes hardly share */
};

struct stk_tcp_note {
    int32_t code; /* FAILED: a stoker_err */
    uint32_t reserved;
    char text[STK_TCP_TEXT_BYTES];
};

/* ---- what arrives ------------------------------------------------------------------ */

struct stk_tcp_bounds {
    bool from_rank_0; /* the sender is rank 0 */
    uint64_t word_bytes_max;
};

/* NULL; or why no rank sends this, "a message of unknown kind 77": static. */
const char *stk_tcp_check_header(const struct stk_tcp_header *header,
                                 const struct stk_tcp_bounds *bounds);

/* One message after the other:
 *
 *   HEADER ── its last byte ──▶ full ── place ──▶ PAYLOAD ── its last byte ──▶ message ── clear ──▶ HEADER
 */
struct stk_tcp_inbox {
    struct stk_tcp_header header;
    size_t got;       /* bytes of the header, then of the payload */
    uint8_t *payload; /* where it goes */
    bool has_header;
};

enum stk_tcp_event {
    STK_TCP_NOTHING, /* more bytes are needed */
    STK_TCP_ARRIVES, /* the header is complete: check it, then place its payload */
    STK_TCP_MESSAGE  /* the payload is complete: take it, then clear */
};

/* True if a header waits for its place. */
static inline bool stk_tcp_inbox_is_full(const struct stk_tcp_inbox *inbox)
{
    return !inbox->has_header && inbox->got == sizeof(inbox->header);
}
/* Where the next bytes go, and how many of them at most, > 0. After an event: call place or clear first. */
uint8_t *stk_tcp_inbox_next(struct stk_tcp_inbox *inbox, size_t *bytes_max);
/* `bytes` bytes have been written there. */
enum stk_tcp_event stk_tcp_inbox_add(struct stk_tcp_inbox *inbox, size_t bytes);
/* payload: header.bytes bytes of memory, NULL if that is 0. */
enum stk_tcp_event stk_tcp_inbox_place(struct stk_tcp_inbox *inbox, void *payload);
void stk_tcp_inbox_clear(struct stk_tcp_inbox *inbox);

#endif
