/* settings.h - from the command line to the options of loader and trainer, and the table that is
 * shown of them.
 */
#ifndef STK_PROGRAMS_SETTINGS_H
#define STK_PROGRAMS_SETTINGS_H

#include <stoker/trainer.h>

#include "trainer/programs/data.h"
#include "trainer/programs/voice.h"

struct settings {
    stoker_trainer_options training;
    stoker_loader_options loading;
    float mean, std; /* loading points to them */
    uint64_t epochs; /* the last one may be cut short */
    uint64_t updates_per_epoch;
    uint64_t total_updates;
    uint32_t last_batch_size; /* last batch of an epoch; 0 = like the others */
};

/* Work them out; batch_size is what the trainer may take at most (the line may have said max). */
void settings_make(struct settings *out, const struct arguments *arguments, const struct data *data,
                   uint32_t batch_size);

/* Now that it is known which device there is: batches are to lie where the trainer computes, and a GPU
 * is not waited for at every pass. */
void settings_place(struct settings *settings, const struct arguments *arguments,
                    stoker_trainer *trainer);

void settings_show(const struct voice *voice, const struct settings *settings,
                   const struct arguments *arguments, const struct data *data,
                   const stoker_trainer *trainer);

#endif
