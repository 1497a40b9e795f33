/* fuzz_aws_profile.c - any bytes as a credentials file of the AWS tools. */
#include <string.h>

#include "fuzz/codec_input.h"
#include "loader/storage/remote/credentials.h"
#include "loader/storage/remote/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct stk_profile profile;
    const char *why = NULL;
    bool found = false;
    char *text = malloc(size + 1);
    memcpy(text, bytes, size);
    text[size] = '\0';
    memset(&profile, 0, sizeof(profile));
    const unsigned line = stk_profile_parse(&profile, text, "default", &found, &why);
    STK_FUZZ_MUST((line == 0) == (why == NULL));
    STK_FUZZ_MUST(strlen(profile.credentials.secret_key) < sizeof(profile.credentials.secret_key));
    STK_FUZZ_MUST(stk_is_header_text(profile.credentials.session_token));
    STK_FUZZ_MUST(found || profile.credentials.access_key[0] == '\0');
    free(text);
    return 0;
}
