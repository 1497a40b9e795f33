/* arguments.h - the command lines of mnist and housing. */
#ifndef STK_PROGRAMS_ARGUMENTS_H
#define STK_PROGRAMS_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stoker/loader.h>
#include <stoker/trainer.h>

#include "loader/cli/options.h"

enum program { PROGRAM_MNIST = 1, PROGRAM_HOUSING = 2 };

enum action { ACTION_TRAIN, ACTION_SUMMARY, ACTION_EVALUATE, ACTION_DEVICES, ACTION_VERSION };

/* Type in which activations are stored. */
enum amp { AMP_OFF, AMP_FP16, AMP_BF16 };

enum tf32 { TF32_OFF, TF32_ON };

enum preset { PRESET_FAST, PRESET_PYTORCH, PRESET_BATCHNORM, PRESET_HOUSING };

/* The command line, with the preset's defaults for what it does not give. Strings point into
 * argv. */
struct arguments {
    enum program program;
    struct cli_given given; /* rows of the option table; ask arguments_give() */
    enum action action;
    enum cli_form help;
    enum preset preset;

    const char *data;      /* NULL = look for it */
    const char *test_data; /* NULL = the split "test" of data */
    double mean, std;      /* pixels; -1 and 0 = the data set's own */
    int32_t workers;
    stoker_switch pin_memory;

    uint32_t epochs;
    uint64_t steps;   /* updates at most; 0 = as many as the epochs have */
    bool steps_alone; /* the line has --steps but no --epochs: as many epochs as the steps take */
    uint32_t batch_size; /* STOKER_BATCH_SIZE_AUTO = the largest that fits */
    uint32_t accumulate;
    uint32_t global_batch; /* samples of an update, all ranks and passes; 0 = batch_size of each */
    uint64_t seed;

    stoker_optimizer optimizer;
    double learning_rate; /* STOKER_OPTIMIZER_DEFAULT = the optimizer's own */
    double betas[2];
    double momentum;
    bool nesterov;
    double weight_decay;
    double clip_norm;
    double ema;
    stoker_schedule schedule;
    uint64_t warmup; /* updates */
    double gamma;    /* per epoch */
    double label_smoothing;

    uint64_t memory_budget; /* bytes; 0 = no limit */
    uint32_t checkpoint_segments;
    const char *device; /* NULL = auto */
    uint32_t split;     /* layers on the first of two devices; 0 = one device */
    bool data_parallel; /* device names one for each rank */
    bool sync_batch_norm;
    double peer_timeout; /* seconds */
    enum amp amp;
    enum tf32 tf32;
    bool benchmark;
    bool deterministic;
    uint32_t threads;

    const char *save;
    uint64_t save_every; /* updates; 0 = at the end only */
    const char *load;
    const char *weights;
    const char *log_dir;
    const char *log;
    const char *trace;
    uint32_t eval_every; /* epochs; 0 = at the end only */
    bool quiet;
};

/* Reads the command line. preset: for a line without --preset; NULL = the program's. STOKER_EINVAL:
 * message is one line that names the option. --help, --version and --list-devices win over
 * everything else. */
int arguments_parse(struct arguments *out, enum program program, const enum preset *preset,
                    int argc, char *const *argv, char message[CLI_MESSAGE_BYTES]);

/* With --global-batch: sets batch_size for that many ranks. STOKER_EINVAL: it cannot be divided;
 * message as above. */
int arguments_divide_batch(struct arguments *arguments, uint32_t world_size,
                           char message[CLI_MESSAGE_BYTES]);

/* Returns true if the line has that option. */
bool arguments_give(const struct arguments *arguments, const char *name);

void arguments_help(FILE *file, enum program program, enum cli_form form);

/* The options of a program: one row for each. */
struct cli_table option_table(enum program program);

bool optimizer_takes_betas(stoker_optimizer optimizer);

/* The words of the options. */
const char *preset_name(enum preset preset);
const char *optimizer_name(stoker_optimizer optimizer);
const char *schedule_name(stoker_schedule schedule);
const char *amp_name(enum amp amp);

/* Prints the line for pasting into a shell, with the checkpoint `load` as its start. */
void arguments_print_again(FILE *file, int argc, char *const *argv, const char *load);

/* The settings of a preset; any others are 0. */
void preset_apply(struct arguments *out, enum preset preset);

/* The devices of --data-parallel, as --device lists them: "cuda:0,cuda:1", "cpu,cpu". "cuda" is the
 * first GPU, "cuda:0": it does not stand for the GPU of a rank here. */
enum { DEVICES_MAX = 64, DEVICE_BYTES = 32 };

struct device_list {
    uint32_t count;
    char name[DEVICES_MAX][DEVICE_BYTES];
};

/* STOKER_EINVAL: a name is empty or too long, a GPU is named twice, or there are too many; message
 * is one line. */
int device_list_read(struct device_list *out, const char *text, char message[CLI_MESSAGE_BYTES]);

#endif
