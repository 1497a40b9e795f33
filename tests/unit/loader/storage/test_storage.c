/* test_storage.c - a storage of the user's own below every format.
 *
 * Each format is opened from local files and from a copy in memory, which must deliver the same
 * batches: read by calls, by a reader, in short pieces, with and without workers. Then the storage
 * fails in every way that it can.
 */
#include <sys/stat.h>

#include "loader/base/error.h"
#include "loader/base/fault.h"
#include "loader/storage/cached.h"
#include "loader/storage/storage.h"
#include "support/files/dataset_files.h"
#include "support/files/folder_files.h"
#include "support/files/npy_bytes.h"
#include "support/files/shard_files.h"
#include "support/files/tar_files.h"
#include "support/files/token_files.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/shown_batch.h"
#include "support/sets/memory_storage.h"
#include "support/sweep.h"

static struct stk_directory directory;
static struct stk_memory_storage memory;
static stoker_reader reader;
static stoker_storage *cached; /* on top of memory.storage; NULL = it is read as it is */
static char cache_folder[600];

/* ---- the files ------------------------------------------------------------------ */

static void write_bytes(const char *name, const struct stk_bytes *bytes)
{
    stk_file_write(&directory, name, bytes->at, bytes->size);
}

static void write_idx(void)
{
    struct stk_bytes images = { 0 }, labels = { 0 }, packed = { 0 };
    stk_put_idx_header(&images, 8, 3, (const uint32_t[]){ 20, 3, 4 });
    stk_put_idx_header(&labels, 8, 1, (const uint32_t[]){ 20 });
    for (uint32_t i = 0; i < 240; i++)
        stk_put(&images, &(uint8_t){ (uint8_t)(i * 7) }, 1);
    for (uint32_t i = 0; i < 20; i++)
        stk_put(&labels, &(uint8_t){ (uint8_t)(i % 10) }, 1);
    stk_put_gzip(&packed, images.at, images.size);
    write_bytes("train-images-idx3-ubyte", &images);
    write_bytes("train-labels-idx1-ubyte", &labels);
    write_bytes("t10k-images-idx3-ubyte.gz", &packed);
    write_bytes("t10k-labels-idx1-ubyte", &labels);
}

static void write_arrays(void)
{
    float rows[20 * 30];
    int64_t labels[20];
    struct stk_bytes x = { 0 }, y = { 0 };
    for (int i = 0; i < 600; i++)
        rows[i] = (float)i / 8;
    for (int i = 0; i < 20; i++)
        labels[i] = i % 3;
    stk_put_npy(&x, "<f4", "(20, 30)", rows, sizeof(rows));
    stk_put_npy(&y, "<i8", "(20,)", labels, sizeof(labels));
    write_bytes("x.npy", &x);
    write_bytes("y.npy", &y);
    stk_file_write(&directory, "table.csv", "a,b,label\n1,2,0\n3,4.5,1\n-1,0.25,0\n7,8,1\n", 40);
    stk_file_write(&directory, "ids.txt", "3 1 4 1 5", 9);
}

static void copy_golden(const char *name)
{
    char path[512];
    static uint8_t bytes[1 << 16];
    (void)snprintf(path, sizeof(path), STOKER_TEST_SOURCES "/tests/golden/npz/%s.npz", name);
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file);
    const size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    (void)snprintf(path, sizeof(path), "%s.npz", name);
    stk_file_write(&directory, path, bytes, size);
}

static void write_folders(void)
{
    static const char *const folders[] = { "png",           "png/cat",     "png/dog",
                                           "png/dog/deep",  "pairs",       "pairs/image",
                                           "pairs/image/a", "pairs/extra", "pairs/extra/a" };
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        stk_folder_mkdir(&directory, folders[i]);
    for (uint32_t i = 0; i < 12; i++) {
        struct stk_bytes png = { 0 };
        uint8_t row[STK_FOLDER_ROW];
        char name[64];
        stk_folder_row(i, row);
        stk_put_png(&png, row, STK_FOLDER_ROW);
        (void)snprintf(name, sizeof(name), "png/%s/%u.png",
                       (const char *[]){ "cat", "dog", "dog/deep" }[i % 3], i);
        write_bytes(name, &png);
        (void)snprintf(name, sizeof(name), "pairs/image/%s%u.png", i % 2 == 0 ? "" : "a/", i);
        write_bytes(name, &png);
        (void)snprintf(name, sizeof(name), "pairs/extra/%s%u.txt", i % 2 == 0 ? "" : "a/", i);
        stk_file_write(&directory, name, "some text", 1 + i % 9);
    }
}

static void write_archives(void)
{
    static struct stk_archive archive;
    static struct stk_shard_image shard;
    stk_folder_mkdir(&directory, "shards");
    stk_folder_mkdir(&directory, "blocks");
    for (uint32_t part = 0; part < 2; part++) {
        char name[64];
        archive.size = 0;
        for (uint32_t i = 0; i < 9; i++) {
            (void)snprintf(name, sizeof(name), "%02u", part * 9 + i);
            stk_archive_sample(&archive, name, i, (int)(i % 4));
        }
        stk_archive_end(&archive);
        (void)snprintf(name, sizeof(name), "part-%u.tar", part);
        stk_file_write(&directory, name, archive.at, archive.size);
        stk_shard_image_make(&shard, part, 2, 11, 1);
        (void)snprintf(name, sizeof(name), "shards/%u.stk", part);
        stk_shard_image_write(&shard, &directory, name);
        stk_shard_image_make_blocks(&shard, part, 2, 11, 3);
        (void)snprintf(name, sizeof(name), "blocks/%u.stk", part);
        stk_shard_image_write(&shard, &directory, name);
    }
}

static void write_tokens(void)
{
    for (uint32_t i = 0; i < 3; i++) {
        char name[64];
        const struct stk_bytes file = stk_llmc_file(i, 300, 2);
        (void)snprintf(name, sizeof(name), "tokens-%u.bin", i);
        write_bytes(name, &file);
    }
    stk_megatron_write(&directory, "megatron", 5, 200);
}

static void make(stoker_reader *own)
{
    directory = stk_directory_make();
    write_idx();
    write_arrays();
    copy_golden("stored");
    copy_golden("deflated");
    write_folders();
    write_archives();
    write_tokens();
    stk_memory_storage_make(&memory, &directory, own);
}

static void take_down(void)
{
    stoker_storage_close(&memory.storage);
    cr_assert_eq(memory.destroyed, 1);
    stk_directory_remove(&directory);
}

/* ---- the specs ------------------------------------------------------------------ */

/* # stands for the directory. */
static const char *const specs[] = {
    "mnist:#",
    "mnist:#?split=test",
    "#/train-images-idx3-ubyte",
    "idx:#/train-images-idx3-ubyte,#/train-labels-idx1-ubyte",
    "npy:#/x.npy,#/y.npy",
    "npy:a=#/x.npy,b=#/y.npy",
    "#/x.npy",
    "npz:#/stored.npz",
    "npz:#/deflated.npz?fields=x",
    "csv:#/table.csv?label=label&classes=2",
    "folder:#/png",
    "#/png",
    "folder:image=#/pairs/image,extra=#/pairs/extra?key=1",
    "tar:#/part-0.tar",
    "tar:#/part-{0,1}.tar?test=0.3",
    "tar:#/p*t-?.tar?fields=png,cls,__key__",
    "shards:#/shards",
    "#/shards",
    "shards:#/blocks",
    "concat:(shards:#/blocks)+(shards:#/shards)",
    "tokens:#/tokens-*.bin?length=32",
    "tokens:#/megatron.bin?length=16&stride=8",
    "documents:#/tokens-[01].bin?eos=7",
    "packed:40:(documents:#/megatron.idx)",
    "select:#/ids.txt:(tar:#/part-1.tar)",
    "concat:(folder:#/png)+(folder:#/png)",
};
enum { SPECS = sizeof(specs) / sizeof(specs[0]) };

static const char *at(const char *spec, const char *folder)
{
    static char text[2048];
    size_t used = 0;
    for (; *spec != '\0'; spec++)
        used += (size_t)(*spec == '#' ? snprintf(text + used, sizeof(text) - used, "%s", folder)
                                      : snprintf(text + used, sizeof(text) - used, "%c", *spec));
    return text;
}

static int open_in_memory(stoker_dataset **out, const char *spec, stoker_error *error)
{
    stoker_dataset_options options = STOKER_DATASET_OPTIONS_INIT;
    options.storage = cached != NULL ? cached : memory.storage;
    return stoker_dataset_open(out, at(spec, "data"), &options, error);
}

static stoker_dataset *in_memory(const char *spec)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(open_in_memory(&dataset, spec, &error), STOKER_OK, "%s: %s", spec, error.message);
    return dataset;
}

static stoker_loader_options some_options(uint32_t workers)
{
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    options.batch_size = 4;
    options.shuffle = true;
    options.num_workers = (int32_t)workers;
    options.epochs = 2;
    options.cache = STOKER_CACHE_NONE;
    return options;
}

static uint64_t hash_of(stoker_dataset *dataset, uint32_t workers)
{
    stoker_loader_options options = some_options(workers);
    stoker_loader *loader = loader_of(dataset, &options);
    stoker_batch batch = STOKER_BATCH_INIT;
    uint64_t hash = 0;
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK || rc == STOKER_EPOCH_END) {
        if (rc == STOKER_EPOCH_END)
            continue;
        struct stk_shown_batch shown;
        stk_shown_begin(&shown, dataset, &batch, NULL);
        const uint64_t one = stk_shown_hash(&shown);
        hash = stk_hash_bytes(hash, &one, sizeof(one));
        stoker_batch_release(&batch);
    }
    cr_assert_eq(rc, STOKER_FINISHED, "%s", stoker_loader_error(loader)->message);
    stoker_loader_destroy(&loader);
    return hash;
}

static void compare_all(void)
{
    for (int i = 0; i < SPECS; i++) {
        stoker_dataset *local = dataset_of(at(specs[i], directory.path));
        stoker_dataset *dataset = in_memory(specs[i]);
        cr_assert_eq(stoker_dataset_get_info(dataset)->count, stoker_dataset_get_info(local)->count,
                     "%s", specs[i]);
        for (uint32_t workers = 0; workers < 3; workers += 2)
            cr_assert_eq(hash_of(dataset, workers), hash_of(local, 0), "%s, %u workers", specs[i],
                         workers);
        stoker_dataset_close(&local);
        stoker_dataset_close(&dataset);
    }
}

/* ---- equal bytes ---------------------------------------------------------------- */

CleanTest(storage, every_format_delivers_what_local_files_do)
{
    make(NULL);
    compare_all();
    cr_assert_gt(memory.reads, 0);
    take_down();
}

CleanTest(storage, short_reads_are_continued)
{
    make(NULL);
    memory.read_max = 5;
    compare_all();
    take_down();
}

CleanTest(storage, its_own_reader_brings_the_same)
{
    make(&reader);
    compare_all();
    memory.read_max = 7;
    compare_all();
    take_down();
}

CleanTest(storage, one_loader_reads_local_files_and_two_storages)
{
    make(&reader);
    struct stk_memory_storage other;
    stk_memory_storage_make(&other, &directory, NULL);
    stoker_dataset_options options = STOKER_DATASET_OPTIONS_INIT;
    options.storage = other.storage;
    stoker_dataset *parts[3] = { dataset_of(at("folder:#/png", directory.path)),
                                 in_memory("folder:#/png"), NULL };
    cr_assert_eq(stoker_dataset_open(&parts[2], "folder:data/png", &options, NULL), STOKER_OK);
    stoker_dataset *same[3] = { parts[0], parts[0], parts[0] };
    stoker_dataset *mixed = NULL, *local = NULL;
    cr_assert_eq(stoker_dataset_concat(&mixed, parts, 3, NULL), STOKER_OK);
    cr_assert_eq(stoker_dataset_concat(&local, same, 3, NULL), STOKER_OK);
    stoker_storage_close(&other.storage); /* its data set still has it */
    cr_assert_eq(other.destroyed, 0);
    for (uint32_t workers = 0; workers < 3; workers++)
        cr_assert_eq(hash_of(mixed, workers), hash_of(local, 0), "%u workers", workers);
    for (int i = 0; i < 3; i++)
        stoker_dataset_close(&parts[i]);
    cr_assert_eq(other.destroyed, 0);
    stoker_dataset_close(&mixed);
    cr_assert_eq(other.destroyed, 1);
    stoker_dataset_close(&local);
    take_down();
}

/* The page cache does not keep its bytes. */
CleanTest(storage, the_second_epoch_reads_nothing)
{
    make(NULL);
    for (int i = 0; i < SPECS; i++) {
        stoker_dataset *dataset = in_memory(specs[i]);
        stoker_loader_options options = some_options(0);
        options.cache = STOKER_CACHE_AUTO;
        options.epochs = 3;
        stoker_loader *loader = loader_of(dataset, &options);
        stoker_batch batch = STOKER_BATCH_INIT;
        uint64_t after_two = 0;
        int rc;
        for (int epochs = 0; (rc = stoker_loader_next(loader, &batch, -1)) >= 0 && epochs < 3;) {
            if (rc == STOKER_OK)
                stoker_batch_release(&batch);
            else if (++epochs == 2)
                after_two = memory.reads;
        }
        cr_assert_eq(rc, STOKER_FINISHED);
        const bool makes = strncmp(specs[i], "packed:", 7) == 0; /* rows are never cached */
        cr_assert(makes || memory.reads == after_two, "%s: %u reads", specs[i],
                  (unsigned)(memory.reads - after_two));
        stoker_loader_destroy(&loader);
        stoker_dataset_close(&dataset);
    }
    take_down();
}

/* A folder is listed, not looked at file by file. */
CleanTest(storage, a_folder_needs_no_look_per_file)
{
    make(NULL);
    stoker_dataset *dataset = in_memory("folder:#/png");
    cr_assert_leq(memory.looks, 2);
    stoker_dataset_close(&dataset);
    take_down();
}

CleanTest(storage, one_sample_is_read_in_the_calling_thread)
{
    make(NULL);
    memory.read_max = 9;
    for (int i = 0; i < SPECS; i++) {
        stoker_dataset *both[2] = { dataset_of(at(specs[i], directory.path)), in_memory(specs[i]) };
        static uint8_t bytes[2][STOKER_FIELDS_MAX][4096];
        memset(bytes, 0, sizeof(bytes));
        for (int b = 0; b < 2; b++) {
            stoker_row rows[STOKER_FIELDS_MAX];
            stoker_error error = { .message = "" };
            for (uint32_t f = 0; f < stoker_dataset_get_info(both[b])->field_count; f++)
                rows[f] = (stoker_row){ .data = bytes[b][f], .bytes_max = 4096 };
            cr_assert_eq(stoker_dataset_read(both[b], 3, rows, &error), STOKER_OK, "%s: %s",
                         specs[i], error.message);
            stoker_dataset_close(&both[b]);
        }
        cr_assert_eq(memcmp(bytes[0], bytes[1], sizeof(bytes[0])), 0, "%s", specs[i]);
    }
    take_down();
}

/* Rows read by number, or by path with a version; tokens: raw; npy: dense. */
static const char *const read_specs[] = { "npy:#/x.npy",
                                          "tar:#/part-{0,1}.tar",
                                          "folder:#/png",
                                          "folder:image=#/pairs/image",
                                          "shards:#/shards",
                                          "tokens:#/tokens-*.bin?length=16",
                                          "packed:40:(documents:#/megatron.idx)" };

/* ---- kept in a folder ------------------------------------------------------------ */

static void cache_in_folder(void)
{
    stoker_error error = { .message = "" };
    (void)snprintf(cache_folder, sizeof(cache_folder), "%s/cache", directory.path);
    cr_assert_eq(stk_storage_cached(&cached, memory.storage, cache_folder, 1 << 30, &error),
                 STOKER_OK, "%s", error.message);
}

/* Change a byte in the middle of each piece. */
static int damage_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)walk;
    const int fd = kind == FTW_F ? open(path, O_RDWR | O_CLOEXEC) : -1;
    uint8_t byte;
    if (fd < 0)
        return 0;
    const off_t at = 128 + (status->st_size - 128) / 2;
    cr_assert_eq(pread(fd, &byte, 1, at), 1);
    byte ^= 0x10;
    cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
    close(fd);
    return 0;
}

/* Specs whose bytes all come by rings: their open reads no samples. */
static bool is_read_in_rings(const char *spec)
{
    return strncmp(spec, "npy:", 4) == 0 || strncmp(spec, "folder:", 7) == 0 ||
           strncmp(spec, "tokens:", 7) == 0 || strncmp(spec, "shards:", 7) == 0 ||
           strncmp(spec, "tar:", 4) == 0;
}

/* One epoch brings every piece; the others, another process and damaged pieces bring the same. */
CleanTest(storage, what_is_kept_is_delivered_without_a_read)
{
    for (int own = 0; own < 2; own++) {
        uint64_t damaged_reads = 0;
        make(own == 0 ? NULL : &reader);
        cache_in_folder();
        compare_all();
        for (int again = 0; again < 2; again++) { /* a cache of its own, as in another process */
            stoker_storage_close(&cached);
            cache_in_folder();
            for (int i = 0; i < SPECS; i++) {
                stoker_dataset *dataset = in_memory(specs[i]);
                stoker_dataset *local = dataset_of(at(specs[i], directory.path));
                const uint64_t before = memory.reads;
                cr_assert_eq(hash_of(dataset, 2), hash_of(local, 0), "%s", specs[i]);
                cr_assert(again > 0 || !is_read_in_rings(specs[i]) || memory.reads == before,
                          "%s: %u reads", specs[i], (unsigned)(memory.reads - before));
                damaged_reads += again == 0 ? 0 : memory.reads - before;
                stoker_dataset_close(&dataset);
                stoker_dataset_close(&local);
            }
            if (again == 0)
                cr_assert_eq(nftw(cache_folder, damage_one, 8, FTW_PHYS), 0);
        }
        cr_assert_gt(damaged_reads, 10, "%u reads", (unsigned)damaged_reads);
        stoker_storage_close(&cached);
        take_down();
    }
}

CleanTest(storage, a_failed_fetch_is_reported_and_repeated)
{
    for (int own = 0; own < 2; own++) {
        make(own == 0 ? NULL : &reader);
        cache_in_folder();
        memory.read_errno = ECONNRESET;
        memory.says = "503: later";
        for (size_t i = 0; i < 6; i++) {
            stoker_loader_options options = some_options(0);
            stoker_batch batch = STOKER_BATCH_INIT;
            stoker_dataset *dataset = in_memory(read_specs[i]);
            stoker_dataset *local = dataset_of(at(read_specs[i], directory.path));
            stoker_loader *loader = loader_of(dataset, &options);
            memory.fails_from = 1;
            cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_EIO, "%s", read_specs[i]);
            const stoker_error *error = stoker_loader_error(loader);
            cr_assert_not_null(strstr(error->message, memory.says), "%s", error->message);
            cr_assert_eq(error->os_errno, ECONNRESET, "%s", error->message);
            stoker_loader_destroy(&loader);
            memory.fails_from = 0;
            cr_assert_eq(hash_of(dataset, 2), hash_of(local, 0), "%s", read_specs[i]);
            stoker_dataset_close(&dataset);
            stoker_dataset_close(&local);
        }
        stoker_storage_close(&cached);
        take_down();
    }
}

CleanTest(storage, memory_that_runs_out_leaves_no_cached_storage)
{
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    make(&reader);
    (void)snprintf(cache_folder, sizeof(cache_folder), "%s/cache", directory.path);
    while (stk_sweep_next(&sweep)) {
        const stoker_file file = { .path = "data/x.npy", .fd = -1 };
        const stoker_reader_setup setup = { .files = &file, .file_count = 1, .depth = 4 };
        void *ring = NULL;
        sweep.rc = stk_storage_cached(&cached, memory.storage, cache_folder, 1 << 30, &sweep.error);
        if (sweep.rc == STOKER_OK)
            sweep.rc =
                cached->ops.reader->open(cached->ops.reader->self, &ring, &setup, &sweep.error);
        if (ring != NULL)
            cr_assert_eq(cached->ops.reader->close(ring, 0), STOKER_OK);
        stoker_storage_close(&cached);
    }
    cr_assert_gt(sweep.failed, 6);
    take_down();
}

/* However many workers want it, each byte of a large file is read once. */
CleanTest(storage, each_piece_is_read_once)
{
    enum { BYTES = (5 << 20) + 12000, HEADER = 128 };
    static uint8_t bytes[BYTES];
    directory = stk_directory_make();
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)(i * 2654435761U >> 24);
    stk_file_write(&directory, "raw.bin", bytes, BYTES);
    for (int workers = 0; workers < 5; workers++) {
        stk_memory_storage_make(&memory, &directory, workers % 2 == 0 ? NULL : &reader);
        (void)snprintf(cache_folder, sizeof(cache_folder), "%s-cache", directory.path);
        cr_assert_eq(stk_storage_cached(&cached, memory.storage, cache_folder, 1 << 30, NULL), 0);
        stoker_dataset *dataset =
            in_memory("tokens:#/raw.bin?layout=raw&stored=uint32&length=1000");
        stoker_dataset *local =
            dataset_of(at("tokens:#/raw.bin?layout=raw&stored=uint32&length=1000", directory.path));
        const uint64_t before = memory.read_bytes;
        cr_assert_eq(hash_of(dataset, (uint32_t)workers), hash_of(local, 0));
        cr_assert_eq(memory.read_bytes - before, BYTES, "%d workers: %llu", workers,
                     (unsigned long long)(memory.read_bytes - before));
        stoker_dataset_close(&dataset);
        stoker_dataset_close(&local);
        stoker_storage_close(&cached);
        stoker_storage_close(&memory.storage);
        cr_assert_eq(nftw(cache_folder, stk_remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    }
    stk_directory_remove(&directory);
}

/* ---- round trips ---------------------------------------------------------------- */

/* Each read may take a round trip: small members are read many at a time, large ones stepped
 * over. */
CleanTest(storage, an_archive_is_indexed_in_few_reads)
{
    static const struct {
        uint32_t members, bytes;
        uint64_t reads_max, read_bytes_max;
    } rows[] = { { 1500, 8, 16, 1600 << 10 }, { 10, 150 << 10, 24, 128 << 10 } };
    static struct stk_archive archive;
    static uint8_t text[150 << 10];
    directory = stk_directory_make();
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        char name[64];
        archive.size = 0;
        for (uint32_t i = 0; i < rows[row].members; i++) {
            (void)snprintf(name, sizeof(name), "%04u.txt", i);
            stk_archive_add(&archive, '0', name, text, rows[row].bytes);
        }
        stk_archive_end(&archive);
        stk_file_write(&directory, "members.tar", archive.at, archive.size);
        stk_memory_storage_make(&memory, &directory, NULL);
        stoker_dataset *dataset = in_memory("tar:#/members.tar?fields=txt");
        cr_assert_eq(stoker_dataset_get_info(dataset)->count, rows[row].members);
        cr_assert_leq(memory.reads, rows[row].reads_max, "%llu", (unsigned long long)memory.reads);
        cr_assert_leq(memory.read_bytes, rows[row].read_bytes_max, "%llu",
                      (unsigned long long)memory.read_bytes);
        stoker_dataset_close(&dataset);
        stoker_storage_close(&memory.storage);
    }
    stk_directory_remove(&directory);
}

/* ---- failures while opening ----------------------------------------------------- */

static void expect_refused(const char *spec, int code, const char *const *says)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    const int64_t live = stk_fault_live_bytes();
    const int rc = open_in_memory(&dataset, spec, &error);
    cr_assert_eq(rc, code, "%s: %s, %s", spec, stoker_error_name(rc), error.message);
    cr_assert_eq(error.code, code);
    cr_assert_eq(stk_fault_live_bytes(), live, "%s leaks", spec);
    for (; *says != NULL; says++)
        cr_assert_not_null(strstr(error.message, *says), "\"%s\" is not in: %s", *says,
                           error.message);
}

CleanTest(storage, a_missing_name_is_named)
{
    static const struct {
        const char *spec, *name;
    } rows[] = {
        { "tar:#/none.tar", "data/none.tar" },    { "npy:#/x.npy,#/none.npy", "data/none.npy" },
        { "tokens:#/none.bin", "data/none.bin" }, { "csv:#/none.csv", "data/none.csv" },
        { "npz:#/none.npz", "data/none.npz" },    { "idx:#/none", "data/none" }
    };
    make(NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_refused(rows[i].spec, STOKER_ENOENT,
                       (const char *[]){ "storage memory", rows[i].name, "in memory", NULL });
    expect_refused("mnist:#/none", STOKER_ENOENT, (const char *[]){ "data/none", NULL });
    expect_refused("tar:#/none*.tar", STOKER_EEMPTY, (const char *[]){ "data/none*.tar", NULL });
    expect_refused("shards:#/none", STOKER_EEMPTY, (const char *[]){ "data/none", NULL });
    expect_refused("folder:#/none", STOKER_EEMPTY, (const char *[]){ "data/none", NULL });
    expect_refused("tar:#/png", STOKER_EISDIR, (const char *[]){ "data/png", NULL });
    expect_refused("shards:#/shards?map=1", STOKER_ENOTSUP,
                   (const char *[]){ "map=1", "memory", NULL });
    expect_refused("tokens:#/tokens-0.bin?length=16&map=1", STOKER_ENOTSUP,
                   (const char *[]){ "map=1", "memory", NULL });
    expect_refused("folder:#/png?index=/nowhere", STOKER_ENOTSUP,
                   (const char *[]){ "index", NULL });
    take_down();
}

CleanTest(storage, a_list_that_fails_names_the_prefix)
{
    static const char *const listing[] = { "folder:#/png", "shards:#/shards",
                                           "folder:image=#/pairs/image", "tar:#/*.tar" };
    make(NULL);
    memory.list_code = STOKER_EIO;
    memory.says = "the machine room is on fire";
    for (size_t i = 0; i < sizeof(listing) / sizeof(listing[0]); i++)
        expect_refused(listing[i], STOKER_EIO,
                       (const char *[]){ "storage memory", "list()", "on fire", "data/", NULL });
    memory.list_code = 77;
    expect_refused(listing[0], STOKER_EINVAL, (const char *[]){ "list()", "77", NULL });
    memory.list_code = 0;
    memory.bad_names = true;
    for (size_t i = 0; i < sizeof(listing) / sizeof(listing[0]); i++)
        expect_refused(listing[i], STOKER_EINVAL, (const char *[]){ "list()", "name", NULL });
    take_down();
}

/* The n-th read fails while a format opens, until it opens. */
CleanTest(storage, each_read_may_fail_while_a_format_opens)
{
    make(NULL);
    memory.read_errno = EIO;
    memory.says = "no answer";
    for (int i = 0; i < SPECS; i++) {
        int rc = -1;
        stoker_error error = { .message = "" };
        for (uint64_t nth = 1; rc != STOKER_OK; nth++) {
            stoker_dataset *dataset = NULL;
            memory.reads = 0;
            memory.fails_from = nth;
            rc = open_in_memory(&dataset, specs[i], &error);
            const bool named = strstr(error.message, "no answer") != NULL;
            cr_assert(rc == STOKER_OK || rc == STOKER_ESPEC || named, "%s: %s", specs[i],
                      error.message);
            stoker_dataset_close(&dataset);
            cr_assert_lt(nth, 3000);
        }
        memory.fails_from = 0;
    }
    take_down();
}

/* Fail the n-th allocation of opening a data set and of creating a loader, until none is left: what
 * fails is STOKER_ENOMEM and leaves nothing. Some have a substitute, so that a call succeeds. */
CleanTest(storage, each_allocation_may_fail)
{
    make(NULL);
    const stoker_loader_options options = some_options(0);
    for (int i = 0; i < SPECS; i++) {
        uint64_t failed = 0;
        bool reached = true;
        if (strchr(specs[i], ':') == NULL) /* what cannot be looked at is not recognized */
            continue;
        for (uint64_t nth = 1; reached; nth++) {
            stoker_dataset *dataset = NULL;
            stoker_loader *loader = NULL;
            stoker_error error = { .message = "" };
            const int64_t live = stk_fault_live_bytes();
            stk_fault_arm(STK_FAULT_MEMORY, nth);
            int rc = open_in_memory(&dataset, specs[i], &error);
            if (rc == STOKER_OK)
                rc = stoker_loader_create(&loader, dataset, &options, &error);
            reached = stk_fault_disarm();
            cr_assert(rc == STOKER_OK || (rc == STOKER_ENOMEM && error.code == rc && reached),
                      "%s: allocation %u: %s", specs[i], (unsigned)nth, error.message);
            failed += rc == STOKER_OK ? 0 : 1;
            stoker_loader_destroy(&loader);
            stoker_dataset_close(&dataset);
            cr_assert_eq(stk_fault_live_bytes(), live, "%s: allocation %u leaks", specs[i],
                         (unsigned)nth);
        }
        cr_assert_gt(failed, 10, "%s", specs[i]);
    }
    take_down();
}

/* ---- failures in a run ---------------------------------------------------------- */

/* Run to the end, or to an error; after `good` batches call change(). */
static int run_until(stoker_dataset *dataset, uint32_t workers, stoker_on_bad policy,
                     void (*change)(void), stoker_error *error)
{
    stoker_loader_options options = some_options(workers);
    options.on_bad_sample = policy;
    options.epochs = 100;
    options.prefetch_batches = 2;
    stoker_loader *loader = loader_of(dataset, &options);
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc = stoker_loader_next(loader, &batch, -1);
    cr_assert_eq(rc, STOKER_OK);
    change();
    stoker_batch_release(&batch);
    while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK || rc == STOKER_EPOCH_END)
        if (rc == STOKER_OK)
            stoker_batch_release(&batch);
    cr_assert_lt(rc, 0, "nothing fails");
    *error = *stoker_loader_error(loader);
    stoker_loader_destroy(&loader);
    return rc;
}

static void replace_objects(void)
{
    atomic_store(&memory.version, 2);
}

static void break_reads(void)
{
    memory.fails_from = 1;
}

static void change_all(stoker_reader *own)
{
    static const stoker_on_bad policies[] = { STOKER_ON_BAD_FAIL, STOKER_ON_BAD_SKIP,
                                              STOKER_ON_BAD_SUBSTITUTE };
    make(own);
    for (size_t i = 0; i < 6; i++)
        for (size_t p = 0; p < 3; p++) {
            stoker_error error = { .message = "" };
            atomic_store(&memory.version, 1);
            stoker_dataset *dataset = in_memory(read_specs[i]);
            const int rc = run_until(dataset, p == 0 ? 0 : 2, policies[p], replace_objects, &error);
            cr_assert_eq(rc, STOKER_ECHANGED, "%s: %s", read_specs[i], error.message);
            cr_assert_eq(error.stage, STOKER_STAGE_READ);
            cr_assert(error.path[0] != '\0', "%s", error.message);
            stoker_dataset_close(&dataset);
        }
    take_down();
}

CleanTest(storage, a_changed_version_ends_the_run)
{
    change_all(NULL);
}

CleanTest(storage, a_changed_version_ends_the_run_of_its_reader)
{
    change_all(&reader);
}

CleanTest(storage, a_failed_read_names_object_offset_and_reason)
{
    for (int own = 0; own < 2; own++) {
        make(own == 0 ? NULL : &reader);
        memory.read_errno = ECONNRESET;
        memory.says = "403: the key is wrong";
        for (size_t i = 0; i < sizeof(read_specs) / sizeof(read_specs[0]); i++) {
            stoker_error error = { .message = "" };
            memory.fails_from = 0;
            stoker_dataset *dataset = in_memory(read_specs[i]);
            const int rc = run_until(dataset, 0, STOKER_ON_BAD_FAIL, break_reads, &error);
            cr_assert_eq(rc, STOKER_EIO, "%s: %s", read_specs[i], error.message);
            cr_assert_not_null(strstr(error.message, memory.says), "%s", error.message);
            const char *said = strstr(error.message, ": sample "); /* then which object it was */
            cr_assert(i >= 6 || (said != NULL && strstr(said, error.path) != NULL), "%s",
                      error.message);
            cr_assert(i >= 6 || error.os_errno == ECONNRESET);
            cr_assert(i >= 6 || error.path[0] != '\0');
            cr_assert(i >= 6 || i == 2 || i == 3 || error.offset != STOKER_NO_OFFSET);
            stoker_dataset_close(&dataset);
        }
        take_down();
    }
}

/* ---- the object ----------------------------------------------------------------- */

CleanTest(storage, a_read_that_is_always_interrupted_fails)
{
    make(NULL);
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    memory.fails_from = 1;
    memory.read_errno = EINTR;
    cr_assert_eq(open_in_memory(&dataset, "npy:#/x.npy", &error), stk_error_from_errno(EINTR));
    cr_assert_eq(error.os_errno, EINTR);
    cr_assert_eq(memory.reads, 128);
    take_down();
}

CleanTest(storage, incomplete_tables_are_refused)
{
    const stoker_storage_ops good = { .struct_size = sizeof(good),
                                      .name = "good",
                                      .look = stk_memory_look,
                                      .list = stk_memory_list,
                                      .read = stk_memory_read };
    stoker_storage *storage = NULL;
    for (int lack = 0; lack < 7; lack++) {
        stoker_storage_ops ops = good;
        ops.struct_size = lack == 0 ? 0 : lack == 1 ? sizeof(size_t) : ops.struct_size;
        ops.name = lack == 2 ? NULL : ops.name;
        ops.look = lack == 3 ? NULL : ops.look;
        ops.list = lack == 4 ? NULL : ops.list;
        ops.read = lack == 5 ? NULL : ops.read;
        stoker_error error = { .code = 0 };
        cr_assert_eq(stoker_storage_create(&storage, lack == 6 ? NULL : &ops, NULL, &error),
                     STOKER_EINVAL);
        cr_assert_eq(error.code, STOKER_EINVAL);
        cr_assert_null(storage);
    }
    cr_assert_eq(stoker_storage_create(NULL, &good, NULL, NULL), STOKER_EINVAL);
    stoker_storage_close(NULL);
    stoker_storage_close(&storage);
    cr_assert_null(stoker_storage_share(NULL));
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    while (stk_sweep_next(&sweep))
        sweep.rc = stoker_storage_create(&storage, &good, NULL, &sweep.error);
    stoker_storage_close(&storage);
}
