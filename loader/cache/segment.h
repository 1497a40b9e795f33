/* segment.h - memory that processes of one user on one node share, found by a key.
 *
 *   the first   binds the abstract socket of the key, makes the memory (a memfd),
 *               and serves its descriptor to every process that connects
 *   the others  connect, receive the descriptor, and map the same memory
 *
 *        rank 0: bind ─▶ memfd ─▶ fill in ─▶ serve ◀─┐ SCM_RIGHTS
 *        rank 1: bind fails ─▶ connect ──────────────┘─▶ map
 *
 * Neither the socket nor the memory has a name in a file system: the kernel frees the memory after
 * the last process that maps it, and the address with the first one, however they end. Nothing can
 * be left behind. If the first one leaves, the others keep what they share; one that comes later
 * starts another segment.
 *
 * Both sides check that the other has the same effective user, PID namespace and user namespace,
 * and the memory must be sealed against shrinking: a foreign process that squats on the address can
 * prevent sharing, nothing else. All peers may write: see share.h.
 */
#ifndef STK_CACHE_SEGMENT_H
#define STK_CACHE_SEGMENT_H

#include <pthread.h>
#include <stdint.h>

enum { STK_SEGMENT_KEY_BYTES = 33 }; /* 32 hexadecimal digits and a NUL */

struct stk_segment {
    int memory; /* the memfd; -1 = no segment */
    int socket; /* listens, in the first process; else -1 */
    int stop;   /* eventfd that ends the serving thread; else -1 */
    uint64_t bytes;
    struct stk_segment_served *served; /* what that thread looks at; NULL = it does not run */
    pthread_t server;
};

/* Find the segment of `key`, or make one of `bytes` zeroed bytes; 0 = only find it (else -ENOENT).
 * Returns 1: made, fill it in and serve it; 0: found, another process has filled it in, and
 * segment->bytes is what it has; or < 0, -errno of what failed, with segment->memory -1.
 * -ETIMEDOUT: a first process lets the connection, or its answer, wait for two seconds each; or for
 * a second in all (500 attempts, 2 ms apart) one binds the address but cannot be reached, as while
 * it starts or ends. */
int stk_segment_open(struct stk_segment *segment, const char key[STK_SEGMENT_KEY_BYTES],
                     uint64_t bytes);

/* Start to serve a segment that open made. Returns 0, STOKER_ENOMEM or STOKER_ETHREAD. */
int stk_segment_serve(struct stk_segment *segment);

/* Stop serving and close the descriptors; mappings stay. A segment that was not opened (memory -1)
 * is allowed. */
void stk_segment_close(struct stk_segment *segment);

#endif
