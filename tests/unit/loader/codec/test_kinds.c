/* test_kinds.c - the table of encodings: numbers that files store, and image files by name and
 * bytes. */
#include "loader/codec/kinds.h"
#include "support/leaks.h"

CleanTest(codec_kinds, numbers_of_shards_are_fixed)
{
    static const char *const names[] = { "raw", "lz4", "png", "jpeg", "zstd", "webp" };
    cr_assert_eq(STK_SHARD_CODECS, sizeof(names) / sizeof(names[0]));
    for (uint32_t codec = 0; codec < STK_SHARD_CODECS; codec++)
        cr_assert_str_eq(stk_kinds[codec].name, names[codec]);
    cr_assert_not(stk_kind_is_image(STK_SHARD_CODECS));
    cr_assert_not(stk_kind_names_image(NULL));
    cr_assert_not(stk_kind_names_image("raw"));
    cr_assert(stk_kind_names_image("image"));
}

CleanTest(codec_kinds, image_files_are_known_by_extension_and_by_first_bytes)
{
    char list[64];
    for (uint32_t codec = 0; codec < STK_SHARD_CODECS; codec++) {
        const struct stk_kind *kind = &stk_kinds[codec];
        cr_assert_eq(stk_kind_is_image(codec), kind->extensions[0] != NULL);
        if (!stk_kind_is_image(codec))
            continue;
        cr_assert(stk_kind_names_image(kind->name));
        for (uint32_t i = 0; kind->extensions[i] != NULL; i++)
            cr_assert_eq(stk_kind_of_extension(kind->extensions[i]), codec);
        cr_assert_eq(stk_kind_of_bytes(kind->magic, kind->magic_bytes), codec);
        cr_assert_eq(stk_kind_of_bytes(kind->magic, kind->magic_bytes - 1), STK_SHARD_RAW);
    }
    cr_assert_eq(stk_kind_of_extension("JPeG"), STK_SHARD_JPEG);
    cr_assert_eq(stk_kind_of_extension(""), STK_SHARD_RAW);
    cr_assert_eq(stk_kind_of_extension(".png"), STK_SHARD_RAW);
    cr_assert_eq(stk_kind_of_bytes("RIFF\x04\x00\x00\x00WEBPVP8 ", 16), STK_SHARD_WEBP);
    cr_assert_eq(stk_kind_of_bytes("RIFF\x04\x00\x00\x00WAVEfmt ", 16), STK_SHARD_RAW);
    stk_kind_list_extensions(';', list, sizeof(list));
    cr_assert_str_eq(list, "png;jpg;jpeg;webp");
}
