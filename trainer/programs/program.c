/* program.c - see program.h.
 *
 *   arguments ──▶ (notes) ──▶ data ──▶ network ──▶ this process's rank ─────────▶ exit status
 *                                            └──▶ --data-parallel: rank threads ─┘
 */
#include "trainer/programs/program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <stoker/version.h>

#include "loader/base/error.h"
#include "trainer/programs/networks.h"
#include "trainer/programs/one_rank.h"

/* What all ranks of this process share, and the first of them. */
struct run {
    struct checkpoint_notes notes;
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
        console_complain(&rank->console, "%s; try --help", message);
    return rc;
}

/* Fills in what the checkpoint has and the line does not give. Returns an exit status. */
static int adopt(struct run *run)
{
    struct one_rank *const rank = &run->rank;
    enum preset preset = rank->arguments.preset;
    int rc = notes_read(&run->notes, &rank->arguments, &rank->error);
    if (rc == STOKER_OK)
        rc = notes_choose_preset(&run->notes, &rank->arguments, &preset, &rank->error);
    if (rc != STOKER_OK)
        return rank_failed(rank, rc);
    if (preset != rank->arguments.preset && parse(rank, &preset) != STOKER_OK)
        return EXIT_USAGE;
    notes_adopt(&run->notes, &rank->arguments);
    return EXIT_DONE;
}

static int open_data(struct run *run)
{
    struct one_rank *const rank = &run->rank;
    int rc = rank->kind->open(&run->data, &rank->arguments, &rank->error);
    if (rc != STOKER_OK)
        return rc;
    rank->console.mark = run->data.made_up ? "[made-up digits] " : "";
    rc = network_build(&run->model, &rank->arguments, stoker_dataset_get_info(run->data.train),
                       &rank->error);
    rank->notes = &run->notes;
    rank->data = &run->data;
    rank->model = run->model;
    return rc == STOKER_OK ? notes_check(&run->notes, &rank->arguments, &run->data, &rank->error)
                           : rc;
}

/* ---- ranks ---------------------------------------------------------------------- */

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
            return stk_refuse_option(&rank->error, rc, "%s", message);
        if (world_size > 1)
            return stk_refuse_option(
                &rank->error, STOKER_EINVAL,
                "--data-parallel: %s has started %" PRIu32
                " processes, which are the ranks already: leave it out, or start one process",
                stoker_launcher_name(place.ranks.launcher), world_size);
        world_size = devices->count;
    }
    rank_take_place(rank, &place);
    rc = arguments_divide_batch(&rank->arguments, world_size, message);
    return rc == STOKER_OK ? rc : stk_refuse_option(&rank->error, rc, "%s", message);
}

static int run_ranks(struct run *run)
{
    struct one_rank *const rank = &run->rank;
    struct device_list devices = { .count = 0 };
    int rc = find_ranks(rank, &devices);
    if (rc == STOKER_OK)
        rc = open_data(run);
    if (rc != STOKER_OK)
        return rank_failed(rank, rc);
    return devices.count > 0 ? rank_threads_run(rank, &devices) : rank_run(rank);
}

/* ---- the whole ------------------------------------------------------------------ */

static int run(const struct program_kind *kind, int argc, char *const *argv)
{
    struct run run = { .rank = { .kind = kind, .argc = argc, .argv = argv } };
    struct one_rank *const rank = &run.rank;
    rank->console = (struct console){ .program = kind->name, .mark = "" };
    if (parse(rank, NULL) != STOKER_OK)
        return EXIT_USAGE;
    if (rank->arguments.help != CLI_NO_HELP) {
        arguments_help(stdout, kind->program, rank->arguments.help);
        return EXIT_DONE;
    }
    if (rank->arguments.action == ACTION_VERSION) {
        printf("%s %s, libstoker %s\n", kind->name, STOKER_VERSION_STRING, stoker_version());
        return EXIT_DONE;
    }
    if (rank->arguments.action == ACTION_DEVICES)
        return list_devices();
    rank->console.quiet = rank->arguments.quiet && rank->arguments.action != ACTION_SUMMARY;
    int status = adopt(&run);
    if (status != EXIT_DONE)
        return status;
    if (rank->arguments.sync_batch_norm && rank->arguments.preset != PRESET_BATCHNORM) {
        console_complain(&rank->console,
                         "--sync-batch-norm has no effect on preset %s: it goes with --preset "
                         "batchnorm; try --help",
                         preset_name(rank->arguments.preset));
        return EXIT_USAGE;
    }
    status = run_ranks(&run);
    stoker_model_destroy(&run.model);
    data_close(&run.data);
    return status;
}

/* Unwritten output is a failure. */
int program_run(const struct program_kind *kind, int argc, char *const *argv)
{
    const int status = run(kind, argc, argv);
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return status;
    const struct console console = { .program = kind->name, .mark = "" };
    console_complain(&console, "standard output: not all could be written");
    return status == EXIT_DONE ? EXIT_FAILED : status;
}
