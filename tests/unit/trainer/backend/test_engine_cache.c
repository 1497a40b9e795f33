/* test_engine_cache.c - winners kept, found, written and read; damage of any kind refused. */
#include "loader/base/fault.h"
#include "support/leaks.h"
#include "trainer/backend/common/engine_cache.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/crc32c.h"

enum { TEXT_BYTES = 4096 };

static struct stk_engine_cache *made(void)
{
    struct stk_engine_cache *cache = NULL;
    cr_assert_eq(stk_engine_cache_create(&cache, NULL), STOKER_OK);
    return cache;
}

static void keep(struct stk_engine_cache *cache, const char *key, int64_t engine)
{
    const struct stk_engine_choice choice = { .index = (uint32_t)engine % 7,
                                              .engine = engine,
                                              .workspace_bytes = (uint64_t)engine * 1000,
                                              .seconds = (double)engine * 1e-6 };
    cr_assert_eq(stk_engine_cache_keep(cache, key, &choice, NULL), STOKER_OK);
}

static void check(const struct stk_engine_cache *cache, const char *key, int64_t engine)
{
    struct stk_engine_choice found;
    cr_assert(stk_engine_cache_find(cache, key, &found), "%s", key);
    cr_assert_eq(found.engine, engine);
    cr_assert_eq(found.index, (uint32_t)engine % 7);
    cr_assert_eq(found.workspace_bytes, (uint64_t)engine * 1000);
    cr_assert_float_eq(found.seconds, (double)engine * 1e-6, 1e-9);
}

/* A directory that is empty, and what it has in it at the end. */
static void make_directory(char out[64])
{
    (void)snprintf(out, 64, "/tmp/stoker_cache.XXXXXX");
    cr_assert_not_null(mkdtemp(out));
}

static int files_in(const char *directory)
{
    DIR *const d = opendir(directory);
    int files = 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        files += e->d_name[0] != '.';
    closedir(d);
    return files;
}

Test(engine_cache, what_is_kept_is_found_in_any_order)
{
    struct stk_engine_cache *cache = made();
    struct stk_engine_choice found;
    cr_assert_not(stk_engine_cache_find(cache, "conv", &found));
    for (int64_t i = 0; i < 100; i++) {
        char key[32];
        (void)snprintf(key, sizeof(key), "conv %d", (int)(i * 37 % 100));
        keep(cache, key, i);
    }
    for (int64_t i = 0; i < 100; i++) {
        char key[32];
        (void)snprintf(key, sizeof(key), "conv %d", (int)(i * 37 % 100));
        check(cache, key, i);
    }
    keep(cache, "conv 5", 4711); /* in the place of the old one */
    check(cache, "conv 5", 4711);
    cr_assert_eq(stk_engine_cache_entries(cache), 100);
    cr_assert_not(stk_engine_cache_find(cache, "conv 100", &found));
    stk_engine_cache_destroy(&cache);
    stk_test_check_leaks();
}

Test(engine_cache, keys_and_room_have_limits)
{
    struct stk_engine_cache *cache = made();
    const struct stk_engine_choice choice = { .engine = 1 };
    char key[STK_ENGINE_KEY_BYTES + 1];
    memset(key, 'k', sizeof(key));
    key[STK_ENGINE_KEY_BYTES] = '\0';
    cr_assert_eq(stk_engine_cache_keep(cache, key, &choice, NULL), STOKER_EINVAL);
    key[STK_ENGINE_KEY_BYTES - 1] = '\0';
    cr_assert_eq(stk_engine_cache_keep(cache, key, &choice, NULL), STOKER_OK);
    const char *const wrong[] = { "", "a\tb", "a\nb", "\x7f", "\xc3\xa4" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        cr_assert_eq(stk_engine_cache_keep(cache, wrong[i], &choice, NULL), STOKER_EINVAL);
    const struct stk_engine_choice unknown = { .engine = -1 };
    cr_assert_eq(stk_engine_cache_keep(cache, "k", &unknown, NULL), STOKER_EINVAL);
    for (int i = 1; i < STK_ENGINE_CACHE_ENTRIES_MAX; i++) {
        (void)snprintf(key, sizeof(key), "%d", i);
        cr_assert_eq(stk_engine_cache_keep(cache, key, &choice, NULL), STOKER_OK);
    }
    cr_assert_eq(stk_engine_cache_keep(cache, "one more", &choice, NULL), STOKER_ELIMIT);
    cr_assert_eq(stk_engine_cache_keep(cache, "17", &choice, NULL), STOKER_OK);
    stk_engine_cache_destroy(&cache);
    stk_test_check_leaks();
}

Test(engine_cache, a_file_gives_back_what_was_written)
{
    char directory[64];
    char path[96];
    make_directory(directory);
    (void)snprintf(path, sizeof(path), "%s/engines", directory);
    struct stk_engine_cache *cache = made();
    struct stk_engine_cache *again = made();
    cr_assert_eq(stk_engine_cache_read(again, path, NULL), STOKER_ENOENT);
    cr_assert_eq(stk_engine_cache_write(cache, path, NULL), STOKER_OK);
    cr_assert_eq(stk_engine_cache_read(again, path, NULL), STOKER_OK);
    cr_assert_eq(stk_engine_cache_entries(again), 0);
    keep(cache, "backward_data float16 1x2x3x4", 21);
    keep(cache, "conv", 3);
    keep(cache, "apply", 12);
    cr_assert_eq(stk_engine_cache_write(cache, path, NULL), STOKER_OK); /* over the old one */
    cr_assert_eq(stk_engine_cache_read(again, path, NULL), STOKER_OK);
    cr_assert_eq(stk_engine_cache_entries(again), 3);
    check(again, "backward_data float16 1x2x3x4", 21);
    check(again, "conv", 3);
    check(again, "apply", 12);
    cr_assert_eq(files_in(directory), 1, "nothing lies beside it");
    stk_engine_cache_destroy(&cache);
    stk_engine_cache_destroy(&again);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(rmdir(directory), 0);
    stk_test_check_leaks();
}

Test(engine_cache, a_file_that_cannot_be_written_leaves_the_old_one)
{
    char directory[64];
    char path[96];
    make_directory(directory);
    (void)snprintf(path, sizeof(path), "%s/nowhere/engines", directory);
    struct stk_engine_cache *cache = made();
    cr_assert_eq(stk_engine_cache_write(cache, path, NULL), STOKER_ENOENT);
    cr_assert_eq(stk_engine_cache_write(cache, directory, NULL), STOKER_EISDIR);
    cr_assert_eq(files_in(directory), 0);
    stk_engine_cache_destroy(&cache);
    char aside[96]; /* what could not be renamed is gone, too */
    (void)snprintf(aside, sizeof(aside), "%s.tmp-%ld", directory, (long)getpid());
    cr_assert_eq(access(aside, F_OK), -1);
    cr_assert_eq(rmdir(directory), 0);
    stk_test_check_leaks();
}

static size_t finish(char *text)
{
    const size_t body = strlen(text);
    return body + (size_t)sprintf(text + body, "crc32c %08" PRIx32 "\n", stk_crc32c(0, text, body));
}

Test(engine_cache, every_damaged_byte_is_seen)
{
    char text[TEXT_BYTES] = "stoker engines 1\nconv\t3\t0\t131\t250\nnorm\t0\t1\t0\t0\n";
    const size_t bytes = finish(text);
    struct stk_engine_cache *cache = made();
    cr_assert_eq(stk_engine_cache_parse(cache, text, bytes, "text", NULL), STOKER_OK);
    cr_assert_eq(stk_engine_cache_entries(cache), 2);
    for (size_t i = 0; i < bytes; i++)
        for (int bit = 0; bit < 8; bit++) {
            struct stk_engine_cache *other = made();
            text[i] = (char)(text[i] ^ 1 << bit);
            cr_assert_lt(stk_engine_cache_parse(other, text, bytes, "text", NULL), 0,
                         "byte %zu, bit %d", i, bit);
            cr_assert_eq(stk_engine_cache_entries(other), 0);
            text[i] = (char)(text[i] ^ 1 << bit);
            stk_engine_cache_destroy(&other);
        }
    stk_engine_cache_destroy(&cache);
    cache = made();
    for (size_t cut = 0; cut < bytes; cut++)
        cr_assert_lt(stk_engine_cache_parse(cache, text, cut, "text", NULL), 0);
    stk_engine_cache_destroy(&cache);
    stk_test_check_leaks();
}

/* Each with a checksum that agrees: the lines themselves are wrong. */
Test(engine_cache, lines_that_break_the_rules_are_refused)
{
    const char *const wrong[] = {
        "conv\n",
        "conv\t1\t2\t3\n",
        "conv\t1\t2\t3\t4\t5\n",
        "conv\t1\t2\t3\t\n",
        "conv\t-1\t2\t3\t4\n",
        "conv\t01\t2\t3\t4\n",
        "conv\t1\t2\t3\t4 \n",
        "conv\t1\t4294967296\t3\t4\n",
        "conv\t9223372036854775808\t2\t3\t4\n",
        "conv\t1\t2\t3\t99999999999999999999\n",
        "\t1\t2\t3\t4\n",
        "conv\t1\t2\t3\t4\nconv\t1\t2\t3\t4\n",
        "conv\t1\t2\t3\t4\nbias\t1\t2\t3\t4\n",
        "conv\t1\t2\t3\t4",
        "\n",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char text[TEXT_BYTES] = "stoker engines 1\n";
        strcat(text, wrong[i]);
        const size_t bytes = finish(text);
        struct stk_engine_cache *cache = made();
        stoker_error error = { 0 };
        cr_assert_eq(stk_engine_cache_parse(cache, text, bytes, "text", &error), STOKER_EFORMAT,
                     "%s", wrong[i]);
        cr_assert_str_eq(error.path, "text");
        cr_assert_neq(error.offset, STOKER_NO_OFFSET);
        cr_assert_eq(stk_engine_cache_entries(cache), 0);
        stk_engine_cache_destroy(&cache);
    }
    stk_test_check_leaks();
}

Test(engine_cache, what_is_no_cache_is_told_as_that)
{
    struct stk_engine_cache *cache = made();
    char text[TEXT_BYTES] = "stoker engines 2\n";
    cr_assert_eq(stk_engine_cache_parse(cache, text, finish(text), "text", NULL), STOKER_EMAGIC);
    cr_assert_eq(stk_engine_cache_read(cache, "/", NULL), STOKER_ELIMIT);
    cr_assert_eq(stk_engine_cache_read(cache, "/dev/zero", NULL), STOKER_ELIMIT);
    stk_engine_cache_destroy(&cache);
    stk_engine_cache_destroy(&cache); /* NULL by now */
    stk_test_check_leaks();
}

Test(engine_cache, survives_each_allocation_failure)
{
    char directory[64];
    char path[96];
    make_directory(directory);
    (void)snprintf(path, sizeof(path), "%s/engines", directory);
    const int64_t before = stk_fault_live_bytes();
    int rc = STOKER_ENOMEM;
    uint64_t nth = 1;
    for (; rc != STOKER_OK; nth++) {
        struct stk_engine_cache *cache = NULL;
        cr_assert_lt(nth, 20);
        stk_fault_arm(STK_FAULT_MEMORY, nth);
        rc = stk_engine_cache_create(&cache, NULL);
        if (rc == STOKER_OK)
            rc = stk_engine_cache_write(cache, path, NULL);
        if (rc == STOKER_OK)
            rc = stk_engine_cache_read(cache, path, NULL);
        stk_fault_disarm();
        stk_engine_cache_destroy(&cache);
        cr_assert(rc == STOKER_OK || rc == STOKER_ENOMEM);
        cr_assert_eq(stk_fault_live_bytes(), before);
    }
    cr_assert_eq(nth - 1, 4, "three allocations");
    (void)unlink(path);
    cr_assert_eq(rmdir(directory), 0);
    stk_test_check_leaks();
}
