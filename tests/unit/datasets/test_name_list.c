/* test_name_list.c - names in braces, names with wildcards, and what is refused. */
#include <glob.h>
#include <limits.h>

#include "datasets/name_list.h"
#include "support/files/dataset_files.h"
#include "support/sweep.h"

CleanTest(name_list, braces_stand_for_names)
{
    static const struct {
        const char *text, *first, *last;
        uint32_t count;
        int code;
    } rows[] = {
        { "", NULL, NULL, 0, STOKER_ESPEC },
        { "a.tar", "a.tar", "a.tar", 1, 0 },
        { "x-{000..099}.tar", "x-000.tar", "x-099.tar", 100, 0 },
        { "x-{8..11}.tar", "x-8.tar", "x-11.tar", 4, 0 },
        { "{08..11}", "08", "11", 4, 0 },
        { "{8..0011}", "0008", "0011", 4, 0 },
        { "{0..0}", "0", "0", 1, 0 },
        { "{a,bc,d}/{1..2}.tar", "a/1.tar", "d/2.tar", 6, 0 },
        { "{a}", "a", "a", 1, 0 },
        { "{0..65535}", "0", "65535", 65536, 0 },
        { "{0..9}{0..9}{0..9}{0..9}", "0000", "9999", 10000, 0 },
        { "{0..65536}", NULL, NULL, 0, STOKER_ELIMIT },
        { "{0..999999999999999999}", NULL, NULL, 0, STOKER_ELIMIT },
        { "{0..255}{0..256}", NULL, NULL, 0, STOKER_ELIMIT },
        { "{a}{a}{a}{a}{a}", "aaaaa", "aaaaa", 1, 0 },
        { "{0..9999999999999999999}", NULL, NULL, 0, STOKER_ESPEC },
        { "{9..0}", NULL, NULL, 0, STOKER_ESPEC },
        { "{..9}", NULL, NULL, 0, STOKER_ESPEC },
        { "{0..}", NULL, NULL, 0, STOKER_ESPEC },
        { "{a..z}", NULL, NULL, 0, STOKER_ESPEC },
        { "{0...9}", NULL, NULL, 0, STOKER_ESPEC },
        { "{}", NULL, NULL, 0, STOKER_ESPEC },
        { "{a,}", NULL, NULL, 0, STOKER_ESPEC },
        { "{,a}", NULL, NULL, 0, STOKER_ESPEC },
        { "{a", NULL, NULL, 0, STOKER_ESPEC },
        { "a}", NULL, NULL, 0, STOKER_ESPEC },
        { "{a{b}}", NULL, NULL, 0, STOKER_ESPEC },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stk_name_list names;
        stoker_error error = { .message = "" };
        const int rc = stk_name_list_make(&names, &stk_storage_local, "tar", rows[i].text,
                                          strlen(rows[i].text), &error);
        cr_assert_eq(rc, rows[i].code, "%s: %s", rows[i].text, error.message);
        cr_assert_eq(names.count, rows[i].count, "%s", rows[i].text);
        if (rc != STOKER_OK)
            continue;
        cr_assert_str_eq(stk_name_at(&names, 0), rows[i].first);
        cr_assert_str_eq(stk_name_at(&names, names.count - 1), rows[i].last);
        stk_name_list_free(&names);
    }
}

CleanTest(name_list, wildcards_stand_for_files_sorted_by_bytes)
{
    const struct stk_directory directory = stk_directory_make();
    static const char *const files[] = { "b2", "B1", "a1", "b10", "c{1}" };
    static const char *const found[] = { "b10", "b2", "a1" };
    struct stk_name_list names;
    stoker_error error = { .message = "" };
    char text[600], name[600];
    for (int i = 0; i < 5; i++)
        stk_file_write(&directory, files[i], "x", 1);
    (void)snprintf(text, sizeof(text), "%s/{b*,[a]1}", directory.path);
    cr_assert_eq(stk_name_list_make(&names, &stk_storage_local, "tar", text, strlen(text), &error),
                 STOKER_OK, "%s", error.message);
    cr_assert_eq(names.count, 3);
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_str_eq(stk_name_at(&names, i), stk_path_in(name, &directory, found[i]));
    stk_name_list_free(&names);
    (void)stk_path_in(text, &directory, "c{1}"); /* exists as it is written */
    cr_assert_eq(stk_name_list_make(&names, &stk_storage_local, "tar", text, strlen(text), &error),
                 STOKER_OK);
    cr_assert_str_eq(stk_name_at(&names, 0), text);
    stk_name_list_free(&names);
    (void)stk_path_in(text, &directory, "d*");
    cr_assert_eq(stk_name_list_make(&names, &stk_storage_local, "tar", text, strlen(text), &error),
                 STOKER_EEMPTY);
    cr_assert_not_null(strstr(error.message, "d*: tar: no file has such a name"));
    stk_directory_remove(&directory);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* glob() is the reference, but for its order. */
CleanTest(name_list, wildcards_of_folders_match_what_glob_does)
{
    static const char *const folders[] = { "d1", "d1/in", "d2", "d2/in", ".hidden", "e" };
    static const char *const files[] = { "d1/in/x1.bin", "d2/in/x1.bin",   "d2/in/x22.bin",
                                         "d2/y.bin",     ".hidden/x1.bin", "d3",
                                         "e/.x1.bin",    "e/a\\*b",        "e/a[b" };
    static const char *const patterns[] = {
        "d*/in/x*.bin", "d?/[i]n/x?.bin", "*/*/*", "*/x1.bin", ".h*/*", "e/*",     "e/.*bin",
        "d[!1]/*/*",    "d*/in/x1.bin",   "*/in",  "e/a\\*",   "e/a[*", "none*/x", "d3/*"
    };
    const struct stk_directory directory = stk_directory_make();
    char text[600], path[600];
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        cr_assert_eq(mkdir(stk_path_in(path, &directory, folders[i]), 0755), 0);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        stk_file_write(&directory, files[i], "x", 1);
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        glob_t found = { .gl_pathc = 0 };
        struct stk_name_list names;
        (void)stk_path_in(text, &directory, patterns[i]);
        const int none = glob(text, GLOB_NOSORT | GLOB_NOESCAPE, NULL, &found);
        const int rc =
            stk_name_list_make(&names, &stk_storage_local, "tar", text, strlen(text), NULL);
        cr_assert_eq(rc, none != 0 ? STOKER_EEMPTY : STOKER_OK, "%s: %d", patterns[i], rc);
        cr_assert_eq(names.count, found.gl_pathc, "%s", patterns[i]);
        if (none == 0)
            qsort(found.gl_pathv, found.gl_pathc, sizeof(found.gl_pathv[0]), by_name);
        for (uint32_t n = 0; n < names.count; n++)
            cr_assert_str_eq(stk_name_at(&names, n), found.gl_pathv[n]);
        stk_name_list_free(&names);
        globfree(&found);
    }
    stk_directory_remove(&directory);
}

CleanTest(name_list, names_that_are_too_long_are_refused)
{
    struct stk_name_list names;
    static char text[PATH_MAX + 64];
    memset(text, 'a', sizeof(text));
    cr_assert_eq(stk_name_list_make(&names, &stk_storage_local, "tar", text, PATH_MAX, NULL),
                 STOKER_ELIMIT);
    for (size_t at = 0; at + 20 < 4000; at += 20) /* 20 bytes that become 18 */
        memcpy(text + at, "{bbbbbbbbbbbbbbbbbb}", 20);
    cr_assert_eq(stk_name_list_make(&names, &stk_storage_local, "tar", text, PATH_MAX - 1, NULL),
                 STOKER_OK);
    stk_name_list_free(&names);
    memcpy(text, "{1..100000000000000000}", 23);
    cr_assert_eq(stk_name_list_make(&names, &stk_storage_local, "tar", text, PATH_MAX - 1, NULL),
                 STOKER_ELIMIT);
}

CleanTest(name_list, each_allocation_may_fail)
{
    static const char text[] = "some-longer-name-{000..099}.tar";
    struct stk_name_list names;
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    while (stk_sweep_next(&sweep))
        sweep.rc = stk_name_list_make(&names, &stk_storage_local, "tar", text, sizeof(text) - 1,
                                      &sweep.error);
    cr_assert_eq(names.count, 100);
    stk_name_list_free(&names);
}
