/* test_shards.c - each allocation of opening shards and of a loader over them fails in its
 * turn: it says so and leaves nothing; and a second try comes up. Each call for a lease fails in
 * its turn: the shard is mapped without one.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "loader/dataset/dataset.h"
#include "support/files/shard_files.h"
#include "support/seccomp.h"
#include "support/sets/read_row.h"
#include "support/sweep.h"

enum { COUNT = 5, SHARDS = 20 }; /* more than the list of names has room for at first */

/* kind: 0 rows, 1 fields, 2 blocks */
static struct stk_directory make_set(uint32_t kind)
{
    struct stk_directory directory = stk_directory_make();
    for (uint32_t number = 0; number < SHARDS; number++) {
        struct stk_shard_image image;
        char name[32];
        (void)snprintf(name, sizeof(name), "s%02u.stk", number);
        if (kind == 1)
            stk_shard_image_make_fields(&image, number, SHARDS, COUNT);
        else if (kind == 2)
            stk_shard_image_make_blocks(&image, number, SHARDS, COUNT, 2);
        else
            stk_shard_image_make(&image, number, SHARDS, COUNT, stk_lz4_present() ? 2 : 1);
        stk_shard_image_write(&image, &directory, name);
    }
    return directory;
}

CleanTest(fault_shards, each_allocation_of_opening_fails_once)
{
    static const char *const parameters[] = { "", "?map=1&verify=once" };
    for (size_t i = 0; i < 5; i++) {
        const struct stk_directory directory = make_set((uint32_t)i / 2);
        stoker_dataset *dataset = NULL;
        struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
        while (stk_sweep_next(&sweep))
            sweep.rc = stk_shard_test_open(&dataset, &directory, parameters[i % 2], &sweep.error);
        stoker_dataset_close(&dataset);
        cr_assert_geq(sweep.failed, SHARDS); /* a name each, and more */
        stk_directory_remove(&directory);
    }
}

/* Open mapped shards and read a row twice, the second time from the mapping. Returns what
 * F_GETLEASE says of the first, or -1 if a row is wrong. */
static int lease_of_mapped(const struct stk_directory *directory)
{
    stoker_dataset *dataset = NULL;
    stoker_error error;
    stoker_file file;
    int lease = -1;
    if (stk_shard_test_open(&dataset, directory, "?map=1", &error) != STOKER_OK ||
        dataset->ops->file(dataset->self, 0, &file) != STOKER_OK)
        return -1;
    for (int turn = 0; turn < 2; turn++) {
        uint8_t row[STK_SHARD_TEST_ROW], expected[STK_SHARD_TEST_ROW];
        stoker_label label;
        stk_shard_test_row(0, expected);
        lease = stk_read_row(dataset, 0, row, sizeof(row), &label, &error) == STOKER_OK &&
                        memcmp(row, expected, sizeof(row)) == 0
                    ? fcntl(file.fd, F_GETLEASE)
                    : -1;
    }
    stoker_dataset_close(&dataset);
    return lease;
}

CleanTest(fault_shards, each_call_for_a_lease_fails)
{
    static const struct {
        uint32_t command; /* of fcntl(); 0 = fstatfs() */
        int os_errno;
    } refused[] = { { F_SETLEASE, EACCES }, { F_SETLEASE, EAGAIN }, { F_SETLEASE, EINVAL },
                    { F_SETSIG, EINVAL },   { F_SETOWN, EPERM },    { 0, ENOSYS } };
    const struct stk_directory directory = make_set(0);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        int status;
        const pid_t child = fork();
        cr_assert_geq(child, 0);
        if (child == 0) {
            const int rc = refused[i].command == 0
                               ? stk_seccomp_refuse(SYS_fstatfs, refused[i].os_errno)
                               : stk_seccomp_refuse_argument(SYS_fcntl, 1, refused[i].command,
                                                             refused[i].os_errno);
            _exit(rc < 0 || lease_of_mapped(&directory) == F_UNLCK ? 0 : 1);
        }
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "call %d", (int)i);
    }
    stk_directory_remove(&directory);
}

CleanTest(fault_shards, without_the_watch_nothing_is_leased)
{
    const struct stk_directory directory = make_set(0);
    stk_fault_arm(STK_FAULT_THREAD, 1);
    cr_assert_eq(lease_of_mapped(&directory), F_UNLCK);
    (void)stk_fault_disarm(); /* not reached if nothing could be leased anyway */
    stk_directory_remove(&directory);
}
