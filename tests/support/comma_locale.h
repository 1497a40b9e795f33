/* comma_locale.h - a locale in which 1.5 is written 1,5, made for this process: few machines have
 * one installed.
 *
 * localedef comes with libc; where it is missing a German locale may be there.
 */
#ifndef STK_TEST_COMMA_LOCALE_H
#define STK_TEST_COMMA_LOCALE_H

#include <locale.h>
#include <stdbool.h>

#include "support/files/dataset_files.h"

/* Sets the locale for the process. False: not available here, skip the test. */
static inline bool stk_comma_locale(void)
{
    static const char source[] = "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\n"
                                 "grouping -1\nEND LC_NUMERIC\n";
    const struct stk_directory directory = stk_directory_make();
    char path[512];
    char command[1700];
    stk_file_write(&directory, "comma.src", source, sizeof(source) - 1);
    (void)stk_path_in(path, &directory, "");
    (void)snprintf(command, sizeof(command), "localedef -c -i %scomma.src %scomma >%slog 2>&1",
                   path, path, path);
    const bool made = system(command) != -1; /* it warns of all that the source leaves out */
    const bool taken =
        made && setenv("LOCPATH", path, 1) == 0 && setlocale(LC_NUMERIC, "comma") != NULL;
    (void)unsetenv("LOCPATH");
    stk_directory_remove(&directory);
    return (taken || setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL) &&
           localeconv()->decimal_point[0] == ',';
}

#endif
