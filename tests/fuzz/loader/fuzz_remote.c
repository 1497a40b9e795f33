/* fuzz_remote.c - lines from a server, and names from a user.
 *
 * The first four bytes say what was asked for; then come header lines. All of it is also a name,
 * and part of a message.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/codec_input.h"
#include "loader/base/bytes.h"
#include "loader/base/text/redact.h"
#include "loader/storage/remote/answer.h"
#include "loader/storage/remote/request.h"
#include "loader/storage/remote/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_answer(const uint8_t *bytes, size_t size)
{
    const struct stk_wanted wanted = { .offset = bytes[0],
                                       .bytes = bytes[1],
                                       .size = bytes[2] == 0 ? STK_UNKNOWN : bytes[2],
                                       .version = bytes[3] };
    struct stk_answer answer = { .status = 0 };
    const char *at = (const char *)bytes + 4, *end = (const char *)bytes + size;
    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        const size_t line_bytes = line == NULL ? (size_t)(end - at) : (size_t)(line - at) + 1;
        stk_answer_take(&answer, at, line_bytes, 1000000000);
        at += line_bytes;
    }
    uint64_t expected = 0;
    const char *why = NULL;
    const enum stk_verdict verdict = stk_answer_judge(&answer, &wanted, &expected, &why);
    STK_FUZZ_MUST(why != NULL);
    if (verdict == STK_VERDICT_TAKE && wanted.bytes > 0) {
        STK_FUZZ_MUST(expected <= wanted.bytes);
        STK_FUZZ_MUST(wanted.size == STK_UNKNOWN || wanted.offset + expected <= wanted.size);
        STK_FUZZ_MUST(!answer.encoded && !answer.malformed);
    }
}

static void read_name(const char *name)
{
    static struct stk_remote_address address;
    if (stk_remote_scheme_of(name) == STK_REMOTE_HTTP &&
        stk_remote_address_of(NULL, name, STK_REMOTE_GET, false, &address, NULL) == STOKER_OK)
        for (const char *at = address.url + strcspn(address.url, "/") + 2; *at != '\0'; at++)
            STK_FUZZ_MUST(at[0] != '\n' && at[0] != '\r');
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 4 || size > 1 << 16)
        return 0;
    read_answer(bytes, size);
    char *text = malloc(size + 1);
    STK_FUZZ_MUST(text != NULL);
    memcpy(text, bytes, size);
    text[size] = '\0';
    read_name(text);
    stk_redact_urls(text);
    STK_FUZZ_MUST(strlen(text) <= size);
    free(text);
    return 0;
}
