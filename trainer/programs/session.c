/* session.c - see session.h.
 *
 *   arguments ──▶ (origin) ──▶ data, GPU ──▶ network ──▶ trainer ──▶ (load) ──▶ tables ──▶ fit ──▶ test ──▶ report
 *                                                     │                   └─ Ctrl-C: save, print how to continue
 *                                                     └─ --summary and --eval-only end here
 */
#include "trainer/programs/session.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <stoker/version.h>

#include "bench/cli/interrupt.h"
#include "loader/base/clock.h"
#include "trainer/programs/fit.h"
#include "trainer/programs/networks.h"
#include "trainer/programs/origin.h"
#include "trainer/programs/settings.h"
#include "trainer/programs/wake.h"
#include "trainer/programs/writable.h"

struct session {
    const struct session_kind *kind;
    int argc;
    char *const *argv;
    struct arguments arguments;
    struct origin origin;
    struct voice voice;
    struct data data;
    stoker_model *model;
    stoker_trainer *trainer;
    struct settings settings;
    stoker_ranks ranks;
    char rank_name[80]; /* "stoker-mnist: rank 1", of several */
    stoker_state resume;
    stoker_error error;
};

/* Prints the cause. */
static int failed(struct session *session, int rc)
{
    const char *why =
        session->error.message[0] != '\0' ? session->error.message : stoker_strerror(rc);
    voice_complain(&session->voice, "%s", why);
    return EXIT_FAILED;
}

/* ---- making --------------------------------------------------------------------- */

/* Called once the number of updates is known. */
static int check_warmup(struct session *session)
{
    const uint64_t warmup = session->arguments.warmup, updates = session->settings.total_updates;
    if (warmup == 0 || warmup < updates)
        return STOKER_OK;
    session->error = (stoker_error){ .code = STOKER_EINVAL };
    (void)snprintf(session->error.message, sizeof(session->error.message),
                   "--warmup %" PRIu64 ": the run has %" PRIu64
                   " updates, so the rate would not be "
                   "reached; give fewer",
                   warmup, updates);
    return STOKER_EINVAL;
}

static int make_trainer(struct session *session)
{
    uint32_t batch_size = session->arguments.batch_size;
    const bool largest = batch_size == STOKER_BATCH_SIZE_MAX;
    settings_make(&session->settings, &session->arguments, &session->data, &session->ranks,
                  batch_size);
    if (largest) {
        /* Finds the batch that fits first, since the length of the schedule depends on it. */
        stoker_trainer_options probe = session->settings.training;
        stoker_trainer *trainer = NULL;
        stoker_trainer_memory memory;
        probe.batch_size = STOKER_BATCH_SIZE_MAX;
        int rc = stoker_trainer_create(&trainer, session->model, &probe, &session->error);
        if (rc != STOKER_OK)
            return rc;
        stoker_trainer_get_memory(trainer, &memory);
        stoker_trainer_destroy(&trainer);
        settings_make(&session->settings, &session->arguments, &session->data, &session->ranks,
                      memory.batch_size);
    }
    int rc = check_warmup(session);
    if (rc == STOKER_OK)
        rc = stoker_trainer_create(&session->trainer, session->model, &session->settings.training,
                                   &session->error);
    if (rc == STOKER_OK)
        settings_place(&session->settings, &session->arguments, session->trainer);
    return rc;
}

static int load(struct session *session)
{
    const struct arguments *arguments = &session->arguments;
    bool has_loader = false;
    const char *weights = arguments->weights;
    if (weights == NULL && arguments->action == ACTION_EVALUATE)
        weights = arguments->load;
    if (arguments->action == ACTION_EVALUATE && origin_has_averages(&session->origin, arguments))
        return stoker_trainer_load_averages(session->trainer, weights, &session->error);
    if (weights != NULL)
        return stoker_trainer_load_weights(session->trainer, weights, &session->error);
    if (arguments->load == NULL)
        return STOKER_OK;
    int rc = stoker_trainer_load(session->trainer, arguments->load, &session->resume, &has_loader,
                                 &session->error);
    if (rc == STOKER_OK && has_loader)
        session->settings.loading.resume = &session->resume;
    return rc;
}

/* Opens the data and builds the network while the GPU starts. */
static int open_data(struct session *session)
{
    int rc = session->kind->open(&session->data, &session->arguments, &session->error);
    if (rc != STOKER_OK)
        return rc;
    session->voice.mark = session->data.made_up ? "[made-up digits] " : "";
    rc = network_build(&session->model, &session->arguments,
                       stoker_dataset_get_info(session->data.train), &session->error);
    return rc;
}

/* Rank 0 speaks and writes for all; the others only complain. */
static int take_rank(struct session *session)
{
    session->ranks = (stoker_ranks)STOKER_RANKS_INIT;
    const int rc = stoker_ranks_from_environment(&session->ranks, &session->error);
    if (rc != STOKER_OK || session->ranks.world_size == 1)
        return rc;
    (void)snprintf(session->rank_name, sizeof(session->rank_name), "%.60s: rank %" PRIu32,
                   session->kind->name, session->ranks.rank);
    session->voice.program = session->rank_name;
    if (session->ranks.rank == 0)
        return rc;
    session->voice.quiet = session->voice.mute = true;
    session->arguments.log = session->arguments.log_dir = session->arguments.trace = NULL;
    return rc;
}

static int prepare(struct session *session)
{
    struct waker waker;
    wake_begin(&waker, session->arguments.device, session->kind->program == PROGRAM_MNIST);
    int rc = open_data(session);
    wake_join(&waker);
    if (rc == STOKER_OK)
        rc = origin_check(&session->origin, &session->arguments, &session->data, &session->error);
    if (rc == STOKER_OK)
        rc = make_trainer(session);
    if (rc == STOKER_OK)
        rc = origin_write(session->trainer, &session->arguments, &session->data, &session->error);
    return rc == STOKER_OK ? load(session) : rc;
}

/* Chooses the weights to test: the averages with --ema, or if the checkpoint has them. */
static const char *tested_model(const struct session *session)
{
    return session->arguments.ema > 0.0 ? " (averaged weights)" : "";
}

/* ---- showing -------------------------------------------------------------------- */

static void show_tables(struct session *session)
{
    if (session->voice.quiet)
        return;
    settings_show(&session->voice, &session->settings, &session->arguments, &session->data,
                  session->trainer);
    size_t summary_bytes = stoker_model_summary(session->model, NULL, 0) + 1;
    size_t memory_bytes = stoker_trainer_memory_table(session->trainer, NULL, 0) + 1;
    size_t bytes = summary_bytes > memory_bytes ? summary_bytes : memory_bytes;
    char *text = malloc(bytes);
    if (text == NULL)
        return; /* the tables are for reading only */
    (void)stoker_model_summary(session->model, text, bytes);
    voice_text(&session->voice, text);
    voice_text(&session->voice, "\n");
    (void)stoker_trainer_memory_table(session->trainer, text, bytes);
    voice_text(&session->voice, text);
    voice_text(&session->voice, "\n");
    free(text);
}

/* Warns if a GPU's steps could not be captured: it then trains more slowly. */
static void show_capture(const struct session *session)
{
    stoker_trainer_capture capture;
    stoker_trainer_get_capture(session->trainer, &capture);
    if (capture.reason != NULL)
        voice_complain(
            &session->voice,
            "steps do not run as a CUDA graph but are queued one operation at a time: %s",
            capture.reason);
}

static void show_result(const struct session *session, const struct fit_result *result)
{
    const double seconds = stk_seconds(result->train_ns);
    if (result->samples == 0)
        return;
    const int decimals = seconds < 1 ? 3 : 2; /* a GPU is done in a moment */
    voice_result(&session->voice, "trained %.*f s, %.0f samples/s, data wait %.2f %%", decimals,
                 seconds, (double)result->samples / seconds,
                 100 * stk_seconds(result->wait_ns) / seconds);
    if (result->skipped > 0)
        voice_result(&session->voice,
                     "%" PRIu64 " of %" PRIu64 " updates skipped: gradients overflowed in 16 bits",
                     result->skipped, result->skipped + result->updates);
}

/* ---- ending --------------------------------------------------------------------- */

static int save_to(struct session *session, const char *path, const struct fit_result *result)
{
    return stoker_trainer_save(session->trainer, path, &result->state, &session->error);
}

static int end_interrupted(struct session *session, const struct fit_result *result)
{
    char own[80];
    const char *path = session->arguments.save;
    if (path == NULL) {
        (void)snprintf(own, sizeof(own), "%.40s-interrupted.safetensors", session->kind->name);
        path = own;
    }
    int rc = save_to(session, path, result);
    if (rc != STOKER_OK)
        return failed(session, rc);
    voice_result(&session->voice, "stopped after %" PRIu64 " of %" PRIu64 " updates; saved to %s",
                 stoker_trainer_updates(session->trainer), session->settings.total_updates, path);
    if (session->voice.mute)
        return EXIT_INTERRUPTED;
    printf("%scontinue with: ", session->voice.mark);
    arguments_print_again(stdout, session->argc, session->argv, path);
    fflush(stdout);
    return EXIT_INTERRUPTED;
}

static int test_alone(struct session *session, stoker_evaluation *test)
{
    return fit_test(session->trainer, session->data.test, &session->settings.loading, test,
                    &session->error);
}

static int save_at_end(struct session *session, struct fit_result *result)
{
    if (session->arguments.save == NULL)
        return STOKER_OK;
    return save_to(session, session->arguments.save, result);
}

static int test_at_end(struct session *session, struct record *record, struct fit_result *result)
{
    const uint64_t updates = stoker_trainer_updates(session->trainer);
    if (result->tested_at == updates && updates > 0)
        return STOKER_OK;
    const int rc = test_alone(session, &result->test);
    if (rc == STOKER_OK)
        record_test(record, updates, result->test.loss_sum / (double)result->test.count,
                    (double)result->test.correct / (double)result->test.count);
    return rc;
}

/* Ends a run that was not interrupted: tests, unless just done, then saves. A diverged state is not saved over
 * a good one. A failure to save is reported, and the test still counts. */
static int end_run(struct session *session, struct record *record, struct fit_result *result,
                   bool *saved)
{
    int rc = test_at_end(session, record, result);
    if (rc == STOKER_OK && !isfinite(result->test.loss_sum))
        return fit_diverged("test loss", result->test.loss_sum,
                            stoker_trainer_updates(session->trainer), result,
                            session->arguments.save, &session->error);
    const stoker_error test_error = session->error;
    const int save_rc = save_at_end(session, result);
    *saved = save_rc == STOKER_OK;
    if (!*saved)
        (void)failed(session, save_rc);
    session->error = test_error;
    return rc;
}

static int train(struct session *session)
{
    struct progress progress;
    struct record record;
    struct fit_result result;
    bool saved = true;
    progress_begin(&progress, &session->voice);
    int rc = record_open(&record, &session->arguments, session->kind->classes,
                         stoker_trainer_updates(session->trainer), &session->error);
    if (rc != STOKER_OK)
        return failed(session, rc);
    const struct fit fit = { .trainer = session->trainer,
                             .train = session->data.train,
                             .test = session->data.test,
                             .loading = &session->settings.loading,
                             .epochs = session->settings.epochs,
                             .total_updates = session->settings.total_updates,
                             .eval_every = session->arguments.eval_every,
                             .save_every = session->arguments.save_every,
                             .save = session->arguments.save,
                             .classes = session->kind->classes,
                             .averaged = session->arguments.ema > 0.0,
                             .scales_loss = session->arguments.amp == AMP_FP16,
                             .progress = &progress,
                             .record = &record };
    cli_interrupt_watch(SIGINT);
    cli_interrupt_watch(SIGTERM);
    rc = fit_run(&fit, &result, &session->error);
    if (rc == STOKER_OK && !result.interrupted)
        rc = end_run(session, &record, &result, &saved);
    stoker_error record_error = { 0 };
    int record_rc = record_close(&record, &record_error);
    if (rc < 0)
        return failed(session, rc);
    show_result(session, &result);
    show_capture(session);
    if (record_rc != STOKER_OK) {
        session->error = record_error;
        (void)failed(session, record_rc);
    }
    if (result.interrupted || rc == STOKER_FINISHED)
        return end_interrupted(session, &result);
    session->kind->report(&session->voice, tested_model(session), &result.test);
    return record_rc == STOKER_OK && saved ? EXIT_DONE : EXIT_FAILED;
}

/* ---- the whole ------------------------------------------------------------------ */

static int act(struct session *session)
{
    stoker_evaluation test;
    int rc;
    switch (session->arguments.action) {
    case ACTION_SUMMARY:
        show_tables(session);
        return EXIT_DONE;
    case ACTION_EVALUATE:
        rc = test_alone(session, &test);
        if (rc < 0)
            return failed(session, rc);
        session->kind->report(&session->voice, tested_model(session), &test);
        if (isfinite(test.loss_sum))
            return EXIT_DONE;
        voice_complain(&session->voice, "the test loss is nan or infinite");
        return EXIT_FAILED;
    default:
        rc = session->ranks.rank == 0
                 ? writable_check_checkpoint(session->arguments.save, &session->error)
                 : STOKER_OK;
        if (rc != STOKER_OK)
            return failed(session, rc);
        show_tables(session);
        return train(session);
    }
}

static int list_devices(void)
{
    const size_t bytes = stoker_trainer_devices(NULL, 0) + 1;
    char *text = malloc(bytes);
    if (text == NULL)
        return EXIT_FAILED;
    (void)stoker_trainer_devices(text, bytes);
    fputs(text, stdout);
    free(text);
    return EXIT_DONE;
}

static int parse(struct session *session, const enum preset *preset)
{
    char message[CLI_MESSAGE_BYTES];
    const int rc = arguments_parse(&session->arguments, session->kind->program, preset,
                                   session->argc, session->argv, message);
    if (rc != STOKER_OK)
        voice_complain(&session->voice, "%s; try --help", message);
    return rc;
}

/* Fills in what the checkpoint has and the line does not give. Returns an exit status. */
static int adopt(struct session *session)
{
    enum preset preset = session->arguments.preset;
    int rc = origin_read(&session->origin, &session->arguments, &session->error);
    if (rc == STOKER_OK)
        rc = origin_choose_preset(&session->origin, &session->arguments, &preset, &session->error);
    if (rc != STOKER_OK)
        return failed(session, rc);
    if (preset != session->arguments.preset && parse(session, &preset) != STOKER_OK)
        return EXIT_USAGE;
    origin_adopt(&session->origin, &session->arguments);
    return EXIT_DONE;
}

static int run(const struct session_kind *kind, int argc, char *const *argv)
{
    struct session session = { .kind = kind, .argc = argc, .argv = argv };
    session.voice = (struct voice){ .program = kind->name, .mark = "" };
    int rc = parse(&session, NULL);
    if (rc != STOKER_OK)
        return EXIT_USAGE;
    if (session.arguments.action == ACTION_HELP) {
        arguments_help(stdout, kind->program);
        return EXIT_DONE;
    }
    if (session.arguments.action == ACTION_VERSION) {
        printf("%s %s, libstoker %s\n", kind->name, STOKER_VERSION_STRING, stoker_version());
        return EXIT_DONE;
    }
    if (session.arguments.action == ACTION_DEVICES)
        return list_devices();
    session.voice.quiet = session.arguments.quiet && session.arguments.action != ACTION_SUMMARY;
    int status = adopt(&session);
    if (status != EXIT_DONE)
        return status;
    rc = take_rank(&session);
    if (rc == STOKER_OK)
        rc = prepare(&session);
    status = rc == STOKER_OK ? act(&session) : failed(&session, rc);
    stoker_trainer_destroy(&session.trainer);
    stoker_model_destroy(&session.model);
    data_close(&session.data);
    return status;
}

/* Unwritten output is a failure. */
int session_run(const struct session_kind *kind, int argc, char *const *argv)
{
    const int status = run(kind, argc, argv);
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return status;
    const struct voice voice = { .program = kind->name, .mark = "" };
    voice_complain(&voice, "standard output: not all could be written");
    return status == EXIT_DONE ? EXIT_FAILED : status;
}
