/* tcp_link.c - see tcp_peers.h: one connection. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trainer/peers/tcp_peers.h"

void stk_tcp_link_open(struct stk_tcp_link *link, int fd)
{
    *link = (struct stk_tcp_link){ .rank = link->rank, .fd = fd };
}

void stk_tcp_link_close(struct stk_tcp_link *link)
{
    if (link->fd >= 0)
        (void)close(link->fd);
    link->fd = -1;
    link->closed = true;
}

/* Keeps the descriptor: what has arrived may still explain the error. */
static void lose(struct stk_tcp_link *link, int os_errno)
{
    if (!link->closed)
        link->os_errno = os_errno == EPIPE ? 0 : os_errno;
    link->closed = true;
}

/* ---- what is sent ------------------------------------------------------------------ */

void stk_tcp_queue(struct stk_tcp_link *link, enum stk_tcp_kind kind, uint64_t call,
                   const void *payload, size_t bytes)
{
    struct stk_tcp_outbox *const out = &link->out;
    const struct stk_tcp_header header = {
        .magic = STK_TCP_MAGIC, .kind = (uint32_t)kind, .call = call, .bytes = bytes
    };
    const size_t frame = sizeof(header) + bytes;
    if (link->fd < 0 || sizeof(out->notes) - out->notes_bytes < frame)
        return; /* it does not read */
    memcpy(out->notes + out->notes_bytes, &header, sizeof(header));
    if (bytes > 0)
        memcpy(out->notes + out->notes_bytes + sizeof(header), payload, bytes);
    out->notes_bytes += frame;
}

void stk_tcp_queue_note(struct stk_tcp_link *link, enum stk_tcp_kind kind, int code,
                        const char *text)
{
    struct stk_tcp_note note = { .code = code };
    (void)snprintf(note.text, sizeof(note.text), "%.*s", STK_TCP_TEXT_BYTES - 1, text);
    stk_tcp_queue(link, kind, 0, &note, sizeof(note));
}

/* Begins the next frame of the array, if there is one. */
static void begin_frame(struct stk_tcp_outbox *out)
{
    const uint64_t most = STK_TCP_FRAME_BYTES_MAX;
    out->in_frame = out->array_bytes > 0;
    out->frame_left = (size_t)(out->array_bytes < most ? out->array_bytes : most);
    out->header.bytes = out->frame_left;
    out->header_sent = 0;
}

void stk_tcp_queue_array(struct stk_tcp_link *link, const struct stk_tcp_header *header,
                         const void *array, uint64_t bytes)
{
    assert(link->out.array_bytes == 0);
    link->out.header = *header;
    link->out.array = array;
    link->out.array_bytes = bytes;
}

bool stk_tcp_is_sent(const struct stk_tcp_link *link)
{
    return link->out.array_bytes == 0 && link->out.notes_sent == link->out.notes_bytes;
}

static void count_frame(struct stk_tcp_outbox *out, size_t sent)
{
    const size_t head = sizeof(out->header) - out->header_sent;
    const size_t of_header = sent < head ? sent : head;
    const size_t of_array = sent - of_header;
    out->header_sent += of_header;
    out->frame_left -= of_array;
    out->array += of_array;
    out->array_bytes -= of_array;
    if (out->frame_left == 0)
        out->in_frame = false;
}

static int64_t send_notes(struct stk_tcp_link *link)
{
    struct stk_tcp_outbox *const out = &link->out;
    const int64_t sent = stk_tcp_send(link->fd, out->notes + out->notes_sent,
                                      out->notes_bytes - out->notes_sent, NULL, 0);
    if (sent > 0)
        out->notes_sent += (size_t)sent;
    if (out->notes_sent == out->notes_bytes)
        out->notes_sent = out->notes_bytes = 0;
    return sent;
}

static int64_t send_frame(struct stk_tcp_link *link)
{
    struct stk_tcp_outbox *const out = &link->out;
    if (!out->in_frame)
        begin_frame(out);
    const int64_t sent =
        stk_tcp_send(link->fd, (const uint8_t *)&out->header + out->header_sent,
                     sizeof(out->header) - out->header_sent, out->array, out->frame_left);
    if (sent > 0)
        count_frame(out, (size_t)sent);
    return sent;
}

void stk_tcp_link_write(struct stk_tcp_peers *p, struct stk_tcp_link *link)
{
    while (!link->closed && !stk_tcp_is_sent(link)) {
        const bool notes = !link->out.in_frame && link->out.notes_sent < link->out.notes_bytes;
        const int64_t sent = notes ? send_notes(link) : send_frame(link);
        if (sent < 0)
            lose(link, (int)-sent);
        if (sent <= 0)
            return;
        p->moved_bytes += (uint64_t)sent;
    }
}

/* ---- what arrives ------------------------------------------------------------------ */

/* A rank's word goes to its place among those of the same call. */
static uint8_t *place_word(struct stk_tcp_peers *p, struct stk_tcp_link *link)
{
    const uint64_t call = link->in.header.call;
    const bool now = call == p->call && link->word_call[call & 1] != call;
    if (!now && call != p->call + 1)
        return NULL;
    uint8_t *const word = p->gathered[call & 1] + link->rank * p->peers.gather_bytes_max;
    memset(word, 0, link->in.header.piece);
    return word;
}

/* Frames of one answer lie one behind the other. */
static uint8_t *place_answer(struct stk_tcp_peers *p, const struct stk_tcp_header *header)
{
    const bool first = p->answer_got == 0;
    if (header->kind != p->answer_kind || header->call != p->call ||
        (first ? header->piece > p->answer_piece : header->piece != p->answer_piece))
        return NULL;
    if (first && header->kind == STK_TCP_ALL) {
        p->answer_piece = header->piece;
        p->answer_bytes = header->piece * p->peers.world_size;
    }
    if (header->bytes > p->answer_bytes - p->answer_got)
        return NULL;
    return p->answer + p->answer_got;
}

static void *place(struct stk_tcp_peers *p, struct stk_tcp_link *link)
{
    switch ((enum stk_tcp_kind)link->in.header.kind) {
    case STK_TCP_HELLO:
    case STK_TCP_GREETING:
        return &link->hello;
    case STK_TCP_WORD:
        return place_word(p, link);
    case STK_TCP_ALL:
    case STK_TCP_DATA:
        return place_answer(p, &link->in.header);
    default:
        return &link->note;
    }
}

static void take_note(struct stk_tcp_link *link)
{
    link->note.text[sizeof(link->note.text) - 1] = '\0';
    link->ended = true;
}

static void take(struct stk_tcp_peers *p, struct stk_tcp_link *link)
{
    const struct stk_tcp_header *const header = &link->in.header;
    switch ((enum stk_tcp_kind)header->kind) {
    case STK_TCP_REFUSED:
        link->greeted = true;
        take_note(link);
        break;
    case STK_TCP_FAILED:
    case STK_TCP_ENDED:
        take_note(link);
        break;
    case STK_TCP_WORD:
        link->word_call[header->call & 1] = header->call;
        link->word_bytes[header->call & 1] = header->piece;
        link->word_sent[header->call & 1] = header->bytes;
        break;
    case STK_TCP_ALL:
    case STK_TCP_DATA:
        p->answer_got += header->bytes;
        break;
    case STK_TCP_ROLL:
        link->rolls = true;
        link->roll_call = header->call;
        link->heard = true;
        break;
    case STK_TCP_HERE:
        link->heard = true;
        link->settled = true;
        break;
    case STK_TCP_START:
        link->started = true;
        break;
    default:
        link->greeted = true;
        break;
    }
}

/* Rank 0 has begun a call that this rank has not: its answer waits. */
static bool is_early(const struct stk_tcp_peers *p, const struct stk_tcp_header *header)
{
    return (header->kind == STK_TCP_ALL || header->kind == STK_TCP_DATA) &&
           header->call == p->call + 1;
}

/* What lies behind an answer is for the next call, so that the same calls succeed on all ranks. */
static bool is_answered(const struct stk_tcp_peers *p)
{
    return p->answer_kind != 0 && p->answer_got == p->answer_bytes;
}

/* A header is complete: is it one that the other side may send now? */
static enum stk_tcp_event begin_message(struct stk_tcp_peers *p, struct stk_tcp_link *link)
{
    const struct stk_tcp_bounds bounds = { .from_rank_0 = link->rank == 0,
                                           .word_bytes_max = p->peers.gather_bytes_max };
    const char *const why = stk_tcp_check_header(&link->in.header, &bounds);
    void *const to = why == NULL ? place(p, link) : NULL;
    if (to != NULL)
        return stk_tcp_inbox_place(&link->in, to);
    if (why != NULL || !is_early(p, &link->in.header))
        link->broken = why != NULL ? why : "a message of another call";
    return STK_TCP_ARRIVES;
}

static int64_t receive(struct stk_tcp_peers *p, struct stk_tcp_link *link)
{
    size_t most = 0;
    uint8_t *const to = stk_tcp_inbox_next(&link->in, &most);
    const int64_t got = stk_tcp_receive(link->fd, to, most);
    if (got < 0)
        lose(link, (int)-got);
    p->moved_bytes += got > 0 ? (uint64_t)got : 0;
    return got;
}

void stk_tcp_link_read(struct stk_tcp_peers *p, struct stk_tcp_link *link)
{
    enum stk_tcp_event event =
        stk_tcp_inbox_is_full(&link->in) ? begin_message(p, link) : STK_TCP_NOTHING;
    while (link->fd >= 0 && link->broken == NULL && !link->ended && event != STK_TCP_ARRIVES) {
        const int64_t got = receive(p, link);
        if (got <= 0)
            return;
        event = stk_tcp_inbox_add(&link->in, (size_t)got);
        if (event == STK_TCP_ARRIVES)
            event = begin_message(p, link);
        if (event == STK_TCP_MESSAGE) {
            take(p, link);
            stk_tcp_inbox_clear(&link->in);
            if (is_answered(p))
                return;
        }
    }
}
