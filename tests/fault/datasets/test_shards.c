/* test_shards.c - each allocation of opening shards and of a loader over them fails in its
 * turn: it says so and leaves nothing; and a second try comes up.
 */
#include "support/files/shard_files.h"
#include "support/sweep.h"

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

CleanTest(fault_shards, each_allocation_of_opening_fails_once)
{
    static const char *const parameters[] = { "", "?map=1&verify=once" };
    for (size_t i = 0; i < 4; i++) {
        const struct stk_directory directory = make_set(i / 2 == 1);
        stoker_dataset *dataset = NULL;
        struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
        while (stk_sweep_next(&sweep))
            sweep.rc = stk_shard_test_open(&dataset, &directory, parameters[i % 2], &sweep.error);
        stoker_dataset_close(&dataset);
        cr_assert_geq(sweep.failed, SHARDS); /* a name each, and more */
        stk_directory_remove(&directory);
    }
}
