/* join.c - see join.h. */
#include "trainer/api/join.h"

#include <assert.h>
#include <stoker/ranks.h>
#include <string.h>

#include "loader/base/bytes.h"
#include "loader/base/cpu/cpu_share.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/state_layout.h"
#include "trainer/api/options.h"
#include "trainer/api/peers.h"
#include "trainer/backend/cuda/device/list.h"
#include "trainer/backend/cuda/ranks/words.h"
#include "trainer/peers/choose.h"
#include "trainer/peers/nccl/nccl.h"
#include "trainer/peers/threads/threads.h"
#include "trainer/stage/choose_backend.h"

enum { SOME_TIMEOUT_MS = 1000 }; /* 0 is reported with the other options */

/* ---- join ---------------------------------------------------------------------- */

/* Options that name no rank are reported with the others. */
static bool names_thread(const stoker_trainer_options *options)
{
    return options->peers == STOKER_PEERS_THREADS && options->peer_group != NULL &&
           options->peer_rank < options->peer_group->world_size;
}

void stk_trainer_stay_away(const stoker_trainer_options *options, int rc, const stoker_error *error)
{
    const struct stk_word word = stk_peers_word(STK_SYNC_CREATE, rc, error);
    if (names_thread(options))
        stk_group_decline(options->peer_group, options->peer_rank, word.text);
}

/* "auto" is a GPU if every rank has one. */
static int agree_on_gpus(stoker_trainer *trainer, const stoker_trainer_options *options,
                         stoker_error *error)
{
    const struct stk_word *all = NULL;
    struct stk_word word = stk_peers_word(STK_SYNC_CREATE, STOKER_OK, NULL);
    if (!stk_trainer_has_peers(trainer))
        return STOKER_OK;
    word.number[0] = stk_rank_has_gpu(trainer->peers, trainer->model, options) ? 1 : 0;
    const int rc = stk_peers_agree(trainer->peers, &word, &all, error);
    trainer->ranks_have_gpus = rc == STOKER_OK;
    for (uint32_t r = 0; r < trainer->peers->world_size && rc == STOKER_OK; r++)
        trainer->ranks_have_gpus = trainer->ranks_have_gpus && all[r].number[0] == 1;
    return rc;
}

/* Without MPI words go from GPU to GPU as well, so each rank's GPU is needed first. */
static int join_gpus(stoker_trainer *trainer, const stoker_trainer_options *options,
                     const stoker_ranks *ranks, uint32_t timeout_ms, stoker_error *error)
{
    struct stk_trainer_settings settings = { .automatic = true };
    const bool read = stk_trainer_settings_read(&settings, options, NULL) == STOKER_OK;
    if (read && settings.ops != &stk_backend_cuda &&
        (!settings.automatic || stk_cuda_count_devices() == 0))
        return stk_refuse_option(
            error, STOKER_ENOTSUP,
            "backend \"%s\" with %u ranks: in host memory MPI sums gradients, and "
            "torchrun does not start it: use mpirun, or srun --mpi=pmix",
            settings.ops->name, ranks->world_size);
    stk_rank_take_device(&settings, NULL);
    return stk_cuda_words_join(&trainer->peers, ranks, settings.backend.device, timeout_ms, error);
}

int stk_trainer_join(stoker_trainer *trainer, const stoker_trainer_options *options,
                     stoker_error *error)
{
    stoker_ranks ranks = STOKER_RANKS_INIT;
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
    int rc = stk_peers_join(&trainer->peers, &ranks, options->peers, &asked, error);
    if (rc == STOKER_OK && trainer->peers == NULL)
        rc = join_gpus(trainer, options, &ranks, asked.timeout_ms, error);
    assert(rc != STOKER_OK || trainer->peers != NULL);
    return rc == STOKER_OK ? agree_on_gpus(trainer, options, error) : rc;
}

/* Ranks of one node share its CPUs, unless the launcher has given each its own. Its variables were
 * read when it joined. */
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
    return stk_refuse_option(error, STOKER_EINVAL,
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
        return stk_refuse_option(error, STOKER_EINVAL,
                                 "backend \"%s\" with STOKER_PEERS_NCCL, which is for GPUs: choose "
                                 "\"cuda\" or \"auto\"",
                                 settings->ops->name);
    if (settings->automatic && choose_backend(trainer, error) != STOKER_OK)
        return STOKER_EINVAL;
    if (settings->backend.threads == 0)
        settings->backend.threads = threads_of_rank(trainer->peers);
    if (settings->split > 0)
        return stk_refuse_option(error, STOKER_EINVAL,
                                 "split = %u with %u ranks: a rank has one device", settings->split,
                                 world_size);
    if (settings->ops == &stk_backend_cuda)
        stk_rank_take_device(settings, trainer->peers);
    if (settings->batch_size == STOKER_BATCH_SIZE_AUTO)
        return stk_refuse_option(
            error, STOKER_EINVAL,
            "batch_size = STOKER_BATCH_SIZE_AUTO with %u ranks, which might choose "
            "differently: give a number",
            world_size);
    return STOKER_OK;
}

static uint64_t hash_model(const stoker_model *model)
{
    uint64_t hash =
        stk_hash_add(STK_HASH_START, &model->parameter_floats, sizeof(model->parameter_floats));
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const struct stk_layer *const layer = &model->layers[i];
        const uint32_t shape[] = { (uint32_t)layer->kind, layer->out.h, layer->out.w,
                                   layer->out.c,          layer->input, layer->other };
        hash = stk_hash_add(hash, shape, sizeof(shape));
    }
    return hash;
}

static uint64_t hash_settings(const struct stk_trainer_settings *settings)
{
    const struct stk_update_rule *const rule = &settings->rule;
    const struct stk_schedule *const schedule = &settings->schedule;
    const double numbers[] = { settings->clip_norm,
                               settings->ema_decay,
                               settings->loss_scale.scale,
                               schedule->learning_rate,
                               schedule->gamma,
                               schedule->rise,
                               schedule->start,
                               schedule->final_fraction,
                               rule->momentum,
                               rule->dampening,
                               rule->beta1,
                               rule->beta2,
                               rule->epsilon,
                               rule->weight_decay,
                               rule->lr_decay,
                               rule->lambd,
                               rule->alpha,
                               rule->t0 };
    const uint64_t counts[] = { (uint64_t)schedule->kind,
                                schedule->total_updates,
                                schedule->warmup_updates,
                                schedule->schedule_steps,
                                (uint64_t)rule->optimizer,
                                rule->nesterov,
                                rule->centered,
                                settings->metrics_interval,
                                settings->sync_batch_norm,
                                settings->loss_scale.dynamic,
                                settings->ops != NULL && settings->ops->device != NULL,
                                settings->backend.uncaptured,
                                settings->backend.deterministic,
                                settings->backend.tf32,
                                (uint64_t)settings->backend.storage };
    return stk_hash_add(stk_hash_add(STK_HASH_START, numbers, sizeof(numbers)), counts,
                        sizeof(counts));
}

/* What the numbers of a word stand for. */
typedef const char *const subjects[STK_WORD_NUMBERS];

static int compare(const stoker_trainer *trainer, const struct stk_word *all, subjects what,
                   stoker_error *error)
{
    for (uint32_t r = 1; r < trainer->peers->world_size; r++)
        for (uint32_t i = 0; i < STK_WORD_NUMBERS; i++)
            if (all[r].number[i] != all[0].number[i])
                return stk_refuse_option(error, STOKER_EMISMATCH,
                                         "rank %u has %s than rank 0: give all ranks the same", r,
                                         what[i]);
    return STOKER_OK;
}

int stk_trainer_reach_created(stoker_trainer *trainer, int rc, stoker_error *error)
{
    static subjects what = { "another model", "another batch_size", "another accumulate",
                             "other options" };
    const struct stk_word *all = NULL;
    struct stk_word word = stk_peers_word(STK_SYNC_CREATE, rc, error);
    if (!stk_trainer_has_peers(trainer))
        return rc;
    word.number[0] = hash_model(trainer->model);
    word.number[1] = trainer->settings.batch_size;
    word.number[2] = trainer->settings.accumulate;
    word.number[3] = hash_settings(&trainer->settings);
    const int met = stk_peers_agree(trainer->peers, &word, &all, error);
    return met == STOKER_OK ? compare(trainer, all, what, error) : met;
}

/* ---- the same samples ------------------------------------------------------------ */

static uint64_t hash_bytes(const uint8_t *bytes, size_t first, size_t end)
{
    return stk_hash_add(STK_HASH_START, bytes + first, end - first);
}

/* Numbers of what the loader's state has in common on all ranks: all of it. */
static int hash_state(uint64_t numbers[STK_WORD_NUMBERS], const stoker_loader *loader,
                      stoker_error *error)
{
    size_t size = 0;
    int rc = stoker_loader_state(loader, NULL, 0, &size, error);
    if (rc != STOKER_OK)
        return rc;
    uint8_t *state = stk_calloc(1, size);
    if (state == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "the loader's state (%zu bytes)", size);
    rc = stoker_loader_state(loader, state, size, NULL, error);
    numbers[0] = stk_load_le64(state + STK_STATE_COUNT_AT) ^
                 hash_bytes(state, STK_STATE_ROW_BYTES_AT, STK_STATE_CHANGES_AT);
    numbers[1] = stk_load_le64(state + STK_STATE_SEED_AT);
    numbers[2] = stk_load_le32(state + STK_STATE_FLAGS_AT) ^
                 hash_bytes(state, STK_STATE_CHANGES_AT, size - STK_STATE_CHECK_BYTES);
    numbers[3] = hash_bytes(state, STK_STATE_EPOCH_AT, STK_STATE_COUNT_AT);
    stk_free(state);
    return rc;
}

int stoker_trainer_compare_loader(stoker_trainer *trainer, const stoker_loader *loader,
                                  stoker_error *error)
{
    static subjects what = { "another data set", "another seed", "another order of samples",
                             "another epoch or position" };
    const struct stk_word *all = NULL;
    uint64_t numbers[STK_WORD_NUMBERS] = { 0 };
    if (trainer == NULL || loader == NULL)
        return stk_refuse_option(error, STOKER_EINVAL, "compare_loader: trainer or loader is NULL");
    if (!stk_trainer_has_peers(trainer))
        return STOKER_OK;
    const int rc = hash_state(numbers, loader, error);
    struct stk_word word = stk_peers_word(STK_SYNC_COMPARE, rc, error);
    memcpy(word.number, numbers, sizeof(numbers));
    const int met = stk_peers_agree(trainer->peers, &word, &all, error);
    return met == STOKER_OK ? compare(trainer, all, what, error) : met;
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
    return stk_trainer_reach(trainer, STK_SYNC_CREATE, rc, error);
}

void stk_trainer_leave(stoker_trainer *trainer)
{
    if (trainer->device_sums != NULL) {
        const struct stk_word word = stk_peers_word(STK_SYNC_LEAVE, STOKER_OK, NULL);
        const bool whole = stk_peers_agree(trainer->peers, &word, NULL, NULL) == STOKER_OK;
        stk_nccl_leave(&trainer->device_sums, !whole);
    }
    stk_peers_leave(&trainer->peers);
}
