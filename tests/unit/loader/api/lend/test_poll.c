/* test_poll.c - stoker_loader_fd(): when the descriptor is readable, what it costs and whose it is.
 *
 * tests/thread/loader/api/test_poll.c has whole runs and the races.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>

#include "loader/api/loader.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/polled_run.h"
#include "support/seccomp.h"

enum { SAMPLES = 12, BATCH = 2, SLOTS = 3, NEVER_MS = 50 };

/* ---- a data set whose rows wait until they may be made ---- */

static _Atomic uint32_t allowed;

static int describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(*out),
                                  .count = SAMPLES,
                                  .dtype = STOKER_DTYPE_UINT8,
                                  .rank = 1,
                                  .shape = { 4 } };
    return STOKER_OK;
}

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    void *row = out->rows[0].data;
    const size_t row_bytes = out->rows[0].bytes_max;
    (void)self, (void)scratch, (void)error;
    while (in->sample >= allowed)
        stk_spin_pause();
    memset(row, (int)in->sample, row_bytes);
    return STOKER_OK;
}

static const stoker_codec codec = { .struct_size = sizeof(codec),
                                    .name = "gate",
                                    .decode = decode };

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    (void)self, (void)ids, (void)error;
    for (uint32_t i = 0; i < count; i++)
        out[i] = (stoker_part){ .codec = &codec };
    return STOKER_OK;
}

static const stoker_dataset_ops ops = {
    .struct_size = sizeof(ops), .name = "gate", .describe = describe, .locate = locate
};

static stoker_dataset *dataset;

static stoker_loader_options options_of(int32_t workers)
{
    return stk_default_options(.batch_size = BATCH, .num_workers = workers,
                               .prefetch_batches = SLOTS, .epochs = 1);
}

static stoker_loader *open_loader(const stoker_loader_options *options, uint32_t samples, int *fd)
{
    stoker_error error = { .code = 0 };
    allowed = samples;
    cr_assert_eq(stoker_dataset_create(&dataset, &ops, NULL, NULL), STOKER_OK);
    stoker_loader *loader = loader_of(dataset, options);
    cr_assert_eq(stoker_loader_fd(loader, fd, &error), STOKER_OK, "%s", error.message);
    return loader;
}

static void close_loader(stoker_loader *loader, int fd)
{
    allowed = SAMPLES;
    stoker_loader_destroy(&loader);
    cr_assert_eq(fcntl(fd, F_GETFD), -1);
    cr_assert_eq(errno, EBADF);
    stoker_dataset_close(&dataset);
}

/* ---- when it is readable ---- */

CleanTest(poll, readable_once_the_head_batch_is_ready)
{
    int fd;
    stoker_loader_options options = options_of(1);
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader *loader = open_loader(&options, 0, &fd);
    cr_assert_eq(stoker_loader_next(loader, &batch, 0), STOKER_TIMEOUT);
    cr_assert_not(stk_fd_is_readable(fd, NEVER_MS));
    allowed = BATCH;
    cr_assert(stk_fd_is_readable(fd, STK_POLL_MS));
    cr_assert_eq(stoker_loader_next(loader, &batch, 0), STOKER_OK);
    cr_assert_not(stk_fd_is_readable(fd, NEVER_MS)); /* armed again by next() */
    stoker_batch_release(&batch);
    allowed = 2 * BATCH;
    cr_assert(stk_fd_is_readable(fd, STK_POLL_MS));
    close_loader(loader, fd);
}

/* While batches are ready ahead the descriptor stays readable. */
CleanTest(poll, readable_to_the_end_while_batches_are_ready)
{
    int fd;
    stoker_loader_options options = options_of(1);
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader *loader = open_loader(&options, SAMPLES, &fd);
    for (uint32_t i = 0; i < SAMPLES / BATCH; i++) {
        struct stk_polled polled = { .fd = fd };
        cr_assert_eq(stk_polled_next(loader, &polled, &batch), STOKER_OK);
        stoker_batch_release(&batch);
    }
    cr_assert(stk_fd_is_readable(fd, 0));
    cr_assert_eq(stoker_loader_next(loader, &batch, 0), STOKER_EPOCH_END);
    for (int i = 0; i < 3; i++) {
        cr_assert(stk_fd_is_readable(fd, 0));
        cr_assert_eq(stoker_loader_next(loader, &batch, 0), STOKER_FINISHED);
    }
    close_loader(loader, fd);
}

/* A caller that waits for edges is woken again, also if only next() makes rows. */
CleanTest(poll, edges_lead_through_all_epochs)
{
    for (int32_t workers = 0; workers < 2; workers++) {
        int fd, rc = STOKER_OK;
        uint32_t samples = 0;
        stoker_loader_options options = options_of(workers);
        options.epochs = 2;
        stoker_batch batch = STOKER_BATCH_INIT;
        stoker_loader *loader = open_loader(&options, SAMPLES, &fd);
        struct epoll_event event = { .events = EPOLLIN | EPOLLET };
        const int events = epoll_create1(EPOLL_CLOEXEC);
        cr_assert_eq(epoll_ctl(events, EPOLL_CTL_ADD, fd, &event), 0);
        while (rc != STOKER_FINISHED) {
            int ready;
            do /* a ring that is being torn down interrupts the threads that used it */
                ready = epoll_wait(events, &event, 1, STK_POLL_MS);
            while (ready < 0 && errno == EINTR);
            cr_assert_eq(ready, 1, "%u samples: %s", samples, strerror(errno));
            while ((rc = stoker_loader_next(loader, &batch, 0)) == STOKER_OK) {
                samples += batch.count;
                stoker_batch_release(&batch);
            }
            cr_assert_gt(rc, STOKER_OK);
        }
        cr_assert_eq(samples, 2 * SAMPLES);
        close(events);
        close_loader(loader, fd);
    }
}

CleanTest(poll, readable_after_an_interrupt)
{
    int fd;
    stoker_loader_options options = options_of(1);
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader *loader = open_loader(&options, 0, &fd);
    (void)stoker_loader_next(loader, &batch, 0);
    cr_assert_not(stk_fd_is_readable(fd, NEVER_MS));
    cr_assert_eq(stoker_loader_interrupt(loader), STOKER_OK);
    cr_assert(stk_fd_is_readable(fd, 0));
    cr_assert_eq(stoker_loader_next(loader, &batch, 0), STOKER_INTERRUPTED);
    cr_assert_not(stk_fd_is_readable(fd, NEVER_MS));
    close_loader(loader, fd);
}

CleanTest(poll, readable_without_workers)
{
    int fd;
    stoker_loader_options options = options_of(0);
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader *loader = open_loader(&options, SAMPLES, &fd);
    for (uint32_t i = 0; i < SAMPLES / BATCH; i++) {
        cr_assert(stk_fd_is_readable(fd, 0));
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
        stoker_batch_release(&batch);
    }
    close_loader(loader, fd);
}

/* Every slot is lent: BUSY answers at once, WAIT only when another call has returned a batch. */
CleanTest(poll, readable_when_the_ring_is_lent_as_the_policy_says)
{
    const stoker_on_lent policies[] = { STOKER_ON_LENT_BUSY, STOKER_ON_LENT_WAIT };
    for (int p = 0; p < 2; p++) {
        int fd;
        stoker_loader_options options = options_of(1);
        options.on_lent = policies[p];
        stoker_batch batches[SLOTS];
        stk_batches_begin(batches, SLOTS);
        stoker_loader *loader = open_loader(&options, SAMPLES, &fd);
        struct stk_polled polled = { .fd = fd };
        for (int i = 0; i < SLOTS; i++)
            cr_assert_eq(stk_polled_next(loader, &polled, &batches[i]), STOKER_OK);
        stoker_batch more = STOKER_BATCH_INIT;
        cr_assert_eq(stk_fd_is_readable(fd, NEVER_MS), p == 0);
        cr_assert_eq(stoker_loader_next(loader, &more, 0), STOKER_BUSY);
        cr_assert_eq(stk_fd_is_readable(fd, NEVER_MS), p == 0);
        stoker_batch_release(&batches[0]);
        cr_assert_eq(stk_polled_next(loader, &polled, &more), STOKER_OK);
        stoker_batch_release(&more);
        for (int i = 1; i < SLOTS; i++)
            stoker_batch_release(&batches[i]);
        close_loader(loader, fd);
    }
}

/* ---- what it costs ---- */

CleanTest(poll, next_does_no_workers_share)
{
    int fd;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader_options options = stk_default_options(.batch_size = 8, .num_workers = 1);
    dataset = dataset_of("synth:digits?count=64");
    stoker_loader *loader = loader_of(dataset, &options);
    atomic_store(&loader->caller_assists, true);
    loader->assist.on = true;
    cr_assert_eq(stoker_loader_fd(loader, &fd, NULL), STOKER_OK);
    for (uint32_t i = 0; i < 200; i++) {
        if (stoker_loader_next(loader, &batch, -1) == STOKER_OK)
            stoker_batch_release(&batch);
        cr_assert_not(atomic_load(&loader->caller_assists));
    }
    close_loader(loader, fd);
}

/* ---- failures ---- */

CleanTest(poll, wrong_arguments)
{
    int fd = 77;
    stoker_error error = { .code = 0 };
    cr_assert_eq(stoker_loader_fd(NULL, &fd, &error), STOKER_EINVAL);
    cr_assert_eq(fd, 77);
    cr_assert_eq(error.code, STOKER_EINVAL);
    stoker_loader_options options = options_of(1);
    stoker_loader *loader = open_loader(&options, SAMPLES, &fd);
    cr_assert_eq(stoker_loader_fd(loader, NULL, NULL), STOKER_EINVAL);
    close_loader(loader, fd);
}

/* No descriptor is left: the error says so, and the run is as without one. */
Test(poll, no_descriptor_is_left)
{
    int fd = 77;
    stoker_error error = { .code = 0 };
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader_options options = options_of(1);
    allowed = SAMPLES;
    cr_assert_eq(stoker_dataset_create(&dataset, &ops, NULL, NULL), STOKER_OK);
    stoker_loader *loader = loader_of(dataset, &options);
    if (stk_seccomp_refuse(SYS_eventfd2, EMFILE) < 0)
        return;
    cr_assert_eq(stoker_loader_fd(loader, &fd, &error), STOKER_ENOFILE);
    cr_assert_eq(fd, 77);
    cr_assert_eq(error.os_errno, EMFILE);
    cr_assert_not_null(strstr(error.message, "eventfd"));
    for (uint32_t i = 0; i < SAMPLES / BATCH; i++) {
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    stk_test_check_leaks();
}
