/* mpi_peers.h - the state of an MPI rank, shared by the files that implement it. Each calls those
 * below it:
 *
 *   mpi.c       join, leave, gather, broadcast
 *   sum.c       all_reduce: slice after slice, each in a slot with its own communicator; every
 *               wait, with a deadline
 *   messages.c  failures and presence checks, beside the sums
 *
 * Messages go from rank to rank outside of all collective calls. A rank that fails sends one to
 * each other rank. A rank that has waited too long checks who is present: it sends a message to
 * each rank and listens. Ranks that are waiting, too, answer with their own; those that were not
 * heard are named in the error: a rank that computes, hangs, is stopped or gone does not answer. */
#ifndef STK_TRAINER_MPI_PEERS_H
#define STK_TRAINER_MPI_PEERS_H

#include "trainer/peers/mpi/mpi.h"

enum { STK_SLOTS = 8, STK_SLICE_FLOATS = 1 << 18, STK_LINE_FLOATS = 16, STK_MESSAGE_TAG = 1 };

enum stk_message_kind { STK_MESSAGE_FAILED, STK_MESSAGE_PRESENT };

struct stk_message {
    uint32_t kind; /* an stk_message_kind */
    uint32_t from;
    int32_t code;
    char text[STK_WORD_TEXT_BYTES];
};

enum stk_slot_state { STK_SLOT_FREE, STK_SLOT_SUMS, STK_SLOT_EXCHANGES, STK_SLOT_GATHERS };

/* A slice of an array on its way. Collective calls of one communicator must begin in the same
 * order on all ranks: a slot goes through its own in a fixed order, and slices take the slots in
 * turns.
 *
 *   FREE ──▶ SUMS ────────────────────▶ FREE        MPI adds, in an order of its own
 *   FREE ──▶ EXCHANGES ──▶ GATHERS ──▶ FREE        each rank adds one part, in the order of ranks
 *
 * MPI reads and writes the caller's array: after a failure it may do so for as long as the
 * process lives. */
struct stk_slot {
    struct stk_mpi_communicator *communicator;
    struct stk_mpi_request request;
    enum stk_slot_state state;
    float *at; /* the slice, in the caller's array */
    uint64_t count;
    /* EXCHANGES, GATHERS: the slice in parts, of which rank r adds part r; the parts that this
     * rank sends, and those that it receives: in `received`, which has room for received_floats.
     * SUMS: the sum is there. */
    struct stk_mpi_parts parts, sent_parts, received_parts;
    float *received; /* memory of MPI, and so are the parts' numbers */
};

struct stk_mpi_peers {
    struct stk_peers peers; /* first */
    const struct stk_mpi_functions *mpi;
    struct stk_peers_options options;
    struct stk_mpi_communicator *communicator; /* for all but slices */
    struct stk_slot slots[STK_SLOTS];
    bool by_parts;         /* slices go through EXCHANGES */
    uint64_t slice_floats; /* most floats of a slice */
    uint64_t received_floats;
    uint64_t slices;          /* begun */
    uint8_t *mine, *gathered; /* memory of MPI: gather_bytes_max, and that for each rank */
    struct stk_message *message_in, *message_out;
    struct stk_mpi_request message_request, *messages_sent; /* messages_sent: one per rank */
    bool *heard;                                            /* one per rank, in a presence check */
    bool listens;                                           /* message_request is under way */
    bool broken;                                            /* with this cause */
    stoker_error cause;
};

static inline struct stk_mpi_peers *stk_mpi_peers_of(struct stk_peers *peers)
{
    return (struct stk_mpi_peers *)peers;
}

/* messages.c. Each that returns an int returns STOKER_EPEER if the run has ended, with *error =
 * the first cause. */

#define STK_NS_PER_MS UINT64_C(1000000)

/* The first cause again, if there was one. */
int stk_mpi_check(const struct stk_mpi_peers *p, stoker_error *error);
/* what: "MPI_Iallgather". */
int stk_mpi_failed(struct stk_mpi_peers *p, int code, const char *what, stoker_error *error);
void stk_mpi_tell_failed(struct stk_peers *peers, int code, const char *text);
/* Reads a message that has come, without waiting. what: this rank waits for it, or where it is. */
int stk_mpi_hear(struct stk_mpi_peers *p, const char *what, stoker_error *error);
int stk_mpi_listen(struct stk_mpi_peers *p, stoker_error *error); /* between two calls */
/* Ends the run and names the ranks that do not answer. caller: the rank that has checked presence
 * first; this one, if its own time is up. */
int stk_mpi_check_presence(struct stk_mpi_peers *p, const char *what, uint32_t caller,
                           stoker_error *error);
/* One turn of a wait, 0, 1, ...: other processes may need this CPU. */
void stk_mpi_relax(uint32_t turn);

/* sum.c */
/* Moves every slot on, without waiting. */
int stk_mpi_move_slots(struct stk_mpi_peers *p, stoker_error *error);
/* Waits for a request, while slices move on. */
int stk_mpi_await(struct stk_mpi_peers *p, struct stk_mpi_request *request, const char *what,
                  stoker_error *error);
int stk_mpi_all_reduce(struct stk_peers *peers, float *floats, uint64_t count, stoker_error *error);
bool stk_mpi_has_room(const struct stk_peers *peers);
int stk_mpi_finish(struct stk_peers *peers, stoker_error *error);

#endif
