/* fit.c - see fit.h.
 *
 *   next ──▶ step ──▶ release ──▶ updated? ──▶ logs, save, stop if asked ──▶ next
 *                                    └─ no ─────────────────────────────────────┘
 *
 * A run stops only after an update, so that no half-summed gradient is lost.
 */
#include "trainer/programs/fit.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "loader/cli/interrupt.h"

enum {
    RECORDED_ROWS = 400,    /* per run, roughly */
    SKIPPED_IN_A_ROW = 100, /* more than the loss scale can be halved */
};

/* Sums over the passes since the start of an epoch or a row. */
struct tally {
    double loss_sum;
    uint64_t correct, samples;
    uint64_t train_ns, wait_ns;
};

struct run {
    const struct fit *fit;
    struct fit_result *result;
    stoker_error *error;
    stoker_loader *loader;
    uint64_t batches_per_epoch;
    uint64_t epoch; /* current batch's, from 0 */
    uint64_t index; /* current batch's in its epoch */
    struct tally of_epoch, of_row;
    uint64_t first_update; /* updates made before this run */
    uint64_t recorded;     /* updates at the last row */
    uint64_t groups;       /* groups of passes that ended with an update, made or skipped */
    uint64_t skipped_in_a_row;
    stoker_step step;
};

/* Copies the cause, or the code if there is none. Returns rc. */
static int tell(stoker_error *error, int rc, const stoker_error *cause)
{
    *error = cause != NULL ? *cause : (stoker_error){ .code = rc };
    return rc;
}

/* ---- testing -------------------------------------------------------------------- */

static int test_batches(stoker_trainer *trainer, stoker_loader *loader)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK) {
        rc = stoker_trainer_evaluate(trainer, &batch, NULL);
        stoker_batch_release(&batch);
        if (rc != STOKER_OK)
            return rc;
        if (cli_interrupted())
            return STOKER_FINISHED;
    }
    return rc == STOKER_EPOCH_END ? STOKER_OK : rc;
}

/* Findings are reported once, at the end, since reading them waits for a GPU. */
static int test_all(stoker_trainer *trainer, stoker_loader *loader, stoker_evaluation *out)
{
    int rc = test_batches(trainer, loader);
    if (rc < 0)
        return rc; /* the other ranks learn of it when this one ends */
    bool interrupted = rc == STOKER_FINISHED;
    rc = stoker_trainer_evaluated(trainer, out);
    if (rc == STOKER_OK)
        rc = stoker_trainer_any(trainer, &interrupted);
    return rc == STOKER_OK && interrupted ? STOKER_FINISHED : rc;
}

int fit_test(stoker_trainer *trainer, const stoker_dataset *test,
             const stoker_loader_options *loading, stoker_evaluation *out, stoker_error *error)
{
    stoker_loader_options options = *loading;
    const uint64_t count = stoker_dataset_get_info(test)->count;
    options.shuffle = false;
    options.epochs = 1;
    options.num_workers = 0; /* the threads that compute would wait for it anyway */
    options.resume = NULL;
    options.resume_size = 0;
    if (options.batch_size > count)
        options.batch_size = (uint32_t)count;
    *out = (stoker_evaluation){ 0 };
    stoker_loader *loader = NULL;
    int rc = stoker_loader_create(&loader, test, &options, error);
    if (rc != STOKER_OK)
        return rc;
    rc = test_all(trainer, loader, out);
    if (rc < 0 && stoker_loader_error(loader) != NULL)
        (void)tell(error, rc, stoker_loader_error(loader));
    else if (rc < 0)
        (void)tell(error, rc, stoker_trainer_error(trainer));
    stoker_loader_destroy(&loader);
    return rc;
}

/* ---- reporting ------------------------------------------------------------------ */

static double share(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0.0 : (double)part / (double)whole;
}

static struct look look_at(const struct run *run)
{
    const struct tally *tally = &run->of_epoch;
    const uint64_t updates = stoker_trainer_updates(run->fit->trainer);
    const uint64_t made = updates - run->first_update;
    const uint64_t left = run->fit->total_updates > updates ? run->fit->total_updates - updates : 0;
    return (struct look){
        .epoch = run->epoch + 1,
        .epochs = run->fit->epochs,
        .step = updates,
        .steps = run->fit->total_updates,
        .loss = tally->samples == 0 ? NAN : tally->loss_sum / (double)tally->samples,
        .accuracy = run->fit->classes ? share(tally->correct, tally->samples) : NAN,
        .samples_per_s =
            tally->train_ns == 0 ? 0.0 : (double)tally->samples / stk_seconds(tally->train_ns),
        .wait_share = share(tally->wait_ns, tally->train_ns),
        .seconds_left = stk_seconds(run->result->train_ns) * share(left, made),
        .test_loss = NAN,
        .test_accuracy = NAN,
    };
}

static void record_row(struct run *run, bool now)
{
    const uint64_t updates = stoker_trainer_updates(run->fit->trainer);
    const uint64_t apart = run->fit->total_updates / RECORDED_ROWS + 1;
    if (run->of_row.samples == 0 || (!now && updates - run->recorded < apart))
        return;
    const struct tally *tally = &run->of_row;
    const struct log_row row = {
        .step = updates,
        .epoch = (double)run->epoch + share(run->index + 1, run->batches_per_epoch),
        .loss = tally->loss_sum / (double)tally->samples,
        .accuracy = run->fit->classes ? share(tally->correct, tally->samples) : NAN,
        .learning_rate = (double)run->step.learning_rate,
        .samples_per_s = (double)tally->samples / stk_seconds(tally->train_ns),
        .wait_share = share(tally->wait_ns, tally->train_ns),
    };
    log_files_train(run->fit->logs, &row);
    run->of_row = (struct tally){ 0 };
    run->recorded = updates;
}

static void count_pass(struct tally *tally, const stoker_step *step, uint64_t wait_ns,
                       uint64_t pass_ns)
{
    tally->loss_sum += step->loss * (double)step->count;
    tally->correct += step->correct;
    tally->samples += step->count;
    tally->wait_ns += wait_ns;
    tally->train_ns += pass_ns;
}

/* ---- divergence ----------------------------------------------------------------- */

int fit_diverged(const char *what, double value, uint64_t updates, const struct fit_result *result,
                 const char *save, stoker_error *error)
{
    char kept[320] = "nothing was saved";
    char skipped[64] = "";
    if (result->saved_at > 0)
        (void)snprintf(kept, sizeof(kept), "%.255s is as saved after update %" PRIu64, save,
                       result->saved_at);
    else if (save != NULL)
        (void)snprintf(kept, sizeof(kept), "%.255s was not written", save);
    if (result->skipped > 0)
        (void)snprintf(skipped, sizeof(skipped), " and %" PRIu64 " that were skipped (overflow)",
                       result->skipped);
    return stk_refuse_option(error, STOKER_EDIVERGED,
                             "training diverged: the %s is %s after %" PRIu64
                             " updates%s; %s. Try a smaller --lr, or --clip-norm",
                             what, isnan(value) ? "nan" : "infinite", updates, skipped, kept);
}

static int diverged(struct run *run, double loss)
{
    record_row(run, true);
    return fit_diverged("training loss", loss, stoker_trainer_updates(run->fit->trainer),
                        run->result, run->fit->save, run->error);
}

static int all_skipped(struct run *run, uint64_t count)
{
    record_row(run, true);
    return stk_refuse_option(run->error, STOKER_EDIVERGED,
                             "%s%" PRIu64 " updates were skipped: gradients overflow in 16 bits at "
                             "every loss scale. Try a smaller --lr, --clip-norm or --amp bf16",
                             run->result->updates == 0 ? "all " : "the last ", count);
}

/* Checks the last pass. A NaN loss may come from an update that the loss scale then skips. */
static int check_step(struct run *run)
{
    const stoker_step *const step = &run->step;
    if (step->updated || step->skipped)
        run->groups++;
    if (step->skipped)
        run->skipped_in_a_row++;
    else if (step->updated)
        run->skipped_in_a_row = 0;
    if (run->skipped_in_a_row >= SKIPPED_IN_A_ROW)
        return all_skipped(run, run->skipped_in_a_row);
    if (step->count > 0 && !isfinite(step->loss) && !run->fit->scales_loss)
        return diverged(run, step->loss);
    return STOKER_OK;
}

static void count_updates(struct run *run)
{
    struct fit_result *const result = run->result;
    result->updates = stoker_trainer_updates(run->fit->trainer) - run->first_update;
    result->skipped = run->groups > result->updates ? run->groups - result->updates : 0;
}

/* ---- the loop ------------------------------------------------------------------- */

static int save(struct run *run)
{
    uint8_t *const state = run->result->state;
    int rc = stoker_loader_state(run->loader, state, STOKER_STATE_BYTES, NULL, run->error);
    if (rc == STOKER_OK)
        rc = stoker_trainer_save(run->fit->trainer, run->fit->save, state, STOKER_STATE_BYTES,
                                 run->error);
    if (rc == STOKER_OK)
        run->result->saved_at = stoker_trainer_updates(run->fit->trainer);
    return rc;
}

/* What is due after an update. STOKER_FINISHED: the run ends here. */
static int after_update(struct run *run)
{
    const struct fit *fit = run->fit;
    const uint64_t updates = stoker_trainer_updates(fit->trainer);
    bool interrupted = cli_interrupted();
    record_row(run, false);
    const int rc = stoker_trainer_any(fit->trainer, &interrupted); /* all ranks stop together */
    if (rc != STOKER_OK)
        return tell(run->error, rc, stoker_trainer_error(fit->trainer));
    if (interrupted) {
        run->result->interrupted = true;
        return STOKER_FINISHED;
    }
    if (updates >= fit->total_updates)
        return STOKER_FINISHED;
    if (fit->save_every != 0 && updates % fit->save_every == 0)
        return save(run);
    return STOKER_OK;
}

/* Runs one pass with a batch that is ready. */
static int pass(struct run *run, stoker_batch *batch, uint64_t begin_ns)
{
    const uint64_t wait_ns = stk_now_ns() - begin_ns;
    run->epoch = batch->epoch;
    run->index = batch->index;
    int rc = stoker_trainer_step(run->fit->trainer, batch, &run->step);
    stoker_batch_release(batch);
    trace_step(&run->fit->logs->trace, run->loader, false);
    if (rc != STOKER_OK)
        return tell(run->error, rc, stoker_trainer_error(run->fit->trainer));
    const uint64_t pass_ns = stk_now_ns() - begin_ns;
    count_pass(&run->of_epoch, &run->step, wait_ns, pass_ns);
    count_pass(&run->of_row, &run->step, wait_ns, pass_ns);
    run->result->samples += run->step.count;
    run->result->wait_ns += wait_ns;
    run->result->train_ns += pass_ns;
    if (progress_due(run->fit->progress)) {
        const struct look look = look_at(run);
        progress_step(run->fit->progress, &look);
    }
    rc = check_step(run);
    if (rc != STOKER_OK)
        return rc;
    return run->step.updated || run->step.skipped ? after_update(run) : STOKER_OK;
}

static int end_epoch(struct run *run)
{
    const struct fit *fit = run->fit;
    const uint64_t begin_ns = stk_now_ns();
    int rc = stoker_trainer_flush(fit->trainer, &run->step);
    const uint64_t flush_ns = stk_now_ns() - begin_ns;
    run->result->train_ns += flush_ns;
    if (rc != STOKER_OK)
        return tell(run->error, rc, stoker_trainer_error(fit->trainer));
    count_pass(&run->of_epoch, &run->step, 0, flush_ns); /* results not reported by passes yet */
    count_pass(&run->of_row, &run->step, 0, flush_ns);
    run->result->samples += run->step.count;
    rc = check_step(run);
    if (rc != STOKER_OK)
        return rc;
    if (run->of_epoch.samples == 0)
        return STOKER_OK; /* continued from an epoch's end, which was reported then */
    record_row(run, true);
    struct look look = look_at(run);
    stoker_evaluation test = { 0 };
    if (fit->eval_every != 0 && (run->epoch + 1) % fit->eval_every == 0)
        rc = fit_test(fit->trainer, fit->test, fit->loading, &test, run->error);
    if (rc == STOKER_OK && test.count > 0) {
        look.tested = true;
        look.averaged = fit->averaged;
        look.test_loss = test.loss_sum / (double)test.count;
        look.test_accuracy = fit->classes ? share(test.correct, test.count) : NAN;
        log_files_test(fit->logs, look.step, look.test_loss, look.test_accuracy);
        run->result->test = test;
        run->result->tested_at = look.step;
    }
    if (rc >= STOKER_OK && (fit->eval_every == 0 || test.count > 0))
        progress_epoch(fit->progress, &look);
    run->of_epoch = (struct tally){ 0 };
    if (rc == STOKER_FINISHED)
        run->result->interrupted = true;
    return rc;
}

static int train(struct run *run)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc = STOKER_OK;
    while (rc == STOKER_OK) {
        const uint64_t begin_ns = stk_now_ns();
        rc = stoker_loader_next(run->loader, &batch, -1);
        if (rc == STOKER_OK) {
            rc = pass(run, &batch, begin_ns);
        } else if (rc == STOKER_EPOCH_END) {
            rc = end_epoch(run);
        } else if (rc < 0) {
            (void)tell(run->error, rc, stoker_loader_error(run->loader));
        }
    }
    if (rc == STOKER_FINISHED && !run->result->interrupted && run->of_epoch.train_ns > 0)
        rc = end_epoch(run); /* ended by the last batch or by --steps */
    return rc == STOKER_FINISHED ? STOKER_OK : rc;
}

int fit_run(const struct fit *fit, struct fit_result *out, stoker_error *error)
{
    *out = (struct fit_result){ 0 };
    struct run run = { .fit = fit,
                       .result = out,
                       .error = error,
                       .first_update = stoker_trainer_updates(fit->trainer) };
    run.recorded = run.first_update;
    stoker_loader_options loading = *fit->loading;
    loading.trace_events = fit->logs->trace.path == NULL ? 0 : CLI_TRACE_THREAD_EVENTS;
    int rc = stoker_loader_create(&run.loader, fit->train, &loading, error);
    if (rc == STOKER_OK)
        rc = stoker_trainer_compare_loader(fit->trainer, run.loader, error);
    if (rc != STOKER_OK) {
        stoker_loader_destroy(&run.loader);
        return rc;
    }
    run.batches_per_epoch = stoker_loader_batches_per_epoch(run.loader);
    if (run.first_update < fit->total_updates)
        rc = train(&run);
    record_row(&run, true);
    count_updates(&run);
    if (rc == STOKER_OK && !out->interrupted && out->updates == 0 && out->skipped > 0)
        rc = all_skipped(&run, out->skipped);
    (void)stoker_loader_state(run.loader, out->state, sizeof(out->state), NULL, NULL);
    cli_progress_line_wipe(&fit->progress->line);
    trace_step(&fit->logs->trace, run.loader, true);
    stoker_loader_destroy(&run.loader);
    return rc;
}
