/* test_gzip.c - gzip files: unpacked whole, or refused with the offset of the bad member.
 *
 * Method: one real member (made by zlib, dynamic Huffman codes) and members that store
 * their bytes. Every prefix must fail, every flipped bit must fail or not matter.
 */
#include <stoker/stoker.h>

#include "datasets/gzip.h"
#include "support/files/dataset_files.h"
#include "support/sweep.h"

/* An IDX file of 6 x 5 x 4 bytes; byte i of its body is (i x i / 7) % 23. */
static const uint8_t real_member[] = {
    0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x0D, 0xCC, 0x5B, 0x16, 0x80,
    0x20, 0x08, 0x00, 0x51, 0xE4, 0x91, 0x06, 0x61, 0x4A, 0xE8, 0xFE, 0x97, 0x9A, 0x73, 0xCE,
    0xFD, 0x1D, 0x80, 0x46, 0x00, 0x70, 0x1D, 0x72, 0xF0, 0x51, 0x90, 0xA4, 0xDE, 0xD6, 0x67,
    0x16, 0xB9, 0x3D, 0x40, 0x6C, 0xC2, 0xE5, 0xC9, 0x4F, 0x8A, 0xEF, 0x36, 0xB9, 0x17, 0xDB,
    0xBA, 0x74, 0x1B, 0x38, 0x8D, 0xBA, 0x1E, 0x0A, 0xC5, 0x30, 0xCE, 0xDE, 0x30, 0x5F, 0x95,
    0x92, 0xC3, 0xB5, 0x32, 0xC2, 0xCA, 0x2F, 0xE6, 0x29, 0xBE, 0x5C, 0x80, 0x5C, 0xD5, 0xC7,
    0x39, 0xEA, 0x9B, 0xD8, 0x7A, 0xB2, 0x05, 0x6A, 0xD0, 0xB3, 0xEA, 0x20, 0x07, 0xDB, 0x3F,
    0x87, 0x53, 0xDA, 0x59, 0x88, 0x00, 0x00, 0x00
};
enum { REAL_BYTES = 136, LIMIT = 1 << 20 };

static int unpack(const void *bytes, size_t size, uint64_t max_bytes, struct stk_region *out,
                  size_t *out_bytes, stoker_error *error)
{
    struct stk_memory_file file = stk_memory_file(bytes, size);
    struct stk_source source;
    cr_assert_eq(stk_source_open(&source, &stk_storage_local, file.path, error), STOKER_OK);
    int rc = stk_gzip_unpack(&source, max_bytes, out, out_bytes, error);
    stk_source_close(&source);
    close(file.fd);
    return rc;
}

#ifndef STOKER_HAVE_DEFLATE

CleanTest(gzip, a_build_without_libdeflate_says_so)
{
    struct stk_region out = { 0 };
    size_t bytes = 0;
    stoker_error error = { 0 };
    cr_assert_eq(unpack(real_member, sizeof(real_member), LIMIT, &out, &bytes, &error),
                 STOKER_ENOTSUP);
    cr_assert_not_null(strstr(error.message, "libdeflate"));
    cr_assert_not_null(strstr(error.message, error.path));
    cr_assert_null(out.base);
}

#else

static void check_real(const uint8_t *bytes)
{
    static const uint8_t header[] = { 0, 0, 8, 3, 0, 0, 0, 6, 0, 0, 0, 5, 0, 0, 0, 4 };
    cr_assert_arr_eq(bytes, header, sizeof(header));
    for (int i = 0; i < REAL_BYTES - 16; i++)
        cr_assert_eq(bytes[16 + i], (i * i / 7) % 23);
}

/* Unpack and expect a failure; returns its code. */
static int refuse(const void *bytes, size_t size, uint64_t max_bytes, stoker_error *error)
{
    struct stk_region out = { 0 };
    size_t out_bytes = 0;
    int rc = unpack(bytes, size, max_bytes, &out, &out_bytes, error);
    cr_assert_lt(rc, 0);
    cr_assert_null(out.base);
    cr_assert_eq(error->code, rc);
    cr_assert_eq(strncmp(error->message, error->path, strlen(error->path)), 0);
    cr_assert_gt(strlen(error->path), 0);
    return rc;
}

CleanTest(gzip, one_member_is_unpacked)
{
    struct stk_region out;
    size_t bytes;
    cr_assert_eq(unpack(real_member, sizeof(real_member), LIMIT, &out, &bytes, NULL), STOKER_OK);
    cr_assert_eq(bytes, REAL_BYTES);
    check_real(out.base);
    stk_region_unmap(&out);
}

CleanTest(gzip, members_follow_each_other)
{
    struct stk_bytes file = { 0 };
    stk_put_gzip(&file, (const uint8_t *)"first ", 6);
    stk_put(&file, real_member, sizeof(real_member));
    stk_put_gzip(&file, (const uint8_t *)"", 0);
    stk_put_gzip(&file, (const uint8_t *)"last", 4);
    struct stk_region out;
    size_t bytes;
    cr_assert_eq(unpack(file.at, file.size, LIMIT, &out, &bytes, NULL), STOKER_OK);
    cr_assert_eq(bytes, 6 + REAL_BYTES + 4);
    cr_assert_eq(memcmp(out.base, "first ", 6), 0);
    check_real((const uint8_t *)out.base + 6);
    cr_assert_eq(memcmp((const uint8_t *)out.base + 6 + REAL_BYTES, "last", 4), 0);
    stk_region_unmap(&out);
}

CleanTest(gzip, memory_grows_when_the_last_member_says_little)
{
    enum { MEMBERS = 40, MEMBER_BYTES = 60000 };
    const size_t packed_max = (size_t)MEMBERS * (MEMBER_BYTES + 64);
    static uint8_t body[MEMBER_BYTES];
    uint8_t *file = malloc(packed_max);
    size_t size = 0;
    for (int member = 0; member < MEMBERS; member++) {
        static const uint8_t header[10] = { 0x1F, 0x8B, 8 };
        const uint8_t block[5] = { 1, MEMBER_BYTES & 0xFF, MEMBER_BYTES >> 8,
                                   (uint8_t) ~(MEMBER_BYTES & 0xFF),
                                   (uint8_t) ~(MEMBER_BYTES >> 8) };
        memset(body, member, sizeof(body));
        memcpy(file + size, header, 10);
        memcpy(file + size + 10, block, 5);
        memcpy(file + size + 15, body, sizeof(body));
        size += 15 + sizeof(body);
        stk_store_le32(file + size, stk_crc32(body, sizeof(body)));
        stk_store_le32(file + size + 4, sizeof(body));
        size += 8;
    }
    struct stk_region out;
    size_t bytes;
    cr_assert_eq(unpack(file, size, 16 << 20, &out, &bytes, NULL), STOKER_OK);
    cr_assert_eq(bytes, MEMBERS * sizeof(body));
    for (size_t i = 0; i < bytes; i++)
        cr_assert_eq(((const uint8_t *)out.base)[i], i / sizeof(body));
    stk_region_unmap(&out);
    stoker_error error = { 0 };
    cr_assert_eq(refuse(file, size, MEMBERS * sizeof(body) - 1, &error), STOKER_ELIMIT);
    cr_assert_eq(refuse(file, size, size * 3 / 4, &error), STOKER_ELIMIT);
    for (uint64_t nth = 4; nth <= 6; nth++) { /* the first three are those of any file */
        stk_fault_arm(STK_FAULT_ANY, nth);
        cr_assert_eq(refuse(file, size, 16 << 20, &error), STOKER_ENOMEM);
        cr_assert(stk_fault_disarm(), "there was no growth %d", (int)nth - 3);
    }
    free(file);
}

CleanTest(gzip, every_prefix_is_an_error)
{
    for (size_t size = 0; size < sizeof(real_member); size++) {
        stoker_error error = { 0 };
        int rc = refuse(real_member, size, LIMIT, &error);
        cr_assert_eq(rc, size < 18 ? STOKER_ETRUNCATED : STOKER_ECORRUPT, "%zu", size);
    }
}

CleanTest(gzip, every_flipped_bit_is_an_error_or_does_not_matter)
{
    unsigned unharmed = 0;
    for (size_t bit = 0; bit < sizeof(real_member) * 8; bit++) {
        uint8_t flipped[sizeof(real_member)];
        memcpy(flipped, real_member, sizeof(flipped));
        flipped[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        struct stk_region out = { 0 };
        size_t bytes = 0;
        int rc = unpack(flipped, sizeof(flipped), LIMIT, &out, &bytes, NULL);
        cr_assert_eq(rc == STOKER_OK, out.base != NULL);
        if (rc == STOKER_OK) {
            unharmed++;
            cr_assert_eq(bytes, REAL_BYTES, "bit %zu", bit);
            check_real(out.base);
            const bool padding =
                bit / 8 == sizeof(real_member) - 9; /* padding of the deflate stream */
            cr_assert(bit / 8 < 10 || padding, "bit %zu", bit);
            stk_region_unmap(&out);
        }
    }
    /* The time, the system and the level are for people; a flag says "text". */
    cr_assert_geq(unharmed, 6 * 8);
}

CleanTest(gzip, each_fault_has_its_code_and_the_offset_of_its_member)
{
    stoker_error error = { 0 };
    struct stk_bytes file = { 0 };
    stk_put_gzip(&file, (const uint8_t *)"whole", 5);
    const size_t second = file.size;
    const struct stk_bytes one = file;

    stk_put_gzip(&file, (const uint8_t *)"broken", 6);
    file.at[file.size - 12] ^= 1; /* in the stored bytes: the CRC finds it */
    cr_assert_eq(refuse(file.at, file.size, LIMIT, &error), STOKER_ECORRUPT);
    cr_assert_eq(error.offset, second);

    file = one;
    stk_put(&file, "not gzip at all, but long enough", 32);
    cr_assert_eq(refuse(file.at, file.size, LIMIT, &error), STOKER_ECORRUPT);
    cr_assert_eq(error.offset, second);

    file = one;
    stk_put(&file, real_member, 17);
    cr_assert_eq(refuse(file.at, file.size, LIMIT, &error), STOKER_ETRUNCATED);
    cr_assert_eq(error.offset, second);

    file = one;
    stk_put(&file, "", 1); /* a single zero byte */
    cr_assert_eq(refuse(file.at, file.size, LIMIT, &error), STOKER_ECORRUPT);
}

CleanTest(gzip, the_limit_is_checked_before_any_allocation)
{
    stoker_error error = { 0 };
    const uint64_t before = stk_fault_allocations();
    cr_assert_eq(refuse(real_member, sizeof(real_member), REAL_BYTES - 1, &error), STOKER_ELIMIT);
    cr_assert_leq(stk_fault_allocations() - before, 1, "the packed bytes and no more");

    struct stk_region out;
    size_t bytes;
    cr_assert_eq(unpack(real_member, sizeof(real_member), REAL_BYTES, &out, &bytes, NULL),
                 STOKER_OK);
    stk_region_unmap(&out);

    /* A length no deflate stream of this size can have is not believed. */
    uint8_t liar[sizeof(real_member)];
    memcpy(liar, real_member, sizeof(liar));
    stk_store_le32(liar + sizeof(liar) - 4, UINT32_MAX);
    cr_assert_eq(refuse(liar, sizeof(liar), UINT64_C(1) << 40, &error), STOKER_ECORRUPT);
}

CleanTest(gzip, a_packed_file_far_over_the_limit_is_not_even_read)
{
    struct stk_memory_file file = stk_memory_file("\x1F\x8B", 2);
    cr_assert_eq(ftruncate(file.fd, (off_t)1 << 40), 0); /* sparse */
    struct stk_source source;
    struct stk_region out = { 0 };
    size_t bytes;
    stoker_error error = { 0 };
    cr_assert_eq(stk_source_open(&source, &stk_storage_local, file.path, &error), STOKER_OK);
    cr_assert_eq(stk_gzip_unpack(&source, LIMIT, &out, &bytes, &error), STOKER_ELIMIT);
    stk_source_close(&source);
    close(file.fd);
}

CleanTest(gzip, each_allocation_may_fail)
{
    struct stk_region out = { 0 };
    size_t bytes;
    struct stk_sweep sweep = { .kinds = STK_FAULT_ANY };
    while (stk_sweep_next(&sweep))
        sweep.rc = unpack(real_member, sizeof(real_member), LIMIT, &out, &bytes, &sweep.error);
    cr_assert_eq(sweep.failed, 3, "the decompressor, the packed bytes, the unpacked");
    stk_region_unmap(&out);
}

#endif
