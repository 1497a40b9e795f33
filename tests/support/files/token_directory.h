/* token_directory.h - the directory of token files that each test of a suite has. */
#ifndef STK_TEST_TOKEN_DIRECTORY_H
#define STK_TEST_TOKEN_DIRECTORY_H

#include "support/files/token_files.h"
#include "support/runs/opened_loader.h"

static struct stk_directory directory;

static inline void make_directory(void)
{
    directory = stk_directory_make();
}

static inline void remove_directory(void)
{
    stk_directory_remove(&directory);
}

static inline void write_llmc(const char *name, uint32_t seed, uint32_t count, size_t width)
{
    const struct stk_bytes file = stk_llmc_file(seed, count, width);
    stk_file_write(&directory, name, file.at, file.size);
}

/* "tokens:DIR/names". */
static inline const char *spec_of(char spec[512], const char *names)
{
    (void)snprintf(spec, 512, "tokens:%s/%s", directory.path, names);
    return spec;
}

static inline stoker_dataset *open_names(const char *names)
{
    char spec[512];
    return dataset_of(spec_of(spec, names));
}

#endif
