/* test_fork.c - a loader stays with the process that made it: the child learns it from every
 * call, may destroy it, and the parent continues with the right bytes.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "support/files/reader_file.h"
#include "support/leaks.h"
#include "support/runs/emulator.h"
#include "support/runs/scenario.h"
#include "support/seccomp.h"

static struct stk_run expected;
static struct stk_run found;

/* What the child sees; 0 if all is as promised. */
static int child_sees(stoker_loader *loader, stoker_batch *held)
{
    stoker_batch batch = { .struct_size = sizeof(stoker_batch), .count = 77 };
    uint8_t state[STOKER_STATE_BYTES];
    stoker_error error;
    int fd = 77;
    stoker_stats stats = { .struct_size = sizeof(stats) };
    if (stoker_loader_next(loader, &batch, -1) != STOKER_EFORKED || batch.count != 77)
        return 1;
    if (stoker_loader_stats(loader, &stats) != STOKER_EFORKED)
        return 2;
    if (stoker_loader_state(loader, state, sizeof(state), NULL, &error) != STOKER_EFORKED)
        return 3;
    if (stoker_loader_bad_sample(loader, 0, &error) != STOKER_EFORKED)
        return 4;
    if (stoker_loader_trace(loader, &(stoker_trace)STOKER_TRACE_INIT) != STOKER_EFORKED)
        return 7;
    if (stoker_loader_fd(loader, &fd, &error) != STOKER_EFORKED || fd != 77)
        return 8;
    stoker_batch_release(held); /* the parent's: only forgotten */
    if (held->loader != NULL || stoker_loader_next(loader, &batch, -1) != STOKER_EFORKED)
        return 5;
    stoker_loader_destroy(&loader);
    return loader == NULL ? 0 : 6;
}

static void fork_once(stoker_loader *loader, stoker_batch *held)
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(1000);
        _exit(child_sees(loader, held));
    }
    int status = -1;
    cr_assert_gt(child, 0);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0, "the child found %d", status >> 8);
}

/* Fork at each batch, with and without one lent, while the workers run on. */
static void fork_everywhere(const stoker_dataset *dataset, const stoker_loader_options *options)
{
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    cr_assert_eq(stoker_loader_create(&loader, dataset, options, NULL), STOKER_OK);
    found = (struct stk_run){ 0 };
    fork_once(loader, &batch);
    while (found.rc != STOKER_FINISHED) {
        found.rc = stoker_loader_next(loader, &batch, -1);
        if (found.rc == STOKER_EPOCH_END) {
            found.epoch_ends++;
            fork_once(loader, &batch);
        }
        if (found.rc != STOKER_OK)
            continue;
        if (found.batches % 3 == 0)
            fork_once(loader, &batch);
        found.hashes[found.batches++] = stk_batch_hash(&batch);
        found.samples += batch.count;
        stoker_batch_release(&batch);
        if (found.batches % 3 == 1)
            fork_once(loader, &batch);
    }
    stoker_loader_destroy(&loader);
    cr_assert(stk_runs_equal(&expected, &found), "rc %d batches %u", found.rc, found.batches);
}

CleanTest(fork, leaves_the_parent_unhurt)
{
    struct stk_file_set set;
    if (stk_test_is_emulated())
        cr_skip_test("this emulator does not wipe pages on fork");
    cr_assert(stk_file_set_make(&set, 129, 9, 7, 0));
    stoker_loader_options options = stk_small_options();
    cr_assert_eq(stk_run(set.dataset, &options, &expected), STOKER_FINISHED);
    for (int32_t workers = 0; workers <= 3; workers++)
        for (int reader = 0; reader < 2; reader++) {
            options.num_workers = workers;
            options.reader = reader == 0 ? stoker_reader_pread() : stoker_reader_uring();
            options.cache = reader == 0 ? STOKER_CACHE_DECODED : STOKER_CACHE_NONE;
            if (stk_test_reader_works(options.reader))
                fork_everywhere(set.dataset, &options);
        }
    stk_file_set_remove(&set);
}

/* Kernels before 4.14 cannot wipe a page on fork: the loader then compares process ids. */
CleanTest(fork, is_noticed_where_the_kernel_cannot_wipe_a_page)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, 65, 9, 7, 0));
    stoker_loader_options options = stk_small_options();
    cr_assert_eq(stk_run(set.dataset, &options, &expected), STOKER_FINISHED);
    if (stk_seccomp_refuse_argument(SYS_madvise, 2, MADV_WIPEONFORK, EINVAL) != 0)
        cr_skip_test("no seccomp filters here");
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(page, MAP_FAILED);
    cr_assert_eq(madvise(page, 4096, MADV_WIPEONFORK), -1);
    cr_assert_eq(munmap(page, 4096), 0);
    for (int32_t workers = 0; workers <= 2; workers += 2) {
        options.num_workers = workers;
        fork_everywhere(set.dataset, &options);
    }
    stk_file_set_remove(&set);
}

/* A child that makes a loader of its own has nothing to do with the parent's. */
CleanTest(fork, a_loader_made_in_the_child_works_there)
{
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_open(&dataset, "synth:bytes?count=100&shape=9", NULL, NULL),
                 STOKER_OK);
    const stoker_loader_options options = stk_small_options();
    cr_assert_eq(stk_run(dataset, &options, &expected), STOKER_FINISHED);
    const pid_t child = fork();
    if (child == 0) {
        (void)stk_run(dataset, &options, &found);
        _exit(stk_runs_equal(&expected, &found) ? 0 : 1);
    }
    int status = -1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    stoker_dataset_close(&dataset);
}
