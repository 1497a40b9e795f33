/* direct.c - see direct.h.
 *
 *   file  | 0 | 1 | ... | READS - 1 | READS | ...     READS blocks in flight; the buffer of one that ends takes the next
 */
#include "bench/tokens/direct.h"

#include <fcntl.h>
#include <stdlib.h>
#include <stoker/error.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/ceiling/ring.h"

enum { READS = 32, BLOCK_BYTES = 256 << 10, ALIGNMENT = 4096 };

struct direct {
    struct bench_ring ring;
    int fd;
    uint8_t *memory;        /* [READS x BLOCK_BYTES] */
    uint32_t unused[READS]; /* buffers without a read */
    uint32_t unused_count;
    uint64_t next, end, read; /* offset of the next block, bytes of the file, bytes that came */
};

static void prepare(struct direct *direct)
{
    const uint32_t buffer = direct->unused[--direct->unused_count];
    struct io_uring_sqe *sqe = bench_ring_request(&direct->ring);
    io_uring_prep_read(sqe, direct->fd, direct->memory + (size_t)buffer * BLOCK_BYTES, BLOCK_BYTES,
                       direct->next);
    io_uring_sqe_set_data64(sqe, buffer);
    direct->next += BLOCK_BYTES;
}

static int finish(void *state, const struct io_uring_cqe *cqe)
{
    struct direct *direct = state;
    direct->unused[direct->unused_count++] = (uint32_t)io_uring_cqe_get_data64(cqe);
    if (cqe->res <= 0)
        return STOKER_EIO;
    direct->read += (uint64_t)cqe->res;
    return 1;
}

static int read_all(struct direct *direct)
{
    for (uint32_t i = 0; i < READS; i++)
        direct->unused[direct->unused_count++] = i;
    while (direct->next < direct->end || direct->unused_count < READS) {
        while (direct->next < direct->end && direct->unused_count > 0)
            prepare(direct);
        if (bench_ring_turn(&direct->ring, 1, finish, direct) < 0)
            return STOKER_EIO;
    }
    return direct->read == direct->end ? STOKER_OK : STOKER_EIO;
}

static int open_file(struct direct *direct, const char *path)
{
    struct stat status;
    direct->fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (direct->fd < 0)
        return STOKER_ENOTSUP;
    if (fstat(direct->fd, &status) != 0)
        return STOKER_EIO;
    direct->end = (uint64_t)status.st_size;
    direct->memory = aligned_alloc(ALIGNMENT, (size_t)READS * BLOCK_BYTES);
    return direct->memory == NULL ? STOKER_ENOMEM : bench_ring_open(&direct->ring, READS);
}

int tokens_direct_read(const char *path, uint64_t *bytes)
{
    struct direct direct = { .fd = -1 };
    int rc = open_file(&direct, path);
    if (rc == STOKER_OK)
        rc = read_all(&direct);
    bench_ring_close(&direct.ring);
    if (direct.fd >= 0)
        close(direct.fd);
    free(direct.memory);
    *bytes = direct.read;
    return rc;
}
