/* test_tar.c - archives are indexed by several threads at once, twice at the same time, under
 * ThreadSanitizer; and one that is damaged ends it for all of them.
 */
#include <pthread.h>

#include "datasets/tar/index.h"
#include "support/thread_check.h"

enum { ARCHIVES = 40, EACH = 25, BLOCK = 512, ROUNDS = 8, DAMAGED = 7 };

static char directory[200];

static const char *name_of(char name[256], int archive)
{
    (void)snprintf(name, 256, "%s/%02d.tar", directory, archive);
    return name;
}

/* A header of an empty image: a size, a type and the sum are all that a reader needs. */
static void put_image(FILE *to, int archive, int sample)
{
    char block[BLOCK] = { 0 };
    unsigned sum = 0;
    (void)snprintf(block, 100, "%02d-%03d.png", archive, sample);
    (void)snprintf(block + 124, 12, "%011o", 0);
    block[156] = '0';
    memcpy(block + 257, "ustar\00000", 8);
    memset(block + 148, ' ', 8);
    for (int i = 0; i < BLOCK; i++)
        sum += (unsigned char)block[i];
    (void)snprintf(block + 148, 8, "%06o", sum);
    CHECK(fwrite(block, 1, BLOCK, to) == BLOCK);
}

static void write_archive(int archive, bool damaged)
{
    static const char zeros[2 * BLOCK];
    char name[256];
    FILE *to = fopen(name_of(name, archive), "wbe");
    CHECK(to != NULL);
    for (int i = 0; i < EACH; i++)
        put_image(to, archive, i);
    CHECK(fwrite(damaged ? "damaged" : zeros, 1, damaged ? 7 : sizeof(zeros), to) > 0);
    CHECK(fclose(to) == 0);
}

static int build(struct stk_tar_index *index, stoker_error *error)
{
    const struct stk_tar_wish wish = { .storage = &stk_storage_local,
                                       .fields = { { .extensions = "png" } },
                                       .field_count = 1,
                                       .takes_labels = true,
                                       .bytes_max = 1 << 20,
                                       .entries_max = ARCHIVES * EACH };
    struct stk_name_list names;
    char text[256];
    (void)snprintf(text, sizeof(text), "%s/{00..%02d}.tar", directory, ARCHIVES - 1);
    CHECK(stk_name_list_make(&names, &stk_storage_local, "tar", text, strlen(text), error) ==
          STOKER_OK);
    const int rc = stk_tar_index_build(index, &names, &wish, error);
    stk_name_list_free(&names);
    return rc;
}

static void *build_often(void *argument)
{
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        struct stk_tar_index index;
        stoker_error error;
        CHECK(build(&index, &error) == STOKER_OK);
        CHECK(index.count == ARCHIVES * EACH);
        CHECK(index.counts.members == ARCHIVES * EACH);
        for (uint32_t i = 0; i < ARCHIVES * EACH; i++) {
            CHECK(index.samples[i].file == i / EACH);
            CHECK(index.samples[i].offset == (i % EACH + 1) * BLOCK);
        }
        stk_tar_index_free(&index);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    char name[256];
    const char *parent = getenv("TMPDIR");
    (void)snprintf(directory, sizeof(directory), "%.150s/stoker-test-XXXXXX",
                   parent != NULL ? parent : P_tmpdir);
    CHECK(mkdtemp(directory) != NULL);
    for (int i = 0; i < ARCHIVES; i++)
        write_archive(i, false);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, build_often, NULL) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);

    for (int i = DAMAGED; i < ARCHIVES; i++)
        write_archive(i, true);
    for (int round = 0; round < ROUNDS; round++) {
        struct stk_tar_index index;
        stoker_error error;
        CHECK(build(&index, &error) < 0);
        CHECK(strcmp(error.path, name_of(name, DAMAGED)) == 0);
        CHECK(index.files == NULL);
    }
    for (int i = 0; i < ARCHIVES; i++)
        (void)unlink(name_of(name, i));
    (void)rmdir(directory);
    return 0;
}
