/* test_credentials.c - which keys are used, from the environment and from profile files. */
#include <stoker/error.h>
#include <sys/stat.h>

#include "loader/storage/remote/credentials.h"
#include "support/leaks.h"

static char folder[] = "/tmp/stoker_credentials_XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    cr_assert_geq(fputs(text, file), 0);
    cr_assert_eq(fclose(file), 0);
}

/* Files in a folder of their own, and none of this machine's variables. */
static void begin(void)
{
    static const char *const variables[] = { "AWS_ACCESS_KEY_ID",   "AWS_SECRET_ACCESS_KEY",
                                             "AWS_SESSION_TOKEN",   "AWS_REGION",
                                             "AWS_DEFAULT_REGION",  "AWS_PROFILE",
                                             "AWS_ENDPOINT_URL",    "AWS_CONFIG_FILE",
                                             "AWS_ENDPOINT_URL_S3", "AWS_SHARED_CREDENTIALS_FILE" };
    char path[64];
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        cr_assert_eq(unsetenv(variables[i]), 0);
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(setenv("HOME", folder, 1), 0);
    (void)snprintf(path, sizeof(path), "%s/.aws", folder);
    cr_assert_eq(mkdir(path, 0700), 0);
    write_file(".aws/credentials", "# comment\n"
                                   "[default]\n"
                                   "aws_access_key_id = DEFAULT_ID\r\n"
                                   "  aws_secret_access_key = of a nested setting\n"
                                   "aws_secret_access_key=default=secret \n"
                                   "\n"
                                   "[ other ]\n"
                                   "; comment\n"
                                   "aws_access_key_id = OTHER_ID\n"
                                   "aws_secret_access_key = other/secret\n"
                                   "aws_session_token = other token\n"
                                   "[half]\n"
                                   "aws_access_key_id = HALF_ID\n");
    write_file(".aws/config", "[default]\nregion = eu-west-1\naws_access_key_id = IGNORED\n"
                              "s3 =\n  region = of a nested setting\n"
                              "[profile other]\nregion = eu-west-2\n"
                              "endpoint_url = http://127.0.0.1:9\nunknown = 1\n");
}

static void end(void)
{
    char command[64];
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}

static void check(const char *key_id, const char *secret, const char *token, const char *region,
                  const char *endpoint)
{
    struct stk_profile got;
    stoker_error error;
    cr_assert_eq(stk_profile_read(&got, NULL, &error), STOKER_OK, "%s", error.message);
    cr_assert_str_eq(got.credentials.access_key, key_id);
    cr_assert_str_eq(got.credentials.secret_key, secret);
    cr_assert_str_eq(got.credentials.session_token, token);
    cr_assert_str_eq(got.region, region);
    cr_assert_str_eq(got.endpoint_url, endpoint);
}

CleanTest(credentials, the_environment_precedes_the_files)
{
    begin();
    check("DEFAULT_ID", "default=secret", "", "eu-west-1", "");
    setenv("AWS_PROFILE", "other", 1);
    check("OTHER_ID", "other/secret", "other token", "eu-west-2", "http://127.0.0.1:9");
    setenv("AWS_ENDPOINT_URL", "http://a", 1);
    setenv("AWS_DEFAULT_REGION", "default-region", 1);
    check("OTHER_ID", "other/secret", "other token", "default-region", "http://a");
    setenv("AWS_ENDPOINT_URL_S3", "http://b", 1);
    setenv("AWS_REGION", "region", 1);
    setenv("AWS_ACCESS_KEY_ID", "ID", 1); /* half of a key is none */
    check("OTHER_ID", "other/secret", "other token", "region", "http://b");
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1); /* whose token is not the profile's */
    check("ID", "secret", "", "region", "http://b");
    setenv("AWS_SESSION_TOKEN", "token", 1);
    check("ID", "secret", "token", "region", "http://b");
    struct stk_profile named; /* by the caller: then its keys count */
    cr_assert_eq(stk_profile_read(&named, "default", NULL), STOKER_OK);
    cr_assert_str_eq(named.credentials.access_key, "DEFAULT_ID");
    cr_assert_str_eq(named.region, "region");
    end();
}

CleanTest(credentials, without_keys_nobody_asks)
{
    char path[64];
    begin();
    setenv("AWS_PROFILE", "half", 1);
    check("", "", "", "", "");
    unsetenv("AWS_PROFILE");
    (void)snprintf(path, sizeof(path), "%s/none", folder);
    setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
    setenv("AWS_CONFIG_FILE", path, 1);
    check("", "", "", "", "");
    unsetenv("AWS_SHARED_CREDENTIALS_FILE");
    unsetenv("AWS_CONFIG_FILE");
    unsetenv("HOME");
    check("", "", "", "", "");
    end();
}

CleanTest(credentials, what_is_wrong_is_named_without_the_secret)
{
    static const struct {
        const char *text;
        int code;
        const char *says;
    } cases[] = {
        { "[default]\naws_secret_access_key SECRET\n", STOKER_EFORMAT, "line 2: expected KEY" },
        { "[default\n", STOKER_EFORMAT, "line 1: a section without ']'" },
    };
    char path[64], *huge = malloc(300000);
    stoker_error error;
    struct stk_profile got;
    begin();
    (void)snprintf(path, sizeof(path), "%s/file", folder);
    setenv("AWS_CONFIG_FILE", path, 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_file("file", cases[i].text);
        cr_assert_eq(stk_profile_read(&got, NULL, &error), cases[i].code);
        cr_assert_not_null(strstr(error.message, cases[i].says), "%s", error.message);
        cr_assert_null(strstr(error.message, "SECRET"));
        cr_assert_eq(got.credentials.secret_key[0], '\0');
    }
    memset(huge, 'x', 299999);
    huge[299999] = '\0';
    write_file("file", huge);
    cr_assert_eq(stk_profile_read(&got, NULL, &error), STOKER_ELIMIT);
    huge[9000] = '\0';
    setenv("AWS_SECRET_ACCESS_KEY", huge, 1);
    cr_assert_eq(stk_profile_read(&got, NULL, &error), STOKER_ELIMIT);
    cr_assert_not_null(strstr(error.message, "AWS_SECRET_ACCESS_KEY is too long"));
    cr_assert_null(strstr(error.message, "xxxx"));
    unsetenv("AWS_SECRET_ACCESS_KEY");
    write_file("file", "");
    setenv("AWS_PROFILE", "absent", 1);
    cr_assert_eq(stk_profile_read(&got, NULL, &error), STOKER_ENOENT);
    cr_assert_not_null(strstr(error.message, "absent"));
    free(huge);
    end();
}

/* Any prefix, and any byte changed: no more than the fields' own bytes are written. */
CleanTest(credentials, damaged_files_are_survived)
{
    static const char good[] = "[default]\naws_access_key_id = ID\n# c\n[profile x]\nregion = r\n";
    for (size_t bytes = 0; bytes < sizeof(good); bytes++)
        for (int bit = 0; bit <= 8; bit++) {
            char text[sizeof(good)] = "";
            const char *why = NULL;
            bool found = false;
            struct stk_profile got = { .region = "" };
            memcpy(text, good, bytes);
            if (bytes > 0 && bit < 8)
                text[bytes - 1] = (char)(text[bytes - 1] ^ 1 << bit);
            const unsigned line = stk_profile_parse(&got, text, "default", &found, &why);
            cr_assert_eq(line == 0, why == NULL);
            cr_assert_leq(line, 6);
        }
}
