/* credentials.c - see credentials.h. */
#include "loader/storage/remote/credentials.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/environment.h"
#include "loader/base/error.h"
#include "loader/base/io/number_file.h"
#include "loader/base/memory/memory.h"
#include "loader/storage/remote/url.h"

enum { FILE_BYTES_MAX = 256 << 10 };

/* A setting: the environment's names for it, first one first, and the files' name. */
static const struct setting {
    const char *variables[2], *key;
    size_t at, bytes;
} settings[] = {
#define STK_SETTING(member, key, ...)                                                              \
    {                                                                                              \
        { __VA_ARGS__ }, key, offsetof(struct stk_profile, member),                                \
            sizeof(((struct stk_profile *)NULL)->member)                                           \
    }
    STK_SETTING(credentials.access_key, "aws_access_key_id", "AWS_ACCESS_KEY_ID"),
    STK_SETTING(credentials.secret_key, "aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"),
    STK_SETTING(credentials.session_token, "aws_session_token", "AWS_SESSION_TOKEN"),
    STK_SETTING(region, "region", "AWS_REGION", "AWS_DEFAULT_REGION"),
    STK_SETTING(endpoint_url, "endpoint_url", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
#undef STK_SETTING
};

enum { SETTINGS = sizeof(settings) / sizeof(settings[0]) };

/* Returns false if the value is too long or has control characters. */
static bool set(struct stk_profile *out, const struct setting *setting, const char *value)
{
    char *to = (char *)out + setting->at;
    const size_t bytes = strlen(value);
    if (bytes >= setting->bytes || !stk_is_header_text(value))
        return false;
    if (to[0] == '\0')
        memcpy(to, value, bytes + 1);
    return true;
}

/* ---- files ---------------------------------------------------------------------- */

/* Cut white space off both ends. */
static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t bytes = strlen(text);
    while (bytes > 0 && strchr(" \t\r", text[bytes - 1]) != NULL)
        bytes--;
    text[bytes] = '\0';
    return text;
}

static bool is_section(char *line, const char *name)
{
    char *inside = trim(line);
    if (strncmp(inside, "profile", 7) == 0 && (inside[7] == ' ' || inside[7] == '\t'))
        inside = trim(inside + 7);
    return strcmp(inside, name) == 0;
}

static const char *parse_member(struct stk_profile *out, char *line)
{
    char *equals = strchr(line, '=');
    if (equals == NULL)
        return "expected KEY = VALUE";
    *equals = '\0';
    const char *key = trim(line);
    for (size_t i = 0; i < SETTINGS; i++)
        if (strcmp(key, settings[i].key) == 0 && !set(out, &settings[i], trim(equals + 1)))
            return "the value is too long or has control characters";
    return NULL;
}

unsigned stk_profile_parse(struct stk_profile *out, char *text, const char *name, bool *found,
                           const char **why)
{
    bool inside = false;
    unsigned number = 0;
    for (char *line = text, *next; line != NULL; line = next) {
        number++;
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        *why = NULL;
        if (line[0] == '[') {
            char *end = strchr(line, ']');
            if (end == NULL) {
                *why = "a section without ']'";
                return number;
            }
            *end = '\0';
            inside = is_section(line + 1, name);
            *found |= inside;
        } else if (inside && line[0] != '\0' && strchr(" \t\r#;", line[0]) == NULL) {
            /* Lines that begin with white space belong to a nested setting ("s3 ="). */
            *why = parse_member(out, line);
        }
        if (*why != NULL)
            return number;
    }
    return 0;
}

static int read_file(struct stk_profile *out, const char *path, const char *name, bool *found,
                     stoker_error *error)
{
    char *text = stk_calloc(1, FILE_BYTES_MAX);
    if (text == NULL)
        return stk_refuse_file(error, STOKER_ENOMEM, path, STOKER_NO_OFFSET,
                               "memory for the credentials file");
    const char *why = NULL;
    int rc = STOKER_OK;
    const size_t bytes = stk_text_file_read(path, text, FILE_BYTES_MAX);
    const unsigned line =
        bytes == FILE_BYTES_MAX - 1 ? 0 : stk_profile_parse(out, text, name, found, &why);
    if (bytes == FILE_BYTES_MAX - 1)
        rc = stk_refuse_file(error, STOKER_ELIMIT, path, STOKER_NO_OFFSET,
                             "a credentials file of more than %d KiB", FILE_BYTES_MAX >> 10);
    else if (line > 0)
        rc = stk_refuse_file(error, STOKER_EFORMAT, path, STOKER_NO_OFFSET, "line %u: %s", line,
                             why);
    stk_wipe_free(text, FILE_BYTES_MAX);
    return rc;
}

/* Write the path that the variable names, or that of the file in ~/.aws; "" without a home. */
static void find_file(char path[PATH_MAX], const char *variable, const char *name)
{
    const char *named = stk_environment(variable);
    const char *home = stk_environment("HOME");
    int bytes = 0;
    if (named != NULL)
        bytes = snprintf(path, PATH_MAX, "%s", named);
    else if (home != NULL)
        bytes = snprintf(path, PATH_MAX, "%s/.aws/%s", home, name);
    if (bytes <= 0 || bytes >= PATH_MAX)
        path[0] = '\0';
}

static int read_files(struct stk_profile *out, const char *wanted, stoker_error *error)
{
    static const char *const files[2][2] = { { "AWS_SHARED_CREDENTIALS_FILE", "credentials" },
                                             { "AWS_CONFIG_FILE", "config" } };
    const char *name = wanted == NULL ? "default" : wanted;
    bool found = false;
    int rc = STOKER_OK;
    for (int i = 0; i < 2 && rc == STOKER_OK; i++) {
        char path[PATH_MAX];
        find_file(path, files[i][0], files[i][1]);
        if (path[0] != '\0')
            rc = read_file(out, path, name, &found, error);
    }
    if (rc == STOKER_OK && wanted != NULL && !found)
        rc = stk_refuse_option(error, STOKER_ENOENT,
                               "profile \"%s\" is neither in ~/.aws/credentials nor in "
                               "~/.aws/config",
                               wanted);
    return rc;
}

/* ---- all of it ------------------------------------------------------------------ */

int stk_profile_read(struct stk_profile *out, const char *name, stoker_error *error)
{
    *out = (struct stk_profile){ .region = "" };
    for (size_t i = 0; i < SETTINGS; i++)
        for (size_t j = 0; j < 2 && settings[i].variables[j] != NULL; j++) {
            const char *value = stk_environment(settings[i].variables[j]);
            if (value != NULL && !set(out, &settings[i], value))
                return stk_refuse_option(error, STOKER_ELIMIT,
                                         "%s is too long or has control characters",
                                         settings[i].variables[j]);
        }
    /* Half of a key is none, and a token belongs to the key beside it. */
    stoker_remote_credentials own = out->credentials;
    const bool complete = name == NULL && own.access_key[0] != '\0' && own.secret_key[0] != '\0';
    out->credentials = (stoker_remote_credentials){ .access_key = "" };
    int rc = read_files(out, name == NULL ? stk_environment("AWS_PROFILE") : name, error);
    if (complete)
        out->credentials = own;
    else if (out->credentials.access_key[0] == '\0' || out->credentials.secret_key[0] == '\0')
        explicit_bzero(&out->credentials, sizeof(out->credentials));
    explicit_bzero(&own, sizeof(own));
    if (rc != STOKER_OK)
        explicit_bzero(out, sizeof(*out));
    return rc;
}

void stk_wipe_free(void *block, size_t bytes)
{
    if (block != NULL)
        explicit_bzero(block, bytes);
    stk_free(block);
}
