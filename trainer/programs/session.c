/* session.c - see session.h.
 *
 *   arguments ──▶ (origin) ──▶ data, GPU ──▶ network ──▶ this process's rank                     ──▶ exit status
 *                                                   └──▶ --data-parallel: a rank for each device ─┘
 */
#include "trainer/programs/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <stoker/version.h>

#include "trainer/programs/networks.h"
#include "trainer/programs/one_rank.h"
#include "trainer/programs/rank_threads.h"
#include "trainer/programs/wake.h"

/* What all ranks of this process share, and the first of them. */
struct session {
    struct origin origin;
    struct data data;
    stoker_model *model;
    struct one_rank rank;
};

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

static int parse(struct one_rank *rank, const enum preset *preset)
{
    char message[CLI_MESSAGE_BYTES];
    const int rc = arguments_parse(&rank->arguments, rank->kind->program, preset, rank->argc,
                                   rank->argv, message);
    if (rc != STOKER_OK)
        voice_complain(&rank->voice, "%s; try --help", message);
    return rc;
}

/* Fills in what the checkpoint has and the line does not give. Returns an exit status. */
static int adopt(struct session *session)
{
    struct one_rank *const rank = &session->rank;
    enum preset preset = rank->arguments.preset;
    int rc = origin_read(&session->origin, &rank->arguments, &rank->error);
    if (rc == STOKER_OK)
        rc = origin_choose_preset(&session->origin, &rank->arguments, &preset, &rank->error);
    if (rc != STOKER_OK)
        return rank_failed(rank, rc);
    if (preset != rank->arguments.preset && parse(rank, &preset) != STOKER_OK)
        return EXIT_USAGE;
    origin_adopt(&session->origin, &rank->arguments);
    return EXIT_DONE;
}

/* Opens the data and builds the network while the GPU starts. */
static int open_data(struct session *session)
{
    struct one_rank *const rank = &session->rank;
    int rc = rank->kind->open(&session->data, &rank->arguments, &rank->error);
    if (rc != STOKER_OK)
        return rc;
    rank->voice.mark = session->data.made_up ? "[made-up digits] " : "";
    return network_build(&session->model, &rank->arguments,
                         stoker_dataset_get_info(session->data.train), &rank->error);
}

static int prepare(struct session *session, const char *device)
{
    struct one_rank *const rank = &session->rank;
    struct waker waker;
    wake_begin(&waker, device, rank->kind->program == PROGRAM_MNIST);
    const int rc = open_data(session);
    wake_join(&waker);
    rank->origin = &session->origin;
    rank->data = &session->data;
    rank->model = session->model;
    return rc == STOKER_OK
               ? origin_check(&session->origin, &rank->arguments, &session->data, &rank->error)
               : rc;
}

/* ---- ranks ---------------------------------------------------------------------- */

static int refuse(stoker_error *error, int rc, const char *message)
{
    *error = (stoker_error){ .code = rc };
    (void)snprintf(error->message, sizeof(error->message), "%s", message);
    return rc;
}

/* Finds the ranks: those that a launcher has started, or one for each device. */
static int find_ranks(struct one_rank *rank, struct device_list *devices)
{
    char message[CLI_MESSAGE_BYTES];
    struct rank_place place = { .ranks = STOKER_RANKS_INIT };
    int rc = stoker_ranks_from_environment(&place.ranks, &rank->error);
    if (rc != STOKER_OK)
        return rc;
    uint32_t world_size = place.ranks.world_size;
    if (rank->arguments.data_parallel) {
        rc = device_list_read(devices, rank->arguments.device, message);
        if (rc != STOKER_OK)
            return refuse(&rank->error, rc, message);
        (void)snprintf(message, sizeof(message),
                       "--data-parallel: %s has started %" PRIu32 " processes, which are the ranks "
                       "already: leave it out, or start one process",
                       stoker_launcher_name(place.ranks.launcher), world_size);
        if (world_size > 1)
            return refuse(&rank->error, STOKER_EINVAL, message);
        world_size = devices->count;
    }
    rank_take_place(rank, &place);
    rc = arguments_divide_batch(&rank->arguments, world_size, message);
    return rc == STOKER_OK ? rc : refuse(&rank->error, rc, message);
}

static int run_ranks(struct session *session)
{
    struct one_rank *const rank = &session->rank;
    struct device_list devices = { .count = 0 };
    int rc = find_ranks(rank, &devices);
    if (rc == STOKER_OK)
        rc = prepare(session, devices.count > 0 ? devices.name[0] : rank->arguments.device);
    if (rc != STOKER_OK)
        return rank_failed(rank, rc);
    return devices.count > 0 ? rank_threads_run(rank, &devices) : rank_run(rank);
}

/* ---- the whole ------------------------------------------------------------------ */

static int run(const struct session_kind *kind, int argc, char *const *argv)
{
    struct session session = { .rank = { .kind = kind, .argc = argc, .argv = argv } };
    struct one_rank *const rank = &session.rank;
    rank->voice = (struct voice){ .program = kind->name, .mark = "" };
    if (parse(rank, NULL) != STOKER_OK)
        return EXIT_USAGE;
    if (rank->arguments.action == ACTION_HELP) {
        arguments_help(stdout, kind->program);
        return EXIT_DONE;
    }
    if (rank->arguments.action == ACTION_VERSION) {
        printf("%s %s, libstoker %s\n", kind->name, STOKER_VERSION_STRING, stoker_version());
        return EXIT_DONE;
    }
    if (rank->arguments.action == ACTION_DEVICES)
        return list_devices();
    rank->voice.quiet = rank->arguments.quiet && rank->arguments.action != ACTION_SUMMARY;
    int status = adopt(&session);
    if (status != EXIT_DONE)
        return status;
    if (rank->arguments.sync_batch_norm && rank->arguments.preset != PRESET_BATCHNORM) {
        voice_complain(&rank->voice,
                       "--sync-batch-norm has no effect on preset %s: it goes with --preset "
                       "batchnorm; try --help",
                       preset_name(rank->arguments.preset));
        return EXIT_USAGE;
    }
    status = run_ranks(&session);
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
