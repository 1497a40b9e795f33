/* rank_threads.c - --data-parallel: a rank for each device, as threads of this program.
 *
 *   main thread   start threads ─▶ all started? ─▶ rank 0: trains, prints, saves ─▶ join ─▶ exit status
 *   thread r                         └─▶ rank r: its own trainer and loader ─────────┘
 *
 * Signals reach the main thread alone; the ranks agree on stopping. */
#include "trainer/programs/one_rank.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/cpu/thread.h"
#include <stoker/error.h>

struct crew;

struct member {
    struct one_rank rank;
    struct crew *crew;
    pthread_t thread;
    bool started;
    int status;
};

struct crew {
    stoker_peer_group *group;
    pthread_mutex_t gate; /* guards complete; held while the main thread starts the others */
    bool complete;        /* every rank has a thread */
    uint32_t count;
    struct member member[];
};

static void *be_rank(void *argument)
{
    struct member *const self = argument;
    (void)pthread_mutex_lock(&self->crew->gate);
    const bool complete = self->crew->complete;
    (void)pthread_mutex_unlock(&self->crew->gate);
    if (complete) /* else the others would wait for a rank that does not exist */
        self->status = rank_run(&self->rank);
    return NULL;
}

/* Returns STOKER_ETHREAD if one cannot be started; then none runs. */
static int start_others(struct crew *crew)
{
    int rc = STOKER_OK;
    (void)pthread_mutex_lock(&crew->gate);
    for (uint32_t r = 1; r < crew->count && rc == STOKER_OK; r++) {
        struct member *const member = &crew->member[r];
        rc = stk_thread_start(&member->thread, "stoker-rank", be_rank, member);
        member->started = rc == STOKER_OK;
    }
    crew->complete = rc == STOKER_OK;
    (void)pthread_mutex_unlock(&crew->gate);
    return rc;
}

static void join_others(struct crew *crew)
{
    for (uint32_t r = 1; r < crew->count; r++)
        if (crew->member[r].started)
            (void)pthread_join(crew->member[r].thread, NULL);
}

/* True if a lower rank has printed the same, such as an option that all refuse. */
static bool is_repeated(const struct crew *crew, uint32_t rank)
{
    const char *const message = crew->member[rank].rank.own.message;
    for (uint32_t r = 0; r < rank; r++)
        if (strcmp(crew->member[r].rank.own.message, message) == 0)
            return true;
    return false;
}

/* Ranks that have failed themselves say why. If each blames another, as after a time-out, the
 * lowest speaks for all. */
static int end(const struct crew *crew)
{
    int status = EXIT_DONE;
    for (uint32_t r = 0; r < crew->count; r++) {
        const struct member *const member = &crew->member[r];
        if (member->rank.own.code != STOKER_OK && r > 0 && !is_repeated(crew, r))
            console_complain(&member->rank.console, "%s", member->rank.own.message);
        if (member->rank.blamed.code == STOKER_OK && member->status != EXIT_DONE &&
            status != EXIT_FAILED)
            status = member->status;
    }
    for (uint32_t r = 0; r < crew->count && status == EXIT_DONE; r++) {
        const struct member *const member = &crew->member[r];
        if (member->status != EXIT_DONE) {
            console_complain(&member->rank.console, "%s", member->rank.blamed.message);
            status = member->status;
        }
    }
    return status;
}

static void fill(struct crew *crew, const struct one_rank *like, const struct device_list *devices)
{
    crew->count = devices->count;
    for (uint32_t r = 0; r < crew->count; r++) {
        struct member *const member = &crew->member[r];
        struct rank_place place = { .ranks = STOKER_RANKS_INIT,
                                    .group = crew->group,
                                    .devices = like->arguments.device };
        place.ranks.rank = place.ranks.local_rank = r;
        place.ranks.world_size = place.ranks.local_world_size = crew->count;
        member->crew = crew;
        member->rank = *like;
        member->rank.arguments.device = devices->name[r];
        rank_take_place(&member->rank, &place);
    }
}

static int run(struct crew *crew, const struct one_rank *like, const struct device_list *devices)
{
    struct member *const first = &crew->member[0];
    first->rank = *like;
    int rc = stoker_peer_group_create(&crew->group, devices->count, &first->rank.error);
    if (rc != STOKER_OK)
        return rank_failed(&first->rank, rc);
    fill(crew, like, devices);
    (void)pthread_mutex_init(&crew->gate, NULL);
    rc = start_others(crew);
    first->status = rc == STOKER_OK ? rank_run(&first->rank) : rank_failed(&first->rank, rc);
    join_others(crew);
    (void)pthread_mutex_destroy(&crew->gate);
    stoker_peer_group_destroy(&crew->group);
    return end(crew);
}

int rank_threads_run(const struct one_rank *like, const struct device_list *devices)
{
    struct crew *const crew = calloc(1, sizeof(*crew) + devices->count * sizeof(crew->member[0]));
    if (crew == NULL) {
        console_complain(&like->console, "%s", stoker_strerror(STOKER_ENOMEM));
        return EXIT_FAILED;
    }
    const int status = run(crew, like, devices);
    free(crew);
    return status;
}
