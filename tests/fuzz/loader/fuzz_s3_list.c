/* fuzz_s3_list.c - any bytes as a page of a list of S3, and as an error document. */
#include <string.h>

#include "fuzz/codec_input.h"
#include "loader/storage/remote/listing_xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int take(void *context, const struct stk_listed_key *key)
{
    size_t *used = context;
    *used += strlen(key->key) + (key->etag == NULL ? 0 : strlen(key->etag));
    STK_FUZZ_MUST(key->is_prefix || key->size != UINT64_MAX);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct stk_list_page page;
    struct stk_s3_error error;
    const char *why = NULL;
    size_t at = 0, used = 0;
    char *text = malloc(size + 1);
    memcpy(text, bytes, size);
    const int rc = stk_list_parse(text, size, take, &used, &page, &why, &at);
    STK_FUZZ_MUST((rc == STOKER_OK) == (why == NULL) && at <= size && used <= size);
    STK_FUZZ_MUST(strlen(page.continuation) < sizeof(page.continuation));
    memcpy(text, bytes, size);
    stk_s3_error_parse(&error, text, size);
    STK_FUZZ_MUST(strpbrk(error.code, " \r\n<>&\"") == NULL);
    free(text);
    return 0;
}
