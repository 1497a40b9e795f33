/* test_safetensors.c - what is written is read back; anything else is refused with its place.
 *
 * Hostile files are made in memory: a header as text, and N bytes of data behind it.
 */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "loader/base/fault.h"
#include "loader/base/text/json.h"
#include "support/files/dataset_files.h"
#include "support/leaks.h"
#include "trainer/files/safetensors.h"

static const float weight[6] = { 1, -2.5F, 3e-38F, 4, 5, 6 };
static const int64_t scalar = -7;
static const uint8_t odd[3] = { 1, 2, 3 };

static const struct stk_named_tensor tensors[] = {
    { .name = "fc1.weight", .dtype = STK_FILE_F32, .rank = 2, .shape = { 2, 3 }, .data = weight },
    { .name = "odd", .dtype = STK_FILE_U8, .rank = 1, .shape = { 3 }, .data = odd },
    { .name = "a \"quoted\" \\ name\n\xC3\xA9", .dtype = STK_FILE_I64, .data = &scalar },
    { .name = "", .dtype = STK_FILE_F64, .rank = 2, .shape = { 7, 0 } },
};
static const struct stk_note notes[] = { { "format", "pt" }, { "text", "tab\there" } };
static const struct stk_tensor_set set = { tensors, 4, notes, 2 };

/* The set as the bytes of a file. */
static struct stk_bytes written(const struct stk_tensor_set *from)
{
    struct stk_bytes bytes = { 0 };
    struct stk_memory_file file = stk_memory_file("", 0);
    stoker_error error = { 0 };
    cr_assert_eq(stk_safetensors_write(file.fd, file.path, from, &error), STOKER_OK, "%s",
                 error.message);
    bytes.size = (size_t)lseek(file.fd, 0, SEEK_END);
    cr_assert_leq(bytes.size, sizeof(bytes.at));
    cr_assert_eq(pread(file.fd, bytes.at, bytes.size, 0), (ssize_t)bytes.size);
    close(file.fd);
    return bytes;
}

static int parse(const void *bytes, size_t size, stoker_error *error)
{
    struct stk_safetensors file;
    memset(error, 0, sizeof(*error));
    const int rc = stk_safetensors_parse(&file, bytes, size, "x.safetensors", error);
    cr_assert(rc == STOKER_OK || (error->code == rc && error->message[0] != '\0'));
    stk_safetensors_close(&file);
    return rc;
}

static struct stk_bytes with_data(const char *header, size_t data_bytes)
{
    struct stk_bytes bytes = { 0 };
    uint8_t length[8];
    static const uint8_t zeros[256] = { 0 };
    stk_store_le64(length, strlen(header));
    stk_put(&bytes, length, sizeof(length));
    stk_put(&bytes, header, strlen(header));
    stk_put(&bytes, zeros, data_bytes);
    return bytes;
}

static void check_set(const struct stk_tensor_set *read)
{
    cr_assert_eq(read->tensor_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        const struct stk_named_tensor *tensor = stk_tensor_find(read, tensors[i].name);
        cr_assert_not_null(tensor, "%s", tensors[i].name);
        cr_assert_eq(tensor->dtype, tensors[i].dtype);
        cr_assert_eq(tensor->rank, tensors[i].rank);
        cr_assert_arr_eq(tensor->shape, tensors[i].shape, sizeof(tensor->shape));
        cr_assert_eq(tensor->bytes, stk_tensor_bytes(&tensors[i]));
        cr_assert(tensor->bytes == 0 || memcmp(tensor->data, tensors[i].data, tensor->bytes) == 0);
    }
    cr_assert_null(stk_tensor_find(read, "fc1"));
    cr_assert_null(stk_tensor_find(read, "zzz"));
    cr_assert_str_eq(stk_note_find(read, "format"), "pt");
    cr_assert_str_eq(stk_note_find(read, "text"), "tab\there");
    cr_assert_null(stk_note_find(read, "none"));
}

CleanTest(safetensors, what_is_written_is_read)
{
    const struct stk_bytes bytes = written(&set);
    struct stk_memory_file on_disk = stk_memory_file(bytes.at, bytes.size);
    struct stk_safetensors file;
    stoker_error error;
    cr_assert_eq(stk_safetensors_open(&file, on_disk.path, &error), STOKER_OK);
    check_set(&file.set);
    cr_assert_eq(file.size, bytes.size);
    cr_assert_eq(stk_load_le64(bytes.at) % 8, 0);
    stk_safetensors_close(&file);
    stk_safetensors_close(&file);
    close(on_disk.fd);
}

CleanTest(safetensors, a_file_of_another_program_is_read)
{
    /* Laid out as the format's own library does it; no padding, entries in any order. */
    struct stk_bytes bytes = with_data(" {}", 0);
    stoker_error error;
    cr_assert_eq(parse(bytes.at, bytes.size, &error), STOKER_EFORMAT); /* must begin with { */
    bytes = with_data("{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]},"
                      "\"__metadata__\":{\"format\":\"pt\"}, \"\\u00e9\\ud83d\\ude00\" : "
                      "{\"shape\":[],\"data_offsets\":[0,4],\"dtype\":\"I32\"}}  ",
                      8);
    struct stk_safetensors file;
    cr_assert_eq(stk_safetensors_parse(&file, bytes.at, bytes.size, "x", &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_eq(file.set.tensor_count, 2);
    cr_assert_not_null(stk_tensor_find(&file.set, "\xC3\xA9\xF0\x9F\x98\x80"));
    stk_safetensors_close(&file);
    bytes = with_data("{}", 0);
    cr_assert_eq(parse(bytes.at, bytes.size, &error), STOKER_OK);
    bytes = with_data("{\"__metadata__\":{}}", 0);
    cr_assert_eq(parse(bytes.at, bytes.size, &error), STOKER_OK);
}

CleanTest(safetensors, each_truncation_and_each_flipped_bit_is_found)
{
    const struct stk_bytes whole = written(&set);
    stoker_error error;
    for (size_t size = 0; size < whole.size; size++) {
        const int rc = parse(whole.at, size, &error);
        cr_assert_eq(rc, STOKER_ETRUNCATED, "%zu bytes: %d", size, rc);
    }
    struct stk_bytes longer = whole;
    stk_put(&longer, "x", 1);
    cr_assert_eq(parse(longer.at, longer.size, &error), STOKER_EOVERSIZE);
    for (size_t bit = 0; bit < 8 * whole.size; bit++) {
        struct stk_bytes flipped = whole;
        flipped.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
        cr_assert_lt(parse(flipped.at, flipped.size, &error), 0, "bit %zu", bit);
    }
}

CleanTest(safetensors, a_flipped_bit_without_a_checksum_breaks_nothing)
{
    const struct stk_bytes whole =
        with_data("{\"__metadata__\":{\"format\":\"pt\"},\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],"
                  "\"data_offsets\":[0,24]},\"b\":{\"dtype\":\"F16\",\"shape\":[4],"
                  "\"data_offsets\":[24,32]}}",
                  32);
    stoker_error error;
    unsigned refused = 0;
    for (size_t bit = 0; bit < 8 * (whole.size - 32); bit++) {
        struct stk_bytes flipped = whole;
        flipped.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
        refused += parse(flipped.at, flipped.size, &error) < 0;
    }
    cr_assert_gt(refused, 500); /* the others changed a name */
    for (size_t size = 0; size < whole.size; size++)
        cr_assert_lt(parse(whole.at, size, &error), 0);
}

#define W(offsets) "\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" offsets "}"
#define V(offsets) "\"v\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" offsets "}"
#define SHAPE(shape, offsets)                                                                      \
    "{\"w\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static const struct {
    const char *header;
    size_t data_bytes;
    int code;
} hostile[] = {
    { "{" W("[0,8]") "}", 8, STOKER_OK },
    { "{" W("[0,8]") "}", 7, STOKER_ETRUNCATED },
    { "{" W("[0,8]") "}", 9, STOKER_EOVERSIZE },
    { "{" W("[8,16]") "}", 16, STOKER_EFORMAT },                  /* a hole before */
    { "{" W("[0,8]") "," V("[12,20]") "}", 20, STOKER_EFORMAT },  /* between */
    { "{" W("[0,8]") "," V("[4,12]") "}", 12, STOKER_EFORMAT },   /* overlap */
    { "{" W("[0,8]") "," V("[0,8]") "}", 8, STOKER_EFORMAT },     /* the same bytes */
    { "{" W("[0,8]") "," W("[8,16]") "}", 16, STOKER_EFORMAT },   /* a name twice */
    { "{" W("[8,0]") "}", 8, STOKER_EFORMAT },                    /* backwards */
    { "{" W("[-8,0]") "}", 8, STOKER_EFORMAT },                   /* a sign */
    { "{" W("[0,8.0]") "}", 8, STOKER_EFORMAT },                  /* a fraction */
    { "{" W("[0,8e0]") "}", 8, STOKER_EFORMAT },                  /* an exponent */
    { "{" W("[00,8]") "}", 8, STOKER_EFORMAT },                   /* a leading zero */
    { "{" W("[0]") "}", 8, STOKER_EFORMAT },                      /* one offset */
    { "{" W("[0,8,8]") "}", 8, STOKER_EFORMAT },                  /* three */
    { "{" W("[0,18446744073709551616]") "}", 8, STOKER_EFORMAT }, /* 2^64 */
    { "{" W("[18446744073709551608,0]") "}", 8, STOKER_EFORMAT }, /* would wrap to -8 */
    { "{" W("[0,8]") "}}", 8, STOKER_EFORMAT },                   /* something follows */
    { "{" W("[0,8]") ",}", 8, STOKER_EFORMAT },                   /* a comma too many */
    { "{" W("[0,8]") "", 8, STOKER_EFORMAT },                     /* no end */
    { "[" W("[0,8]") "]", 8, STOKER_EFORMAT },                    /* an array */
    { "{\"w\":8}", 8, STOKER_EFORMAT },                           /* a number for a tensor */
    { "{\"w\":{}}", 0, STOKER_EFORMAT },                          /* nothing said */
    { "{\"w\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, STOKER_EFORMAT },
    { "{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
      STOKER_EFORMAT },
    { "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":[]}}", 8,
      STOKER_EFORMAT },
    { "{\"w\":{\"dtype\":\"F31\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, STOKER_EFORMAT },
    { SHAPE("[3]", "[0,8]"), 8, STOKER_EFORMAT },                     /* other bytes */
    { SHAPE("[4294967296,4294967296]", "[0,0]"), 0, STOKER_EFORMAT }, /* 2^66 wraps to 0 */
    { SHAPE("[4611686018427387905]", "[0,4]"), 4, STOKER_EFORMAT },   /* wraps to 4 */
    { SHAPE("[0,18446744073709551615]", "[0,0]"), 0, STOKER_OK },     /* empty */
    { SHAPE("[18446744073709551615,0]", "[0,0]"), 0, STOKER_OK },     /* in either order */
    { SHAPE("[1,1,1,1,1,1,1,1]", "[0,4]"), 4, STOKER_OK },
    { SHAPE("[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, STOKER_ELIMIT },
    { SHAPE("[[2]]", "[0,8]"), 8, STOKER_EFORMAT }, /* nested */
    { SHAPE("\"2\"", "[0,8]"), 8, STOKER_EFORMAT },
    { "{\"__metadata__\":{\"a\":\"b\"},\"__metadata__\":{}}", 0, STOKER_EFORMAT },
    { "{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}}", 0, STOKER_EFORMAT },
    { "{\"__metadata__\":{\"a\":1}}", 0, STOKER_EFORMAT },
    { "{\"__metadata__\":{\"a\":{}}}", 0, STOKER_EFORMAT },
    { "{\"__metadata__\":{\"stoker.state\":\"x\"}}", 0,
      STOKER_EFORMAT }, /* ours, but no checksum */
    { "{\"__metadata__\":{\"a\\u0000\":\"b\"}}", 0, STOKER_EFORMAT },
    { "{\"__metadata__\":{\"\\ud800\":\"b\"}}", 0, STOKER_EFORMAT },
    { "{\"__metadata__\":{\"\\udc00\\ud800\":\"b\"}}", 0, STOKER_EFORMAT },
    { "{\"__metadata__\":{\"\\ud800\\u0041\":\"b\"}}", 0, STOKER_EFORMAT },
    { "{\"__metadata__\":{\"\\x41\":\"b\"}}", 0, STOKER_EFORMAT },
    { "{\"__metadata__\":{\"\\u12\":\"b\"}}", 0, STOKER_EFORMAT },
    { "{\"__metadata__\":{\"\n\":\"b\"}}", 0, STOKER_EFORMAT },
    { "{\"__metadata__\":{\"\xC0\x80\":\"b\"}}", 0, STOKER_EFORMAT },     /* overlong */
    { "{\"__metadata__\":{\"\xED\xA0\x80\":\"b\"}}", 0, STOKER_EFORMAT }, /* a surrogate */
    { "{\"__metadata__\":{\"\xF4\x90\x80\x80\":\"b\"}}", 0, STOKER_EFORMAT },
    { "{\"__metadata__\":{\"a\\", 0, STOKER_EFORMAT },
    { "{\"__metadata__\":{\"a\\u00", 0, STOKER_EFORMAT },
    { "{\"__metadata__\":{\"a\xE2\x82", 0, STOKER_EFORMAT },
};

CleanTest(safetensors, hostile_headers_are_refused)
{
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        const struct stk_bytes bytes = with_data(hostile[i].header, hostile[i].data_bytes);
        stoker_error error;
        const int rc = parse(bytes.at, bytes.size, &error);
        cr_assert_eq(rc, hostile[i].code, "%s: %d", hostile[i].header, rc);
        cr_assert(rc == STOKER_OK || error.offset <= bytes.size, "%s", error.message);
    }
}

CleanTest(safetensors, lengths_that_lie_take_no_memory)
{
    static const struct {
        uint64_t length;
        int code;
    } lies[] = { { 0, STOKER_EFORMAT },         { 1, STOKER_EFORMAT },
                 { 3, STOKER_ETRUNCATED },      { 100000000, STOKER_ETRUNCATED },
                 { 100000001, STOKER_ELIMIT },  { INT64_MAX, STOKER_ELIMIT },
                 { UINT64_MAX, STOKER_ELIMIT }, { UINT64_MAX - 7, STOKER_ELIMIT } };
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        struct stk_bytes bytes = with_data("{}", 0);
        stk_store_le64(bytes.at, lies[i].length);
        stoker_error error;
        cr_assert_eq(parse(bytes.at, bytes.size, &error), lies[i].code, "%zu", i);
    }
}

CleanTest(safetensors, a_million_braces_nest_nothing)
{
    enum { DEEP = 1 << 20 };
    uint8_t *bytes = malloc(DEEP + 8);
    cr_assert_not_null(bytes);
    stoker_error error;
    for (const char *pattern = "{[\":"; *pattern != '\0'; pattern++) {
        memset(bytes, *pattern, DEEP + 8);
        stk_store_le64(bytes, DEEP);
        bytes[8] = '{';
        cr_assert_eq(parse(bytes, DEEP + 8, &error), STOKER_EFORMAT);
    }
    free(bytes);
}

CleanTest(safetensors, what_is_no_file_is_refused)
{
    struct stk_directory directory = stk_directory_make();
    struct stk_safetensors file;
    stoker_error error;
    char path[512];
    cr_assert_eq(stk_safetensors_open(&file, stk_path_in(path, &directory, "none"), &error),
                 STOKER_ENOENT);
    cr_assert_eq(error.os_errno, ENOENT);
    cr_assert_eq(stk_safetensors_open(&file, directory.path, &error), STOKER_EISDIR);
    cr_assert_eq(mkfifo(stk_path_in(path, &directory, "pipe"), 0600), 0);
    cr_assert_eq(stk_safetensors_open(&file, path, &error), STOKER_ENOTSUP);
    cr_assert_not_null(strstr(error.message, "pipe"));
    stk_directory_remove(&directory);
}

/* A sparse file may promise, truly, more than the machine has. */
CleanTest(safetensors, a_file_larger_than_the_memory_is_refused)
{
    struct stk_memory_file file = stk_memory_file("", 0);
    char header[256];
    const uint64_t bytes = UINT64_C(1) << 50;
    const int length = snprintf(header, sizeof(header),
                                "{\"w\":{\"dtype\":\"U8\",\"shape\":[%llu],"
                                "\"data_offsets\":[0,%llu]}}",
                                (unsigned long long)bytes, (unsigned long long)bytes);
    const struct stk_bytes head = with_data(header, 0);
    cr_assert_eq(pwrite(file.fd, head.at, head.size, 0), (ssize_t)head.size);
    cr_assert_gt(length, 0);
    stoker_error error = { 0 };
    struct stk_safetensors out;
    if (ftruncate(file.fd, (off_t)(head.size + bytes)) == 0) {
        const int rc = stk_safetensors_open(&out, file.path, &error);
        cr_assert(rc == STOKER_ELIMIT || rc == STOKER_ENOMEM, "%d", rc);
    }
    close(file.fd);
}

CleanTest(safetensors, sets_that_cannot_be_written_are_refused)
{
    static const struct stk_named_tensor wrong[] = {
        { .name = "__metadata__", .dtype = STK_FILE_U8, .data = odd },
        { .name = "\xFF", .dtype = STK_FILE_U8, .data = odd },
        { .name = "rank", .dtype = STK_FILE_U8, .rank = STK_TENSOR_RANK_MAX + 1, .data = odd },
        { .name = "dtype", .dtype = STK_FILE_DTYPE_COUNT, .data = odd },
        { .name = "size", .dtype = STK_FILE_F64, .rank = 1, .shape = { INT64_MAX }, .data = odd },
    };
    struct stk_memory_file file = stk_memory_file("", 0);
    stoker_error error;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const struct stk_tensor_set one = { .tensors = &wrong[i], .tensor_count = 1 };
        cr_assert_eq(stk_safetensors_write(file.fd, "x", &one, &error), STOKER_EINVAL, "%zu", i);
    }
    const struct stk_named_tensor pair[2] = { tensors[0], tensors[0] };
    const struct stk_tensor_set twice = { .tensors = pair, .tensor_count = 2 };
    cr_assert_eq(stk_safetensors_write(file.fd, "x", &twice, &error), STOKER_EINVAL);
    const struct stk_note same[2] = { { "a", "1" }, { "a", "2" } };
    const struct stk_tensor_set twice_noted = { .notes = same, .note_count = 2 };
    cr_assert_eq(stk_safetensors_write(file.fd, "x", &twice_noted, &error), STOKER_EINVAL);
    const struct stk_note ours = { "stoker.crc32c", "1" };
    const struct stk_tensor_set noted = { .notes = &ours, .note_count = 1 };
    cr_assert_eq(stk_safetensors_write(file.fd, "x", &noted, &error), STOKER_EINVAL);
    cr_assert_eq(lseek(file.fd, 0, SEEK_END), 0); /* nothing was written */
    close(file.fd);
}

/* More tensors than one writev takes; some are empty. */
CleanTest(safetensors, many_tensors)
{
    enum { MANY = 3000 };
    static struct stk_named_tensor many[MANY];
    static char names[MANY][16];
    static uint32_t values[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "t%u", i);
        values[i] = i;
        many[i] = (struct stk_named_tensor){ .name = names[i],
                                             .dtype = STK_FILE_U32,
                                             .rank = 1,
                                             .shape = { i % 7 != 0 },
                                             .data = &values[i] };
    }
    const struct stk_tensor_set all = { .tensors = many, .tensor_count = MANY };
    struct stk_memory_file on_disk = stk_memory_file("", 0);
    stoker_error error;
    cr_assert_eq(stk_safetensors_write(on_disk.fd, "x", &all, &error), STOKER_OK);
    struct stk_safetensors file;
    cr_assert_eq(stk_safetensors_open(&file, on_disk.path, &error), STOKER_OK);
    cr_assert_eq(file.set.tensor_count, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        const struct stk_named_tensor *tensor = stk_tensor_find(&file.set, names[i]);
        cr_assert_not_null(tensor);
        cr_assert_eq(tensor->bytes, i % 7 != 0 ? 4 : 0);
        cr_assert(tensor->bytes == 0 || memcmp(tensor->data, &values[i], 4) == 0);
    }
    stk_safetensors_close(&file);
    close(on_disk.fd);
}

CleanTest(safetensors, each_allocation_may_fail)
{
    const struct stk_bytes bytes = written(&set);
    stoker_error error;
    struct stk_safetensors file;
    for (int writing = 0; writing < 2; writing++) {
        int rc = STOKER_ENOMEM;
        uint64_t nth = 0;
        while (rc == STOKER_ENOMEM) {
            struct stk_memory_file out = stk_memory_file("", 0);
            stk_fault_arm(STK_FAULT_ANY, ++nth);
            rc = writing ? stk_safetensors_write(out.fd, "x", &set, &error)
                         : stk_safetensors_parse(&file, bytes.at, bytes.size, "x", &error);
            cr_assert_eq(stk_fault_disarm(), rc == STOKER_ENOMEM);
            if (!writing)
                stk_safetensors_close(&file);
            close(out.fd);
            cr_assert_eq(stk_fault_live_bytes(), 0);
        }
        cr_assert_eq(rc, STOKER_OK);
        cr_assert_eq(nth, 3); /* two of them in each direction */
    }
}
