/* settings.c - see settings.h. */
#include "trainer/programs/settings.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const float MNIST_MEAN = 0.1307F;
static const float MNIST_STD = 0.3081F;

/* Passes between two readings of the losses of a GPU, of two devices or of several ranks; each
 * reading waits for them. */
enum { METRICS_INTERVAL = 16 };

static const stoker_dtype precisions[] = {
    [AMP_OFF] = STOKER_DTYPE_FLOAT32,
    [AMP_FP16] = STOKER_DTYPE_FLOAT16,
    [AMP_BF16] = STOKER_DTYPE_BFLOAT16,
};

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0 ? 1 : 0);
}

/* MNIST's mean and deviation for MNIST and drawn digits; else the middle of the range. */
static void choose_normalization(struct settings *settings, const struct arguments *arguments,
                                 const struct data *data)
{
    const char *name = stoker_dataset_name(data->train);
    const bool like_mnist = strcmp(name, "mnist") == 0 || data->made_up;
    settings->mean = like_mnist ? MNIST_MEAN : 0.5F;
    settings->std = like_mnist ? MNIST_STD : 0.25F;
    if (arguments->std > 0.0) {
        settings->mean = (float)arguments->mean;
        settings->std = (float)arguments->std;
    }
}

static void make_loading(struct settings *settings, const struct arguments *arguments,
                         const struct data *data, uint32_t batch_size)
{
    stoker_loader_options *loading = &settings->loading;
    *loading = (stoker_loader_options)STOKER_LOADER_OPTIONS_INIT;
    loading->seed = arguments->seed;
    loading->batch_size = batch_size;
    loading->num_workers = arguments->workers;
    loading->pin_memory = arguments->pin_memory;
    loading->epochs = settings->epochs;
    loading->shuffle = true;
    loading->rank = settings->place.ranks.rank;
    loading->world_size = settings->place.ranks.world_size;
    loading->deal =
        STOKER_DEAL_BATCHES; /* the passes of one rank with that many times --accumulate */
    if (settings->place.group != NULL) { /* they share the process's CPUs */
        loading->local_rank = settings->place.ranks.rank;
        loading->local_world_size = settings->place.ranks.world_size;
    }
    loading->device = STOKER_DEVICE_CPU;
    if (stoker_dataset_get_info(data->train)->is_image) {
        choose_normalization(settings, arguments, data);
        loading->dtype = STOKER_DTYPE_FLOAT32;
        loading->mean = &settings->mean;
        loading->std = &settings->std;
        loading->mean_count = 1;
    }
}

static void make_training(struct settings *settings, const struct arguments *arguments,
                          uint32_t batch_size)
{
    stoker_trainer_options *training = &settings->training;
    *training = (stoker_trainer_options)STOKER_TRAINER_OPTIONS_INIT;
    training->backend = arguments->device;
    training->peers = STOKER_PEERS_AUTO;
    if (settings->place.group != NULL) {
        training->peers = STOKER_PEERS_THREADS;
        training->peer_group = settings->place.group;
        training->peer_rank = settings->place.ranks.rank;
    }
    training->peer_timeout_ms = (uint32_t)(1000 * arguments->peer_timeout + 0.5);
    training->sync_batch_norm = arguments->sync_batch_norm;
    training->split = arguments->split;
    training->precision = precisions[arguments->amp];
    training->tf32 = arguments->tf32 == TF32_ON;
    training->benchmark = arguments->benchmark;
    training->deterministic = arguments->deterministic;
    if (arguments->threads > 0)
        training->threads = arguments->threads;
    training->seed = arguments->seed;
    training->batch_size = batch_size;
    training->last_batch_size = settings->last_batch_size;
    training->accumulate = arguments->accumulate;
    training->optimizer = arguments->optimizer;
    training->learning_rate = (float)arguments->learning_rate;
    training->momentum = (float)arguments->momentum;
    training->nesterov = arguments->nesterov;
    training->betas[0] = (float)arguments->betas[0];
    training->betas[1] = (float)arguments->betas[1];
    training->weight_decay = (float)arguments->weight_decay;
    training->schedule = arguments->schedule;
    training->total_updates = settings->total_updates;
    training->warmup_updates = arguments->warmup;
    training->schedule_steps = settings->updates_per_epoch;
    training->schedule_gamma = (float)arguments->gamma;
    if (arguments->clip_norm > 0)
        training->clip_norm = (float)arguments->clip_norm;
    training->ema_decay = (float)arguments->ema;
    if (arguments->memory_budget > 0)
        training->memory_budget = arguments->memory_budget;
    training->checkpoint_segments = arguments->checkpoint_segments;
}

void settings_make(struct settings *out, const struct arguments *arguments, const struct data *data,
                   const struct rank_place *place, uint32_t batch_size)
{
    const uint32_t world_size = place->ranks.world_size;
    const uint64_t samples = stoker_dataset_get_info(data->train)->count;
    *out = (struct settings){ .place = *place };
    if (batch_size > samples)
        batch_size = (uint32_t)samples;
    if (batch_size > STOKER_BATCH_MAX)
        batch_size = STOKER_BATCH_MAX;
    out->updates_per_epoch =
        divide_up(divide_up(samples, (uint64_t)batch_size * world_size), arguments->accumulate);
    out->epochs = arguments->steps_alone ? divide_up(arguments->steps, out->updates_per_epoch)
                                         : arguments->epochs;
    out->total_updates = out->updates_per_epoch * out->epochs;
    out->last_batch_size = (uint32_t)(samples % batch_size);
    if (arguments->steps != 0 && arguments->steps < out->total_updates)
        out->total_updates = arguments->steps;
    make_loading(out, arguments, data, batch_size);
    make_training(out, arguments, batch_size);
}

static bool on_gpu(const stoker_trainer *trainer)
{
    return strcmp(stoker_trainer_backend(trainer), "cuda") == 0;
}

void settings_place(struct settings *settings, const struct arguments *arguments,
                    stoker_trainer *trainer)
{
    const bool waits =
        settings->place.ranks.world_size > 1 || arguments->split > 0 || on_gpu(trainer);
    if (waits) /* in range, so it cannot fail */
        (void)stoker_trainer_set_metrics_interval(trainer, METRICS_INTERVAL);
    if (!on_gpu(trainer))
        return;
    settings->loading.device = STOKER_DEVICE_CUDA;
    settings->loading.device_index = stoker_trainer_device_index(trainer);
}

/* "one-cycle, 3 warm-up updates" */
static void describe_schedule(char *line, size_t line_bytes, const struct arguments *arguments)
{
    int used = snprintf(line, line_bytes, "%s", schedule_name(arguments->schedule));
    if (arguments->schedule == STOKER_SCHEDULE_STEP)
        used +=
            snprintf(line + used, line_bytes - (size_t)used, ", x %g an epoch", arguments->gamma);
    if (arguments->warmup != 0)
        (void)snprintf(line + used, line_bytes - (size_t)used, ", %" PRIu64 " updates of warm-up",
                       arguments->warmup);
}

static void describe_optimizer(char *line, size_t line_bytes, const struct arguments *arguments)
{
    int used = snprintf(line, line_bytes, "%s", optimizer_name(arguments->optimizer));
    if (arguments->learning_rate >= 0.0)
        used +=
            snprintf(line + used, line_bytes - (size_t)used, ", rate %g", arguments->learning_rate);
    if (optimizer_takes_betas(arguments->optimizer))
        used += snprintf(line + used, line_bytes - (size_t)used, ", betas %g, %g",
                         arguments->betas[0], arguments->betas[1]);
    if (arguments->momentum > 0.0)
        used += snprintf(line + used, line_bytes - (size_t)used, ", momentum %g%s",
                         arguments->momentum, arguments->nesterov ? " (Nesterov)" : "");
    if (arguments->weight_decay > 0.0)
        (void)snprintf(line + used, line_bytes - (size_t)used, ", weight decay %g",
                       arguments->weight_decay);
}

static void show_ranks(const struct console *console, const struct settings *settings)
{
    const stoker_ranks *const ranks = &settings->place.ranks;
    if (settings->place.devices != NULL)
        console_say(console, "%-12s %" PRIu32 ", on %.200s; a batch each", "ranks",
                    ranks->world_size, settings->place.devices);
    else if (ranks->world_size > 1)
        console_say(console, "%-12s %" PRIu32 ", started by %s; a batch each", "ranks",
                    ranks->world_size, stoker_launcher_name(ranks->launcher));
}

/* The loss of a model that is right and certain: 0 only without smoothed labels. */
static double least_loss(double smoothing, uint32_t classes)
{
    const double other = smoothing / classes;
    const double right = 1 - smoothing + other;
    return -right * log(right) - (classes - 1) * other * log(other);
}

void settings_show(const struct console *console, const struct settings *settings,
                   const struct arguments *arguments, const struct data *data,
                   const stoker_trainer *trainer)
{
    char line[160];
    console_say(console, "%-12s %.300s: %" PRIu64 " to train on, %" PRIu64 " to test on", "data",
                data->spec, stoker_dataset_get_info(data->train)->count,
                stoker_dataset_get_info(data->test)->count);
    console_say(console, "%-12s %s", "preset", preset_name(arguments->preset));
    console_say(console, "%-12s %" PRIu64 " of %" PRIu64 " updates, %" PRIu64 " in all", "epochs",
                settings->epochs, settings->updates_per_epoch, settings->total_updates);
    console_say(console, "%-12s %" PRIu32 " samples, %" PRIu32 " to an update", "batch",
                settings->loading.batch_size,
                arguments->accumulate * settings->place.ranks.world_size);
    show_ranks(console, settings);
    describe_optimizer(line, sizeof(line), arguments);
    console_say(console, "%-12s %s", "optimizer", line);
    describe_schedule(line, sizeof(line), arguments);
    console_say(console, "%-12s %s", "schedule", line);
    if (arguments->label_smoothing > 0)
        console_say(console, "%-12s labels smoothed by %g: a perfect model has %.3f", "loss",
                    arguments->label_smoothing,
                    least_loss(arguments->label_smoothing,
                               stoker_dataset_get_info(data->train)->class_count));
    console_say(console, "%-12s %" PRIu64 "%s", "seed", arguments->seed,
                on_gpu(trainer) && !arguments->deterministic ? "" : ", deterministic");
    if (on_gpu(trainer))
        console_say(console, "%-12s cuda:%" PRIu32, "device", settings->loading.device_index);
    else
        console_say(console, "%-12s %s, %" PRIu32 " threads", "device",
                    stoker_trainer_backend(trainer), stoker_trainer_threads(trainer));
    if (arguments->amp != AMP_OFF)
        console_say(console, "%-12s %s for activations", "amp", amp_name(arguments->amp));
    if (arguments->workers == STOKER_WORKERS_AUTO)
        console_say(console, "%-12s auto", "workers");
    else
        console_say(console, "%-12s %" PRId32, "workers", arguments->workers);
    console_text(console, "\n");
}
