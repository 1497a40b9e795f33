/* test_nearest.c - "did you mean": what is near enough to be suggested, and what is not. */
#include "loader/base/text/nearest.h"
#include "support/leaks.h"

static const char *suggested(const char *word, const char *const *known)
{
    struct stk_nearest nearest = stk_nearest_to(word, strlen(word));
    for (; *known != NULL; known++)
        stk_nearest_try(&nearest, *known, *known);
    return nearest.answer == NULL ? "" : nearest.answer;
}

CleanTest(nearest, typing_errors_find_their_word)
{
    static const char *const known[] = { "mnist", "label", "optimizer", "adamw",  "adam", "jpeg",
                                         "png",   "cuda",  "folder",    "shards", NULL };
    static const char *const cases[][2] = {
        { "mnst", "mnist" },    { "lable", "label" },   { "optimizer", "optimizer" },
        { "admw", "adamw" },    { "jpg", "jpeg" },      { "PNG", "png" },
        { "fodler", "folder" }, { "sharsd", "shards" }, { "optmizier", "optimizer" },
        { "adma", "adam" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_assert_str_eq(suggested(cases[i][0], known), cases[i][1], "%s", cases[i][0]);
}

CleanTest(nearest, strangers_find_nothing)
{
    static const char *const known[] = { "mnist", "label", "on", "off", "tar", "cifar", NULL };
    static const char *const strangers[] = {
        "",        "x",
        "n",       "of",
        "housing", "batch",
        "libel2",  "star-ship",
        "12345",   "a word that is far too long to be any of these, whatever it means"
    };
    for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++)
        cr_assert_str_eq(suggested(strangers[i], known), "", "%s", strangers[i]);
}

CleanTest(nearest, a_frequent_mistake_suggests_the_right_word)
{
    char question[STK_NEAREST_BYTES];
    struct stk_nearest nearest = stk_nearest_to("gpu:1", 3);
    stk_nearest_try(&nearest, "cpu", "cpu");
    stk_nearest_try(&nearest, "gpu", "cuda");
    cr_assert_str_eq(stk_nearest_question(question, &nearest, "--"), " (did you mean '--cuda'?)");
    nearest = stk_nearest_to("tpux", 4);
    stk_nearest_try(&nearest, "cuda", "cuda");
    cr_assert_str_eq(stk_nearest_question(question, &nearest, ""), "");
}
