/* test_parameters.c - where the name in a spec ends, and the folder that it names. */
#include <fcntl.h>

#include "datasets/parameters.h"
#include "support/leaks.h"

CleanTest(parameters, the_last_mark_ends_the_name)
{
    static const struct {
        const char *rest;
        char mark;
        size_t name_bytes;
        const char *after;
    } cases[] = {
        { "", '?', 0, NULL },         { "dir", '?', 3, NULL },
        { "dir?", '?', 3, "" },       { "?a=1", '?', 0, "a=1" },
        { "dir?a=1", '?', 3, "a=1" }, { "what?/dir?a=1&b=2", '?', 9, "a=1&b=2" },
        { "x.npy,y", ',', 5, "y" },   { "a,b,c", ',', 3, "c" },
        { "x.npy,y?", '?', 7, "" },   { ",", ',', 0, "" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct stk_spec spec =
            stk_spec_split(&stk_storage_local, cases[i].rest, cases[i].mark);
        cr_assert_eq(spec.name_bytes, cases[i].name_bytes, "%s", cases[i].rest);
        if (cases[i].after == NULL)
            cr_assert_null(spec.after);
        else
            cr_assert_str_eq(spec.after, cases[i].after);
    }
}

/* What has the whole text for its name is meant. */
CleanTest(parameters, a_mark_in_the_name_of_a_file_that_exists_is_none)
{
    char name[] = "/tmp/stoker.what?a=XXXXXX";
    const int fd = mkstemp(name);
    cr_assert_geq(fd, 0);
    struct stk_spec spec = stk_spec_split(&stk_storage_local, name, '?');
    cr_assert_eq(spec.name_bytes, strlen(name));
    cr_assert_null(spec.after);
    char names[64];
    (void)snprintf(names, sizeof(names), "other,%s", name);
    cr_assert_eq(stk_spec_no_parameters(&stk_storage_local, name, "npy", NULL), STOKER_OK);
    cr_assert_eq(stk_spec_no_parameters(&stk_storage_local, names, "npy", NULL), STOKER_OK);
    (void)snprintf(names, sizeof(names), "x=other,y=%s", name);
    cr_assert_eq(stk_spec_no_parameters(&stk_storage_local, names, "npy", NULL), STOKER_OK);
    cr_assert_eq(unlink(name), 0);
    cr_assert_eq(stk_spec_no_parameters(&stk_storage_local, names, "npy", NULL), STOKER_ESPEC);
    spec = stk_spec_split(&stk_storage_local, name, '?');
    cr_assert_eq(spec.name_bytes, strlen("/tmp/stoker.what"));
    cr_assert_eq(spec.after, name + spec.name_bytes + 1);
    close(fd);
}

static int root_of(char root[16], const char *name, const char *split)
{
    stoker_error error;
    int rc = stk_spec_root(root, 16, name, strlen(name), split, "folder", &error);
    if (rc != STOKER_OK)
        cr_assert_not_null(strstr(error.message, "folder"), "%s", error.message);
    return rc;
}

CleanTest(parameters, a_split_is_a_folder_in_the_folder)
{
    char root[16];
    cr_assert_eq(root_of(root, "dir", NULL), STOKER_OK);
    cr_assert_str_eq(root, "dir");
    cr_assert_eq(root_of(root, "dir", "train"), STOKER_OK);
    cr_assert_str_eq(root, "dir/train");
    cr_assert_eq(root_of(root, "", "train"), STOKER_ESPEC);
    cr_assert_eq(root_of(root, "dir", ""), STOKER_EINVAL);
    cr_assert_eq(root_of(root, "dir", ".."), STOKER_EINVAL);
    cr_assert_eq(root_of(root, "dir", "a/b"), STOKER_EINVAL);
    cr_assert_eq(root_of(root, "fifteen_letters", NULL), STOKER_OK);
    cr_assert_eq(root_of(root, "sixteen__letters", NULL), STOKER_ELIMIT);
    cr_assert_eq(root_of(root, "ten_letter", "train"), STOKER_ELIMIT);
}
