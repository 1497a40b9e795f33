/* leases.h - let others write to mapped shards without SIGBUS in this process.
 *
 *   a program opens the file for writing, or truncates it ──▶ the kernel suspends it
 *   the watch notices ──▶ workers read the file from now on ──▶ no row of its mapping is in use
 *                     ──▶ the lease is released ──▶ the kernel resumes the program
 *
 * The watch is a thread, since the loader may rest when that happens: the kernel would end the
 * lease after fs.lease-break-time, 45 s. It polls, and no signal is ever sent.
 */
#ifndef STK_DATASETS_SHARDS_LEASES_H
#define STK_DATASETS_SHARDS_LEASES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct stk_shard_file;

struct stk_shard_leases {
    struct stk_shard_file *files; /* the set's; of each, the watch changes `leased` and `mapped` */
    uint32_t count;
    bool watched; /* some files are leased, or were */
    pid_t maker;  /* the process that has the watch */
    pthread_t watch;
    _Atomic uint32_t stop;
};

/* Lease the mapped files for which the kernel grants that, and start the watch. Others stay mapped
 * without a lease; all of them, if the thread cannot start. */
void stk_shard_leases_begin(struct stk_shard_leases *leases, struct stk_shard_file *files,
                            uint32_t count);
/* All zero is allowed. In a forked child, the leases stay the parent's. */
void stk_shard_leases_end(struct stk_shard_leases *leases);

#endif
