/* identity.h - two data sets, perhaps in two processes, that have the same bytes in each sample.
 *
 * A fingerprint (fingerprint.h) finds that a copy of a data set is the same one, and looks at some of the samples. This
 * is for memory that processes share, where a wrong answer would deliver wrong bytes: it names the files themselves
 * (device, inode, size, times of the last change of content and status), and the place of every part of every sample.
 */
#ifndef STK_DATASET_IDENTITY_H
#define STK_DATASET_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/dataset/dataset.h"

struct stk_identity {
    uint64_t words[2];
};

/* One after the other; the order counts. */
void stk_identity_add(struct stk_identity *identity, uint64_t word);
void stk_identity_add_text(struct stk_identity *identity, const char *text); /* NULL is allowed */

/* Returns true if *out identifies the data set. False: some samples do not lie in files, so that nothing is known
 * about them here. Locates all samples: 20 ns each. */
bool stk_identity_of(const stoker_dataset *dataset, struct stk_identity *out);

#endif
