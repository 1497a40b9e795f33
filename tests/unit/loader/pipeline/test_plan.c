/* The route of rows: one pure function of what the data set and the options are. */
#include <criterion/criterion.h>

#include "loader/pipeline/pipeline_plan.h"

static struct stk_pipeline_facts files_of(bool has_codec)
{
    return (struct stk_pipeline_facts){
        .source = STK_SOURCE_FILES,
        .has_codec = has_codec,
        .bytes_are_rows = !has_codec,
        .has_files = true,
        .cache = STOKER_CACHE_NONE,
        .threads = true,
    };
}

static const char *printed(const struct stk_pipeline_facts *facts)
{
    static char text[128];
    const struct stk_pipeline_plan plan = stk_pipeline_plan_make(facts);
    stk_pipeline_plan_print(&plan, text, sizeof(text));
    return text;
}

Test(plan, rows_in_memory_are_gathered)
{
    struct stk_pipeline_facts facts = { .source = STK_SOURCE_MEMORY, .bytes_are_rows = true };
    cr_assert_str_eq(printed(&facts), "gather: in memory, converted into the batch");
    facts.copies = true;
    cr_assert_str_eq(printed(&facts), "gather: in memory, copied into the batch");
    facts.transforms = true;
    facts.copies = false;
    facts.cache = STOKER_CACHE_DEVICE;
    cr_assert_str_eq(printed(&facts),
                     "gather: in memory, transformed into the batch; cache: in GPU memory");
}

Test(plan, raw_rows_in_files_are_read_in_place_only_if_nothing_changes_them)
{
    struct stk_pipeline_facts facts = files_of(false);
    cr_assert_str_eq(printed(&facts), "read_decode: read, converted into the batch");
    facts.copies = true;
    cr_assert_str_eq(printed(&facts), "read_in_place: read, copied into the batch");
    facts.copies = false;
    facts.transforms = true;
    cr_assert_str_eq(printed(&facts), "read_decode: read, transformed into the batch");
}

Test(plan, a_codec_that_only_verifies_leaves_rows_as_they_are)
{
    struct stk_pipeline_facts facts = files_of(true);
    facts.bytes_are_rows = true;
    facts.copies = true;
    cr_assert_eq(stk_pipeline_plan_make(&facts).route, STK_ROUTE_READ_IN_PLACE);
    cr_assert(stk_pipeline_plan_make(&facts).decodes);
}

Test(plan, images_of_one_size_are_decoded_where_they_belong)
{
    struct stk_pipeline_facts facts = files_of(true);
    facts.copies = true;
    cr_assert_str_eq(printed(&facts), "read_decode: read, decoded, copied into the batch");
    facts.cache = STOKER_CACHE_DECODED;
    cr_assert_str_eq(printed(&facts),
                     "read_decode: read, decoded, copied into the batch; cache: decoded rows");
    facts.source = STK_SOURCE_IDS;
    facts.has_files = false;
    facts.cache = STOKER_CACHE_NONE;
    cr_assert_str_eq(printed(&facts), "read_decode: made from ids, decoded, copied into the batch");
}

Test(plan, images_of_any_size_are_decoded_apart)
{
    struct stk_pipeline_facts facts = files_of(true);
    facts.any_size = facts.transforms = true;
    facts.cache = STOKER_CACHE_ENCODED;
    cr_assert_str_eq(printed(&facts),
                     "decode_apart: read, decoded to the worker's memory, transformed into the "
                     "batch; cache: samples as stored");
}

Test(plan, a_cache_of_decoded_images_holds_them_resized_if_all_get_one_size)
{
    struct stk_pipeline_facts facts = files_of(true);
    facts.cache = STOKER_CACHE_DECODED;
    facts.transforms = true;
    cr_assert_eq(stk_pipeline_plan_make(&facts).cached, STK_CACHED_DECODED);
    cr_assert_eq(stk_pipeline_plan_make(&facts).route, STK_ROUTE_READ_DECODE);
    facts.resizes_exactly = true;
    cr_assert_eq(stk_pipeline_plan_make(&facts).cached, STK_CACHED_RESIZED);
    cr_assert_eq(stk_pipeline_plan_make(&facts).route, STK_ROUTE_DECODE_APART);
    cr_assert(stk_pipeline_keeps_resized(&facts));
    facts.cache = STOKER_CACHE_NONE; /* then nothing is kept, and the row can be made in place */
    cr_assert_eq(stk_pipeline_plan_make(&facts).cached, STK_CACHED_NOTHING);
    cr_assert_eq(stk_pipeline_plan_make(&facts).route, STK_ROUTE_READ_DECODE);
    facts.has_codec = false; /* raw rows are cached by the reads themselves */
    cr_assert_not(stk_pipeline_keeps_resized(&facts));
}

Test(plan, samples_are_read_again_only_if_nothing_keeps_them)
{
    for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DEVICE; cache++) {
        struct stk_pipeline_facts facts = files_of(true);
        facts.cache = (stoker_cache)cache;
        const struct stk_pipeline_plan plan = stk_pipeline_plan_make(&facts);
        cr_assert_eq(stk_pipeline_plan_rereads(&plan), cache == STOKER_CACHE_NONE, "%d", cache);
        facts.has_files = false;
        const struct stk_pipeline_plan resident = stk_pipeline_plan_make(&facts);
        cr_assert_not(stk_pipeline_plan_rereads(&resident), "%d", cache);
    }
}
