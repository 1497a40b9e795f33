/* identity.h - hashes by which two data sets are the same.
 *
 * Fingerprint: identifies a data set in the state of a loader, even if it was moved or copied. Made
 * from the form (format, count, fields) and the content: the data set's own fingerprint, names
 * and sizes of its files, and label, tag (a checksum, with shards) and location of up to 65,536
 * evenly spread samples; for a few samples in memory also their bytes. No file is read: 60,000
 * files take about 2 ms, once per data set, at the first state or resume.
 *
 * Identity: processes share memory, where a wrong answer would deliver wrong bytes. It names the
 * files themselves (device, inode, size, times of the last change of content and status), and the
 * place of every part of every sample.
 */
#ifndef STK_DATASET_IDENTITY_H
#define STK_DATASET_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/dataset/dataset.h"

/* A hash of words and texts, one after the other. */
struct stk_identity {
    uint64_t words[2];
};

void stk_identity_add(struct stk_identity *identity, uint64_t word);
void stk_identity_add_text(struct stk_identity *identity, const char *text); /* NULL is allowed */

/* Returns true if *out identifies the data set. False: some samples do not lie in files, so that
 * nothing is known about them here. Locates all samples: 20 ns each. */
bool stk_identity_of(const stoker_dataset *dataset, struct stk_identity *out);

struct stk_fingerprint {
    uint32_t form;
    uint32_t content;
};

/* Never fails: a part that a callback does not provide is left out. Any thread. */
struct stk_fingerprint stk_fingerprint_of(const stoker_dataset *dataset);

#endif
