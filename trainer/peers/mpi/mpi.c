/* mpi.c - see mpi.h and mpi_peers.h: joins and leaves, gathers and broadcasts. */
#include "trainer/peers/mpi/mpi_peers.h"

#include <sched.h>
#include <string.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "loader/base/library.h"
#include "loader/base/memory/memory.h"

enum {
    GATHERED_BYTES = 1 << 20
}; /* most in one gather, all ranks together; more if a word needs it */

int stk_mpi_load(const struct stk_mpi_functions **out, stoker_error *error)
{
    struct getter {
        stk_mpi_functions_getter *get;
    } found;
    const struct stk_function row = { STK_MPI_SYMBOL, offsetof(struct getter, get) };
    const char *why = "";
    void *const library = stk_library_open("STOKER_MPI", "libstoker_mpi.so", &why);
    if (library == NULL || !stk_library_fill(library, &row, 1, &found, &why))
        return stk_refuse_option(
            error, STOKER_ENOTSUP,
            "several ranks need libstoker_mpi.so, which a build with MPI makes "
            "(STOKER_MPI names another file): %.200s",
            why);
    *out = found.get();
    if ((*out)->version != STK_MPI_TABLE_VERSION)
        return stk_refuse_option(error, STOKER_ENOTSUP,
                                 "libstoker_mpi.so has interface %u, this library needs %d",
                                 (*out)->version, STK_MPI_TABLE_VERSION);
    return STOKER_OK;
}

/* ---- what is gathered and broadcast ----------------------------------------------- */

static int gather(struct stk_peers *peers, const void *mine, size_t bytes, const void **all,
                  stoker_error *error)
{
    struct stk_mpi_peers *const p = stk_mpi_peers_of(peers);
    struct stk_mpi_request request = { 0 };
    int rc = stk_mpi_check(p, error);
    if (rc != STOKER_OK)
        return rc;
    memcpy(p->mine, mine, bytes);
    const int code = p->mpi->gather(p->communicator, p->mine, p->gathered, bytes, &request);
    if (code != 0)
        return stk_mpi_failed(p, code, "MPI_Iallgather", error);
    rc = stk_mpi_await(p, &request, "a sync point of all ranks", error);
    if (rc == STOKER_OK)
        *all = p->gathered;
    return rc;
}

/* In pieces, through memory of MPI. */
static int broadcast(struct stk_peers *peers, void *memory, size_t bytes, stoker_error *error)
{
    struct stk_mpi_peers *const p = stk_mpi_peers_of(peers);
    int rc = stk_mpi_finish(peers, error); /* its slots' memory is used */
    const size_t most = p->received_floats * sizeof(float);
    uint8_t *const piece = (uint8_t *)p->slots[0].received;
    for (size_t done = 0; done < bytes && rc == STOKER_OK;) {
        struct stk_mpi_request request = { 0 };
        const size_t count = bytes - done < most ? bytes - done : most;
        memcpy(piece, (uint8_t *)memory + done, count);
        const int code = p->mpi->broadcast(p->communicator, piece, count, 0, &request);
        if (code != 0)
            return stk_mpi_failed(p, code, "MPI_Ibcast", error);
        rc = stk_mpi_await(p, &request, "what rank 0 sends", error);
        if (rc == STOKER_OK)
            memcpy((uint8_t *)memory + done, piece, count);
        done += count;
    }
    return rc;
}

static int poll(struct stk_peers *peers, stoker_error *error)
{
    struct stk_mpi_peers *const p = stk_mpi_peers_of(peers);
    int rc = stk_mpi_check(p, error);
    if (rc == STOKER_OK)
        rc = stk_mpi_move_slots(p, error);
    return rc == STOKER_OK ? stk_mpi_listen(p, error) : rc;
}

/* ---- leaving --------------------------------------------------------------------- */

/* Memory of MPI is given back only if nothing can be under way in it. */
static void free_all(struct stk_mpi_peers *p, bool abandon)
{
    const struct stk_mpi_functions *const mpi = p->mpi;
    void *memory[] = { p->mine, p->gathered, p->message_in, p->message_out };
    if (p->communicator != NULL)
        (void)mpi->release(p->communicator, abandon);
    for (uint32_t s = 0; s < STK_SLOTS; s++) {
        if (p->slots[s].communicator != NULL)
            (void)mpi->release(p->slots[s].communicator, abandon);
        if (!abandon) {
            mpi->free(p->slots[s].received);
            mpi->free(p->slots[s].parts.count);
        }
    }
    for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]) && !abandon; i++)
        mpi->free(memory[i]);
    stk_free(p->messages_sent);
    stk_free(p->heard);
    stk_free(p);
}

static void leave(struct stk_peers *peers)
{
    struct stk_mpi_peers *const p = stk_mpi_peers_of(peers);
    const struct stk_word word = stk_peers_word(STK_SYNC_LEAVE, STOKER_OK, NULL);
    bool whole = stk_mpi_finish(peers, NULL) == STOKER_OK &&
                 stk_peers_agree(peers, &word, NULL, NULL) == STOKER_OK;
    if (whole && p->listens)
        whole = p->mpi->cancel(&p->message_request) == 0;
    free_all(p, !whole);
}

static const struct stk_peers_ops ops = { .name = "mpi",
                                          .leave = leave,
                                          .gather = gather,
                                          .all_reduce = stk_mpi_all_reduce,
                                          .has_room = stk_mpi_has_room,
                                          .poll = poll,
                                          .finish = stk_mpi_finish,
                                          .broadcast = broadcast,
                                          .failed = stk_mpi_tell_failed };

/* ---- joining ---------------------------------------------------------------------
 *
 * First what messages need, so that a rank that fails from then on can say so. */

/* Nobody can be named yet. */
static int await_first(struct stk_mpi_peers *p, struct stk_mpi_request *request,
                       stoker_error *error)
{
    const uint64_t end_ns = stk_now_ns() + p->options.timeout_ms * UINT64_C(1000000);
    bool done = false;
    int code = 0;
    while (code == 0 && !done && stk_now_ns() < end_ns) {
        code = p->mpi->test(request, &done);
        (void)sched_yield();
    }
    if (code != 0)
        return stk_mpi_failed(p, code, "MPI_Test", error);
    return done ? STOKER_OK
                : stk_refuse_option(error, STOKER_EPEER,
                                    "only some of %u ranks created a trainer within %u ms",
                                    p->peers.world_size, p->options.timeout_ms);
}

static int duplicate(struct stk_mpi_peers *p, struct stk_mpi_communicator **out,
                     stoker_error *error)
{
    struct stk_mpi_communicator *made = NULL;
    struct stk_mpi_request request = { 0 };
    /* Not of all processes again: what a failure leaves half done is confined to
     * p->communicator. */
    const int code = p->mpi->duplicate(p->communicator, &made, &request);
    if (code != 0)
        return stk_mpi_failed(p, code, "MPI_Comm_idup", error);
    const int rc = p->listens ? stk_mpi_await(p, &request, "the start", error)
                              : await_first(p, &request, error);
    if (rc == STOKER_OK)
        *out = made;
    else
        (void)p->mpi->release(made, true);
    return rc;
}

static int start(struct stk_mpi_peers *p, uint32_t expected_size, stoker_error *error)
{
    uint32_t world_size = 1;
    const int code = p->mpi->start(&p->peers.rank, &world_size);
    p->peers.world_size = world_size;
    if (code != 0)
        return stk_mpi_failed(p, code, "MPI_Init", error);
    if (expected_size == 0 || expected_size == world_size)
        return STOKER_OK;
    char library[STK_MPI_TEXT_BYTES];
    p->mpi->describe(library);
    return stk_refuse_option(
        error, STOKER_EPEER,
        "%u processes were started, but %s sees %u: start them with the mpirun of "
        "that library, or srun --mpi=pmix",
        expected_size, library, world_size);
}

static int no_memory(const struct stk_mpi_peers *p, stoker_error *error)
{
    return stk_refuse_option(error, STOKER_ENOMEM, "memory to talk to %u ranks",
                             p->peers.world_size);
}

static int take_notes(struct stk_mpi_peers *p, stoker_error *error)
{
    const uint32_t world_size = p->peers.world_size;
    p->message_in = p->mpi->allocate(sizeof(*p->message_in));
    p->message_out = p->mpi->allocate(sizeof(*p->message_out));
    p->messages_sent = stk_calloc(world_size, sizeof(*p->messages_sent));
    p->heard = stk_calloc(world_size, sizeof(*p->heard));
    if (p->message_in == NULL || p->message_out == NULL || p->messages_sent == NULL ||
        p->heard == NULL)
        return no_memory(p, error);
    int rc = duplicate(p, &p->communicator, error);
    if (rc != STOKER_OK)
        return rc;
    const int code = p->mpi->receive(p->communicator, p->message_in, sizeof(*p->message_in),
                                     STK_MPI_ANY_RANK, STK_MESSAGE_TAG, &p->message_request);
    p->listens = code == 0;
    return code == 0 ? STOKER_OK : stk_mpi_failed(p, code, "MPI_Irecv", error);
}

static int take_slot(struct stk_mpi_peers *p, struct stk_slot *slot, stoker_error *error)
{
    struct stk_mpi_parts *const parts[] = { &slot->parts, &slot->sent_parts,
                                            &slot->received_parts };
    const uint32_t kinds = sizeof(parts) / sizeof(parts[0]);
    const uint32_t world_size = p->peers.world_size;
    int *const numbers = p->mpi->allocate((size_t)2 * kinds * world_size * sizeof(*numbers));
    slot->received = p->mpi->allocate(p->received_floats * sizeof(float));
    for (uint32_t i = 0; i < kinds && numbers != NULL; i++)
        *parts[i] = (struct stk_mpi_parts){ .count = numbers + 2 * i * world_size,
                                            .at = numbers + (2 * i + 1) * world_size };
    if (numbers == NULL || slot->received == NULL)
        return no_memory(p, error);
    return duplicate(p, &slot->communicator, error);
}

static int take_rest(struct stk_mpi_peers *p, stoker_error *error)
{
    const uint32_t world_size = p->peers.world_size;
    const size_t share = (GATHERED_BYTES / world_size) & ~(size_t)63;
    p->peers.gather_bytes_max = share < sizeof(struct stk_word) ? sizeof(struct stk_word) : share;
    p->slice_floats =
        p->options.floats_max < STK_SLICE_FLOATS ? p->options.floats_max + 1 : STK_SLICE_FLOATS;
    /* Parts are rounded up to lines; the one of this rank is not received. */
    p->received_floats = p->slice_floats + (uint64_t)STK_LINE_FLOATS * world_size;
    p->by_parts = p->options.deterministic || world_size <= p->options.parts_ranks_max;
    p->mine = p->mpi->allocate(p->peers.gather_bytes_max);
    p->gathered = p->mpi->allocate(p->peers.gather_bytes_max * world_size);
    int rc = p->mine == NULL || p->gathered == NULL ? no_memory(p, error) : STOKER_OK;
    for (uint32_t s = 0; s < STK_SLOTS && rc == STOKER_OK; s++)
        rc = take_slot(p, &p->slots[s], error);
    if (rc == STOKER_ENOMEM)
        stk_mpi_tell_failed(&p->peers, rc, "out of memory");
    return rc;
}

int stk_mpi_join(struct stk_peers **out, const struct stk_mpi_functions *mpi,
                 const struct stk_peers_options *options, uint32_t expected_size,
                 stoker_error *error)
{
    struct stk_mpi_peers *const p = stk_calloc(1, sizeof(*p));
    if (p == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "peers");
    p->peers.ops = &ops;
    p->mpi = mpi;
    p->options = *options;
    int rc = start(p, expected_size, error);
    if (rc == STOKER_OK)
        rc = take_notes(p, error);
    if (rc == STOKER_OK)
        rc = take_rest(p, error);
    if (rc == STOKER_OK) {
        *out = &p->peers;
        return STOKER_OK;
    }
    free_all(p, p->communicator != NULL);
    return rc;
}
