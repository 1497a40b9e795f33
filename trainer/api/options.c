/* options.c - see options.h. */
#include "trainer/api/options.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/struct_size.h"
#include "loader/base/text/nearest.h"
#include "trainer/peers/threads/threads.h"
#include "trainer/plan/precision.h"
#include "trainer/stage/choose_backend.h"

enum { ACCUMULATE_MAX = 1 << 20, THREADS_MAX = 256 };

/* Returns 0 if it holds, else an error that names the option. */
static int require(bool holds, stoker_error *error, const char *option, double value,
                   const char *range)
{
    if (holds)
        return STOKER_OK;
    return stk_refuse_option(error, STOKER_EINVAL, "%s = %g: expected %s", option, value, range);
}

/* The value of an option and its range. NaN is never in range. */
struct range {
    const char *option;
    double value;
    double least, most;
    bool least_too, most_too;
    const char *text;
};

static int check_ranges(const struct range *ranges, size_t count, stoker_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct range *r = &ranges[i];
        const bool above = r->least_too ? r->value >= r->least : r->value > r->least;
        const bool below = r->most_too ? r->value <= r->most : r->value < r->most;
        int rc = require(above && below, error, r->option, r->value, r->text);
        if (rc != STOKER_OK)
            return rc;
    }
    return STOKER_OK;
}

static bool is_default(float value)
{
    return value <= STOKER_OPTIMIZER_DEFAULT && value >= STOKER_OPTIMIZER_DEFAULT;
}

/* Returns the value to check; the optimizer's default is in range. */
static double given(float value)
{
    return is_default(value) ? 0 : (double)value;
}

static bool has_loss_scale(const stoker_trainer_options *o)
{
    return !(o->loss_scale <= STOKER_LOSS_SCALE_AUTO && o->loss_scale >= STOKER_LOSS_SCALE_AUTO);
}

static int check_numbers(const stoker_trainer_options *o, stoker_error *error)
{
    const double huge = (double)INFINITY;
    const char *const positive = "a positive number";
    const char *const fraction = "0 to under 1";
    const struct range ranges[] = {
        { "learning_rate", given(o->learning_rate), 0, huge, true, false, "0 and more" },
        { "momentum", (double)o->momentum, 0, 1, true, false, fraction },
        { "betas[0]", (double)o->betas[0], 0, 1, true, false, fraction },
        { "betas[1]", (double)o->betas[1], 0, 1, true, false, fraction },
        { "rho", given(o->rho), 0, 1, true, false, fraction },
        { "epsilon", given(o->epsilon), 0, huge, true, false, "0 and more" },
        { "weight_decay", (double)o->weight_decay, 0, huge, true, false, "0 and more" },
        { "schedule_gamma", (double)o->schedule_gamma, 0, huge, true, false, "0 and more" },
        { "schedule_rise", (double)o->schedule_rise, 0, 1, true, false, fraction },
        { "schedule_start", (double)o->schedule_start, 0, huge, false, false, positive },
        { "final_fraction", (double)o->final_fraction, 0, 1, true, true, "0 to 1" },
        { "clip_norm", (double)o->clip_norm, 0, huge, false, false, positive },
        { "ema_decay", (double)o->ema_decay, 0, 1, true, false, fraction },
        { "loss_scale", has_loss_scale(o) ? (double)o->loss_scale : 1, 0, huge, false, false,
          "a positive number or STOKER_LOSS_SCALE_AUTO" },
        { "memory_budget", (double)o->memory_budget, 1, huge, true, false,
          "1 and more, or STOKER_BYTES_AUTO" },
    };
    return check_ranges(ranges, sizeof(ranges) / sizeof(ranges[0]), error);
}

static int check_counts(const stoker_trainer_options *o, stoker_error *error)
{
    const bool largest = o->batch_size == STOKER_BATCH_SIZE_AUTO;
    const bool same = o->evaluation_batch_size == STOKER_BATCH_SIZE_SAME;
    const struct range ranges[] = {
        { "threads", o->threads == STOKER_THREADS_AUTO ? 1 : o->threads, 1, THREADS_MAX, true, true,
          "1 to 256 or STOKER_THREADS_AUTO" },
        { "batch_size", largest ? 1 : (double)o->batch_size, 1, STK_BATCH_MAX, true, true,
          "1 to 65536 or STOKER_BATCH_SIZE_AUTO" },
        { "evaluation_batch_size", same ? 1 : (double)o->evaluation_batch_size, 1, STK_BATCH_MAX,
          true, true, "1 to 65536 or STOKER_BATCH_SIZE_SAME" },
        { "last_batch_size", o->last_batch_size, 0, STK_BATCH_MAX, true, true,
          "0 (the default) to 65536" },
        { "accumulate", o->accumulate, 1, ACCUMULATE_MAX, true, true, "1 to 2^20" },
        { "metrics_interval", o->metrics_interval, 1, STK_METRICS_INTERVAL_MAX, true, true,
          "1 to 2^20" },
        { "optimizer", (double)(int)o->optimizer, 0, STK_OPTIMIZERS - 1, true, true,
          "a stoker_optimizer" },
        { "schedule", (double)(int)o->schedule, 0, STK_SCHEDULE_ONE_CYCLE, true, true,
          "a stoker_schedule" },
        { "peers", (double)(int)o->peers, 0, STOKER_PEERS_NCCL, true, true, "a stoker_peers" },
        { "peer_timeout_ms", o->peer_timeout_ms, 1, 2147483648.0, true, true, "1 to 2^31" },
        { "checkpoint_segments", o->checkpoint_segments, 0, STOKER_MODEL_LAYERS_MAX, true, true,
          "0 (the default) to 8192" },
    };
    return check_ranges(ranges, sizeof(ranges) / sizeof(ranges[0]), error);
}

/* Checks combinations of options. */
static int check_together(const stoker_trainer_options *o, stoker_error *error)
{
    const bool one_cycle = o->schedule == STOKER_SCHEDULE_ONE_CYCLE;
    int rc = require(!o->nesterov || (o->optimizer == STOKER_OPTIMIZER_SGD && o->momentum > 0),
                     error, "nesterov", 1, "only STOKER_OPTIMIZER_SGD with a momentum");
    if (rc == STOKER_OK)
        rc = require(o->total_updates >= 1 || !(one_cycle || o->schedule == STOKER_SCHEDULE_COSINE),
                     error, "total_updates", 0,
                     "1 and more with STOKER_SCHEDULE_COSINE and STOKER_SCHEDULE_ONE_CYCLE");
    if (rc == STOKER_OK)
        rc = require(o->schedule_steps >= 1 || o->schedule != STOKER_SCHEDULE_STEP, error,
                     "schedule_steps", 0, "1 and more with STOKER_SCHEDULE_STEP");
    if (rc == STOKER_OK)
        rc = require(o->warmup_updates == 0 || !one_cycle, error, "warmup_updates",
                     (double)o->warmup_updates, "only 0 with STOKER_SCHEDULE_ONE_CYCLE");
    if (rc == STOKER_OK)
        rc = require(
            o->warmup_updates == 0 || o->total_updates == 0 || o->warmup_updates < o->total_updates,
            error, "warmup_updates", (double)o->warmup_updates, "fewer than total_updates");
    if (rc == STOKER_OK && o->dynamic_loss_scale && has_loss_scale(o))
        rc = require(o->loss_scale >= STK_LOSS_SCALE_MIN && o->loss_scale <= STK_LOSS_SCALE_MAX,
                     error, "loss_scale", (double)o->loss_scale,
                     "2^-14 to 2^24 with dynamic_loss_scale");
    return rc;
}

static int check_group(const stoker_trainer_options *o, stoker_error *error)
{
    const bool threads = o->peers == STOKER_PEERS_THREADS;
    if (threads && o->peer_group == NULL)
        return stk_refuse_option(error, STOKER_EINVAL,
                                 "peers = STOKER_PEERS_THREADS: peer_group is NULL; see "
                                 "stoker_peer_group_create()");
    if (threads && o->peer_rank >= o->peer_group->world_size)
        return stk_refuse_option(
            error, STOKER_EINVAL, "peer_rank = %u: expected 0 to %u, as the group has %u ranks",
            o->peer_rank, o->peer_group->world_size - 1, o->peer_group->world_size);
    if (!threads && (o->peer_group != NULL || o->peer_rank != 0))
        return stk_refuse_option(
            error, STOKER_EINVAL,
            "peer_group and peer_rank: only with peers = STOKER_PEERS_THREADS");
    return STOKER_OK;
}

static stoker_dtype storage_of(const stoker_trainer_options *o)
{
    return o->precision == STOKER_DTYPE_NONE ? STOKER_DTYPE_FLOAT32 : o->precision;
}

static int check_precision(const stoker_trainer_options *o, stoker_error *error)
{
    const stoker_dtype storage = storage_of(o);
    const bool narrow = stk_is_narrow(storage);
    if (storage != STOKER_DTYPE_FLOAT32 && !narrow)
        return stk_refuse_option(error, STOKER_EINVAL,
                                 "precision %d: float32, float16 and bfloat16 are allowed",
                                 (int)storage);
    return require(!(o->tf32 && narrow), error, "tf32", 1, "only with precision float32");
}

/* Checks that the back end supports the options. */
static int check_backend(const struct stk_backend_ops *ops, const struct stk_backend_options *asked,
                         stoker_error *error)
{
    char lack[STK_LACK_BYTES];
    if (!stk_backend_lacks(ops, asked, lack))
        return STOKER_OK;
    return stk_refuse_option(error, STOKER_EINVAL, "%s", lack);
}

/* Both must support all options; but tf32 needs only one GPU. */
static int check_two_backends(const struct stk_trainer_settings *settings, stoker_error *error)
{
    struct stk_backend_options asked = settings->backend;
    if (settings->ops->has_engines || settings->second_ops->has_engines)
        asked.tf32 = false;
    int rc = check_backend(settings->ops, &asked, error);
    return rc == STOKER_OK ? check_backend(settings->second_ops, &asked, error) : rc;
}

/* Restores 0.999 from the float 0.99900001, since 1 minus it is used. */
static double typed_decimal(float value)
{
    return round((double)value * 1e7) / 1e7;
}

static float or_default(float value, double otherwise)
{
    return is_default(value) ? (float)otherwise : value;
}

/* PyTorch's defaults, in the order of stk_optimizer. */
static const struct defaults {
    double learning_rate, epsilon, rho;
} defaults[STK_OPTIMIZERS] = {
    [STK_SGD] = { 0.01, 0, 0 },           [STK_ADAM] = { 0.001, 1e-8, 0 },
    [STK_ADAMW] = { 0.001, 1e-8, 0 },     [STK_ADAGRAD] = { 0.01, 1e-10, 0 },
    [STK_RMSPROP] = { 0.01, 1e-8, 0.99 }, [STK_ADADELTA] = { 1, 1e-6, 0.9 },
    [STK_ADAMAX] = { 0.002, 1e-8, 0 },    [STK_ASGD] = { 0.01, 0, 0 },
};

_Static_assert((int)STOKER_OPTIMIZER_SGD == (int)STK_SGD, "one order");
_Static_assert((int)STOKER_OPTIMIZER_RMSPROP == (int)STK_RMSPROP, "one order");
_Static_assert((int)STOKER_OPTIMIZER_ASGD == (int)STK_ASGD, "one order");
_Static_assert((int)STOKER_SCHEDULE_ONE_CYCLE == (int)STK_SCHEDULE_ONE_CYCLE, "one order");

static void read_rule(struct stk_update_rule *rule, const stoker_trainer_options *o)
{
    const struct defaults *otherwise = &defaults[o->optimizer];
    *rule = (struct stk_update_rule){
        .optimizer = (enum stk_optimizer)o->optimizer,
        .nesterov = o->nesterov,
        .beta1 = typed_decimal(o->betas[0]),
        .beta2 = typed_decimal(o->betas[1]),
        .epsilon = or_default(o->epsilon, otherwise->epsilon),
        .weight_decay = o->weight_decay,
        .lambd = 1e-4F,
        .alpha = 0.75F,
        .t0 = 1e6F,
    };
    if (o->optimizer == STOKER_OPTIMIZER_SGD || o->optimizer == STOKER_OPTIMIZER_RMSPROP)
        rule->momentum = o->momentum;
    if (o->optimizer == STOKER_OPTIMIZER_RMSPROP || o->optimizer == STOKER_OPTIMIZER_ADADELTA)
        rule->beta1 = is_default(o->rho) ? otherwise->rho : typed_decimal(o->rho);
}

static void read_schedule(struct stk_schedule *schedule, const stoker_trainer_options *o)
{
    *schedule = (struct stk_schedule){
        .kind = (enum stk_schedule_kind)o->schedule,
        .learning_rate = (double)or_default(o->learning_rate, defaults[o->optimizer].learning_rate),
        .total_updates = o->total_updates,
        .warmup_updates = o->warmup_updates,
        .schedule_steps = o->schedule_steps,
        .gamma = (double)o->schedule_gamma,
        .rise = typed_decimal(o->schedule_rise),
        .start = (double)o->schedule_start,
        .final_fraction = (double)o->final_fraction,
    };
}

static void read_checked(struct stk_trainer_settings *out, const stoker_trainer_options *o)
{
    const bool same = o->evaluation_batch_size == STOKER_BATCH_SIZE_SAME;
    out->backend.threads = o->threads == STOKER_THREADS_AUTO ? 0 : o->threads;
    out->seed = o->seed;
    out->batch_size = o->batch_size;
    out->evaluation_batch_size = same ? 0 : o->evaluation_batch_size;
    out->accumulate = o->accumulate;
    out->metrics_interval = o->metrics_interval;
    read_rule(&out->rule, o);
    read_schedule(&out->schedule, o);
    out->backend.storage = storage_of(o);
    out->backend.benchmark = o->benchmark;
    out->backend.deterministic = o->deterministic;
    out->backend.tf32 = o->tf32;
    out->backend.uncaptured = o->uncaptured;
    out->loss_scale.dynamic =
        o->dynamic_loss_scale || (o->precision == STOKER_DTYPE_FLOAT16 && !has_loss_scale(o));
    out->loss_scale.scale = has_loss_scale(o) ? o->loss_scale : out->loss_scale.dynamic ? 0 : 1;
    out->clip_norm = o->clip_norm >= STOKER_NORM_UNLIMITED ? 0 : (double)o->clip_norm;
    out->ema_decay = typed_decimal(o->ema_decay);
    out->last_batch_size = o->last_batch_size;
    out->memory_budget = o->memory_budget == STOKER_BYTES_AUTO ? 0 : o->memory_budget;
    out->checkpoint_segments = o->checkpoint_segments;
    out->recompute_batch_norm = o->recompute_batch_norm;
    out->sync_batch_norm = o->sync_batch_norm;
    out->peer_timeout_ms = o->peer_timeout_ms;
}

/* "cuda:1" is "cuda" and device 1. NULL: no such back end. */
static const struct stk_backend_ops *read_name(const char *name, uint32_t *device)
{
    enum { DEVICES_MAX = 1024 };
    static const char cuda[] = "cuda:";
    *device = 0;
    if (strncmp(name, cuda, sizeof(cuda) - 1) != 0)
        return stk_backend_find(name);
    const char *const digits = name + sizeof(cuda) - 1;
    char *end = NULL;
    const unsigned long number = strtoul(digits, &end, 10);
    if (digits[0] < '0' || digits[0] > '9' || *end != '\0' || number >= DEVICES_MAX)
        return NULL;
    *device = (uint32_t)number;
    return stk_backend_find("cuda");
}

static int unknown(const char *asked, stoker_error *error)
{
    static const char *const known[] = { "auto", "cuda", "cpu", "ref" };
    char question[STK_NEAREST_BYTES];
    struct stk_nearest nearest = stk_nearest_to(asked, strcspn(asked, ":"));
    stk_nearest_try(&nearest, "gpu", "cuda");
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        stk_nearest_try(&nearest, known[i], known[i]);
    return stk_refuse_option(
        error, STOKER_EDEVICE,
        "backend \"%s\": \"auto\", \"cuda\", \"cuda:1\" and so on, \"cpu\" and "
        "\"ref\" are known, and two of them with split%s",
        asked, stk_nearest_question(question, &nearest, ""));
}

int stk_trainer_read_backend(struct stk_trainer_settings *out, const char *given,
                             stoker_error *error)
{
    const char *const name = given == NULL ? "auto" : given;
    out->automatic = strcmp(name, "auto") == 0;
    out->device_named = strchr(name, ':') != NULL;
    out->ops = read_name(out->automatic ? "cpu" : name, &out->backend.device);
    return out->ops == NULL ? unknown(name, error) : STOKER_OK;
}

/* "cpu,cuda:1": the back ends before and after the cut. */
static int read_two_backends(struct stk_trainer_settings *out, const char *given,
                             stoker_error *error)
{
    char first[32];
    const char *const comma = given == NULL ? NULL : strchr(given, ',');
    if (comma == NULL)
        return stk_refuse_option(
            error, STOKER_EINVAL,
            "split = %u: a second device is missing in backend \"%s\"; \"cpu,cuda\" "
            "names two",
            out->split, given == NULL ? "auto" : given);
    const size_t length = (size_t)(comma - given);
    if (length >= sizeof(first))
        return unknown(given, error);
    memcpy(first, given, length);
    first[length] = '\0';
    out->ops = read_name(first, &out->backend.device);
    out->second_ops = read_name(comma + 1, &out->second_device);
    if (out->ops == NULL || out->second_ops == NULL)
        return unknown(given, error);
    if (out->ops == out->second_ops && out->backend.device == out->second_device &&
        out->ops != &stk_backend_ref)
        return stk_refuse_option(error, STOKER_EINVAL, "backend \"%s\": one device is named twice",
                                 given);
    return STOKER_OK;
}

/* Finds the back ends and checks that they support the options. */
static int read_devices(struct stk_trainer_settings *out, const stoker_trainer_options *given,
                        stoker_error *error)
{
    out->split = given->split;
    int rc = out->split == 0 ? stk_trainer_read_backend(out, given->backend, error)
                             : read_two_backends(out, given->backend, error);
    if (rc != STOKER_OK || out->automatic) /* automatic: checked if no GPU can be opened */
        return rc;
    return out->second_ops == NULL ? check_backend(out->ops, &out->backend, error)
                                   : check_two_backends(out, error);
}

STK_DEFINE_INIT_SIZED(stoker_trainer_options, STOKER_TRAINER_OPTIONS_INIT, sync_batch_norm)

int stk_trainer_options_copy(stoker_trainer_options *out, const stoker_trainer_options *given,
                             stoker_error *error)
{
    if (!stk_struct_fits(given, STK_SIZE_UP_TO(stoker_trainer_options, sync_batch_norm),
                         sizeof(*out)))
        return stk_refuse_option(error, STOKER_EINVAL, STK_STRUCT_REFUSAL, "stoker_trainer_options",
                                 given->struct_size, sizeof(*out), "STOKER_TRAINER_OPTIONS_INIT");
    *out = (stoker_trainer_options)STOKER_TRAINER_OPTIONS_INIT;
    stk_struct_read(out, sizeof(*out), given, given->struct_size);
    return STOKER_OK;
}

int stk_trainer_settings_read(struct stk_trainer_settings *out, const stoker_trainer_options *given,
                              stoker_error *error)
{
    memset(out, 0, sizeof(*out));
    int rc = check_counts(given, error);
    if (rc == STOKER_OK)
        rc = check_numbers(given, error);
    if (rc == STOKER_OK)
        rc = check_together(given, error);
    if (rc == STOKER_OK)
        rc = check_group(given, error);
    if (rc == STOKER_OK)
        rc = check_precision(given, error);
    if (rc != STOKER_OK)
        return rc;
    read_checked(out, given);
    return read_devices(out, given, error);
}
