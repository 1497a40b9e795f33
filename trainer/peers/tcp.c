/* tcp.c - see tcp.h and tcp_peers.h: joins and leaves, gathers and broadcasts. */
#include "trainer/peers/tcp.h"

#include <assert.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "trainer/peers/tcp_peers.h"

static const struct stk_place nowhere = STK_NOWHERE;

enum {
    GATHERED_BYTES = 1 << 20
}; /* most in one gather, all ranks together; more if a word needs it */

/* ---- what is gathered and broadcast ----------------------------------------------- */

static bool needs_word(const struct stk_tcp_peers *p, const struct stk_tcp_link *link)
{
    return link->word_call[p->call & 1] != p->call;
}

static bool needs_room(const struct stk_tcp_peers *p, const struct stk_tcp_link *link)
{
    (void)p;
    return !stk_tcp_is_sent(link);
}

static bool needs_answer(const struct stk_tcp_peers *p, const struct stk_tcp_link *link)
{
    (void)link;
    return p->answer_got < p->answer_bytes;
}

/* piece: bytes of each rank's word at most; 0: a broadcast. */
static void expect(struct stk_tcp_peers *p, void *answer, uint64_t bytes, uint64_t piece)
{
    p->answer_kind = piece > 0 ? STK_TCP_ALL : STK_TCP_DATA;
    p->answer = answer;
    p->answer_bytes = bytes;
    p->answer_piece = piece;
    p->answer_got = 0;
}

static struct stk_tcp_header head(const struct stk_tcp_peers *p, enum stk_tcp_kind kind,
                                  uint64_t piece)
{
    return (struct stk_tcp_header){
        .magic = STK_TCP_MAGIC, .kind = (uint32_t)kind, .call = p->call, .piece = piece
    };
}

/* Bytes before the zeros at the end, 1 or more. */
static size_t used_bytes(const void *word, size_t bytes)
{
    const uint8_t *const at = word;
    while (bytes > 1 && at[bytes - 1] == 0)
        bytes--;
    return bytes;
}

static int check_words(struct stk_tcp_peers *p, size_t bytes, stoker_error *error)
{
    stoker_error cause;
    for (uint32_t i = 0; i < p->link_count; i++) {
        const struct stk_tcp_link *const link = &p->links[i];
        const uint64_t got = link->word_bytes[p->call & 1];
        if (got == bytes)
            continue;
        (void)stk_error_set(&cause, STOKER_EPEER, STOKER_STAGE_OPTIONS, &nowhere,
                            "rank %u came with %llu bytes, rank 0 with %zu: every rank must make "
                            "the same calls",
                            link->rank, (unsigned long long)got, bytes);
        return stk_tcp_end(p, &cause, cause.message, error);
    }
    return STOKER_OK;
}

/* Words have arrived at places of gather_bytes_max each. Moves them together, and copies the first bytes of each, as many
 * as the longest has, to what is sent. Returns their number. */
static size_t pack_words(struct stk_tcp_peers *p, const void *mine, size_t bytes)
{
    uint8_t *const all = p->gathered[p->call & 1];
    size_t piece = used_bytes(mine, bytes);
    for (uint32_t i = 0; i < p->link_count; i++) {
        const size_t sent = p->links[i].word_sent[p->call & 1];
        piece = sent > piece ? sent : piece;
    }
    memcpy(all, mine, bytes);
    for (uint32_t r = 0; r < p->peers.world_size; r++) {
        memmove(all + r * bytes, all + r * p->peers.gather_bytes_max, bytes);
        memcpy(p->packed + r * piece, all + r * bytes, piece);
    }
    return piece;
}

/* From the last word to the first: each moves up. */
static void unpack_words(uint8_t *all, uint32_t world_size, size_t piece, size_t bytes)
{
    for (uint32_t r = world_size; r-- > 0;) {
        memmove(all + r * bytes, all + r * piece, piece);
        memset(all + r * bytes + piece, 0, bytes - piece);
    }
}

static int gather_all(struct stk_tcp_peers *p, const void *mine, size_t bytes, stoker_error *error)
{
    static const struct stk_tcp_wait words = { .what = "a meeting of all ranks",
                                               .needs = needs_word };
    static const struct stk_tcp_wait sent = { .what = "a meeting of all ranks",
                                              .needs = needs_room };
    int rc = stk_tcp_await(p, &words, error);
    if (rc == STOKER_OK)
        rc = check_words(p, bytes, error);
    if (rc != STOKER_OK)
        return rc;
    const size_t piece = pack_words(p, mine, bytes);
    const struct stk_tcp_header header = head(p, STK_TCP_ALL, piece);
    for (uint32_t i = 0; i < p->link_count; i++)
        stk_tcp_queue_array(&p->links[i], &header, p->packed,
                            (uint64_t)piece * p->peers.world_size);
    return stk_tcp_await(p, &sent, error);
}

static int gather_mine(struct stk_tcp_peers *p, const void *mine, size_t bytes, stoker_error *error)
{
    static const struct stk_tcp_wait answer = { .what = "a meeting of all ranks",
                                                .needs = needs_answer };
    uint8_t *const all = p->gathered[p->call & 1];
    const struct stk_tcp_header header = head(p, STK_TCP_WORD, bytes);
    memcpy(p->packed, mine, bytes);
    expect(p, all, (uint64_t)bytes * p->peers.world_size, bytes);
    stk_tcp_queue_array(&p->links[0], &header, p->packed, used_bytes(mine, bytes));
    const int rc = stk_tcp_await(p, &answer, error);
    p->answer_kind = 0;
    if (rc == STOKER_OK)
        unpack_words(all, p->peers.world_size, p->answer_piece, bytes);
    return rc;
}

static int gather(struct stk_peers *peers, const void *mine, size_t bytes, const void **all,
                  stoker_error *error)
{
    struct stk_tcp_peers *const p = stk_tcp_peers_of(peers);
    int rc = stk_tcp_check(p, error);
    assert(bytes >= 1 && bytes <= peers->gather_bytes_max);
    if (rc != STOKER_OK)
        return rc;
    p->call++;
    rc = peers->rank == 0 ? gather_all(p, mine, bytes, error) : gather_mine(p, mine, bytes, error);
    if (rc != STOKER_OK)
        return rc;
    p->done_call = p->call;
    *all = p->gathered[p->call & 1];
    return STOKER_OK;
}

static int broadcast(struct stk_peers *peers, void *memory, size_t bytes, stoker_error *error)
{
    static const struct stk_tcp_wait sent = { .what = "what rank 0 sends",
                                              .needs = needs_room,
                                              .extends = true };
    static const struct stk_tcp_wait answer = { .what = "what rank 0 sends",
                                                .needs = needs_answer,
                                                .extends = true };
    struct stk_tcp_peers *const p = stk_tcp_peers_of(peers);
    int rc = stk_tcp_check(p, error);
    if (rc != STOKER_OK || bytes == 0)
        return rc;
    p->call++;
    const struct stk_tcp_header header = head(p, STK_TCP_DATA, 0);
    if (peers->rank != 0)
        expect(p, memory, bytes, 0);
    for (uint32_t i = 0; i < p->link_count && peers->rank == 0; i++)
        stk_tcp_queue_array(&p->links[i], &header, memory, bytes);
    rc = stk_tcp_await(p, peers->rank == 0 ? &sent : &answer, error);
    p->answer_kind = 0;
    if (rc == STOKER_OK)
        p->done_call = p->call;
    return rc;
}

/* The trainer refuses this combination when it is created. */
static int all_reduce(struct stk_peers *peers, float *floats, uint64_t count, stoker_error *error)
{
    (void)floats;
    (void)count;
    return stk_error_set(
        error, STOKER_ENOTSUP, STOKER_STAGE_OPTIONS, &nowhere,
        "rank %u cannot sum host memory over TCP: NCCL sums that of GPUs, MPI that "
        "of CPUs (start the ranks with mpirun)",
        peers->rank);
}

static int look(struct stk_peers *peers, stoker_error *error)
{
    return stk_tcp_look(stk_tcp_peers_of(peers), error);
}

/* Nothing is ever begun. */
static int finish(struct stk_peers *peers, stoker_error *error)
{
    return stk_tcp_check(stk_tcp_peers_of(peers), error);
}

/* ---- joining and leaving ------------------------------------------------------------ */

static void free_all(struct stk_tcp_peers *p)
{
    for (uint32_t i = 0; i < p->link_count && p->links != NULL; i++)
        stk_tcp_link_close(&p->links[i]);
    stk_free(p->links);
    stk_free(p->polls);
    stk_free(p->gathered[0]);
    stk_free(p->gathered[1]);
    stk_free(p->packed);
    stk_free(p);
}

static void leave(struct stk_peers *peers)
{
    struct stk_tcp_peers *const p = stk_tcp_peers_of(peers);
    const struct stk_word word = stk_peers_word(STK_MEET_LEAVE, STOKER_OK, NULL);
    if (stk_peers_agree(peers, &word, NULL, NULL) != STOKER_OK)
        stk_tcp_drain(p);
    free_all(p);
}

static const struct stk_peers_ops ops = { .name = "tcp",
                                          .leave = leave,
                                          .gather = gather,
                                          .all_reduce = all_reduce,
                                          .poll = look,
                                          .finish = finish,
                                          .broadcast = broadcast,
                                          .failed = stk_tcp_report_failed };

/* Rank 0's words arrive beside each other, whatever their length; two calls may be under way. */
static int take_memory(struct stk_tcp_peers *p, stoker_error *error)
{
    const uint32_t world_size = p->peers.world_size;
    const bool first = p->peers.rank == 0;
    const size_t share = (GATHERED_BYTES / world_size) & ~(size_t)63;
    const size_t extra = first ? stk_tcp_accept_extra(world_size) : 0;
    const size_t most = share < sizeof(struct stk_word) ? sizeof(struct stk_word) : share;
    p->peers.gather_bytes_max = most;
    p->link_count = first ? world_size - 1 : 1;
    p->links = stk_calloc(p->link_count, sizeof(*p->links));
    p->polls = stk_calloc(p->link_count + extra, sizeof(*p->polls));
    p->packed = stk_calloc(first ? world_size : 1, most);
    for (int i = 0; i < 2; i++)
        p->gathered[i] = stk_calloc(world_size, most);
    for (uint32_t i = 0; i < p->link_count && p->links != NULL; i++) {
        p->links[i].rank = first ? i + 1 : 0;
        p->links[i].fd = -1;
    }
    if (p->links != NULL && p->polls != NULL && p->packed != NULL && p->gathered[0] != NULL &&
        p->gathered[1] != NULL)
        return STOKER_OK;
    return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS, &nowhere,
                         "memory to talk to %u ranks", world_size);
}

static int join(struct stk_tcp_peers *p, const struct stk_tcp_rendezvous *at, stoker_error *error)
{
    static_assert(GATHERED_BYTES <= (int)STK_TCP_FRAME_BYTES_MAX, "a word is one frame");
    const int rc = take_memory(p, error);
    if (rc != STOKER_OK)
        return rc;
    return p->peers.rank == 0 ? stk_tcp_accept_all(p, at, error) : stk_tcp_connect(p, at, error);
}

int stk_tcp_join(struct stk_peers **out, const stoker_ranks *ranks,
                 const struct stk_peers_options *options, stoker_error *error)
{
    struct stk_tcp_rendezvous at;
    if (ranks->world_size == 1)
        return stk_peers_alone(out, error);
    int rc = stk_tcp_find_rendezvous(&at, ranks, error);
    if (rc != STOKER_OK)
        return rc;
    struct stk_tcp_peers *const p = stk_calloc(1, sizeof(*p));
    if (p == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS, &nowhere, "peers");
    p->peers =
        (struct stk_peers){ .ops = &ops, .rank = ranks->rank, .world_size = ranks->world_size };
    p->peers.words_only = true;
    p->options = *options;
    rc = join(p, &at, error);
    if (rc == STOKER_OK) {
        *out = &p->peers;
        return STOKER_OK;
    }
    if (p->broken)
        stk_tcp_drain(p);
    free_all(p);
    return rc;
}
