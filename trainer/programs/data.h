/* data.h - the training and test data: named by the user, or found. */
#ifndef STK_PROGRAMS_DATA_H
#define STK_PROGRAMS_DATA_H

#include <stdbool.h>
#include <stoker/dataset.h>

#include "trainer/programs/arguments.h"

enum { DATA_SPEC_MAX = 4096 };

struct data {
    stoker_dataset *train;
    stoker_dataset *test;
    char spec[DATA_SPEC_MAX];
    bool made_up; /* nothing was found: drawn digits instead */
};

/* Opens images with classes: --data, or MNIST if it is found, or drawn digits. On failure
 * nothing is open and *error has the reason. */
int data_open_images(struct data *out, const struct arguments *arguments, stoker_error *error);

/* Opens a table with a number to predict: --data, or the Boston housing file. Unless the spec of a
 * CSV file says otherwise, a fifth is kept for testing. The columns of a row are standardized by
 * the training rows. */
int data_open_table(struct data *out, const struct arguments *arguments, stoker_error *error);

void data_close(struct data *data);

#endif
