/* settings.h - from the command line to the options of loader and trainer, and their table. */
#ifndef STK_PROGRAMS_SETTINGS_H
#define STK_PROGRAMS_SETTINGS_H

#include <stoker/ranks.h>
#include <stoker/trainer.h>

#include "trainer/programs/console.h"
#include "trainer/programs/data.h"

/* A rank among those that train together. */
struct rank_place {
    stoker_ranks ranks;
    stoker_peer_group *group; /* ranks that are threads; NULL: processes */
    const char *devices;      /* every rank's, as in "cuda:0,cuda:1"; NULL: processes */
};

struct settings {
    stoker_trainer_options training;
    stoker_loader_options loading;
    struct rank_place place;
    float mean, std; /* referenced by loading */
    uint64_t epochs; /* the last one may be cut short */
    uint64_t updates_per_epoch;
    uint64_t total_updates;
    uint32_t last_batch_size; /* last batch of an epoch; 0 = like the others */
};

/* Computes the settings of the rank at this place; batch_size is the largest that the trainer may
 * take (for --batch-size max). */
void settings_make(struct settings *out, const struct arguments *arguments, const struct data *data,
                   const struct rank_place *place, uint32_t batch_size);

/* Called once the device is known: puts batches where the trainer computes, and avoids waiting for
 * a GPU at every pass. */
void settings_place(struct settings *settings, const struct arguments *arguments,
                    stoker_trainer *trainer);

void settings_show(const struct console *console, const struct settings *settings,
                   const struct arguments *arguments, const struct data *data,
                   const stoker_trainer *trainer);

#endif
