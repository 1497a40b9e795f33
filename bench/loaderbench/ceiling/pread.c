/* pread.c - the same random reads by plain system calls; whole files by open, read, close. */
#include "bench/loaderbench/ceiling/share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct preader {
    struct bench_share share;
    void *row; /* as read, before conversion */
};

static void teardown_preader(void *state)
{
    struct preader *preader = state;
    bench_share_destroy(&preader->share);
    free(preader->row);
    free(preader);
}

static int setup_preader(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    const struct bench_work *work = context;
    struct preader *preader = calloc(1, sizeof(*preader));
    if (preader == NULL)
        return STOKER_ENOMEM;
    int rc = bench_share_create(&preader->share, work, thread, threads);
    preader->row = malloc(work->plan->from_bytes);
    if (rc == STOKER_OK && preader->row == NULL)
        rc = STOKER_ENOMEM;
    if (rc != STOKER_OK) {
        teardown_preader(preader);
        return rc;
    }
    *state = preader;
    return STOKER_OK;
}

static int read_one(struct preader *preader, uint64_t sample, void *out)
{
    const struct bench_work *work = preader->share.work;
    const struct stk_convert_plan *plan = work->plan;
    bool direct = bench_keeps_rows(plan);
    const struct bench_material *material = work->material;
    const bool own_file = material->paths != NULL;
    const int fd = own_file
                       ? openat(material->directory, material->paths[sample], O_RDONLY | O_CLOEXEC)
                       : material->file.fd;
    const size_t wanted = material->bytes[sample];
    ssize_t got = 0;
    if (fd < 0)
        return STOKER_EIO;
    do
        got = pread(fd, direct ? out : preader->row, wanted,
                    own_file ? 0 : (off_t)material->offsets[sample]);
    while (got < 0 && errno == EINTR);
    if (own_file)
        close(fd);
    if (got < 0 || (size_t)got != wanted)
        return STOKER_EIO;
    if (!direct)
        plan->rows(plan, (const void *const *)&preader->row, 1, 0, out);
    return STOKER_OK;
}

static int64_t step_preader(void *state)
{
    struct preader *preader = state;
    uint64_t start = 0;
    uint32_t count = bench_share_take(&preader->share, preader->share.piece, &start);
    for (uint32_t index = 0; index < count; index++) {
        int rc = read_one(preader, start + index, bench_share_room(&preader->share, 1));
        if (rc != STOKER_OK)
            return rc;
    }
    return count;
}

const struct bench_steps bench_steps_pread = { setup_preader, step_preader, teardown_preader };

#if !defined(STOKER_HAVE_URING) /* else uring.c defines them */
static int setup_none(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    (void)context;
    (void)thread;
    (void)threads;
    (void)state;
    return STOKER_ENOTSUP;
}

const struct bench_steps bench_steps_uring = { .setup = setup_none };
#endif
