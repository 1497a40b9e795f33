/* words.h - peers for processes that share no MPI: the words of ranks go from GPU to GPU, by
 * NCCL.
 *
 *   join      nccl_rendezvous.h ─▶ a communicator of its own
 *   gather    page-locked memory ─▶ GPU ─ ncclAllGather ─▶ page-locked memory, on its own stream
 *   failure   the last word says why; the others find it when they next gather
 *
 * Every rank gathers, and queues sums on the other communicator, in the same order, so each
 * communicator can progress. A rank whose GPU has failed, or that is killed, says nothing: the
 * others end with NCCL's error, or at the time-out. */
#ifndef STK_TRAINER_BACKEND_CUDA_RANKS_WORDS_H
#define STK_TRAINER_BACKEND_CUDA_RANKS_WORDS_H

#include <stoker/ranks.h>

#include "trainer/peers/peers.h"

/* Wait for all ranks. device: this rank's GPU. Sends no arrays: all_reduce is NULL, and a gather
 * is one struct stk_word. The errors of stk_nccl_rendezvous() and stk_nccl_join();
 * STOKER_EDEVICE. */
int stk_cuda_words_join(struct stk_peers **out, const stoker_ranks *ranks, uint32_t device,
                        uint32_t timeout_ms, stoker_error *error);

#endif
