/* one_rank.c - see one_rank.h.
 *
 *   trainer ──▶ (load) ──▶ tables ──▶ fit ──▶ test ──▶ report
 *                   │                  └─ Ctrl-C: save, print how to continue
 *                   └─ --summary and --eval-only end here
 */
#include "trainer/programs/one_rank.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "loader/cli/interrupt.h"
#include "trainer/programs/checkpoint_notes.h"
#include "trainer/programs/fit.h"

int rank_failed(struct one_rank *rank, int rc)
{
    stoker_error *const kept = rc == STOKER_EPEER ? &rank->blamed : &rank->own;
    if (rank->error.message[0] == '\0')
        (void)snprintf(rank->error.message, sizeof(rank->error.message), "%s", stoker_strerror(rc));
    *kept = rank->error;
    kept->code = rc;
    if (rank->place.group == NULL || (rank->place.ranks.rank == 0 && kept == &rank->own))
        console_complain(&rank->console, "%s", rank->error.message);
    return EXIT_FAILED;
}

void rank_take_place(struct one_rank *rank, const struct rank_place *place)
{
    rank->place = *place;
    if (place->ranks.world_size == 1)
        return;
    (void)snprintf(rank->name, sizeof(rank->name), "%.60s: rank %" PRIu32, rank->kind->name,
                   place->ranks.rank);
    rank->console.program = rank->name;
    if (place->ranks.rank == 0)
        return;
    rank->console.quiet = rank->console.mute = true;
    rank->arguments.log = rank->arguments.log_dir = rank->arguments.trace = NULL;
}

/* ---- making --------------------------------------------------------------------- */

/* Called once the number of updates is known. */
static int check_warmup(struct one_rank *rank)
{
    const uint64_t warmup = rank->arguments.warmup, updates = rank->settings.total_updates;
    if (warmup == 0 || warmup < updates)
        return STOKER_OK;
    return stk_refuse_option(&rank->error, STOKER_EINVAL,
                             "--warmup %" PRIu64 ": the run has %" PRIu64
                             " updates, so the rate would not be reached; give fewer",
                             warmup, updates);
}

static int make_trainer(struct one_rank *rank)
{
    uint32_t batch_size = rank->arguments.batch_size;
    const bool largest = batch_size == STOKER_BATCH_SIZE_AUTO;
    settings_make(&rank->settings, &rank->arguments, rank->data, &rank->place, batch_size);
    if (largest) {
        /* Finds the batch that fits first, since the length of the schedule depends on it. */
        stoker_trainer_options probe = rank->settings.training;
        stoker_trainer *trainer = NULL;
        stoker_trainer_memory memory;
        probe.batch_size = STOKER_BATCH_SIZE_AUTO;
        int rc = stoker_trainer_create(&trainer, rank->model, &probe, &rank->error);
        if (rc != STOKER_OK)
            return rc;
        stoker_trainer_get_memory(trainer, &memory);
        stoker_trainer_destroy(&trainer);
        settings_make(&rank->settings, &rank->arguments, rank->data, &rank->place,
                      memory.batch_size);
    }
    int rc = check_warmup(rank);
    if (rc == STOKER_OK)
        rc = stoker_trainer_create(&rank->trainer, rank->model, &rank->settings.training,
                                   &rank->error);
    if (rc == STOKER_OK)
        settings_place(&rank->settings, &rank->arguments, rank->trainer);
    return rc;
}

static int load(struct one_rank *rank)
{
    const struct arguments *arguments = &rank->arguments;
    size_t size = 0;
    const char *weights = arguments->weights;
    if (weights == NULL && arguments->action == ACTION_EVALUATE)
        weights = arguments->load;
    if (arguments->action == ACTION_EVALUATE && notes_has_averages(rank->notes, arguments))
        return stoker_trainer_load_averages(rank->trainer, weights, &rank->error);
    if (weights != NULL)
        return stoker_trainer_load_weights(rank->trainer, weights, &rank->error);
    if (arguments->load == NULL)
        return STOKER_OK;
    int rc = stoker_trainer_load(rank->trainer, arguments->load, rank->resume, sizeof(rank->resume),
                                 &size, &rank->error);
    rank->settings.loading.resume = size > 0 ? rank->resume : NULL;
    rank->settings.loading.resume_size = size;
    return rc;
}

/* Chooses the weights to test: the averages with --ema, or if the checkpoint has them. */
static const char *tested_model(const struct one_rank *rank)
{
    return rank->arguments.ema > 0.0 ? " (averaged weights)" : "";
}

/* ---- showing -------------------------------------------------------------------- */

static void show_tables(struct one_rank *rank)
{
    if (rank->console.quiet)
        return;
    settings_show(&rank->console, &rank->settings, &rank->arguments, rank->data, rank->trainer);
    size_t summary_bytes = stoker_model_summary(rank->model, NULL, 0) + 1;
    size_t memory_bytes = stoker_trainer_memory_table(rank->trainer, NULL, 0) + 1;
    size_t bytes = summary_bytes > memory_bytes ? summary_bytes : memory_bytes;
    char *text = malloc(bytes);
    if (text == NULL)
        return; /* the tables are for reading only */
    (void)stoker_model_summary(rank->model, text, bytes);
    console_text(&rank->console, text);
    console_text(&rank->console, "\n");
    (void)stoker_trainer_memory_table(rank->trainer, text, bytes);
    console_text(&rank->console, text);
    console_text(&rank->console, "\n");
    free(text);
}

/* Lists the engines, and warns if a GPU's steps could not be captured or engines were replaced: it
 * then trains more slowly. */
static void show_capture(const struct one_rank *rank)
{
    stoker_trainer_capture capture;
    stoker_trainer_get_capture(rank->trainer, &capture);
    if (capture.reason != NULL)
        console_complain(
            &rank->console,
            "steps do not run as a CUDA graph but are queued one operation at a time: %s",
            capture.reason);
    if (capture.replacement != NULL)
        console_complain(&rank->console,
                         "%" PRIu64
                         " convolutions or products do not run on their best engine; the "
                         "first is %s",
                         capture.replaced, capture.replacement);
    if (capture.engines != NULL && rank->arguments.benchmark) {
        console_text(&rank->console, "\n");
        console_text(&rank->console, capture.engines);
    }
}

static void show_result(const struct one_rank *rank, const struct fit_result *result)
{
    const double seconds = stk_seconds(result->train_ns);
    if (result->samples == 0)
        return;
    const int decimals = seconds < 1 ? 3 : 2; /* a GPU is done in a moment */
    console_result(&rank->console, "trained %.*f s, %.0f samples/s, data wait %.2f %%", decimals,
                   seconds, (double)result->samples / seconds,
                   100 * stk_seconds(result->wait_ns) / seconds);
    if (result->skipped > 0)
        console_result(&rank->console,
                       "%" PRIu64 " of %" PRIu64
                       " updates skipped: gradients overflowed in 16 bits",
                       result->skipped, result->skipped + result->updates);
}

/* ---- ending --------------------------------------------------------------------- */

static int save_to(struct one_rank *rank, const char *path, const struct fit_result *result)
{
    return stoker_trainer_save(rank->trainer, path, result->state, sizeof(result->state),
                               &rank->error);
}

static int end_interrupted(struct one_rank *rank, const struct fit_result *result)
{
    char own[80];
    const char *path = rank->arguments.save;
    if (path == NULL) {
        (void)snprintf(own, sizeof(own), "%.40s-interrupted.safetensors", rank->kind->name);
        path = own;
    }
    int rc = save_to(rank, path, result);
    if (rc != STOKER_OK)
        return rank_failed(rank, rc);
    console_result(&rank->console, "stopped after %" PRIu64 " of %" PRIu64 " updates; saved to %s",
                   stoker_trainer_updates(rank->trainer), rank->settings.total_updates, path);
    if (rank->console.mute)
        return EXIT_INTERRUPTED;
    printf("%scontinue with: ", rank->console.mark);
    arguments_print_again(stdout, rank->argc, rank->argv, path);
    fflush(stdout);
    return EXIT_INTERRUPTED;
}

static int test_alone(struct one_rank *rank, stoker_evaluation *test)
{
    return fit_test(rank->trainer, rank->data->test, &rank->settings.loading, test, &rank->error);
}

static int save_at_end(struct one_rank *rank, struct fit_result *result)
{
    if (rank->arguments.save == NULL)
        return STOKER_OK;
    return save_to(rank, rank->arguments.save, result);
}

static int test_at_end(struct one_rank *rank, struct log_files *logs, struct fit_result *result)
{
    const uint64_t updates = stoker_trainer_updates(rank->trainer);
    if (result->tested_at == updates && updates > 0)
        return STOKER_OK;
    const int rc = test_alone(rank, &result->test);
    if (rc == STOKER_OK)
        log_files_test(logs, updates, result->test.loss_sum / (double)result->test.count,
                       (double)result->test.correct / (double)result->test.count);
    return rc;
}

/* Ends a run that was not interrupted: tests, unless just done, then saves. A diverged state is not
 * saved over a good one. A failure to save is reported, and the test still counts. */
static int end_run(struct one_rank *rank, struct log_files *logs, struct fit_result *result,
                   bool *saved)
{
    int rc = test_at_end(rank, logs, result);
    if (rc == STOKER_OK && !isfinite(result->test.loss_sum))
        return fit_diverged("test loss", result->test.loss_sum,
                            stoker_trainer_updates(rank->trainer), result, rank->arguments.save,
                            &rank->error);
    const stoker_error test_error = rank->error;
    const int save_rc = save_at_end(rank, result);
    *saved = save_rc == STOKER_OK;
    if (!*saved)
        (void)rank_failed(rank, save_rc);
    rank->error = test_error;
    return rc;
}

static int train(struct one_rank *rank)
{
    struct progress progress;
    struct log_files logs;
    struct fit_result result;
    bool saved = true;
    progress_begin(&progress, &rank->console);
    int rc = log_files_open(&logs, &rank->arguments, rank->kind->classes,
                            stoker_trainer_updates(rank->trainer), &rank->error);
    if (rc != STOKER_OK)
        return rank_failed(rank, rc);
    const struct fit fit = { .trainer = rank->trainer,
                             .train = rank->data->train,
                             .test = rank->data->test,
                             .loading = &rank->settings.loading,
                             .epochs = rank->settings.epochs,
                             .total_updates = rank->settings.total_updates,
                             .eval_every = rank->arguments.eval_every,
                             .save_every = rank->arguments.save_every,
                             .save = rank->arguments.save,
                             .classes = rank->kind->classes,
                             .averaged = rank->arguments.ema > 0.0,
                             .scales_loss = rank->arguments.amp == AMP_FP16,
                             .progress = &progress,
                             .logs = &logs };
    cli_interrupt_watch(SIGINT);
    cli_interrupt_watch(SIGTERM);
    rc = fit_run(&fit, &result, &rank->error);
    if (rc == STOKER_OK && !result.interrupted)
        rc = end_run(rank, &logs, &result, &saved);
    stoker_error log_error = { 0 };
    int log_rc = log_files_close(&logs, &log_error);
    if (rc < 0)
        return rank_failed(rank, rc);
    show_result(rank, &result);
    show_capture(rank);
    if (log_rc != STOKER_OK) {
        rank->error = log_error;
        (void)rank_failed(rank, log_rc);
    }
    if (result.interrupted || rc == STOKER_FINISHED)
        return end_interrupted(rank, &result);
    rank->kind->report(&rank->console, tested_model(rank), &result.test);
    return log_rc == STOKER_OK && saved ? EXIT_DONE : EXIT_FAILED;
}

/* ---- what to do ----------------------------------------------------------------- */

static int act(struct one_rank *rank)
{
    stoker_evaluation test;
    int rc;
    switch (rank->arguments.action) {
    case ACTION_SUMMARY:
        show_tables(rank);
        return EXIT_DONE;
    case ACTION_EVALUATE:
        rc = test_alone(rank, &test);
        if (rc < 0)
            return rank_failed(rank, rc);
        rank->kind->report(&rank->console, tested_model(rank), &test);
        if (isfinite(test.loss_sum))
            return EXIT_DONE;
        console_complain(&rank->console, "the test loss is nan or infinite");
        return EXIT_FAILED;
    default:
        rc = rank->place.ranks.rank == 0 ? notes_check_output(rank->arguments.save, &rank->error)
                                         : STOKER_OK;
        if (rc != STOKER_OK)
            return rank_failed(rank, rc);
        show_tables(rank);
        return train(rank);
    }
}

/* ---- the whole ------------------------------------------------------------------ */

int rank_run(struct one_rank *rank)
{
    int rc = make_trainer(rank);
    if (rc == STOKER_OK)
        rc = notes_write(rank->trainer, &rank->arguments, rank->data, &rank->error);
    if (rc == STOKER_OK)
        rc = load(rank);
    const int status = rc == STOKER_OK ? act(rank) : rank_failed(rank, rc);
    stoker_trainer_destroy(&rank->trainer);
    return status;
}
