/* test_fingerprint.c - a state is of one data set, wherever that lies. */
#include <fcntl.h>
#include <sys/stat.h>

#include <stoker/views.h>

#include "loader/dataset/identity.h"
#include "support/files/folder_files.h"
#include "support/files/shard_files.h"
#include "support/leaks.h"

static struct stk_fingerprint of_spec(const char *spec, const char *split)
{
    stoker_error error = { .message = "" };
    const stoker_dataset_options options = { STOKER_DATASET_OPTIONS_DEFAULTS.split = split };
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_open(&dataset, spec, &options, &error), STOKER_OK, "%s: %s", spec,
                 error.message);
    const struct stk_fingerprint found = stk_fingerprint_of(dataset);
    const struct stk_fingerprint again = stk_fingerprint_of(dataset);
    cr_assert_eq(found.form, again.form);
    cr_assert_eq(found.content, again.content);
    stoker_dataset_close(&dataset);
    return found;
}

/* "FORMAT:DIR/REST" */
static struct stk_fingerprint of_files(const char *format, const struct stk_directory *directory,
                                       const char *rest)
{
    char spec[700];
    (void)snprintf(spec, sizeof(spec), "%s:%s/%s", format, directory->path, rest);
    return of_spec(spec, NULL);
}

static void expect_same(struct stk_fingerprint a, struct stk_fingerprint b)
{
    cr_assert_eq(a.form, b.form);
    cr_assert_eq(a.content, b.content);
}

static void expect_other_content(struct stk_fingerprint a, struct stk_fingerprint b)
{
    cr_assert_eq(a.form, b.form);
    cr_assert_neq(a.content, b.content);
}

static void rename_in(const struct stk_directory *directory, const char *from, const char *to)
{
    char old_path[512];
    char new_path[512];
    cr_assert_eq(
        rename(stk_path_in(old_path, directory, from), stk_path_in(new_path, directory, to)), 0);
}

CleanTest(fingerprint, a_folder_is_known_wherever_it_lies_until_a_file_differs)
{
    struct stk_folder_set set;
    stk_folder_make(&set, 200, 50, false);
    const struct stk_fingerprint first = stk_fingerprint_of(set.dataset);
    stoker_dataset_close(&set.dataset);
    const struct stk_directory elsewhere = stk_directory_make();
    cr_assert_eq(rename(set.directory.path, elsewhere.path), 0); /* onto an empty folder */
    set.directory = elsewhere;
    expect_same(first, of_files("folder", &elsewhere, "?extensions=raw"));

    rename_in(&elsewhere, "c03/f00170.raw", "c03/f00170b.raw"); /* the order is the same */
    expect_other_content(first, of_files("folder", &elsewhere, "?extensions=raw"));
    rename_in(&elsewhere, "c03/f00170b.raw", "c03/f00170.raw");
    expect_same(first, of_files("folder", &elsewhere, "?extensions=raw"));

    stk_folder_touch(&elsewhere, "c03/f00170.raw", STK_FOLDER_ROW - 1);
    expect_other_content(first, of_files("folder", &elsewhere, "?extensions=raw"));
    stk_folder_remove(&set);
}

/* Raw files: what they hold is not read, so names and sizes decide. */
CleanTest(fingerprint, files_are_known_by_name_and_size)
{
    const struct stk_directory one = stk_directory_make();
    const struct stk_directory two = stk_directory_make();
    const uint8_t whole[12 + 8 * 3] = { 0, 0, 8, 2, 0, 0, 0, 8, 0, 0, 0, 3 };
    const size_t size = sizeof(whole);
    stk_file_write(&one, "train", whole, size);
    stk_file_write(&two, "train", whole, size);
    stk_file_write(&one, "test", whole, size);
    const struct stk_fingerprint train = of_files("idx", &one, "train");
    expect_same(train, of_files("idx", &two, "train"));
    expect_other_content(train, of_files("idx", &one, "test"));
    stk_directory_remove(&one);
    stk_directory_remove(&two);
}

/* Rows that were unpacked or parsed lie in memory: few of them are looked at, of which size does
 * not matter. */
CleanTest(fingerprint, rows_in_memory_are_looked_at)
{
    static const char *const texts[3] = { "1,2\n3,4\n5,6\n", "1,2\n3,4\n5,6\n", "1,2\n3,4\n5,7\n" };
    struct stk_fingerprint found[3];
    for (int i = 0; i < 3; i++) {
        const struct stk_directory directory = stk_directory_make();
        stk_file_write(&directory, "table.csv", texts[i], strlen(texts[i]));
        found[i] = of_files("csv", &directory, "table.csv");
        stk_directory_remove(&directory);
    }
    expect_same(found[0], found[1]);
    expect_other_content(found[0], found[2]);
}

/* Same names, same sizes: only the checksums of the records differ. */
CleanTest(fingerprint, shards_are_known_by_their_checksums)
{
    struct stk_fingerprint found[3];
    for (int i = 0; i < 3; i++) {
        const struct stk_directory directory = stk_directory_make();
        struct stk_shard_image image;
        stk_shard_image_make(&image, 0, 1, 30, 1);
        if (i == 2) { /* one byte of one record, and its sum */
            stk_shard_image_bytes(&image, 17)[5] ^= 1;
            stk_shard_image_enter(&image, 17, 0, stk_load_le64(stk_shard_image_part(&image, 17, 0)),
                                  STK_SHARD_TEST_ROW, 0);
            stk_shard_image_seal(&image);
        }
        stk_shard_image_write(&image, &directory, "shard-000000.stk");
        stoker_dataset *dataset = NULL;
        stoker_error error = { .message = "" };
        cr_assert_eq(stk_shard_test_open(&dataset, &directory, "", &error), STOKER_OK, "%s",
                     error.message);
        found[i] = stk_fingerprint_of(dataset);
        stoker_dataset_close(&dataset);
        stk_directory_remove(&directory);
    }
    expect_same(found[0], found[1]);
    expect_other_content(found[0], found[2]);
}

CleanTest(fingerprint, drawn_sets_are_known_by_seed_and_split)
{
    const struct stk_fingerprint first = of_spec("synth:digits?count=1", "train");
    expect_same(first, of_spec("synth:digits?count=1", "train"));
    expect_other_content(first, of_spec("synth:digits?count=1&seed=3", "train"));
    expect_other_content(first, of_spec("synth:digits?count=1", "test"));
    cr_assert_neq(first.form, of_spec("synth:digits?count=2", "train").form);
}

/* ---- sets of a user's own ---- */

struct own_set {
    stoker_dataset_info info;
    const char *root;
    uint64_t located; /* the largest id that was asked for */
    uint64_t asked;
    bool fails;
};

static int own_describe(const void *self, stoker_dataset_info *out)
{
    *out = ((const struct own_set *)self)->info;
    return STOKER_OK;
}

static int own_locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                      stoker_error *error)
{
    struct own_set *set = (struct own_set *)self;
    (void)error;
    cr_assert_geq(count, 1);
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_lt(ids[i], set->info.count);
        out[i] = (stoker_part){ .extent = { .path = set->root, .bytes = 8 } };
    }
    set->located = ids[count - 1];
    set->asked += count;
    return set->fails ? STOKER_EIO : STOKER_OK;
}

static stoker_dataset *open_own(struct own_set *set)
{
    static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                            .name = "own",
                                            .describe = own_describe,
                                            .locate = own_locate };
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_create(&dataset, &ops, set, NULL), STOKER_OK);
    return dataset;
}

static const struct own_set usual = { .info = { .struct_size = sizeof(stoker_dataset_info),
                                                .count = 70,
                                                .dtype = STOKER_DTYPE_UINT8,
                                                .rank = 1,
                                                .shape = { 8 },
                                                .encoded_bytes_max = 8,
                                                .has_paths = true,
                                                .directory = AT_FDCWD },
                                      .root = "/a/b/name" };

static struct stk_fingerprint of_own(struct own_set *set)
{
    stoker_dataset *dataset = open_own(set);
    const struct stk_fingerprint found = stk_fingerprint_of(dataset);
    stoker_dataset_close(&dataset);
    return found;
}

CleanTest(fingerprint, of_an_own_set_counts_what_it_says)
{
    struct own_set set = usual;
    const struct stk_fingerprint first = of_own(&set);
    set.root = "/moved/name";
    expect_same(first, of_own(&set));
    set.root = "/moved/other";
    expect_other_content(first, of_own(&set));
    set.root = "/a/b/name";
    set.info.fingerprint = 2;
    expect_other_content(first, of_own(&set));
    set.info.fingerprint = 0;
    set.fails = true; /* the run finds that out */
    (void)of_own(&set);
}

/* A view of a thousand sources is made without a look at their samples. */
CleanTest(fingerprint, of_a_view_looks_at_its_sources_when_asked)
{
    struct own_set set = usual;
    struct stk_fingerprint found[2];
    for (uint64_t turn = 0; turn < 2; turn++) {
        struct own_set other = set;
        other.info.fingerprint = turn; /* the source's own */
        stoker_dataset *sources[2] = { open_own(&set), open_own(&other) };
        stoker_dataset *joined = NULL;
        set.asked = other.asked = 0;
        cr_assert_eq(stoker_dataset_concat(&joined, sources, 2, NULL), STOKER_OK);
        cr_assert_eq(set.asked + other.asked, 0);
        found[turn] = stk_fingerprint_of(joined);
        cr_assert_geq(set.asked, 70);
        stoker_dataset_close(&joined);
        stoker_dataset_close(&sources[0]);
        stoker_dataset_close(&sources[1]);
    }
    expect_other_content(found[0], found[1]);
}

/* The largest set takes as long as one of 65,536 samples. */
CleanTest(fingerprint, looks_at_few_samples_of_many)
{
    struct own_set set = { .info = { .struct_size = sizeof(stoker_dataset_info),
                                     .count = UINT64_C(1) << 61,
                                     .dtype = STOKER_DTYPE_UINT8,
                                     .rank = 1,
                                     .shape = { 8 },
                                     .encoded_bytes_max = 8,
                                     .has_paths = true,
                                     .directory = AT_FDCWD },
                           .root = "x" };
    (void)of_own(&set);
    cr_assert_eq(set.asked, 65536);
    cr_assert_gt(set.located, set.info.count / 65536 * 65534);
}
