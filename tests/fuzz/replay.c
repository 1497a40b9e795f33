/* replay.c - run a fuzz target over files, without a fuzzing engine.
 *
 *   fuzz_idx FILE|DIR...     exit 0: every input was survived, and there was one
 *
 * A directory means the files in it, not the directories below.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The input is copied to the heap with no byte to spare, so that ASan sees a read past its end. */
static int replay_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
        return -1;
    }
    uint8_t *bytes = malloc(size > 0 ? size : 1);
    int rc = -1;
    if (bytes != NULL && fread(bytes, 1, size, file) == size) {
        printf("%s\n", path);
        fflush(stdout); /* a crash must leave the name of its input behind */
        LLVMFuzzerTestOneInput(bytes, size);
        rc = 0;
    }
    free(bytes);
    fclose(file);
    return rc;
}

static int replay_path(const char *path, unsigned *count, int depth);

static int replay_directory(const char *path, unsigned *count)
{
    DIR *directory = opendir(path);
    if (directory == NULL) {
        fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
        return -1;
    }
    int rc = 0;
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        char inside[PATH_MAX];
        int length = snprintf(inside, sizeof(inside), "%s/%s", path, entry->d_name);
        if (length < 0 || (size_t)length >= sizeof(inside))
            rc = -1;
        else if (entry->d_name[0] != '.')
            rc |= replay_path(inside, count, 1);
    }
    closedir(directory);
    return rc;
}

static int replay_path(const char *path, unsigned *count, int depth)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
        return -1;
    }
    if (S_ISDIR(status.st_mode))
        return depth == 0 ? replay_directory(path, count) : 0;
    *count += 1;
    return replay_file(path, (size_t)status.st_size);
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    int rc = 0;
    for (int i = 1; i < argc; i++)
        rc |= replay_path(argv[i], &count, 0);
    printf("%u inputs replayed\n", count);
    if (count == 0)
        fprintf(stderr, "replay: nothing was replayed: give files or directories\n");
    return rc == 0 && count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
