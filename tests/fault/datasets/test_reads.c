/* test_reads.c - every read of opening a data set, and of reading its samples, fails in its turn:
 * with an error, or because the file ends. The error names the file, nothing is left behind, and a
 * short read changes nothing.
 *
 *   the data set ──▶ pread() of this program ──▶ the kernel, but for one call: EIO, the end, or fewer bytes
 *
 * Method: one loop over a table of formats, each written into a directory of its own.
 */
#include <errno.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "loader/base/fault.h"
#include "support/files/npy_bytes.h"
#include "support/files/shard_files.h"
#include "support/leaks.h"
#include "support/sets/fields_of.h"
#include "support/sets/tar_reading.h"

/* ---- reads that fail ------------------------------------------------------------- */

enum failure { FAILS, ENDS, SHORT, FAILURES };

static _Atomic enum failure kind;
static _Atomic uint32_t calls_left; /* 0 = the kernel answers */

static void arm(enum failure wanted, uint32_t nth)
{
    atomic_store(&kind, wanted);
    atomic_store(&calls_left, nth);
}

/* Returns true if the read that was to fail has come. */
static bool disarm(void)
{
    return atomic_exchange(&calls_left, 0) == 0;
}

static bool is_due(void)
{
    uint32_t left = atomic_load(&calls_left);
    while (left > 0 && !atomic_compare_exchange_weak(&calls_left, &left, left - 1)) {
    }
    return left == 1;
}

/* Found before libc's. */
ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
    struct iovec piece = { .iov_base = to, .iov_len = bytes };
    if (is_due()) {
        if (atomic_load(&kind) == ENDS)
            return 0;
        if (atomic_load(&kind) == FAILS) {
            errno = EIO;
            return -1;
        }
        piece.iov_len = (bytes + 1) / 2;
    }
    return preadv(fd, &piece, 1, offset);
}

/* ---- formats --------------------------------------------------------------------- */

enum { SAMPLES = 3, SPEC_BYTES = 2048 };

static struct stk_archive archive;

struct format {
    const char *name;
    /* Write the files, and the spec. */
    void (*make)(const struct stk_directory *directory, char spec[SPEC_BYTES]);
    uint32_t least; /* reads of opening, at least */
    /* Reads of opening that opening can do without: headers of images, of which a few suffice. */
    uint32_t spared;
};

static void write_npy(const struct stk_directory *directory, const char *name, const char *descr,
                      const char *shape, size_t bytes)
{
    uint8_t elements[1024];
    struct stk_bytes file = { 0 };
    for (size_t i = 0; i < bytes; i++)
        elements[i] = (uint8_t)(i % 5);
    stk_put_npy(&file, descr, shape, elements, bytes);
    stk_file_write(directory, name, file.at, file.size);
}

/* Rows that stay in the file, small ones that are copied, and labels. */
static void make_npy(const struct stk_directory *directory, char spec[SPEC_BYTES])
{
    const char *at = directory->path;
    write_npy(directory, "x.npy", "<f4", "(3, 40)", 480);
    write_npy(directory, "y.npy", ">i2", "(3, 2)", 12);
    write_npy(directory, "l.npy", "|u1", "(3,)", 3);
    (void)snprintf(spec, SPEC_BYTES, "npy:x=%s/x.npy,y=%s/y.npy,label=%s/l.npy", at, at, at);
}

/* A copy of an archive that NumPy wrote. */
static void copy_npz(const struct stk_directory *directory, const char *name, char spec[SPEC_BYTES])
{
    uint8_t bytes[4096];
    char path[512];
    (void)snprintf(path, sizeof(path), STOKER_TEST_SOURCES "/tests/golden/npz/%s.npz", name);
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    const size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    stk_file_write(directory, "a.npz", bytes, size);
    (void)snprintf(spec, SPEC_BYTES, "npz:%s/a.npz", directory->path);
}

static void make_npz_stored(const struct stk_directory *directory, char spec[SPEC_BYTES])
{
    copy_npz(directory, "stored", spec);
}

static void make_npz_zip64(const struct stk_directory *directory, char spec[SPEC_BYTES])
{
    copy_npz(directory, "zip64", spec);
}

static void make_npz_deflated(const struct stk_directory *directory, char spec[SPEC_BYTES])
{
    copy_npz(directory, "deflated", spec);
}

static const char table[] = "n,m,l\n1,\"2\",0\n2,3.5,1\n3,-1,0\n";

static void make_csv(const struct stk_directory *directory, char spec[SPEC_BYTES])
{
    stk_file_write(directory, "a.csv", table, sizeof(table) - 1);
    (void)snprintf(spec, SPEC_BYTES, "csv:%s/a.csv?label=l&classes=2", directory->path);
}

static void make_csv_gzip(const struct stk_directory *directory, char spec[SPEC_BYTES])
{
    struct stk_bytes packed = { 0 };
    stk_put_gzip(&packed, (const uint8_t *)table, sizeof(table) - 1);
    stk_file_write(directory, "a.csv.gz", packed.at, packed.size);
    (void)snprintf(spec, SPEC_BYTES, "csv:%s/a.csv.gz?label=l&classes=2", directory->path);
}

/* Make every record a Zstandard frame of one stored block. */
static void store_frames(struct stk_shard_image *image)
{
    static const uint8_t begin[9] = {
        0x28, 0xB5, 0x2F, 0xFD, 0x20, STK_SHARD_TEST_ROW, STK_SHARD_TEST_ROW << 3 | 1, 0, 0
    };
    stk_shard_image_empty(image);
    for (uint32_t i = 0; i < image->count; i++) {
        uint8_t frame[sizeof(begin) + STK_SHARD_TEST_ROW];
        memcpy(frame, begin, sizeof(begin));
        stk_shard_test_row(stk_load_le64(image->at + 104) + i, frame + sizeof(begin));
        stk_shard_image_put(image, i, 0, frame, sizeof(frame), 4);
    }
    stk_shard_image_seal(image);
}

static void make_shards_zstd(const struct stk_directory *directory, char spec[SPEC_BYTES])
{
    for (uint32_t number = 0; number < 2; number++) {
        static struct stk_shard_image image;
        stk_shard_image_make(&image, number, 2, SAMPLES, 1);
        store_frames(&image);
        stk_shard_image_write(&image, directory, number == 0 ? "a.stk" : "b.stk");
    }
    (void)snprintf(spec, SPEC_BYTES, "shards:%s", directory->path);
}

static void make_shards_fields(const struct stk_directory *directory, char spec[SPEC_BYTES])
{
    for (uint32_t number = 0; number < 2; number++) {
        static struct stk_shard_image image;
        stk_shard_image_make_fields(&image, number, 2, SAMPLES);
        stk_shard_image_write(&image, directory, number == 0 ? "a.stk" : "b.stk");
    }
    (void)snprintf(spec, SPEC_BYTES, "shards:%s", directory->path);
}

static void put_image(struct stk_bytes *to, int sample)
{
    uint8_t row[STK_FOLDER_ROW];
    stk_folder_row((uint64_t)sample, row);
    to->size = 0;
    stk_put_png(to, row, STK_FOLDER_ROW);
}

static void make_pairs(const struct stk_directory *directory, char spec[SPEC_BYTES])
{
    const char *at = directory->path;
    stk_folder_mkdir(directory, "i");
    stk_folder_mkdir(directory, "b");
    stk_folder_mkdir(directory, "t");
    for (int i = 0; i < SAMPLES; i++) {
        char name[40];
        char shape[20];
        struct stk_bytes png = { 0 };
        put_image(&png, i);
        (void)snprintf(name, sizeof(name), "i/%d.png", i);
        stk_file_write(directory, name, png.at, png.size);
        (void)snprintf(name, sizeof(name), "b/%d.npy", i);
        (void)snprintf(shape, sizeof(shape), "(%d, 4)", i + 1);
        write_npy(directory, name, "<f4", shape, 16 * ((size_t)i + 1));
        (void)snprintf(name, sizeof(name), "t/%d.txt", i);
        stk_file_write(directory, name, "a text", 6);
    }
    (void)snprintf(spec, SPEC_BYTES, "folder:image=%s/i,mask=%s/i,boxes=%s/b,text=%s/t?key=1", at,
                   at, at, at);
}

static void make_tar(const struct stk_directory *directory, char spec[SPEC_BYTES])
{
    archive.size = 0;
    for (int i = 0; i < SAMPLES; i++) {
        char name[140];
        struct stk_bytes file = { 0 };
        (void)snprintf(name, sizeof(name), "%d.png", i);
        stk_archive_image(&archive, name, (uint64_t)i);
        (void)snprintf(name, sizeof(name), "%d.seg.png", i);
        stk_archive_image(&archive, name, (uint64_t)i + 9);
        (void)snprintf(name, sizeof(name), "%d.x.npy", i);
        stk_put_npy(&file, "<f4", "(1,)", "abcd", 4);
        stk_archive_add(&archive, '0', name, file.at, file.size);
        (void)snprintf(name, sizeof(name), "14 path=%d.txt\n", i);
        stk_archive_records(&archive, 'x', name);
        stk_archive_text(&archive, "other", "a text");
        (void)snprintf(name, sizeof(name), "%d.cls", i);
        stk_archive_text(&archive, name, "1");
    }
    stk_archive_end(&archive);
    stk_file_write(directory, "a.tar", archive.at, archive.size);
    (void)snprintf(spec, SPEC_BYTES, "tar:%s/a.tar?fields=png,seg.png,x.npy,txt,cls,__key__",
                   directory->path);
}

static void make_select(const struct stk_directory *directory, char spec[SPEC_BYTES])
{
    stk_file_write(directory, "ids.txt", "2 0 1\n", 6);
    (void)snprintf(spec, SPEC_BYTES, "select:%s/ids.txt:(synth:bytes?count=20&shape=8)",
                   directory->path);
}

static const struct format formats[] = {
    { "npy", make_npy, 5, 0 },
    { "npz, stored", make_npz_stored, 5, 0 },
    { "npz, zip64", make_npz_zip64, 5, 0 },
    { "npz, deflated", make_npz_deflated, 5, 0 },
    { "csv", make_csv, 1, 0 },
    { "csv, gzip", make_csv_gzip, 2, 0 },
    { "shards, zstd", make_shards_zstd, 4, 0 },
    { "shards, fields", make_shards_fields, 4, 0 },
    { "folder, pairs", make_pairs, 9, 2 * SAMPLES },
    { "tar, fields", make_tar, 8, 2 * SAMPLES },
    { "select", make_select, 1, 0 },
};
enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };

/* ---- the loop -------------------------------------------------------------------- */

/* It failed because of a read: a code, and a message with the path. */
static void check_report(const struct format *format, uint32_t nth, int rc,
                         const stoker_error *error, const struct stk_directory *directory)
{
    /* The last is what a file of its own that ends early is taken for. */
    const bool known = rc == STOKER_EIO || rc == STOKER_ETRUNCATED || rc == STOKER_ECHANGED;
    cr_assert(known, "%s, read %u: %s: %s", format->name, nth, stoker_error_name(rc),
              error->message);
    cr_assert_eq(error->code, rc, "%s, read %u", format->name, nth);
    cr_assert_not_null(strstr(error->message, directory->path), "%s, read %u: no path in: %s",
                       format->name, nth, error->message);
}

/* Fail every read of opening. Returns the number of reads. */
static uint32_t sweep_open(const struct format *format, const struct stk_directory *directory,
                           const char *spec, enum failure wanted)
{
    uint32_t spared = 0;
    for (uint32_t nth = 1;; nth++) {
        stoker_dataset *dataset = NULL;
        stoker_error error = { .message = "" };
        const int64_t live = stk_fault_live_bytes();
        cr_assert_lt(nth, 500);
        arm(wanted, nth);
        const int rc = stoker_dataset_open(&dataset, spec, NULL, &error);
        const bool reached = disarm();
        cr_assert_eq(rc == STOKER_OK, dataset != NULL);
        if (rc != STOKER_OK)
            check_report(format, nth, rc, &error, directory);
        spared += reached && rc == STOKER_OK ? 1 : 0;
        stoker_dataset_close(&dataset);
        cr_assert_eq(stk_fault_live_bytes(), live, "%s, read %u leaks", format->name, nth);
        if (reached)
            continue;
        cr_assert_eq(spared, wanted == SHORT ? nth - 1 : format->spared, "%s: %u of %u",
                     format->name, spared, nth - 1);
        return nth - 1;
    }
}

/* Fail every read of one sample's fields; what is read without failure is right, also by short
 * reads. */
static void sweep_sample(const struct format *format, const struct stk_directory *directory,
                         const stoker_dataset *dataset, uint64_t id, enum failure wanted)
{
    struct stk_fields_of due = stk_fields_read(dataset, id);
    cr_assert_eq(due.rc, STOKER_OK, "%s: %s", format->name, due.error.message);
    bool reached = true;
    for (uint32_t nth = 1; reached; nth++) {
        arm(wanted, nth);
        struct stk_fields_of sample = stk_fields_read(dataset, id);
        reached = disarm();
        /* A file of its own is read beyond its end, to see that it is the end. */
        const bool may_be_right = wanted == SHORT || (wanted == ENDS && sample.rc == STOKER_OK);
        if (reached && !may_be_right)
            check_report(format, nth, sample.rc, &sample.error, directory);
        else
            cr_assert_eq(sample.rc, STOKER_OK, "%s, read %u: %s", format->name, nth,
                         sample.error.message);
        for (uint32_t f = 0; sample.rc == STOKER_OK && f < sample.count; f++) {
            cr_assert_eq(sample.rows[f].length, due.rows[f].length);
            cr_assert_arr_eq(sample.rows[f].data, due.rows[f].data, due.rows[f].bytes_max, "%s",
                             format->name);
        }
        stk_fields_free(&sample);
    }
    stk_fields_free(&due);
}

static void sweep(const struct format *format, enum failure wanted)
{
    char spec[SPEC_BYTES];
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    const struct stk_directory directory = stk_directory_make();
    format->make(&directory, spec);
    cr_assert_geq(sweep_open(format, &directory, spec, wanted), format->least, "%s", format->name);
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, &error), STOKER_OK, "%s: %s",
                 format->name, error.message);
    for (uint64_t id = 0; id < SAMPLES; id++)
        sweep_sample(format, &directory, dataset, id, wanted);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

CleanTest(reads, each_read_fails_once)
{
    stk_archive_needs_png();
    for (int i = 0; i < FORMATS; i++)
        sweep(&formats[i], FAILS);
}

CleanTest(reads, each_file_ends_once)
{
    stk_archive_needs_png();
    for (int i = 0; i < FORMATS; i++)
        sweep(&formats[i], ENDS);
}

CleanTest(reads, each_read_is_short_once)
{
    stk_archive_needs_png();
    for (int i = 0; i < FORMATS; i++)
        sweep(&formats[i], SHORT);
}
