/* curl.c - see curl.h. */
#include "loader/storage/remote/curl.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "loader/base/error.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct stk_curl table;
static char refusal[256]; /* "" = loaded */

static bool fill(const char *soname)
{
    static const struct stk_function functions[] = {
#define FUNCTION(type, name, arguments) { "curl_" #name, offsetof(struct stk_curl, name) },
        STK_CURL_FUNCTIONS(FUNCTION)
#undef FUNCTION
    };
    const char *why = NULL;
    void *library = stk_library_open("STOKER_CURL", soname, &why);
    if (library != NULL && stk_library_fill(library, functions,
                                            sizeof(functions) / sizeof(functions[0]), &table, &why))
        return true;
    (void)snprintf(refusal, sizeof(refusal), "%s", why);
    return false;
}

static void load(void)
{
    if (!fill("libcurl.so.4") && !fill("libcurl-gnutls.so.4"))
        return;
    refusal[0] = '\0';
    if (table.global_init(STK_CURL_GLOBAL_ALL) != STK_CURLE_OK)
        (void)snprintf(refusal, sizeof(refusal), "curl_global_init() failed");
}

const struct stk_curl *stk_curl_load(stoker_error *error)
{
    (void)pthread_once(&once, load);
    if (refusal[0] == '\0')
        return &table;
    (void)stk_refuse_spec(error, STOKER_ENOTSUP,
                          "remote names need libcurl 7.66 or newer (Debian: libcurl4): %s",
                          refusal);
    return NULL;
}
