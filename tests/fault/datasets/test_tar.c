/* test_tar.c - each allocation of opening tar archives fails in its turn: open says so, leaves
 * nothing, and a second try comes up. Threads that cannot be started are done without.
 */
#include "support/files/tar_files.h"
#include "support/sweep.h"

enum { SAMPLES = 150 }; /* more than any table begins with, so that all of them grow */

static struct stk_archive archive;

static void write_archives(const struct stk_directory *directory)
{
    for (int file = 0; file < 2; file++) {
        char name[32];
        archive.size = 0;
        for (int i = 0; i < SAMPLES; i++) {
            (void)snprintf(name, sizeof(name), "%d", i);
            stk_archive_sample(&archive, name, (uint64_t)i, i);
        }
        stk_archive_end(&archive);
        (void)snprintf(name, sizeof(name), "%d.tar", file);
        stk_file_write(directory, name, archive.at, archive.size);
    }
}

CleanTest(fault_tar, each_allocation_may_fail)
{
#ifndef STOKER_HAVE_PNG
    cr_skip_test("built without libpng");
#endif
    const struct stk_directory directory = stk_directory_make();
    stoker_dataset *dataset = NULL;
    char spec[400];
    write_archives(&directory);
    (void)snprintf(spec, sizeof(spec), "tar:%s/{0..1}.tar", directory.path);
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    while (stk_sweep_next(&sweep))
        sweep.rc = stoker_dataset_open(&dataset, spec, NULL, &sweep.error);
    cr_assert_gt(sweep.failed, 18);
    cr_assert_eq(stoker_dataset_get_info(dataset)->count, 2 * SAMPLES);
    stoker_dataset_close(&dataset);
    bool reached = true;
    uint64_t nth = 1;
    for (; reached; nth++) {
        stk_fault_arm(STK_FAULT_THREAD, nth);
        cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, NULL), STOKER_OK);
        reached = stk_fault_disarm();
        cr_assert_eq(stoker_dataset_get_info(dataset)->count, 2 * SAMPLES);
        stoker_dataset_close(&dataset);
    }
    cr_assert_gt(nth, 2, "several archives are indexed by one thread");
    stk_directory_remove(&directory);
}
