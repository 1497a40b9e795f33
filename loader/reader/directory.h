/* directory.h - the directory that the path of a read starts from. */
#ifndef STK_READER_DIRECTORY_H
#define STK_READER_DIRECTORY_H

#include <stoker/reader.h>

/* `directory` is that of the setup or of the data set, whose files are `files`. */
static inline int stk_read_directory(int directory, const stoker_file *files, uint32_t file)
{
    return directory == STOKER_DIRECTORY_OF_FILE ? files[file].fd : directory;
}

#endif
