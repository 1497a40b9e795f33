/* test_tokens.c - token files are opened, and their documents found, by several threads, under
 * ThreadSanitizer; and one that is damaged is reported, whichever thread met it.
 */
#include "datasets/tokens/stream.h"
#include "support/thread_check.h"

enum { FILES = 80, TOKENS = 90, EOS = 7, ROUNDS = 4, DAMAGED = 33 };

static char directory[200];

static const char *name_of(char name[256], int file)
{
    (void)snprintf(name, 256, "%s/%02d.bin", directory, file);
    return name;
}

/* Every ninth token ends a document. */
static void write_file(int file, int version)
{
    int32_t header[256] = { 20240520, version, TOKENS };
    uint16_t tokens[TOKENS];
    char name[256];
    FILE *to = fopen(name_of(name, file), "wbe");
    CHECK(to != NULL);
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = i % 9 == 8 ? EOS : (uint16_t)(1000 + file);
    CHECK(fwrite(header, sizeof(header), 1, to) == 1);
    CHECK(fwrite(tokens, sizeof(tokens), 1, to) == 1);
    CHECK(fclose(to) == 0);
}

static int open_all(struct stk_tokens *tokens, stoker_error *error)
{
    char text[256];
    (void)snprintf(text, sizeof(text), "%s/*.bin", directory);
    const struct stk_tokens_wish wish = { .storage = &stk_storage_local,
                                          .names = text,
                                          .name_bytes = strlen(text),
                                          .eos = EOS,
                                          .bos = STK_TOKENS_NONE,
                                          .format = "tokens" };
    return stk_tokens_open(tokens, &wish, error);
}

static void check_documents(void)
{
    struct stk_tokens tokens;
    stoker_error error;
    CHECK(open_all(&tokens, &error) == STOKER_OK);
    CHECK(tokens.file_count == FILES);
    CHECK(stk_tokens_find_documents(&tokens, 1 << 20, &error) == STOKER_OK);
    CHECK(tokens.document_count == FILES * TOKENS / 9);
    for (uint64_t i = 0; i < tokens.document_count; i++)
        CHECK(tokens.starts[i] == i * 9);
    stk_tokens_close(&tokens);
}

int main(void)
{
    struct stk_tokens tokens;
    stoker_error error;
    char name[256];
    const char *parent = getenv("TMPDIR");
    (void)snprintf(directory, sizeof(directory), "%.150s/stoker-test-XXXXXX",
                   parent != NULL ? parent : P_tmpdir);
    CHECK(mkdtemp(directory) != NULL);
    for (int file = 0; file < FILES; file++)
        write_file(file, 1);
    for (int round = 0; round < ROUNDS; round++)
        check_documents();
    write_file(DAMAGED, 2);
    write_file(DAMAGED + 20, 3);
    for (int round = 0; round < ROUNDS; round++) {
        CHECK(open_all(&tokens, &error) == STOKER_EFORMAT);
        CHECK(strcmp(error.path, name_of(name, DAMAGED)) == 0);
        CHECK(error.offset == 4);
    }
    for (int file = 0; file < FILES; file++)
        CHECK(unlink(name_of(name, file)) == 0);
    CHECK(rmdir(directory) == 0);
    return 0;
}
