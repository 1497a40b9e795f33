/* synth.h - the generated data sets of "synth:KIND?key=value&...". */
#ifndef STK_DATASETS_SYNTH_H
#define STK_DATASETS_SYNTH_H

#include <stoker/dataset.h>

#define STK_SYNTH_COUNT_MAX UINT64_C(1000000000000)

/* Open one kind. parameters follows the question mark of the spec, or is "". */
int stk_synth_digits_open(stoker_dataset **out, const char *parameters,
                          const stoker_dataset_options *options, stoker_error *error);
int stk_synth_pictures_open(stoker_dataset **out, const char *parameters,
                            const stoker_dataset_options *options, stoker_error *error);
int stk_synth_bytes_open(stoker_dataset **out, const char *parameters,
                         const stoker_dataset_options *options, stoker_error *error);

#endif
