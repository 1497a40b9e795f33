/* fuzz_cifar.c - any bytes as the records of CIFAR-100, and as the names of its classes.
 *
 * The files are links to one file in memory. They are made once and go when the program ends: a
 * directory for each input would take most of the time.
 */
#include <sys/stat.h>

#include "fuzz/dataset_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { LINKS = 3 };

static const char *const names[LINKS] = { "train.bin", "fine_label_names.txt",
                                          "coarse_label_names.txt" };
static char directory[300];
static struct stk_fuzz_file file;

static const char *link_path(char path[400], int link)
{
    (void)snprintf(path, 400, "%s/%s", directory, names[link]);
    return path;
}

static void remove_links(void)
{
    char path[400];
    for (int i = 0; i < LINKS; i++)
        (void)unlink(link_path(path, i));
    (void)rmdir(directory);
    close(file.fd);
}

static void make_links(void)
{
    char path[400];
    const char *parent = getenv("TMPDIR");
    (void)snprintf(directory, sizeof(directory), "%s/stoker-fuzz-XXXXXX",
                   parent != NULL ? parent : P_tmpdir);
    file = stk_fuzz_file(NULL, 0);
    STK_FUZZ_CHECK(mkdtemp(directory) != NULL);
    for (int i = 0; i < LINKS; i++)
        STK_FUZZ_CHECK(symlink(file.path, link_path(path, i)) == 0);
    STK_FUZZ_CHECK(atexit(remove_links) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char spec[400];
    if (directory[0] == '\0')
        make_links();
    STK_FUZZ_CHECK(ftruncate(file.fd, 0) == 0);
    STK_FUZZ_CHECK(pwrite(file.fd, bytes, size, 0) == (ssize_t)size);
    (void)snprintf(spec, sizeof(spec), "cifar:%s", directory);
    stk_fuzz_dataset(spec);
    (void)snprintf(spec, sizeof(spec), "cifar:%s?labels=coarse", directory);
    stk_fuzz_dataset(spec);
    return 0;
}
