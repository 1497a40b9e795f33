/* option_fault.c - see option_fault.h. */
#include "bench/cli/option_fault.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/nearest.h"

/* Returns true if the word names one of the options, or begins one. */
static bool is_known(const char *name, size_t bytes, const struct option *options)
{
    for (; options->name != NULL; options++)
        if (strncmp(options->name, name, bytes) == 0)
            return true;
    return false;
}

static void unknown(char *message, size_t bytes, const char *word, const struct option *options)
{
    char question[STK_NEAREST_BYTES];
    const char *const name = word + 2;
    struct stk_nearest nearest = stk_nearest_to(name, strcspn(name, "="));
    for (; options->name != NULL; options++)
        stk_nearest_try(&nearest, options->name, options->name);
    (void)snprintf(message, bytes, "unknown option '%.80s'%s", word,
                   stk_nearest_question(question, &nearest, "--"));
}

void cli_option_fault(char *message, size_t bytes, int found, char *const *argv,
                      const struct option *options)
{
    const char *const word = argv[optind - 1];
    if (found == ':') {
        (void)snprintf(message, bytes, "a value is missing after '%.80s'", word);
        return;
    }
    if (strncmp(word, "--", 2) != 0) { /* of -xyz, word may be another: optopt has the letter */
        (void)snprintf(message, bytes, "unknown option '-%c'", optopt);
        return;
    }
    const size_t name_bytes = strcspn(word + 2, "=");
    if (!is_known(word + 2, name_bytes, options))
        unknown(message, bytes, word, options);
    else if (optopt != 0)
        (void)snprintf(message, bytes, "no value belongs in '%.80s'", word);
    else
        (void)snprintf(message, bytes, "'%.80s' may mean several options", word);
}
