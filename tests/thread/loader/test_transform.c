/* test_transform.c - several workers transform at once, each in a scratch of its own: for
 * ThreadSanitizer, and the rows are those of no worker at all.
 */
#include "support/runs/scenario.h"

#include "support/gpu/transform_ranges.h"
#include "support/thread_check.h"

static struct stk_run alone, together;

static void check(const char *spec, const stoker_transform *transform, stoker_cache cache)
{
    stoker_dataset *dataset = NULL;
    CHECK(stoker_dataset_open(&dataset, spec, NULL, NULL) == STOKER_OK);
    stoker_loader_options options =
        stk_small_options(.dtype = STOKER_DTYPE_FLOAT32, .transform = *transform, .cache = cache,
                          .num_workers = 0);
    CHECK(stk_run(dataset, &options, &alone) == STOKER_FINISHED);
    options.num_workers = 4;
    CHECK(stk_run(dataset, &options, &together) == STOKER_FINISHED);
    CHECK(stk_runs_equal(&alone, &together));
    stoker_dataset_close(&dataset);
}

int main(void)
{
    const stoker_transform crop = {
        .random_crop = { 28, 28 }, .pad = 3, .flip = true, .cutout = 6
    };
    const stoker_transform rectangle = {
        .random_resized_crop = { 20, 20 }, STK_USUAL_AREA, STK_USUAL_RATIO, .flip = true
    };
    const stoker_transform resize = { .resize = { 20, 24 }, .random_crop = { 18, 18 } };
    check("synth:digits?count=400", &crop, STOKER_CACHE_NONE);
    check("synth:digits?count=400", &crop, STOKER_CACHE_DECODED);
    check("synth:digits?count=400", &rectangle, STOKER_CACHE_DECODED);
    check("synth:digits?count=400", &resize, STOKER_CACHE_DECODED);
    return 0;
}
