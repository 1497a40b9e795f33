/* test_shards.c - each allocation of opening shards and of a loader over them fails in its
 * turn: it says so and leaves nothing; and a second try comes up.
 */
#include "loader/base/fault.h"
#include "support/files/shard_files.h"
#include "support/leaks.h"

enum { COUNT = 5, SHARDS = 20 }; /* more than the list of names has room for at first */

static struct stk_directory make_set(bool fields)
{
    struct stk_directory directory = stk_directory_make();
    for (uint32_t number = 0; number < SHARDS; number++) {
        struct stk_shard_image image;
        char name[32];
        (void)snprintf(name, sizeof(name), "s%02u.stk", number);
        if (fields)
            stk_shard_image_make_fields(&image, number, SHARDS, COUNT);
        else
            stk_shard_image_make(&image, number, SHARDS, COUNT, stk_lz4_present() ? 2 : 1);
        stk_shard_image_write(&image, &directory, name);
    }
    return directory;
}

/* Open with the nth allocation failing. False: there was no nth any more. */
static bool fail_nth(const struct stk_directory *directory, const char *parameters, uint64_t nth)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    const int64_t live = stk_fault_live_bytes();
    stk_fault_arm(STK_FAULT_MEMORY, nth);
    const int rc = stk_shard_test_open(&dataset, directory, parameters, &error);
    const bool reached = stk_fault_disarm();
    if (reached) {
        cr_assert_eq(rc, STOKER_ENOMEM, "nth %llu: %s", (unsigned long long)nth, error.message);
        cr_assert_eq(error.code, rc);
        cr_assert_gt(error.message[0], 0);
        cr_assert_null(dataset);
    } else {
        cr_assert_eq(rc, STOKER_OK, "%s", error.message);
    }
    stoker_dataset_close(&dataset);
    cr_assert_eq(stk_fault_live_bytes(), live, "nth %llu leaks", (unsigned long long)nth);
    return reached;
}

CleanTest(fault_shards, each_allocation_of_opening_fails_once)
{
    static const char *const parameters[] = { "", "?map=1&verify=once" };
    for (size_t i = 0; i < 4; i++) {
        const struct stk_directory directory = make_set(i / 2 == 1);
        uint64_t nth = 1;
        while (fail_nth(&directory, parameters[i % 2], nth)) {
            nth++;
            cr_assert_lt(nth, 1000);
        }
        cr_assert_gt(nth, SHARDS); /* a name each, and more */
        stk_directory_remove(&directory);
    }
}
