/* plans.c - print the table of the graphs that cuDNN supports on a device, or compare it with the
 * golden one.
 *
 *   plans sm_90                         print the table of one device
 *   plans sm_90 GOLDEN.tsv              compare: 0 = all that was promised holds, 1 = not
 *
 * One line per graph, with fields separated by tabs:
 *
 *   DEVICE  NETWORK  GRAPH  ok      FIRST  BYTES  STRICT  BYTES  ENGINES
 *                           none
 *
 * `ok`: with the strictest rules (deterministic; float32 neither as TF32 nor by Winograd) an engine
 * builds whose workspace is within the limit. The other fields depend on the version: engine and
 * workspace chosen without those rules, with them, and the number of engines.
 *
 * Building an engine that cuDNN compiles takes a second. A comparison builds such engines only for
 * the first graph of each form; for the others it checks that an allowed engine is listed. Needs a
 * libcuda.so.1; cuda_driver.c replaces it if there is none. 77 = cuDNN is missing. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks/cudnn/devices.h"
#include "checks/cudnn/graphs.h"
#include "trainer/backend/cuda/cudnn/choice.h"

enum { LINE_BYTES = 512, DEVICE_BYTES = 8192, PASSED = 0, FAILED = 1, SKIPPED = 77 };

static const stoker_dtype types[] = { STOKER_DTYPE_FLOAT16, STOKER_DTYPE_BFLOAT16,
                                      STOKER_DTYPE_FLOAT32 };
enum { TYPES = sizeof(types) / sizeof(types[0]) };

struct table {
    struct stk_cudnn *cudnn;
    const char *device;
    bool all;                 /* build every plan */
    bool compiled[STK_FORMS]; /* forms of which a compiled engine was built */
};

struct found {
    bool ok;
    struct stk_engine_choice first, strict;
    uint32_t engines;
};

static bool read_text(char *out, size_t bytes, const char *path)
{
    FILE *const file = fopen(path, "r");
    if (file == NULL)
        return false;
    const size_t got = fread(out, 1, bytes - 1, file);
    out[got] = '\0';
    (void)fclose(file);
    return got > 0 && got < bytes - 1;
}

/* *allowed: an engine compiled at build time is allowed, and no precompiled one. */
static bool needs_compiler(struct stk_cudnn_graph *graph, const struct stk_engine_rules *rules,
                           bool float32, bool *allowed)
{
    *allowed = false;
    for (uint32_t i = 0; i < stk_cudnn_graph_candidates(graph); i++) {
        struct stk_engine_notes notes;
        stk_cudnn_graph_candidate(graph, i, &notes);
        if (!stk_engine_allowed(rules, &notes, float32))
            continue;
        *allowed = true;
        if (!notes.compiled_when_built)
            return false;
    }
    return *allowed;
}

static bool choose(struct stk_cudnn_graph *graph, bool strict, bool float32,
                   struct stk_engine_choice *out, stoker_error *error)
{
    const struct stk_cudnn_choosing how = {
        .rules = { .workspace_bytes_max = STK_ENGINE_WORKSPACE_BYTES,
                   .deterministic = strict,
                   .full_float32 = strict },
        .float32 = float32,
    };
    struct stk_cudnn_plan *plan = NULL;
    const bool ok = stk_cudnn_choose(&plan, out, graph, &how, error) == STOKER_OK;
    stk_cudnn_plan_destroy(&plan);
    return ok;
}

static void look(struct table *table, const struct listed_graph *listed, stoker_dtype dtype,
                 struct found *found, stoker_error *error)
{
    const bool float32 = dtype == STOKER_DTYPE_FLOAT32;
    struct stk_cudnn_graph *graph = NULL;
    struct stk_form_operands operands;
    *found = (struct found){ .first = { .engine = -1 }, .strict = { .engine = -1 } };
    if (stk_form_build(&graph, &operands, table->cudnn, listed->form, &listed->shape, dtype,
                       error) != STOKER_OK)
        return;
    const struct stk_engine_rules rules = { .deterministic = true, .full_float32 = true };
    bool allowed;
    const bool compiles = needs_compiler(graph, &rules, float32, &allowed);
    found->engines = stk_cudnn_graph_candidates(graph);
    if (compiles && !table->all && table->compiled[listed->form]) {
        found->ok = allowed;
    } else {
        table->compiled[listed->form] |= compiles;
        found->ok = choose(graph, true, float32, &found->strict, error);
        if (compiles)
            found->first = found->strict;
        else
            found->ok = choose(graph, false, float32, &found->first, error) && found->ok;
    }
    stk_cudnn_graph_destroy(&graph);
}

/* The promise, up to and including "ok"; returns its length. */
static size_t promise(char *line, const struct table *table, const struct listed_graph *listed,
                      stoker_dtype dtype, bool ok)
{
    char graph[LINE_BYTES / 2];
    (void)stk_form_text(graph, sizeof(graph), listed->form, &listed->shape, dtype);
    const int length = snprintf(line, LINE_BYTES, "%s\t%s\t%s\t%s", table->device, listed->network,
                                graph, ok ? "ok" : "none");
    return length < 0 ? 0 : (size_t)length;
}

static bool in_type(const struct listed_graph *listed, stoker_dtype dtype)
{
    const int bit = dtype == STOKER_DTYPE_FLOAT16    ? FLOAT16_ONLY
                    : dtype == STOKER_DTYPE_BFLOAT16 ? BFLOAT16_ONLY
                                                     : FLOAT32_ONLY;
    return (listed->types & bit) != 0;
}

/* Returns true if a line of the golden table begins with these bytes and a tab. */
static bool is_promised(const char *golden, const char *line, size_t length)
{
    for (const char *at = golden; (at = strstr(at, line)) != NULL; at++)
        if ((at == golden || at[-1] == '\n') && at[length] == '\t')
            return true;
    return false;
}

/* Lines of one device in the golden table. */
static uint32_t promised_lines(const char *golden, const char *device)
{
    char begin[80];
    const size_t length = (size_t)snprintf(begin, sizeof(begin), "%s\t", device);
    uint32_t lines = 0;
    for (const char *at = golden; (at = strstr(at, begin)) != NULL; at += length)
        lines += at == golden || at[-1] == '\n';
    return lines;
}

static int walk(struct table *table, const char *golden)
{
    uint32_t lines = 0;
    uint32_t broken = 0;
    for (int i = 0; i < LISTED_GRAPHS; i++)
        for (int t = 0; t < TYPES; t++) {
            if (!in_type(&listed_graphs[i], types[t]))
                continue;
            struct found found;
            stoker_error error = { 0 };
            char line[LINE_BYTES];
            look(table, &listed_graphs[i], types[t], &found, &error);
            const size_t length = promise(line, table, &listed_graphs[i], types[t], found.ok);
            lines++;
            if (golden == NULL) {
                printf("%s\t%" PRId64 "\t%" PRIu64 "\t%" PRId64 "\t%" PRIu64 "\t%" PRIu32 "\n",
                       line, found.first.engine, found.first.workspace_bytes, found.strict.engine,
                       found.strict.workspace_bytes, found.engines);
            } else if (!is_promised(golden, line, length)) {
                printf("not as promised: %s (%s)\n", line, error.message);
                broken++;
            }
        }
    if (golden != NULL && lines != promised_lines(golden, table->device)) {
        printf("%s: %" PRIu32 " graphs, but %" PRIu32 " in the golden table\n", table->device,
               lines, promised_lines(golden, table->device));
        broken++;
    }
    fprintf(stderr, "%s: %" PRIu32 " graphs, %" PRIu32 " broken promises\n", table->device, lines,
            broken);
    return broken == 0 && lines > 0 ? PASSED : FAILED;
}

/* A driver must be there before cuDNN looks for one. A real one is fine. */
static bool have_driver(void)
{
    return dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) != NULL ||
           dlopen(STOKER_TEST_CUDA_DRIVER, RTLD_NOW | RTLD_GLOBAL) != NULL;
}

int main(int argc, char **argv)
{
    static char device[DEVICE_BYTES];
    static char golden[1 << 18];
    struct table table = { .device = argv[1], .all = argc == 2 };
    stoker_error error = { 0 };
    if (argc < 2 || argc > 3 || !describe_device(device, sizeof(device), argv[1]) ||
        (argc == 3 && !read_text(golden, sizeof(golden), argv[2]))) {
        fprintf(stderr, "usage: plans sm_75|...|sm_120 [GOLDEN.tsv]\n");
        return FAILED;
    }
    if (!have_driver()) {
        fprintf(stderr, "plans: %s\n", dlerror());
        return FAILED;
    }
    const struct stk_cudnn_options options = { .device = device };
    if (stk_cudnn_open(&table.cudnn, &options, &error) != STOKER_OK) {
        printf("SKIPPED: no plan was checked: %s\n", error.message);
        return SKIPPED;
    }
    fprintf(stderr, "cuDNN %" PRIu64 "\n", stk_cudnn_version(table.cudnn));
    const int rc = walk(&table, argc == 3 ? golden : NULL);
    stk_cudnn_close(&table.cudnn);
    return rc;
}
