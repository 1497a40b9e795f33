/* pairs.h - "folder:images=DIR,masks=DIR,boxes=DIR": one file of each folder is a sample. */
#ifndef STK_DATASETS_FOLDER_PAIRS_H
#define STK_DATASETS_FOLDER_PAIRS_H

#include <stdbool.h>
#include <stoker/dataset.h>

/* Returns true if the spec names folders, and no folder has the whole spec as its name. */
bool stk_folder_pairs_named(const char *rest);

/* Open them, as stk_format.open. */
int stk_folder_pairs_open(stoker_dataset **out, const char *rest,
                          const stoker_dataset_options *options, stoker_error *error);

#endif
