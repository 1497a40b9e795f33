/* length_batches.c - see length_batches.h. */
#include "loader/pipeline/order/length_batches.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"

/* No rows: behind the last step, or not planned because planning failed. */
static const struct stk_batch_place nothing = { .epoch = UINT64_MAX };

/* ---- windows ------------------------------------------------------------------------------ */

static uint64_t window_key(const struct stk_length_batches *self, uint64_t window)
{
    const uint64_t seed = self->options.sampler->seed;
    return stk_mix64(stk_mix64(stk_mix64(seed ^ 0x6C656E67746873U) + self->epoch.epoch) + window);
}

/* Plan a window of the epoch, and begin with its first batch. */
static int plan_window(struct stk_length_batches *self, uint64_t window)
{
    const struct stk_length_options *options = &self->options;
    const uint64_t first = window * options->window;
    const uint64_t left = options->length - first;
    const uint32_t count = left < options->window ? (uint32_t)left : options->window;
    int rc =
        stk_sampler_ids(options->sampler, &self->epoch, first, 1, count, self->ids, &self->error);
    if (rc == 0)
        rc = stoker_dataset_lengths(options->dataset, options->field, self->ids, count,
                                    self->lengths, &self->error);
    if (rc != 0)
        return rc;
    self->cut_count = stk_length_plan(&options->rule, window_key(self, window), self->lengths,
                                      count, self->order, self->cuts, self->room);
    self->next_cut = 0;
    self->next_window = window + 1;
    return 0;
}

/* Let there be a batch that is not dealt yet, unless the epoch is over. */
static int plan_on(struct stk_length_batches *self)
{
    const uint64_t begin = self->next_window * self->options.window;
    if (self->next_cut < self->cut_count || begin >= self->options.length)
        return 0;
    return plan_window(self, self->next_window);
}

/* ---- steps -------------------------------------------------------------------------------- */

static void take_batch(struct stk_length_batches *self, const struct stk_length_cut *cut,
                       struct stk_batch_place *record, uint64_t *ids)
{
    uint64_t longest = 0;
    record->rows = cut->rows;
    record->position = self->position;
    for (uint32_t i = 0; i < cut->rows; i++) {
        const uint32_t sample = self->order[cut->first + i];
        const uint64_t length = self->lengths[sample];
        ids[i] = self->ids[sample];
        record->values += length;
        longest = length > longest ? length : longest;
    }
    record->room = stk_length_values(&self->options.rule, cut->rows, longest, record->values);
}

/* Deal the next batch of each rank; this rank's is written to the record of step `batch`. *made
 * becomes false if the epoch has no more steps. */
static int deal(struct stk_length_batches *self, uint64_t batch, bool *made)
{
    const struct stk_length_options *options = &self->options;
    struct stk_batch_place *record = &self->records[batch % STK_LENGTH_RECORDS];
    uint64_t *ids = self->record_ids + batch % STK_LENGTH_RECORDS * options->rule.rows_max;
    uint32_t dealt = 0;
    *record = (struct stk_batch_place){ .epoch = self->epoch.epoch,
                                        .index = self->step,
                                        .position = self->position };
    for (; dealt < options->world_size; dealt++) {
        const int rc = plan_on(self);
        if (rc != 0)
            return rc;
        if (self->next_cut == self->cut_count)
            break;
        const struct stk_length_cut *cut = &self->cuts[self->next_cut++];
        if (dealt == options->rank)
            take_batch(self, cut, record, ids);
        self->position += cut->rows;
    }
    if (options->last == STOKER_LAST_EVEN && dealt > 0 && dealt <= options->rank) {
        take_batch(self, &self->cuts[self->next_cut - 1], record, ids); /* the epoch's last */
        record->padded = record->rows;
    }
    record->after = self->position;
    self->step++;
    *made = options->last == STOKER_LAST_DROP ? dealt == options->world_size : dealt > 0;
    return 0;
}

static int begin_epoch(struct stk_length_batches *self, uint64_t epoch)
{
    self->next_window = 0;
    self->cut_count = self->next_cut = 0;
    self->step = 0;
    self->position = 0;
    return stk_sampler_enter(self->options.sampler, epoch, &self->epoch, &self->error);
}

/* Deal the first step of an epoch from its start. */
static int deal_first(struct stk_length_batches *self, uint64_t epoch, uint64_t batch)
{
    const struct stk_place nowhere = STK_NOWHERE;
    bool made = false;
    int rc = begin_epoch(self, epoch);
    if (rc == 0)
        rc = deal(self, batch, &made);
    if (rc != 0 || made)
        return rc;
    return stk_error_set(&self->error, STOKER_EBATCH, STOKER_STAGE_OPTIONS, &nowhere,
                         "epoch %" PRIu64 " has fewer batches of %" PRIu64
                         " values than the %" PRIu32 " ranks, and last is DROP",
                         epoch, self->options.rule.values_max, self->options.world_size);
}

static bool is_last_epoch(const struct stk_length_batches *self, uint64_t epoch)
{
    return self->options.epochs > 0 && epoch + 1 >= self->options.epochs;
}

/* Publish the staged step, once the one behind it is staged, or known not to exist. */
static int advance(struct stk_length_batches *self)
{
    const uint64_t batch = atomic_load_explicit(&self->planned, memory_order_relaxed);
    struct stk_batch_place *record = &self->records[batch % STK_LENGTH_RECORDS];
    bool made = false;
    int rc = deal(self, batch + 1, &made);
    if (rc == 0 && !made) {
        record->last = true;
        self->staged = !is_last_epoch(self, record->epoch);
        if (self->staged)
            rc = deal_first(self, record->epoch + 1, batch + 1);
        else
            atomic_store_explicit(&self->batches, batch + 1, memory_order_relaxed);
    }
    if (rc == 0)
        atomic_store_explicit(&self->planned, batch + 1, memory_order_release);
    return rc;
}

/* ---- asking --------------------------------------------------------------------------------- */

static bool is_planned(struct stk_length_batches *self, uint64_t batch)
{
    return batch < atomic_load_explicit(&self->planned, memory_order_acquire);
}

static void plan_up_to(struct stk_length_batches *self, uint64_t batch)
{
    pthread_mutex_lock(&self->lock);
    while (self->failed == 0 && self->staged && !is_planned(self, batch))
        self->failed = advance(self);
    pthread_mutex_unlock(&self->lock);
}

const struct stk_batch_place *stk_length_batches_at(struct stk_length_batches *self, uint64_t batch)
{
    if (!is_planned(self, batch))
        plan_up_to(self, batch);
    return is_planned(self, batch) ? &self->records[batch % STK_LENGTH_RECORDS] : &nothing;
}

const uint64_t *stk_length_batches_ids(struct stk_length_batches *self, uint64_t batch,
                                       stoker_error *error)
{
    const struct stk_batch_place *record = stk_length_batches_at(self, batch);
    if (record != &nothing)
        return self->record_ids + batch % STK_LENGTH_RECORDS * self->options.rule.rows_max;
    pthread_mutex_lock(&self->lock);
    const bool failed = self->failed != 0;
    if (failed)
        *error = self->error;
    pthread_mutex_unlock(&self->lock);
    return failed ? NULL : self->record_ids;
}

uint64_t stk_length_batches_hold(struct stk_length_batches *self, uint64_t *epoch)
{
    pthread_mutex_lock(&self->lock);
    const uint64_t planned = self->next_window * self->options.window;
    *epoch = self->epoch.epoch;
    return planned < self->options.length ? planned : self->options.length;
}

void stk_length_batches_let_go(struct stk_length_batches *self)
{
    pthread_mutex_unlock(&self->lock);
}

/* ---- life ----------------------------------------------------------------------------------- */

static int take_memory(struct stk_length_batches *self)
{
    const uint32_t window = self->options.window;
    self->order = stk_calloc(window, sizeof(self->order[0]));
    self->room = stk_calloc(window, sizeof(self->room[0]));
    self->ids = stk_calloc(window, sizeof(self->ids[0]));
    self->lengths = stk_calloc(window, sizeof(self->lengths[0]));
    self->cuts = stk_calloc(window, sizeof(self->cuts[0]));
    self->records = stk_calloc(STK_LENGTH_RECORDS, sizeof(self->records[0]));
    self->record_ids =
        stk_calloc((size_t)STK_LENGTH_RECORDS * self->options.rule.rows_max, sizeof(uint64_t));
    if (stk_sampler_open(self->options.sampler, &self->epoch) != 0)
        return STOKER_ENOMEM;
    const bool has_all = self->order != NULL && self->room != NULL && self->ids != NULL &&
                         self->lengths != NULL && self->cuts != NULL && self->records != NULL &&
                         self->record_ids != NULL;
    return has_all ? 0 : STOKER_ENOMEM;
}

/* Find the batch that a position lies in; what is left of it is the first one dealt. */
static int go_to(struct stk_length_batches *self, uint64_t position)
{
    int rc = begin_epoch(self, self->options.first_epoch);
    self->position = position;
    self->next_window = position / self->options.window;
    if (position >= self->options.length) {
        self->next_window++; /* behind the last one */
        return 0;
    }
    if (rc == 0)
        rc = plan_window(self, self->next_window);
    uint64_t left = position % self->options.window;
    while (rc == 0 && left > 0 && self->cuts[self->next_cut].rows <= left)
        left -= self->cuts[self->next_cut++].rows;
    if (rc == 0) {
        self->cuts[self->next_cut].first += (uint32_t)left;
        self->cuts[self->next_cut].rows -= (uint32_t)left;
    }
    return rc;
}

/* Deal the first step: of the epoch that is resumed, or of the next one if nothing of it is
 * left. */
static int deal_very_first(struct stk_length_batches *self)
{
    const struct stk_length_options *options = &self->options;
    bool made = false;
    if (options->epochs > 0 && options->first_epoch >= options->epochs) {
        self->first_is_empty = true;
        atomic_store(&self->batches, 0);
        return 0;
    }
    if (options->first_position == 0) {
        self->staged = true;
        return deal_first(self, options->first_epoch, 0);
    }
    int rc = go_to(self, options->first_position);
    if (rc == 0)
        rc = deal(self, 0, &made);
    self->first_is_empty = rc == 0 && !made;
    self->staged = rc == 0 && made;
    if (rc != 0 || made)
        return rc;
    if (is_last_epoch(self, options->first_epoch)) {
        atomic_store(&self->batches, 0);
        return 0;
    }
    self->staged = true;
    return deal_first(self, options->first_epoch + 1, 0);
}

int stk_length_batches_start(struct stk_length_batches *self,
                             const struct stk_length_options *options, stoker_error *error)
{
    const struct stk_place nowhere = STK_NOWHERE;
    self->options = *options;
    atomic_init(&self->batches, UINT64_MAX);
    if (pthread_mutex_init(&self->lock, NULL) != 0)
        return STOKER_ENOMEM;
    self->has_lock = true;
    int rc = take_memory(self);
    if (rc != 0)
        return stk_error_set(error, rc, STOKER_STAGE_OPTIONS, &nowhere,
                             "batches of batch_values_max, planned in windows of %" PRIu32,
                             options->window);
    rc = deal_very_first(self);
    if (rc == 0 && self->staged)
        rc = advance(self);
    if (rc != 0 && error != NULL)
        *error = self->error;
    return rc;
}

void stk_length_batches_free(struct stk_length_batches *self)
{
    if (self->has_lock)
        pthread_mutex_destroy(&self->lock);
    self->has_lock = false;
    stk_free(self->order);
    stk_free(self->room);
    stk_free(self->ids);
    stk_free(self->lengths);
    stk_free(self->cuts);
    stk_free(self->records);
    stk_free(self->record_ids);
    if (self->options.sampler != NULL)
        stk_sampler_close(self->options.sampler, &self->epoch);
}
