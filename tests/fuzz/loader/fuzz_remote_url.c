/* fuzz_remote_url.c - any name of S3 or of the Hub: a request to that host alone, or a
 * refusal.
 *
 *   input   a name; what follows "s3://" or "hf://" may be anything
 */
#include <string.h>

#include "fuzz/codec_input.h"
#include "loader/storage/remote/hf.h"
#include "loader/storage/remote/s3.h"
#include "loader/storage/remote/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { NAME_BYTES = 3000 };

static struct stk_remote_address address;

/* No character that libcurl would have to judge, and nobody's secret. */
static void check_request(const char *begin)
{
    static const char sent[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/%";
    STK_FUZZ_MUST(strncmp(address.url, begin, strlen(begin)) == 0);
    const char *path = address.url + strlen(begin);
    STK_FUZZ_MUST(strspn(path, sent) == strlen(path));
    STK_FUZZ_MUST(address.headers[0] == '\0' && address.user[0] == '\0');
}

static void decode_again(const char *name)
{
    char encoded[3 * NAME_BYTES + 1];
    struct stk_text text = stk_text(encoded, sizeof(encoded));
    stk_text_encode(&text, name, strlen(name), true);
    STK_FUZZ_MUST(!text.full && stk_url_decode(encoded, true) && strcmp(encoded, name) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const stoker_remote_options options = { .endpoint = "http://127.0.0.1:9", .region = "r" };
    char name[NAME_BYTES + 1];
    struct stk_s3 s3;
    static struct stk_hf hf;
    if (size > NAME_BYTES)
        return 0;
    memcpy(name, bytes, size);
    name[size] = '\0';
    decode_again(name);
    (void)unsetenv("HOME");
    STK_FUZZ_MUST(stk_s3_init(&s3, &options, NULL) == STOKER_OK);
    STK_FUZZ_MUST(stk_hf_init(&hf, &options, NULL) == STOKER_OK);
    if (stk_s3_address_of(&s3, name, STK_REMOTE_GET, false, &address, NULL) == STOKER_OK)
        check_request("http://127.0.0.1:9/");
    if (strncmp(name, "hf://", 5) == 0 &&
        stk_hf_address_of(&hf, name, STK_REMOTE_GET, false, &address, NULL) == STOKER_OK)
        check_request("https://huggingface.co/");
    stk_s3_destroy(&s3);
    stk_hf_destroy(&hf);
    return 0;
}
