/* pairs.h - "folder:images=DIR,masks=DIR,boxes=DIR": one file of each folder is a sample; and lists
 * of files. */
#ifndef STK_DATASETS_FOLDER_PAIRS_H
#define STK_DATASETS_FOLDER_PAIRS_H

#include <stdbool.h>
#include <stoker/files.h>

#include "datasets/arrays/set.h"

/* Lists of files that the caller names, and arrays beside them; beside may be NULL. */
struct stk_folder_files {
    const stoker_files *files; /* [file_count], of this version */
    uint32_t file_count;       /* 1..STOKER_FILES_MAX */
    uint64_t count;
    struct stk_array_set *beside; /* planned; the function owns it, whatever it returns */
};

/* Make their data set. */
int stk_folder_files_open(stoker_dataset **out, const struct stk_folder_files *given,
                          stoker_error *error);

/* Returns true if the spec names folders, and no folder has the whole spec as its name. */
bool stk_folder_pairs_named(const stoker_storage *storage, const char *rest);

/* Open them, as stk_format.open. */
int stk_folder_pairs_open(stoker_dataset **out, const char *rest,
                          const stoker_dataset_options *options, stoker_error *error);

#endif
