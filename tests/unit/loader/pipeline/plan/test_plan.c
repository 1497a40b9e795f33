/* The route of a part, and the plan of rows: pure functions of what the data set and the options
 * are. */
#include <criterion/criterion.h>

#include "loader/pipeline/plan/pipeline_plan.h"

static const struct stk_part_facts raw_in_memory = { STK_SOURCE_MEMORY, .bytes_are_row = true };
static const struct stk_part_facts raw_in_file = { STK_SOURCE_FILES, .bytes_are_row = true };
static const struct stk_part_facts png_in_file = { STK_SOURCE_FILES, .has_codec = true };

/* A sample of that one part. */
static struct stk_pipeline_facts facts_of(struct stk_part_facts part)
{
    return (struct stk_pipeline_facts){
        .source = part.source,
        .route = stk_part_route(&part),
        .has_codec = part.has_codec,
        .has_files = part.source == STK_SOURCE_FILES,
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

Test(plan, each_part_has_a_route)
{
    static const struct {
        struct stk_part_facts part;
        enum stk_route as_changed, as_stored;
    } cases[] = {
        { { STK_SOURCE_MEMORY, .bytes_are_row = true }, STK_ROUTE_GATHER, STK_ROUTE_GATHER },
        { { STK_SOURCE_FILES, .bytes_are_row = true },
          STK_ROUTE_READ_DECODE,
          STK_ROUTE_READ_IN_PLACE },
        /* a codec that only verifies */
        { { STK_SOURCE_FILES, .has_codec = true, .bytes_are_row = true },
          STK_ROUTE_READ_DECODE,
          STK_ROUTE_READ_IN_PLACE },
        { { STK_SOURCE_MEMORY, .has_codec = true, .bytes_are_row = true },
          STK_ROUTE_READ_DECODE,
          STK_ROUTE_READ_IN_PLACE },
        { { STK_SOURCE_FILES, .has_codec = true }, STK_ROUTE_READ_DECODE, STK_ROUTE_READ_DECODE },
        { { STK_SOURCE_MEMORY, .has_codec = true }, STK_ROUTE_READ_DECODE, STK_ROUTE_READ_DECODE },
        { { STK_SOURCE_IDS, .has_codec = true }, STK_ROUTE_READ_DECODE, STK_ROUTE_READ_DECODE },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stk_part_facts part = cases[i].part;
        cr_assert_eq(stk_part_route(&part), cases[i].as_changed, "case %zu", i);
        part.as_stored = true;
        cr_assert_eq(stk_part_route(&part), cases[i].as_stored, "case %zu, as stored", i);
    }
}

Test(plan, rows_in_memory_are_gathered)
{
    struct stk_pipeline_facts facts = facts_of(raw_in_memory);
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
    struct stk_pipeline_facts facts = facts_of(raw_in_file);
    cr_assert_str_eq(printed(&facts), "read_decode: read, converted into the batch");
    facts.transforms = true;
    cr_assert_str_eq(printed(&facts), "read_decode: read, transformed into the batch");
    struct stk_part_facts part = raw_in_file;
    part.as_stored = true;
    facts = facts_of(part);
    facts.copies = true;
    cr_assert_str_eq(printed(&facts), "read_in_place: read, copied into the batch");
}

Test(plan, the_words_name_source_codec_and_cache)
{
    struct stk_pipeline_facts facts = facts_of(png_in_file);
    facts.copies = true;
    cr_assert_str_eq(printed(&facts), "read_decode: read, decoded, copied into the batch");
    facts.cache = STOKER_CACHE_DECODED;
    cr_assert_str_eq(printed(&facts),
                     "read_decode: read, decoded, copied into the batch; cache: decoded rows");
    facts.transforms = true;
    facts.cache = STOKER_CACHE_ENCODED;
    cr_assert_str_eq(printed(&facts), "read_decode: read, decoded, transformed into the batch; "
                                      "cache: samples as stored");
    facts.source = STK_SOURCE_IDS;
    facts.has_files = facts.transforms = false;
    facts.cache = STOKER_CACHE_NONE;
    cr_assert_str_eq(printed(&facts), "read_decode: made from ids, decoded, copied into the batch");
}

Test(plan, a_cache_of_decoded_images_holds_them_resized_if_all_get_one_size)
{
    struct stk_pipeline_facts facts = facts_of(png_in_file);
    facts.cache = STOKER_CACHE_DECODED;
    facts.transforms = true;
    cr_assert_eq(stk_pipeline_plan_make(&facts).cached, STK_CACHED_DECODED);
    facts.resizes_exactly = true;
    cr_assert_eq(stk_pipeline_plan_make(&facts).cached, STK_CACHED_RESIZED);
    cr_assert(stk_pipeline_keeps_resized(&facts));
    facts.cache = STOKER_CACHE_NONE;
    cr_assert_eq(stk_pipeline_plan_make(&facts).cached, STK_CACHED_NOTHING);
    facts.has_codec = false; /* raw rows are cached by the reads themselves */
    cr_assert_not(stk_pipeline_keeps_resized(&facts));
}

Test(plan, samples_are_read_again_only_if_nothing_keeps_them)
{
    for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DEVICE; cache++) {
        struct stk_pipeline_facts facts = facts_of(png_in_file);
        facts.cache = (stoker_cache)cache;
        const struct stk_pipeline_plan plan = stk_pipeline_plan_make(&facts);
        cr_assert_eq(stk_pipeline_plan_rereads(&plan), cache == STOKER_CACHE_NONE, "%d", cache);
        facts.has_files = false;
        const struct stk_pipeline_plan resident = stk_pipeline_plan_make(&facts);
        cr_assert_not(stk_pipeline_plan_rereads(&resident), "%d", cache);
    }
}
