/* peers.c - see peers.h. */
#include "trainer/api/peers.h"

#include <math.h>
#include <stoker/ranks.h>
#include <string.h>

#include "loader/base/cpu_share.h"
#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "trainer/api/options.h"
#include "trainer/api/rank_device.h"
#include "trainer/peers/choose.h"
#include "trainer/peers/nccl.h"
#include "trainer/peers/threads.h"
#include "trainer/stage/choose_backend.h"

static const struct stk_place nowhere = STK_NOWHERE;

enum { SOME_TIMEOUT_MS = 1000 }; /* 0 is reported with the other options */

/* ---- create ---------------------------------------------------------------------- */

/* Options that name no rank are reported with the others. */
static bool names_thread(const stoker_trainer_options *options)
{
    return options->peers == STOKER_PEERS_THREADS && options->peer_group != NULL &&
           options->peer_rank < options->peer_group->world_size;
}

void stk_trainer_stay_away(const stoker_trainer_options *options, int rc, const stoker_error *error)
{
    const struct stk_word word = stk_peers_word(STK_MEET_CREATE, rc, error);
    if (names_thread(options))
        stk_group_decline(options->peer_group, options->peer_rank, word.text);
}

/* "auto" is a GPU if every rank has one. */
static int agree_on_gpus(stoker_trainer *trainer, const stoker_trainer_options *options,
                         stoker_error *error)
{
    const struct stk_word *all = NULL;
    struct stk_word word = stk_peers_word(STK_MEET_CREATE, STOKER_OK, NULL);
    if (!stk_trainer_has_peers(trainer))
        return STOKER_OK;
    word.number[0] = stk_rank_has_gpu(trainer->peers, trainer->model, options) ? 1 : 0;
    const int rc = stk_peers_agree(trainer->peers, &word, &all, error);
    trainer->ranks_have_gpus = rc == STOKER_OK;
    for (uint32_t r = 0; r < trainer->peers->world_size && rc == STOKER_OK; r++)
        trainer->ranks_have_gpus = trainer->ranks_have_gpus && all[r].number[0] == 1;
    return rc;
}

int stk_trainer_join(stoker_trainer *trainer, const stoker_trainer_options *options,
                     stoker_error *error)
{
    const struct stk_peers_options asked = { .deterministic = options->deterministic,
                                             .timeout_ms = options->peer_timeout_ms == 0
                                                               ? SOME_TIMEOUT_MS
                                                               : options->peer_timeout_ms,
                                             .floats_max = trainer->model->parameter_floats,
                                             .parts_ranks_max = STK_PARTS_RANKS_MAX,
                                             .group = options->peer_group,
                                             .group_rank = options->peer_rank };
    if ((unsigned)options->peers > STOKER_PEERS_NCCL || /* reported with the other options */
        (options->peers == STOKER_PEERS_THREADS && !names_thread(options)))
        return stk_peers_alone(&trainer->peers, error);
    trainer->asks_nccl = options->peers == STOKER_PEERS_NCCL;
    const int rc = stk_peers_join(&trainer->peers, options->peers, &asked, error);
    return rc == STOKER_OK ? agree_on_gpus(trainer, options, error) : rc;
}

/* Ranks of one node share its CPUs, unless the launcher has given each its own. Its variables were read when it joined. */
static uint32_t threads_of_rank(const struct stk_peers *peers)
{
    stoker_ranks ranks = STOKER_RANKS_INIT;
    if (peers->threads)
        return stk_cpu_share_here(peers->rank, peers->world_size).count;
    (void)stoker_ranks_from_environment(&ranks, NULL);
    const uint32_t local = ranks.local_world_size == 0 ? 1 : ranks.local_world_size;
    return stk_cpu_share_of(ranks.local_rank, local).count;
}

/* Of "auto", whose ops are the CPU's. */
static int choose_backend(stoker_trainer *trainer, stoker_error *error)
{
    struct stk_trainer_settings *const settings = &trainer->settings;
    char lack[STK_LACK_BYTES];
    settings->automatic = false;
    if (trainer->ranks_have_gpus || trainer->asks_nccl)
        settings->ops = &stk_backend_cuda;
    if (!stk_backend_lacks(settings->ops, &settings->backend, lack))
        return STOKER_OK;
    return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                         "%s, and not every rank has a GPU with its libraries", lack);
}

int stk_trainer_check_peers(stoker_trainer *trainer, stoker_error *error)
{
    struct stk_trainer_settings *const settings = &trainer->settings;
    const uint32_t world_size = trainer->peers->world_size;
    if (world_size == 1)
        settings->sync_batch_norm = false; /* they are all ranks' */
    if (world_size == 1 && !trainer->asks_nccl)
        return STOKER_OK;
    if (trainer->asks_nccl && !settings->automatic && settings->ops != &stk_backend_cuda)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                             "backend \"%s\" with STOKER_PEERS_NCCL, which is for GPUs: choose "
                             "\"cuda\" or \"auto\"",
                             settings->ops->name);
    if (settings->automatic && choose_backend(trainer, error) != STOKER_OK)
        return STOKER_EINVAL;
    if (settings->backend.threads == 0)
        settings->backend.threads = threads_of_rank(trainer->peers);
    if (settings->split > 0)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                             "split = %u with %u ranks: a rank has one device", settings->split,
                             world_size);
    if (settings->ops == &stk_backend_cuda)
        stk_rank_take_device(settings, trainer->peers);
    else if (trainer->peers->words_only)
        return stk_error_set(
            error, STOKER_ENOTSUP, STOKER_STAGE_OPTIONS, &nowhere,
            "backend \"%s\" with %u ranks that torchrun has started: in host memory "
            "gradients are summed by MPI, which it does not start: use mpirun, or "
            "srun --mpi=pmix",
            settings->ops->name, world_size);
    if (settings->batch_size == STOKER_BATCH_SIZE_MAX)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                             "batch_size = STOKER_BATCH_SIZE_MAX with %u ranks, which might choose "
                             "differently: give a number",
                             world_size);
    return STOKER_OK;
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t count)
{
    const uint64_t prime = UINT64_C(0x100000001B3); /* FNV-1a */
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * prime;
    return hash;
}

static const uint64_t HASH_START = UINT64_C(0xCBF29CE484222325);

static uint64_t hash_model(const stoker_model *model)
{
    uint64_t hash = mix(HASH_START, &model->parameter_floats, sizeof(model->parameter_floats));
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const struct stk_layer *const layer = &model->layers[i];
        const uint32_t shape[] = { (uint32_t)layer->kind, layer->out.h, layer->out.w,
                                   layer->out.c,          layer->input, layer->other };
        hash = mix(hash, shape, sizeof(shape));
    }
    return hash;
}

static uint64_t hash_settings(const struct stk_trainer_settings *settings)
{
    const double numbers[] = { settings->clip_norm,
                               settings->ema_decay,
                               settings->schedule.learning_rate,
                               (double)settings->rule.momentum,
                               (double)settings->rule.weight_decay,
                               settings->rule.beta1,
                               settings->rule.beta2,
                               (double)settings->loss_scale.scale };
    const uint64_t counts[] = {
        (uint64_t)settings->rule.optimizer, (uint64_t)settings->schedule.kind,
        settings->schedule.total_updates,   settings->schedule.warmup_updates,
        settings->metrics_interval,         settings->sync_batch_norm,
        settings->backend.uncaptured,       settings->ops != NULL && settings->ops->device != NULL,
        settings->loss_scale.dynamic,       settings->backend.deterministic,
        (uint64_t)settings->backend.storage
    };
    return mix(mix(HASH_START, numbers, sizeof(numbers)), counts, sizeof(counts));
}

static int compare(const stoker_trainer *trainer, const struct stk_word *all, stoker_error *error)
{
    static const char *const what[STK_WORD_NUMBERS] = { "another model", "another batch_size",
                                                        "another accumulate", "other options" };
    for (uint32_t r = 1; r < trainer->peers->world_size; r++)
        for (uint32_t i = 0; i < STK_WORD_NUMBERS; i++)
            if (all[r].number[i] != all[0].number[i])
                return stk_error_set(error, STOKER_EMISMATCH, STOKER_STAGE_OPTIONS, &nowhere,
                                     "rank %u has %s than rank 0: give all ranks the same", r,
                                     what[i]);
    return STOKER_OK;
}

int stk_trainer_meet_created(stoker_trainer *trainer, int rc, stoker_error *error)
{
    const struct stk_word *all = NULL;
    struct stk_word word = stk_peers_word(STK_MEET_CREATE, rc, error);
    if (!stk_trainer_has_peers(trainer))
        return rc;
    word.number[0] = hash_model(trainer->model);
    word.number[1] = trainer->settings.batch_size;
    word.number[2] = trainer->settings.accumulate;
    word.number[3] = hash_settings(&trainer->settings);
    const int met = stk_peers_agree(trainer->peers, &word, &all, error);
    return met == STOKER_OK ? compare(trainer, all, error) : met;
}

/* ---- several GPUs ---------------------------------------------------------------- */

int stk_trainer_join_devices(stoker_trainer *trainer, stoker_error *error)
{
    struct stk_stage *const stage = trainer->stage[0];
    const struct stk_device_ops *const device = stage->ops->device;
    if ((trainer->peers->world_size == 1 && !trainer->asks_nccl) || device == NULL)
        return STOKER_OK;
    const struct stk_nccl_options options = { .timeout_ms = trainer->settings.peer_timeout_ms,
                                              .device_index = stage->settings.backend.device,
                                              .device = device->identify(stage->backend) };
    int before = 0;
    int rc = device->enter(stage->backend, &before, error);
    const bool entered = rc == STOKER_OK;
    rc = stk_nccl_join(&trainer->device_sums, trainer->peers, &options, rc, error);
    if (entered)
        device->leave(stage->backend, before);
    if (rc != STOKER_OK)
        return rc;
    rc = device->join(stage->backend, trainer->device_sums, trainer->model,
                      trainer->settings.sync_batch_norm, error);
    return stk_trainer_meet(trainer, STK_MEET_CREATE, rc, error);
}

void stk_trainer_leave(stoker_trainer *trainer)
{
    if (trainer->device_sums != NULL) {
        const struct stk_word word = stk_peers_word(STK_MEET_LEAVE, STOKER_OK, NULL);
        const bool whole = stk_peers_agree(trainer->peers, &word, NULL, NULL) == STOKER_OK;
        stk_nccl_leave(&trainer->device_sums, !whole);
    }
    stk_peers_leave(&trainer->peers);
}

int stk_trainer_report_device(stoker_trainer *trainer, int rc, const stoker_error *error)
{
    const struct stk_word word = stk_peers_word(STK_MEET_ANY, rc, error);
    if (trainer->device_sums != NULL && (rc == STOKER_EDEVICE || rc == STOKER_ENOMEM))
        trainer->peers->ops->failed(trainer->peers, rc, word.text);
    return rc;
}

/* ---- meetings -------------------------------------------------------------------- */

int stk_trainer_meet(stoker_trainer *trainer, enum stk_meeting meeting, int rc, stoker_error *error)
{
    const struct stk_word word = stk_peers_word(meeting, rc, error);
    if (!stk_trainer_has_peers(trainer))
        return rc;
    return stk_peers_agree(trainer->peers, &word, NULL, error);
}

/* What a pass of these samples needs of a device, so that its failure is known before the others sum with it. */
static int prepare_device(stoker_trainer *trainer, uint32_t count, bool *forgets)
{
    struct stk_stage *const stage = trainer->stage[0];
    if (stage->ops->device == NULL)
        return STOKER_OK;
    const int rc = stk_stage_refill(stage, &trainer->error);
    return rc == STOKER_OK
               ? stage->ops->device->prepare_step(stage->train, count, forgets, &trainer->error)
               : rc;
}

int stk_trainer_meet_pass(stoker_trainer *trainer, int rc, uint32_t count,
                          struct stk_pass_share *out)
{
    const struct stk_peers *const peers = trainer->peers;
    const struct stk_word *all = NULL;
    bool forgets = false;
    *out = (struct stk_pass_share){ .samples = count, .passes = count > 0 ? 1 : 0 };
    if (!stk_trainer_has_peers(trainer))
        return rc;
    if (rc == STOKER_OK)
        rc = prepare_device(trainer, count, &forgets);
    struct stk_word word = stk_peers_word(STK_MEET_PASS, rc, &trainer->error);
    word.number[0] = count;
    word.number[1] = forgets ? 1 : 0;
    const int met = stk_peers_agree(trainer->peers, &word, &all, &trainer->error);
    if (met != STOKER_OK)
        return met;
    *out = (struct stk_pass_share){ .hash = HASH_START };
    for (uint32_t r = 0; r < peers->world_size; r++) {
        out->before += r < peers->rank ? all[r].number[0] : 0;
        out->samples += all[r].number[0];
        out->passes += all[r].number[0] > 0 ? 1 : 0;
        out->hash = mix(out->hash, &all[r].number[0], sizeof(all[r].number[0]));
        out->forgets = out->forgets || all[r].number[1] != 0;
    }
    return STOKER_OK;
}

int stoker_trainer_any(stoker_trainer *trainer, bool *flag)
{
    const struct stk_word *all = NULL;
    struct stk_word word = stk_peers_word(STK_MEET_ANY, STOKER_OK, NULL);
    if (trainer == NULL || flag == NULL)
        return STOKER_EINVAL;
    word.number[0] = *flag ? 1 : 0;
    const int rc = stk_peers_agree(trainer->peers, &word, &all, &trainer->error);
    for (uint32_t r = 0; r < trainer->peers->world_size && rc == STOKER_OK; r++)
        *flag |= all[r].number[0] != 0;
    return rc;
}

uint32_t stoker_trainer_rank(const stoker_trainer *trainer)
{
    return trainer->peers->rank;
}

uint32_t stoker_trainer_world_size(const stoker_trainer *trainer)
{
    return trainer->peers->world_size;
}

/* ---- a pass ---------------------------------------------------------------------- */

/* Sums of BatchNorm in a pass, and the first error. */
struct summing {
    stoker_trainer *trainer;
    int rc;
};

/* A stk_pass_sums.add. */
static void add(void *context, double *values, uint32_t count)
{
    struct summing *const summing = context;
    if (summing->rc == STOKER_OK)
        summing->rc =
            stk_peers_sum(summing->trainer->peers, values, count, &summing->trainer->error);
}

/* Moves running statistics [at, at + count) by what each rank has found, in the order of ranks: as one rank does in as many
 * passes. all: [rank][count]; a rank without samples has NaN. */
static void move(float *running, const double *all, uint32_t world_size, uint64_t count,
                 double momentum)
{
    for (uint32_t r = 0; r < world_size; r++)
        for (uint64_t i = 0; i < count; i++) {
            const double found = all[r * count + i];
            if (!isnan(found))
                running[i] = (float)((1 - momentum) * (double)running[i] + momentum * found);
        }
}

static int share_statistic(stoker_trainer *trainer, const struct stk_parameter *statistic)
{
    struct stk_peers *const peers = trainer->peers;
    const uint64_t most = peers->gather_bytes_max / sizeof(double);
    float *const running = trainer->stage[0]->arenas.statistics + statistic->offset;
    const double *const found = trainer->batch_statistics + statistic->offset;
    const double momentum = (double)trainer->model->layers[statistic->layer].momentum;
    for (uint64_t done = 0; done < statistic->elements;) {
        const uint64_t left = statistic->elements - done;
        const uint64_t count = left < most ? left : most;
        const void *all = NULL;
        const int rc =
            peers->ops->gather(peers, found + done, count * sizeof(double), &all, &trainer->error);
        if (rc != STOKER_OK)
            return rc;
        move(running + done, all, peers->world_size, count, momentum);
        done += count;
    }
    return STOKER_OK;
}

/* A pass has failed in the middle: the others wait somewhere in it. */
static int fail_pass(stoker_trainer *trainer, int rc)
{
    trainer->peers->ops->failed(trainer->peers, rc,
                                trainer->error.message[0] != '\0' ? trainer->error.message
                                                                  : stoker_strerror(rc));
    return rc;
}

/* True if the ranks add their gradients after each pass of a group, not after its last. Then the passes are added one by
 * one, in the order in which one rank makes them, and the bits do not depend on how many of a group's passes a rank makes. */
static bool sums_each_pass(const stoker_trainer *trainer)
{
    return stk_trainer_has_peers(trainer) && stk_stage_sums_passes(trainer->stage[0]);
}

/* Gradients become the sums over all ranks. If that is done for each pass, rank 0 has added its own to the group's sum
 * before, and the others bring their pass alone. */
static int sum(stoker_trainer *trainer, stoker_error *error)
{
    return stk_gradient_sum_finish(&trainer->gradient_sum, trainer->stage[0]->arenas.gradients,
                                   error);
}

/* The device sums gradients and statistics itself. */
static int run_pass_on_device(stoker_trainer *trainer, const struct stk_pass *pass,
                              const struct stk_group_pass *group)
{
    const int rc = trainer->runner->ops->train(trainer->runner, pass, group, &trainer->unread.loss,
                                               &trainer->error);
    return rc == STOKER_OK ? rc : fail_pass(trainer, rc);
}

static int run_shared_pass(stoker_trainer *trainer, struct stk_pass *pass,
                           const struct stk_group_pass *of_group)
{
    struct stk_group_pass group = *of_group;
    if (sums_each_pass(trainer))
        group.first = group.first || trainer->peers->rank != 0;
    const stoker_model *const model = trainer->model;
    struct summing summing = { .trainer = trainer };
    const struct stk_pass_sums sums = { .add = add, .context = &summing };
    if (trainer->settings.sync_batch_norm)
        pass->sums = &sums;
    else
        pass->batch_statistics = trainer->batch_statistics;
    for (uint64_t i = 0; i < model->statistic_floats; i++)
        trainer->batch_statistics[i] = (double)NAN; /* until a batch has some */
    if (group.last || sums_each_pass(trainer))
        pass->watch =
            stk_gradient_sum_watch(&trainer->gradient_sum, trainer->stage[0]->arenas.gradients);
    int rc = trainer->runner->ops->train(trainer->runner, pass, &group, &trainer->unread.loss,
                                         &trainer->error);
    if (rc == STOKER_OK)
        rc = summing.rc;
    if (rc != STOKER_OK)
        return fail_pass(trainer, rc);
    for (uint32_t i = 0; i < model->statistic_count && rc == STOKER_OK; i++)
        if (!trainer->settings.sync_batch_norm)
            rc = share_statistic(trainer, &model->statistics[i]);
    return rc == STOKER_OK && sums_each_pass(trainer) ? sum(trainer, &trainer->error) : rc;
}

int stk_trainer_run_pass(stoker_trainer *trainer, struct stk_pass *pass,
                         const struct stk_group_pass *group)
{
    if (trainer->device_sums != NULL)
        return run_pass_on_device(trainer, pass, group);
    return stk_trainer_has_peers(trainer)
               ? run_shared_pass(trainer, pass, group)
               : trainer->runner->ops->train(trainer->runner, pass, group, &trainer->unread.loss,
                                             &trainer->error);
}

/* ---- an update, and reports ------------------------------------------------------- */

int stk_trainer_sum_gradients(stoker_trainer *trainer, stoker_error *error)
{
    const struct stk_stage *const stage = trainer->stage[0];
    if (trainer->device_sums != NULL)
        return stage->ops->device->sum(stage->backend, stage->arenas.gradients,
                                       trainer->model->parameter_floats, error);
    return !stk_trainer_has_peers(trainer) || sums_each_pass(trainer) ? STOKER_OK
                                                                      : sum(trainer, error);
}

int stk_trainer_agree_finite(stoker_trainer *trainer, bool *finite)
{
    const struct stk_word *all = NULL;
    struct stk_word word = stk_peers_word(STK_MEET_UPDATE, STOKER_OK, NULL);
    if (!stk_trainer_has_peers(trainer))
        return STOKER_OK;
    word.number[0] = *finite ? 1 : 0;
    const int rc = stk_peers_agree(trainer->peers, &word, &all, &trainer->error);
    for (uint32_t r = 0; r < trainer->peers->world_size && rc == STOKER_OK; r++)
        *finite = *finite && all[r].number[0] == 1;
    return rc;
}

int stk_trainer_meet_to_read(stoker_trainer *trainer, stoker_error *error)
{
    return trainer->device_sums == NULL
               ? STOKER_OK
               : stk_trainer_meet(trainer, STK_MEET_READ, STOKER_OK, error);
}

int stk_trainer_sum_loss(stoker_trainer *trainer, enum stk_meeting meeting, int came,
                         struct stk_loss *loss, uint64_t *bad_labels, stoker_error *error)
{
    const struct stk_word *all = NULL;
    struct stk_word word = stk_peers_word(meeting, came, error);
    if (!stk_trainer_has_peers(trainer))
        return came;
    word.sum = loss->loss_sum;
    word.number[0] = loss->correct;
    word.number[1] = loss->count;
    word.number[2] = *bad_labels;
    const int rc = stk_peers_agree(trainer->peers, &word, &all, error);
    if (rc != STOKER_OK)
        return rc;
    *loss = (struct stk_loss){ 0 };
    *bad_labels = 0;
    for (uint32_t r = 0; r < trainer->peers->world_size; r++) {
        *bad_labels += all[r].number[2];
        const struct stk_loss one = { .loss_sum = all[r].sum,
                                      .correct = all[r].number[0],
                                      .count = all[r].number[1] };
        stk_loss_add(loss, &one);
    }
    return STOKER_OK;
}

/* ---- rank 0's state ---------------------------------------------------------------- */

int stk_trainer_share_bytes(stoker_trainer *trainer, void *memory, size_t bytes,
                            stoker_error *error)
{
    if (!stk_trainer_has_peers(trainer) || bytes == 0)
        return STOKER_OK;
    return trainer->peers->ops->broadcast(trainer->peers, memory, bytes, error);
}

/* memory: an arena. */
static int share_arena(stoker_trainer *trainer, void *memory, uint64_t bytes, stoker_error *error)
{
    const struct stk_stage *const stage = trainer->stage[0];
    if (memory == NULL || bytes == 0)
        return STOKER_OK;
    return trainer->device_sums != NULL
               ? stage->ops->device->broadcast(stage->backend, memory, bytes, error)
               : stk_trainer_share_bytes(trainer, memory, bytes, error);
}

/* Of a group under way rank 0 has the gradients. */
int stk_trainer_clear_gradients(stoker_trainer *trainer, stoker_error *error)
{
    const struct stk_stage *const stage = trainer->stage[0];
    const uint64_t floats = trainer->model->parameter_floats;
    if (trainer->peers->rank == 0 || stage->arenas.gradients == NULL)
        return STOKER_OK;
    if (trainer->device_sums != NULL)
        return stage->ops->device->clear(stage->backend, stage->arenas.gradients, floats, error);
    memset(stage->arenas.gradients, 0, floats * sizeof(float));
    return STOKER_OK;
}

static int share_state(stoker_trainer *trainer, stoker_error *error)
{
    struct stk_stage *const stage = trainer->stage[0];
    const size_t bytes = trainer->model->parameter_floats * sizeof(float);
    const size_t tracked = (trainer->model->statistic_count / 2 + 1) * sizeof(uint64_t);
    if (!stk_trainer_has_peers(trainer))
        return STOKER_OK;
    const struct {
        void *memory;
        size_t bytes;
    } parts[] = { { stage->arenas.parameters, bytes },
                  { stage->arenas.statistics, trainer->model->statistic_floats * sizeof(float) },
                  { stage->state[0], bytes },
                  { stage->state[1], bytes },
                  { stage->state[2], bytes },
                  { stage->ema, bytes } };
    _Static_assert(STK_STATE_ARENAS_MAX == 3, "each one is shared");
    int rc = STOKER_OK;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && rc == STOKER_OK; i++)
        rc = share_arena(trainer, parts[i].memory, parts[i].bytes, error);
    if (rc == STOKER_OK)
        rc = stk_trainer_share_bytes(trainer, &trainer->progress, sizeof(trainer->progress), error);
    if (rc == STOKER_OK)
        rc = stk_trainer_share_bytes(trainer, trainer->batches_before, tracked, error);
    stage->half_weights_from = NULL;
    if (rc == STOKER_OK)
        rc = stk_trainer_clear_gradients(trainer, error);
    if (rc == STOKER_OK && trainer->device_sums != NULL)
        rc = stk_trainer_upload_state(trainer, error);
    return rc;
}

int stk_trainer_share_state(stoker_trainer *trainer, stoker_error *error)
{
    return stk_trainer_report_device(trainer, share_state(trainer, error), error);
}
