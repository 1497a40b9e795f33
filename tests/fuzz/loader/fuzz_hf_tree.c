/* fuzz_hf_tree.c - any bytes as a page of the Hub's tree API; a first line is taken for its Link
 * header. */
#include <string.h>

#include "fuzz/codec_input.h"
#include "loader/storage/remote/hf_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int take(void *context, const stoker_object *object)
{
    size_t *used = context;
    *used += strlen(object->name);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *why = NULL;
    size_t at = 0, used = 0;
    char next[256], *text = malloc(size + 1);
    memcpy(text, bytes, size);
    text[size] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (stk_hf_next_page(next, sizeof(next), text, "https://h/api/"))
        STK_FUZZ_MUST(strncmp(next, "https://h/api/", 14) == 0);
    else
        STK_FUZZ_MUST(next[0] == '\0');
    const size_t line = strlen(text) < size ? strlen(text) + 1 : 0;
    memcpy(text, bytes + line, size - line);
    const int rc = stk_hf_tree_parse(text, size - line, "a/b", take, &used, &why, &at);
    STK_FUZZ_MUST((rc == STOKER_OK) == (why == NULL) && at <= size && used <= size);
    free(text);
    return 0;
}
