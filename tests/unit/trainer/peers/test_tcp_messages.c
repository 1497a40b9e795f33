/* test_tcp_messages.c - messages of other ranks over TCP: each kind is accepted from the side that sends it and refused from
 * the other; streams of them are read at every split, cut at every byte, and with every bit flipped. */
#include "support/leaks.h"
#include "support/tcp_stream.h"

TestSuite(tcp_messages);

enum { STREAM_MAX = 4096 };

struct bytes {
    uint8_t at[STREAM_MAX];
    size_t count;
};

static void add_piece(struct bytes *to, uint32_t kind, uint64_t call, const void *payload,
                      size_t bytes, uint64_t piece)
{
    const struct stk_tcp_header header = {
        .magic = STK_TCP_MAGIC, .kind = kind, .call = call, .bytes = bytes, .piece = piece
    };
    cr_assert_leq(to->count + sizeof(header) + bytes, sizeof(to->at));
    memcpy(to->at + to->count, &header, sizeof(header));
    if (bytes > 0)
        memcpy(to->at + to->count + sizeof(header), payload, bytes);
    to->count += sizeof(header) + bytes;
}

static void add(struct bytes *to, uint32_t kind, uint64_t call, const void *payload, size_t bytes)
{
    const bool has_pieces = kind == STK_TCP_WORD || kind == STK_TCP_ALL;
    const uint64_t piece = kind == STK_TCP_WORD ? bytes : TCP_STREAM_WORD_BYTES;
    add_piece(to, kind, call, payload, bytes, has_pieces ? piece : 0);
}

/* What a rank may say, in an order in which it may; the last message is one that ends the reading. */
static struct bytes stream_to(enum tcp_stream_role role)
{
    uint8_t payload[TCP_STREAM_ANSWER_BYTES];
    const struct stk_tcp_note note = { .code = -6, .text = "the disk is full" };
    struct bytes stream = { .count = 0 };
    for (size_t i = 0; i < sizeof(payload); i++)
        payload[i] = (uint8_t)(i + 1);
    if (role == TCP_STREAM_RANK_0) {
        add_piece(&stream, STK_TCP_WORD, 5, payload, 10, 12);
        add(&stream, STK_TCP_HERE, 5, NULL, 0);
        add(&stream, STK_TCP_WORD, 6, payload, TCP_STREAM_WORD_BYTES);
        add(&stream, STK_TCP_ROLL, 6, NULL, 0);
        add(&stream, STK_TCP_FAILED, 6, &note, sizeof(note));
        return stream;
    }
    add(&stream, STK_TCP_START, 0, NULL, 0);
    add(&stream, STK_TCP_ROLL, 5, NULL, 0);
    if (role != TCP_STREAM_IDLE) {
        const uint32_t kind = role == TCP_STREAM_GATHERS ? STK_TCP_ALL : STK_TCP_DATA;
        add(&stream, kind, 5, payload, 100);
        add(&stream, kind, 5, payload + 100, sizeof(payload) - 100);
    } else {
        add(&stream, STK_TCP_ENDED, 5, &note, sizeof(note));
    }
    return stream;
}

static void check_complete(const struct tcp_stream *stream, enum tcp_stream_role role)
{
    const struct stk_tcp_link *const link = &stream->link;
    cr_assert_null(link->broken, "%s", link->broken);
    cr_assert(link->rolls);
    if (role == TCP_STREAM_RANK_0) {
        cr_assert_eq(link->word_bytes[1], 12);
        cr_assert_eq(link->word_sent[1], 10);
        cr_assert_eq(stream->p.gathered[1][2 * TCP_STREAM_WORD_BYTES + 9], 10);
        cr_assert_eq(stream->p.gathered[1][2 * TCP_STREAM_WORD_BYTES + 10], 0);
        cr_assert_eq(link->word_bytes[0], TCP_STREAM_WORD_BYTES);
        cr_assert_eq(stream->p.gathered[0][2 * TCP_STREAM_WORD_BYTES + 63], 64);
        cr_assert_eq(link->roll_call, 6);
    }
    if (role == TCP_STREAM_RANK_0 || role == TCP_STREAM_IDLE) {
        cr_assert(link->ended);
        cr_assert_str_eq(link->note.text, "the disk is full");
        return;
    }
    cr_assert_eq(stream->p.answer_got, TCP_STREAM_ANSWER_BYTES);
    for (size_t i = 0; i < TCP_STREAM_ANSWER_BYTES; i++)
        cr_assert_eq(stream->p.answer[i], (uint8_t)(i + 1));
}

CleanTest(tcp_messages, streams_are_read_at_every_split)
{
    for (int role = 0; role < TCP_STREAM_ROLES; role++) {
        const struct bytes bytes = stream_to((enum tcp_stream_role)role);
        for (size_t split = 0; split <= bytes.count; split++) {
            struct tcp_stream stream;
            cr_assert(tcp_stream_open(&stream, (enum tcp_stream_role)role));
            cr_assert_eq(send(stream.other, bytes.at, split, 0), (ssize_t)split);
            stk_tcp_link_read(&stream.p, &stream.link);
            cr_assert(tcp_stream_read(&stream, bytes.at + split, bytes.count - split));
            check_complete(&stream, (enum tcp_stream_role)role);
            cr_assert_null(tcp_stream_check(&stream));
            tcp_stream_close(&stream);
        }
    }
}

CleanTest(tcp_messages, a_stream_that_ends_anywhere_is_closed)
{
    for (int role = 0; role < TCP_STREAM_ROLES; role++) {
        const struct bytes bytes = stream_to((enum tcp_stream_role)role);
        for (size_t count = 0; count < bytes.count; count++) {
            struct tcp_stream stream;
            cr_assert(tcp_stream_open(&stream, (enum tcp_stream_role)role));
            cr_assert(tcp_stream_read(&stream, bytes.at, count));
            cr_assert(stream.link.closed);
            cr_assert_not(stream.link.ended);
            cr_assert_null(stream.link.broken);
            cr_assert_null(tcp_stream_check(&stream));
            tcp_stream_close(&stream);
        }
    }
}

CleanTest(tcp_messages, every_flipped_bit_stays_within_bounds)
{
    for (int role = 0; role < TCP_STREAM_ROLES; role++) {
        struct bytes bytes = stream_to((enum tcp_stream_role)role);
        for (size_t bit = 0; bit < bytes.count * 8; bit++) {
            struct tcp_stream stream;
            bytes.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
            cr_assert(tcp_stream_open(&stream, (enum tcp_stream_role)role));
            cr_assert(tcp_stream_read(&stream, bytes.at, bytes.count));
            cr_assert_null(tcp_stream_check(&stream), "bit %zu", bit);
            if (bit < 32) /* the first magic number */
                cr_assert_not_null(stream.link.broken);
            tcp_stream_close(&stream);
            bytes.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
        }
    }
}

/* ---- headers ------------------------------------------------------------------------- */

static const char *judge(uint32_t kind, uint64_t bytes, bool from_rank_0)
{
    const bool has_pieces = kind == STK_TCP_WORD || kind == STK_TCP_ALL;
    const struct stk_tcp_header header = {
        .magic = STK_TCP_MAGIC, .kind = kind, .bytes = bytes, .piece = has_pieces ? 64 : 0
    };
    const struct stk_tcp_bounds bounds = { .from_rank_0 = from_rank_0, .word_bytes_max = 64 };
    return stk_tcp_check_header(&header, &bounds);
}

CleanTest(tcp_messages, each_kind_has_its_side_and_its_length)
{
    const uint64_t hello = sizeof(struct stk_tcp_hello);
    const uint64_t note = sizeof(struct stk_tcp_note);
    const uint64_t frame = STK_TCP_FRAME_BYTES_MAX;
    const struct {
        uint32_t kind;
        uint64_t least, most;
        bool ranks, rank_0;
    } rows[] = {
        { STK_TCP_HELLO, hello, hello, true, false },
        { STK_TCP_GREETING, hello, hello, false, true },
        { STK_TCP_REFUSED, note, note, false, true },
        { STK_TCP_START, 0, 0, false, true },
        { STK_TCP_WORD, 1, 64, true, false },
        { STK_TCP_ALL, 1, frame, false, true },
        { STK_TCP_DATA, 1, frame, false, true },
        { STK_TCP_FAILED, note, note, true, false },
        { STK_TCP_ENDED, note, note, false, true },
        { STK_TCP_ROLL, 0, 0, true, true },
        { STK_TCP_HERE, 0, 0, true, false },
    };
    cr_assert_eq(sizeof(rows) / sizeof(rows[0]), STK_TCP_KINDS - 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int from_rank_0 = 0; from_rank_0 < 2; from_rank_0++) {
            const bool sends = from_rank_0 ? rows[i].rank_0 : rows[i].ranks;
            const uint32_t kind = rows[i].kind;
            cr_assert_eq(judge(kind, rows[i].least, from_rank_0) == NULL, sends, "kind %u", kind);
            cr_assert_eq(judge(kind, rows[i].most, from_rank_0) == NULL, sends, "kind %u", kind);
            cr_assert_not_null(judge(kind, rows[i].most + 1, from_rank_0), "kind %u", kind);
            cr_assert_not_null(judge(kind, UINT64_MAX, from_rank_0), "kind %u", kind);
            if (rows[i].least > 0)
                cr_assert_not_null(judge(kind, rows[i].least - 1, from_rank_0), "kind %u", kind);
        }
    cr_assert_not_null(judge(0, 0, false));
    cr_assert_not_null(judge(STK_TCP_KINDS, 0, false));
    cr_assert_not_null(judge(UINT32_MAX, 0, true));
}

CleanTest(tcp_messages, pieces_are_words_or_less)
{
    const struct stk_tcp_bounds bounds = { .word_bytes_max = 64 };
    struct stk_tcp_header header = { .magic = STK_TCP_MAGIC, .kind = STK_TCP_WORD, .bytes = 8 };
    cr_assert_not_null(stk_tcp_check_header(&header, &bounds));
    header.piece = 7;
    cr_assert_not_null(stk_tcp_check_header(&header, &bounds));
    header.piece = 8;
    cr_assert_null(stk_tcp_check_header(&header, &bounds));
    header.piece = 65;
    cr_assert_not_null(stk_tcp_check_header(&header, &bounds));
    header = (struct stk_tcp_header){ .magic = STK_TCP_MAGIC, .kind = STK_TCP_HERE, .piece = 1 };
    cr_assert_not_null(stk_tcp_check_header(&header, &bounds));
}

/* ---- calls that do not fit ------------------------------------------------------------- */

static const char *broken_by(enum tcp_stream_role role, uint32_t kind, uint64_t call, size_t bytes)
{
    static const uint8_t payload[256];
    struct bytes message = { .count = 0 };
    struct tcp_stream stream;
    add(&message, kind, call, payload, bytes);
    cr_assert(tcp_stream_open(&stream, role));
    cr_assert(tcp_stream_read(&stream, message.at, message.count));
    const char *const broken = stream.link.broken;
    tcp_stream_close(&stream);
    return broken;
}

CleanTest(tcp_messages, words_of_other_calls_are_refused)
{
    cr_assert_null(broken_by(TCP_STREAM_RANK_0, STK_TCP_WORD, 5, 8));
    cr_assert_null(broken_by(TCP_STREAM_RANK_0, STK_TCP_WORD, 6, 8));
    cr_assert_not_null(broken_by(TCP_STREAM_RANK_0, STK_TCP_WORD, 4, 8));
    cr_assert_not_null(broken_by(TCP_STREAM_RANK_0, STK_TCP_WORD, 7, 8));
    cr_assert_not_null(broken_by(TCP_STREAM_RANK_0, STK_TCP_WORD, UINT64_MAX, 8));
}

CleanTest(tcp_messages, answers_of_other_calls_are_refused)
{
    cr_assert_null(broken_by(TCP_STREAM_GATHERS, STK_TCP_ALL, 5, TCP_STREAM_ANSWER_BYTES));
    cr_assert_not_null(broken_by(TCP_STREAM_GATHERS, STK_TCP_ALL, 5, TCP_STREAM_ANSWER_BYTES + 1));
    cr_assert_not_null(broken_by(TCP_STREAM_GATHERS, STK_TCP_DATA, 5, 8));
    cr_assert_not_null(broken_by(TCP_STREAM_GATHERS, STK_TCP_ALL, 4, 8));
    cr_assert_not_null(broken_by(TCP_STREAM_GATHERS, STK_TCP_ALL, 7, 8));
    cr_assert_not_null(broken_by(TCP_STREAM_BROADCASTS, STK_TCP_ALL, 5, 8));
    /* One call ahead: it waits until this rank has begun that call. */
    cr_assert_null(broken_by(TCP_STREAM_IDLE, STK_TCP_DATA, 6, 8));
    cr_assert_not_null(broken_by(TCP_STREAM_IDLE, STK_TCP_DATA, 5, 8));
}

static bool is_called_by(uint64_t call)
{
    struct bytes message = { .count = 0 };
    struct tcp_stream stream;
    add(&message, STK_TCP_ROLL, call, NULL, 0);
    cr_assert(tcp_stream_open(&stream, TCP_STREAM_RANK_0));
    stream.p.done_call = 5;
    cr_assert(tcp_stream_read(&stream, message.at, message.count));
    const bool called = stk_tcp_is_called(&stream.p, false);
    tcp_stream_close(&stream);
    return called;
}

/* A rank that gives up just before its answer arrives takes it, and its roll call is void. */
CleanTest(tcp_messages, a_roll_call_of_an_ended_call_is_void)
{
    cr_assert_not(is_called_by(4));
    cr_assert_not(is_called_by(5));
    cr_assert(is_called_by(6));
}

/* The bytes of each word may be fewer than asked for, and are the same in all frames. */
CleanTest(tcp_messages, answers_have_as_many_bytes_as_they_say)
{
    static const uint8_t payload[TCP_STREAM_ANSWER_BYTES + TCP_STREAM_WORLD];
    for (uint64_t piece = 1; piece <= TCP_STREAM_WORD_BYTES + 1; piece++) {
        struct bytes message = { .count = 0 };
        struct tcp_stream stream;
        add_piece(&message, STK_TCP_ALL, 5, payload, 1, piece);
        add_piece(&message, STK_TCP_ALL, 5, payload, piece * TCP_STREAM_WORLD - 1, piece);
        cr_assert(tcp_stream_open(&stream, TCP_STREAM_GATHERS));
        cr_assert(tcp_stream_read(&stream, message.at, message.count));
        cr_assert_eq(stream.link.broken != NULL, piece > TCP_STREAM_WORD_BYTES);
        cr_assert_null(tcp_stream_check(&stream));
        if (piece <= TCP_STREAM_WORD_BYTES)
            cr_assert_eq(stream.p.answer_got, piece * TCP_STREAM_WORLD);
        tcp_stream_close(&stream);
    }
}
