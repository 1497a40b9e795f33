/* scenario.h - small data sets in files whose every byte is known, and whole runs of a
 * loader over any data set, kept as one hash per batch.
 *
 * Static functions in a header, because each test is a program of one file; without
 * Criterion, because the programs for ThreadSanitizer use them as well.
 */
#ifndef STK_TEST_SCENARIO_H
#define STK_TEST_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stoker/stoker.h>

#include "loader/base/bytes.h"
#include "loader/base/rng.h"

/* ---- a data set of IDX files ------------------------------------------------- */

struct stk_file_set {
    stoker_dataset *dataset;
    uint32_t count;
    uint32_t row_bytes;
    uint32_t header_bytes; /* offset of sample 0 in the file of images */
    char directory[200];
    char images[256];
    char labels[256];
};

/* Byte `at` of the row of a sample. */
static inline uint8_t stk_set_byte(uint64_t sample, uint32_t at)
{
    return (uint8_t)(stk_mix64(sample * 65537U + at) >> 24);
}

static inline uint8_t stk_set_label(uint64_t sample)
{
    return (uint8_t)(stk_mix64(sample ^ 0xABCDU) % 10U);
}

static inline void stk_put_big_endian(FILE *file, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        (void)putc((int)(value >> shift & 255U), file);
}

static inline bool stk_file_set_write(struct stk_file_set *set, const uint32_t shape[3],
                                      uint8_t rank)
{
    FILE *images = fopen(set->images, "wbe");
    FILE *labels = fopen(set->labels, "wbe");
    if (images == NULL || labels == NULL)
        return false; /* the test fails then: what is open goes with the process */
    stk_put_big_endian(images, 0x800U | rank);
    stk_put_big_endian(images, set->count);
    for (uint8_t axis = 0; axis + 1 < rank; axis++)
        stk_put_big_endian(images, shape[axis]);
    stk_put_big_endian(labels, 0x801U);
    stk_put_big_endian(labels, set->count);
    for (uint32_t sample = 0; sample < set->count; sample++) {
        for (uint32_t at = 0; at < set->row_bytes; at++)
            (void)putc(stk_set_byte(sample, at), images);
        (void)putc(stk_set_label(sample), labels);
    }
    const bool closed = fclose(images) == 0;
    return fclose(labels) == 0 && closed;
}

/* Write `count` images of height x width, or x channels if that is not 0, into files in a
 * directory of their own, and open them. */
static inline bool stk_file_set_make(struct stk_file_set *set, uint32_t count, uint32_t height,
                                     uint32_t width, uint32_t channels)
{
    const char *parent = getenv("TMPDIR");
    const uint32_t shape[3] = { height, width, channels };
    const uint8_t rank = channels > 0 ? 4 : 3;
    char spec[600];
    *set = (struct stk_file_set){ .count = count,
                                  .row_bytes = height * width * (channels > 0 ? channels : 1),
                                  .header_bytes = 4U + 4U * rank };
    (void)snprintf(set->directory, sizeof(set->directory), "%s/stoker-test-XXXXXX",
                   parent != NULL ? parent : P_tmpdir);
    if (mkdtemp(set->directory) == NULL)
        return false;
    (void)snprintf(set->images, sizeof(set->images), "%s/images", set->directory);
    (void)snprintf(set->labels, sizeof(set->labels), "%s/labels", set->directory);
    (void)snprintf(spec, sizeof(spec), "idx:%s,%s", set->images, set->labels);
    return stk_file_set_write(set, shape, rank) &&
           stoker_dataset_open(&set->dataset, spec, NULL, NULL) == STOKER_OK;
}

static inline void stk_file_set_remove(struct stk_file_set *set)
{
    stoker_dataset_close(&set->dataset);
    (void)unlink(set->images);
    (void)unlink(set->labels);
    (void)rmdir(set->directory);
}

/* Returns true if a batch as stored matches its ids, all below `count`. */
static inline bool stk_file_set_matches(const struct stk_file_set *set, const stoker_batch *batch)
{
    const uint8_t *images = batch->images.data;
    const int64_t *labels = batch->labels.data;
    for (uint32_t row = 0; row < batch->count; row++) {
        if (batch->ids[row] >= set->count || labels[row] != stk_set_label(batch->ids[row]))
            return false;
        for (uint32_t at = 0; at < set->row_bytes; at++)
            if (images[(size_t)row * set->row_bytes + at] != stk_set_byte(batch->ids[row], at))
                return false;
    }
    return true;
}

/* ---- runs -------------------------------------------------------------------- */

static inline uint64_t stk_hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint64_t word = 0;
    for (; size >= sizeof(word); size -= sizeof(word), at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        hash = stk_mix64(hash ^ word);
    }
    for (word = size; size > 0; size--)
        word = word << 8 | at[size - 1];
    return stk_mix64(hash ^ word);
}

/* Batches for stoker_loader_next(). */
static inline void stk_batches_begin(stoker_batch *batches, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        batches[i] = (stoker_batch)STOKER_BATCH_INIT;
}

/* Of every byte of images, labels and ids, in order. */
static inline uint64_t stk_batch_hash(const stoker_batch *batch)
{
    size_t row_bytes = stoker_dtype_bytes(batch->images.dtype);
    for (uint32_t axis = 1; axis < batch->images.rank; axis++)
        row_bytes *= (size_t)batch->images.shape[axis];
    const size_t label_bytes = stoker_dtype_bytes(batch->labels.dtype);
    uint64_t hash = stk_hash_bytes(batch->epoch, &batch->count, sizeof(batch->count));
    hash = stk_hash_bytes(hash, batch->images.data, row_bytes * batch->count);
    if (label_bytes > 0)
        hash = stk_hash_bytes(hash, batch->labels.data, label_bytes * batch->count);
    return stk_hash_bytes(hash, batch->ids, sizeof(batch->ids[0]) * batch->count);
}

enum { STK_RUN_BATCHES_MAX = 1024 };

struct stk_run {
    int rc;              /* what ended it: STOKER_FINISHED, or an error */
    uint32_t batches;    /* delivered */
    uint32_t epoch_ends; /* reported by next() */
    uint64_t samples;    /* delivered */
    uint64_t hashes[STK_RUN_BATCHES_MAX];
    stoker_error error; /* why create failed */
};

/* Take up to `most` batches and hash each with `hash`, each released at once; a time-out is tried
 * again. */
static inline void stk_run_hashed(stoker_loader *loader, struct stk_run *run, uint32_t most,
                                  uint64_t (*hash)(const stoker_batch *batch))
{
    stoker_batch batch = STOKER_BATCH_INIT;
    run->rc = STOKER_OK;
    for (uint32_t done = 0; done < most && run->batches < STK_RUN_BATCHES_MAX;) {
        run->rc = stoker_loader_next(loader, &batch, 20000);
        if (run->rc == STOKER_OK) {
            run->hashes[run->batches++] = hash(&batch);
            run->samples += batch.count;
            stoker_batch_release(&batch);
            done++;
        } else if (run->rc == STOKER_EPOCH_END) {
            run->epoch_ends++;
        } else if (run->rc != STOKER_TIMEOUT) {
            return;
        }
    }
}

static inline void stk_run_on(stoker_loader *loader, struct stk_run *run, uint32_t most)
{
    stk_run_hashed(loader, run, most, stk_batch_hash);
}

/* A loader's whole life. */
static inline int stk_run(const stoker_dataset *dataset, const stoker_loader_options *options,
                          struct stk_run *run)
{
    stoker_loader *loader = NULL;
    *run = (struct stk_run){ 0 };
    run->rc = stoker_loader_create(&loader, dataset, options, &run->error);
    if (run->rc == STOKER_OK)
        stk_run_on(loader, run, UINT32_MAX);
    stoker_loader_destroy(&loader);
    return run->rc;
}

static inline bool stk_runs_equal(const struct stk_run *a, const struct stk_run *b)
{
    return a->rc == b->rc && a->batches == b->batches && a->epoch_ends == b->epoch_ends &&
           a->samples == b->samples &&
           memcmp(a->hashes, b->hashes, a->batches * sizeof(a->hashes[0])) == 0;
}

#endif
