/* test_hf.c - names of the Hugging Face Hub, its token, and pages of its tree API. */
#include <stoker/remote.h>

#include "loader/storage/remote/etag.h"
#include "loader/storage/remote/hf_list.h"
#include "support/leaks.h"

static struct stk_remote_address address;
static stoker_error error;

static void begin(void)
{
    static const char *const variables[] = { "HF_ENDPOINT", "HF_TOKEN",       "HF_TOKEN_PATH",
                                             "HF_HOME",     "XDG_CACHE_HOME", "HOME" };
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        cr_assert_eq(unsetenv(variables[i]), 0);
}

static int ask(const char *name, const char *token)
{
    static struct stk_hf hf;
    stoker_remote_options options = STOKER_REMOTE_OPTIONS_INIT;
    options.token = token;
    cr_assert_eq(stk_hf_init(&hf, &options, &error), STOKER_OK);
    const int rc = stk_hf_address_of(&hf, name, STK_REMOTE_GET, false, &address, &error);
    stk_hf_destroy(&hf);
    return rc;
}

CleanTest(hf, names_become_urls)
{
    static const struct {
        const char *name, *url; /* NULL = refused */
    } cases[] = {
        { "hf://datasets/o/n/a b/0.tar", "/datasets/o/n/resolve/main/a%20b/0.tar" },
        { "hf://o/n/model.safetensors", "/o/n/resolve/main/model.safetensors" },
        { "hf://spaces/o/n@v1.0/f", "/spaces/o/n/resolve/v1.0/f" },
        { "hf://datasets/o/n@refs/convert/parquet/d/0.parquet",
          "/datasets/o/n/resolve/refs%2Fconvert%2Fparquet/d/0.parquet" },
        { "hf://datasets/o/n@refs%2Fpr%2F1/f", "/datasets/o/n/resolve/refs%2Fpr%2F1/f" },
        { "hf://datasets/o/n@refs/pr/1/f", "/datasets/o/n/resolve/refs%2Fpr%2F1/f" },
        { "hf://datasets/o/n", "/datasets/o/n/resolve/main" },
        { "hf://datasets/n", NULL },
        { "hf://o", NULL },
        { "hf://o//f", NULL },
        { "hf:///n/f", NULL },
        { "hf://o/n@/f", NULL },
        { "hf://o/n@%zz/f", NULL },
        { "hf://../n/f", NULL },
        { "hf://o/../f", NULL },
        { "hf://o/n/f\r\nHost: evil", NULL },
        { "hf://o?a/n/f", NULL },
    };
    begin();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int rc = ask(cases[i].name, NULL);
        cr_assert_eq(rc == STOKER_OK, cases[i].url != NULL, "%s: %s", cases[i].name, error.message);
        if (rc != STOKER_OK)
            continue;
        cr_assert_str_empty(address.headers);
        cr_assert_eq(strncmp(address.url, "https://huggingface.co", 22), 0);
        cr_assert_str_eq(address.url + 22, cases[i].url);
    }
}

CleanTest(hf, tokens_are_found)
{
    char folder[] = "/tmp/stoker_hf_XXXXXX", path[64];
    begin();
    setenv("HF_ENDPOINT", "http://127.0.0.1:1/", 1);
    cr_assert_not_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/token", folder);
    FILE *file = fopen(path, "w");
    cr_assert_geq(fputs("of_file\n", file), 0);
    cr_assert_eq(fclose(file), 0);
    setenv("HF_HOME", folder, 1);
    cr_assert_eq(ask("hf://o/n/f", NULL), STOKER_OK);
    cr_assert_str_eq(address.url, "http://127.0.0.1:1/o/n/resolve/main/f");
    cr_assert_str_eq(address.headers, "Authorization: Bearer of_file\n");
    setenv("HF_TOKEN", "of_environment", 1);
    cr_assert_eq(ask("hf://o/n/f", NULL), STOKER_OK);
    cr_assert_str_eq(address.headers, "Authorization: Bearer of_environment\n");
    cr_assert_eq(ask("hf://o/n/f", "of_options"), STOKER_OK);
    cr_assert_str_eq(address.headers, "Authorization: Bearer of_options\n");
    setenv("HF_TOKEN", "a\nHost: b", 1);
    cr_assert_eq(ask("hf://o/n/f", NULL), STOKER_EINVAL);
    setenv("HF_ENDPOINT", "huggingface.co", 1);
    cr_assert_eq(ask("hf://o/n/f", "t"), STOKER_EINVAL);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(rmdir(folder), 0);
}

CleanTest(hf, ranges_are_read_where_the_file_was_found)
{
    static struct stk_hf hf;
    stoker_remote_options options = STOKER_REMOTE_OPTIONS_INIT;
    begin();
    options.token = "token";
    cr_assert_eq(stk_hf_init(&hf, &options, &error), STOKER_OK);
    stk_hf_redirected(&hf, "hf://o/n/f", "https://cdn/f?old", 1, 2);
    stk_hf_redirected(&hf, "hf://o/n/f", "https://cdn/f?new", 3, 4);
    stk_hf_redirected(&hf, "https://o/n/f", "https://cdn/f", 5, 6);
    static const struct {
        const char *name;
        enum stk_remote_method method;
        bool renew;
        const char *url;
    } asked[] = {
        { "hf://o/n/f", STK_REMOTE_GET, false, "https://cdn/f?new" },
        { "hf://o/n/f", STK_REMOTE_HEAD, false, "https://huggingface.co/o/n/resolve/main/f" },
        { "hf://o/n/g", STK_REMOTE_GET, false, "https://huggingface.co/o/n/resolve/main/g" },
        { "hf://o/n/f", STK_REMOTE_GET, false, "https://cdn/f?new" },
        { "hf://o/n/f", STK_REMOTE_GET, true, "https://huggingface.co/o/n/resolve/main/f" },
        { "hf://o/n/f", STK_REMOTE_GET, false, "https://huggingface.co/o/n/resolve/main/f" },
    };
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        memset(&address, 0, sizeof(address));
        cr_assert_eq(stk_hf_address_of(&hf, asked[i].name, asked[i].method, asked[i].renew,
                                       &address, &error),
                     STOKER_OK);
        const bool elsewhere = strncmp(asked[i].url, "https://cdn/", 12) == 0;
        cr_assert_str_eq(address.url, asked[i].url, "%d", (int)i);
        cr_assert_eq(address.headers[0] == '\0', elsewhere); /* the token */
        cr_assert_eq(address.linked_etag, elsewhere ? 3 : 0);
        cr_assert_eq(address.linked_size, elsewhere ? 4 : 0);
    }
    stk_hf_redirected(&hf, "hf://o/n/g", "https://cdn/g", 1, 2); /* freed at the end */
    stk_hf_destroy(&hf);
}

/* ---- pages ----------------------------------------------------------------------- */

static const char page[] =
    "[{\"type\":\"directory\",\"oid\":\"e8\",\"size\":0,\"path\":\"data/a\"},\n"
    "{\"type\":\"file\",\"oid\":\"11\",\"size\":2307,\"path\":\"data/.git\\u0061ttributes\"},"
    "{\"type\":\"file\",\"oid\":\"22\",\"size\":99,\"lfs\":{\"oid\":\"33\",\"size\":99,"
    "\"pointerSize\":132},\"xetHash\":\"44\",\"path\":\"data/b.tar\","
    "\"lastCommit\":{\"id\":\"5\",\"date\":null,\"n\":[-1.5e3,true,{}]}},"
    "{\"type\":\"file\",\"oid\":\"66\",\"size\":1,\"path\":\"elsewhere\",\"lfs\":null}]";

struct lines {
    char text[512];
    int stop_after, count;
};

static int take(void *context, const stoker_object *object)
{
    struct lines *lines = context;
    const size_t used = strlen(lines->text);
    (void)snprintf(lines->text + used, sizeof(lines->text) - used, "%s %d %llu %s|", object->name,
                   (int)object->kind, (unsigned long long)object->size,
                   object->version == 0                           ? "-"
                   : object->version == stk_etag_version("11", 2) ? "11"
                   : object->version == stk_etag_version("33", 2) ? "33"
                                                                  : "?");
    lines->count++;
    return lines->count == lines->stop_after ? 7 : 0;
}

/* In memory of its own size, so that AddressSanitizer sees every byte too far. */
static int parse(const char *text, size_t bytes, const char *prefix, struct lines *lines,
                 const char **why)
{
    size_t at = 0;
    char *copy = malloc(bytes > 0 ? bytes : 1);
    memcpy(copy, text, bytes);
    const int rc = stk_hf_tree_parse(copy, bytes, prefix, take, lines, why, &at);
    cr_assert_leq(at, bytes);
    cr_assert_eq(rc == STOKER_EFORMAT, *why != NULL);
    free(copy);
    return rc;
}

CleanTest(hf, pages_are_read)
{
    static const struct {
        const char *text, *prefix, *found, *why;
    } cases[] = {
        { page, "data/", "a 2 0 -|.gitattributes 1 2307 11|b.tar 1 99 33|", NULL },
        { page, "data/b", "b.tar 1 99 33|", NULL },
        { "[]", "", "", NULL },
        { " [ { } ] ", "", "", "an entry without a path or a size" },
        { "{\"error\":\"x\"}", "", "", "expected '['" },
        { "[{\"type\":\"file\",\"path\":\"a\"}]", "", "", "an entry without a path or a size" },
        { "[{\"path\":\"a\",\"size\":-1}]", "", "", "expected a number without sign" },
        { "[{\"x\":[[[[[[[[[[[[[[[[[[[[1", "", "", "nested too deeply" },
        { "[{\"x\":nul}]", "", "", "expected a value" },
        { "[] []", "", "", "something follows the closing '}'" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lines lines = { .text = "" };
        const char *why = NULL;
        (void)parse(cases[i].text, strlen(cases[i].text), cases[i].prefix, &lines, &why);
        cr_assert_eq(why == NULL, cases[i].why == NULL, "%d: %s", (int)i, why);
        if (why != NULL)
            cr_assert_str_eq(why, cases[i].why);
        cr_assert_str_eq(lines.text, cases[i].found);
    }
    struct lines lines = { .stop_after = 2 };
    const char *why = NULL;
    cr_assert_eq(parse(page, strlen(page), "data/", &lines, &why), 7);
    cr_assert_eq(lines.count, 2);
}

CleanTest(hf, damaged_pages_are_survived)
{
    char damaged[sizeof(page)];
    for (size_t at = 0; at + 1 < sizeof(page); at++)
        for (int bit = -1; bit < 8; bit++) {
            struct lines lines = { .text = "" };
            const char *why = NULL;
            memcpy(damaged, page, sizeof(page));
            if (bit >= 0)
                damaged[at] = (char)(damaged[at] ^ 1 << bit);
            const int rc = parse(damaged, bit < 0 ? at : sizeof(page) - 1, "data/", &lines, &why);
            cr_assert(rc == STOKER_EFORMAT || (bit >= 0 && rc == STOKER_OK));
        }
}

CleanTest(hf, only_the_endpoint_has_a_next_page)
{
    static const struct {
        const char *link, *next;
    } cases[] = {
        { "<https://h/api/x?cursor=a%3D>; rel=\"next\"", "https://h/api/x?cursor=a%3D" },
        { "<https://h/api/p>; rel=\"prev\", <https://h/api/n>; rel=\"next\"", "https://h/api/n" },
        { "<https://h/api/p>; rel=\"prev\"", "" },
        { "<https://evil/api/x>; rel=\"next\"", "" },
        { "<https://h/api/x", "" },
        { "<https://h/api/0123456789012345678901234567890123456789>; rel=\"next\"", "" },
        { "", "" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char next[32];
        cr_assert_eq(stk_hf_next_page(next, sizeof(next), cases[i].link, "https://h/api/"),
                     cases[i].next[0] != '\0');
        cr_assert_str_eq(next, cases[i].next);
    }
}
