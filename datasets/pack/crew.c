/* crew.c - see crew.h.
 *
 *   run: turn++, wake all ──▶ each takes the next sample until there is none ──▶ idle again
 *
 * `lock` guards turn, busy and stop; `next` is the one word they share while packing.
 */
#include "datasets/pack/crew.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "datasets/pack/kept.h"

struct pack_crew {
    struct pack_recipe recipe;
    struct pack_sample *samples;
    uint32_t count;
    atomic_uint next;
    pthread_mutex_t lock;
    pthread_cond_t begin;
    pthread_cond_t done;
    uint64_t turn;
    uint32_t busy;
    bool stop;
    uint32_t thread_count;
    pthread_t threads[];
};

/* ---- one sample ----------------------------------------------------------------- */

static void pack_as(const struct pack_recipe *recipe, enum pack_codec codec,
                    struct pack_sample *sample)
{
    sample->room.used = 0;
    switch (codec) {
    case PACK_LZ4:
        sample->failed = pack_lz4(sample->row, recipe->row_bytes, &sample->room);
        sample->codec = STK_SHARD_LZ4;
        break;
    case PACK_PNG:
        sample->failed = pack_png(&recipe->pixels, sample->row, &sample->room);
        sample->codec = STK_SHARD_PNG;
        break;
    case PACK_JPEG:
        sample->failed = pack_jpeg(&recipe->pixels, recipe->quality, sample->row, &sample->room);
        sample->codec = STK_SHARD_JPEG;
        break;
    default:
        break;
    }
    sample->bytes = sample->room.at;
    sample->size = sample->room.used;
    const bool grew = codec == PACK_LZ4 && sample->size >= recipe->row_bytes;
    if (codec == PACK_RAW || grew) {
        sample->bytes = sample->row;
        sample->size = recipe->row_bytes;
        sample->codec = STK_SHARD_RAW;
    }
}

static void pack_one(const struct pack_recipe *recipe, struct pack_sample *sample)
{
    sample->failed = NULL;
    if (recipe->codec != PACK_KEEP) {
        pack_as(recipe, recipe->codec, sample);
        return;
    }
    if (!pack_kept(recipe->source, sample))
        pack_as(recipe, recipe->otherwise, sample);
}

/* ---- the threads ---------------------------------------------------------------- */

static void work(struct pack_crew *crew)
{
    for (;;) {
        const uint32_t at = atomic_fetch_add_explicit(&crew->next, 1, memory_order_relaxed);
        if (at >= crew->count)
            return;
        pack_one(&crew->recipe, &crew->samples[at]);
    }
}

static void *run_thread(void *argument)
{
    struct pack_crew *crew = argument;
    uint64_t seen = 0;
    (void)pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (crew->turn == seen && !crew->stop)
            (void)pthread_cond_wait(&crew->begin, &crew->lock);
        if (crew->stop)
            break;
        seen = crew->turn;
        (void)pthread_mutex_unlock(&crew->lock);
        work(crew);
        (void)pthread_mutex_lock(&crew->lock);
        if (--crew->busy == 0)
            (void)pthread_cond_signal(&crew->done);
    }
    (void)pthread_mutex_unlock(&crew->lock);
    return NULL;
}

const char *pack_crew_start(struct pack_crew **out, const struct pack_recipe *recipe,
                            uint32_t workers)
{
    struct pack_crew *crew = calloc(1, sizeof(*crew) + workers * sizeof(crew->threads[0]));
    if (crew == NULL)
        return "out of memory";
    crew->recipe = *recipe;
    (void)pthread_mutex_init(&crew->lock, NULL);
    (void)pthread_cond_init(&crew->begin, NULL);
    (void)pthread_cond_init(&crew->done, NULL);
    for (; crew->thread_count + 1 < workers; crew->thread_count++) {
        if (pthread_create(&crew->threads[crew->thread_count], NULL, run_thread, crew) != 0) {
            pack_crew_stop(&crew);
            return "a thread could not be started";
        }
    }
    *out = crew;
    return NULL;
}

void pack_crew_run(struct pack_crew *crew, struct pack_sample *samples, uint32_t count)
{
    (void)pthread_mutex_lock(&crew->lock);
    crew->samples = samples;
    crew->count = count;
    atomic_store_explicit(&crew->next, 0, memory_order_relaxed);
    crew->busy = crew->thread_count;
    crew->turn++;
    (void)pthread_cond_broadcast(&crew->begin);
    (void)pthread_mutex_unlock(&crew->lock);
    work(crew);
    (void)pthread_mutex_lock(&crew->lock);
    while (crew->busy > 0)
        (void)pthread_cond_wait(&crew->done, &crew->lock);
    (void)pthread_mutex_unlock(&crew->lock);
}

void pack_crew_stop(struct pack_crew **at)
{
    struct pack_crew *crew = *at;
    if (crew == NULL)
        return;
    (void)pthread_mutex_lock(&crew->lock);
    crew->stop = true;
    (void)pthread_cond_broadcast(&crew->begin);
    (void)pthread_mutex_unlock(&crew->lock);
    for (uint32_t i = 0; i < crew->thread_count; i++)
        (void)pthread_join(crew->threads[i], NULL);
    (void)pthread_cond_destroy(&crew->begin);
    (void)pthread_cond_destroy(&crew->done);
    (void)pthread_mutex_destroy(&crew->lock);
    free(crew);
    *at = NULL;
}
