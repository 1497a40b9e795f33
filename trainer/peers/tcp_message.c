/* tcp_message.c - see tcp_message.h. */
#include "trainer/peers/tcp_message.h"

#include <assert.h>
#include <string.h>

enum { FROM_RANKS = 1, FROM_RANK_0 = 2 };

static const struct row {
    uint32_t senders;
    uint64_t bytes_min, bytes_max;
} rows[STK_TCP_KINDS] = {
    [STK_TCP_HELLO] = { FROM_RANKS, sizeof(struct stk_tcp_hello), sizeof(struct stk_tcp_hello) },
    [STK_TCP_GREETING] = { FROM_RANK_0, sizeof(struct stk_tcp_hello),
                           sizeof(struct stk_tcp_hello) },
    [STK_TCP_REFUSED] = { FROM_RANK_0, sizeof(struct stk_tcp_note), sizeof(struct stk_tcp_note) },
    [STK_TCP_START] = { FROM_RANK_0, 0, 0 },
    [STK_TCP_WORD] = { FROM_RANKS, 1, STK_TCP_FRAME_BYTES_MAX }, /* and word_bytes_max */
    [STK_TCP_ALL] = { FROM_RANK_0, 1, STK_TCP_FRAME_BYTES_MAX },
    [STK_TCP_DATA] = { FROM_RANK_0, 1, STK_TCP_FRAME_BYTES_MAX },
    [STK_TCP_FAILED] = { FROM_RANKS, sizeof(struct stk_tcp_note), sizeof(struct stk_tcp_note) },
    [STK_TCP_ENDED] = { FROM_RANK_0, sizeof(struct stk_tcp_note), sizeof(struct stk_tcp_note) },
    [STK_TCP_ROLL] = { FROM_RANKS | FROM_RANK_0, 0, 0 },
    [STK_TCP_HERE] = { FROM_RANKS, 0, 0 },
};

const char *stk_tcp_check_header(const struct stk_tcp_header *header,
                                 const struct stk_tcp_bounds *bounds)
{
    if (header->magic != STK_TCP_MAGIC)
        return "bytes that are no message";
    if (header->kind == 0 || header->kind >= STK_TCP_KINDS)
        return "a message of an unknown kind";
    const struct row *const row = &rows[header->kind];
    if ((row->senders & (bounds->from_rank_0 ? FROM_RANK_0 : FROM_RANKS)) == 0)
        return "a message that it cannot send";
    if (header->bytes < row->bytes_min || header->bytes > row->bytes_max)
        return "a message of a wrong length";
    if (header->kind != STK_TCP_WORD && header->kind != STK_TCP_ALL)
        return header->piece == 0 ? NULL : "a message with pieces";
    if (header->piece == 0 || header->piece > bounds->word_bytes_max ||
        (header->kind == STK_TCP_WORD && header->bytes > header->piece))
        return "a word that is too long";
    return NULL;
}

uint8_t *stk_tcp_inbox_next(struct stk_tcp_inbox *inbox, size_t *bytes_max)
{
    const size_t bytes = inbox->has_header ? inbox->header.bytes : sizeof(inbox->header);
    uint8_t *const to = inbox->has_header ? inbox->payload : (uint8_t *)&inbox->header;
    assert(inbox->got < bytes);
    *bytes_max = bytes - inbox->got;
    return to + inbox->got;
}

enum stk_tcp_event stk_tcp_inbox_add(struct stk_tcp_inbox *inbox, size_t bytes)
{
    inbox->got += bytes;
    if (inbox->has_header)
        return inbox->got == inbox->header.bytes ? STK_TCP_MESSAGE : STK_TCP_NOTHING;
    return inbox->got == sizeof(inbox->header) ? STK_TCP_ARRIVES : STK_TCP_NOTHING;
}

enum stk_tcp_event stk_tcp_inbox_place(struct stk_tcp_inbox *inbox, void *payload)
{
    assert(!inbox->has_header);
    inbox->has_header = true;
    inbox->payload = payload;
    inbox->got = 0;
    return inbox->header.bytes == 0 ? STK_TCP_MESSAGE : STK_TCP_NOTHING;
}

void stk_tcp_inbox_clear(struct stk_tcp_inbox *inbox)
{
    *inbox = (struct stk_tcp_inbox){ .got = 0 };
}
