/* test_compare.c - values out of lines of JSON, and two results side by side. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/compare/compare.h"
#include "bench/compare/json_read.h"
#include "support/leaks.h"

CleanTest(bench_compare, values_of_the_outermost_object_are_found)
{
    static const char line[] =
        "{\"a\": {\"b\": 1, \"c\": [2, \"}\"]}, \"t\": \"x\\\"\\\\\\u0041,\", "
        "\"b\": -2.5e3, \"yes\": true, \"list\": [1, 2.5,3], \"none\": null}";
    double number = 0, numbers[2] = { 0 };
    char text[32];
    bool yes = false;
    cr_assert(bench_json_read_number(line, "b", &number));
    cr_assert_eq(number, -2500.0);
    cr_assert(bench_json_read_text(line, "t", text, sizeof(text)));
    cr_assert_str_eq(text, "x\"\\?,");
    cr_assert(bench_json_read_bool(line, "yes", &yes));
    cr_assert(yes);
    cr_assert_eq(bench_json_read_numbers(line, "list", numbers, 2), 2);
    cr_assert_eq(numbers[1], 2.5);
    cr_assert_not(bench_json_read_number(line, "none", &number));
    cr_assert_not(bench_json_read_number(line, "c", &number), "of the inner object");
    cr_assert_not(bench_json_read_text(line, "b", text, sizeof(text)));
    cr_assert(bench_json_read_text(line, "t", text, 2));
    cr_assert_str_eq(text, "x", "cut");
}

/* Under the sanitizers: every beginning of a line, and every byte of it another. */
CleanTest(bench_compare, any_bytes_are_read_without_harm)
{
    static const char line[] =
        "{\"kind\": \"c\\u00e4\", \"rates\": [1, 2], \"o\": {\"x\": \"}\"}, \"n\": 1}";
    double numbers[2];
    char text[8];
    bool found;
    for (size_t length = 0; length < sizeof(line); length++)
        for (int byte = 0; byte < 256; byte += 3) {
            char *copy = strndup(line, length);
            if (length > 0)
                copy[length - 1] = (char)byte;
            (void)bench_json_read_number(copy, "n", numbers);
            (void)bench_json_read_numbers(copy, "rates", numbers, 2);
            (void)bench_json_read_text(copy, "kind", text, sizeof(text));
            (void)bench_json_read_bool(copy, "o", &found);
            free(copy);
        }
}

struct result {
    char path[64];
};

static struct result write_result(const char *host, const char *rates, const char *more)
{
    struct result result = { .path = "/tmp/stoker-compare-XXXXXX" };
    const int fd = mkstemp(result.path);
    cr_assert_geq(fd, 0);
    FILE *file = fdopen(fd, "w");
    fprintf(
        file,
        "{\"kind\": \"machine\", \"schema\": 3, \"date\": \"2026-11-22T13:00:00Z\", \"host\": "
        "\"%s\", "
        "\"commit\": \"abc\", \"load_1m\": 0.5}\n"
        "{\"kind\": \"cell\", \"workers\": 2, \"auto\": false, \"pin_memory\": \"on\", \"device\": "
        "\"cpu\", "
        "\"batch_size\": 64, \"dtype\": \"float32\", \"layout\": \"nhwc\", \"cache\": \"none\", "
        "\"cold\": false, \"samples_per_s\": 100, \"first_epoch_separate\": false, \"rates\": "
        "[%s]%s}\n",
        host, rates, more);
    fclose(file);
    return result;
}

static char *compare(const struct result *before, const struct result *after, int wanted)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    cr_assert_eq(bench_compare(before->path, after->path, file), wanted);
    fclose(file);
    return text;
}

/* Ten repeats and more: the outermost on both ends do not count. */
#define AROUND_100 "70, 99, 99, 100, 100, 100, 100, 101, 101, 180"
#define AROUND_90  "60, 89, 89, 90, 90, 90, 90, 91, 91, 170"
#define WIDE       "60, 75, 80, 90, 90, 90, 95, 99, 110, 170"

CleanTest(bench_compare, slower_is_what_lies_apart)
{
    const struct result good = write_result("one", AROUND_100, "");
    const struct result slow = write_result("t\\u001b[2Jwo\x1b[2J", AROUND_90, "");
    const struct result wide = write_result("one", WIDE, "");
    char *text = compare(&good, &slow, BENCH_COMPARE_SLOWER);
    cr_assert_not_null(strstr(text, "SLOWER"), "%s", text);
    cr_assert_not_null(strstr(text, "# host was one\n# host is  t?[2Jwo?[2J\n"), "%s", text);
    cr_assert_null(strstr(text, "commit was"), "%s", text);
    free(text);
    text = compare(&slow, &good, BENCH_COMPARE_GOOD);
    cr_assert_not_null(strstr(text, "faster\n"), "%s", text);
    free(text);
    text = compare(&good, &wide, BENCH_COMPARE_GOOD);
    cr_assert_null(strstr(text, "SLOWER"), "%s", text);
    cr_assert_not_null(strstr(text, "1 rates compared: 0 faster, 0 slower"), "%s", text);
    free(text);
    unlink(good.path);
    unlink(slow.path);
    unlink(wide.path);
}

CleanTest(bench_compare, first_epochs_stand_on_their_own)
{
    static const char *const rates[] = { "10, \"first_epoch_samples_per_s_min\": 9, "
                                         "\"first_epoch_samples_per_s_max\": 11",
                                         "3, \"first_epoch_samples_per_s_min\": 2, "
                                         "\"first_epoch_samples_per_s_max\": 4" };
    struct result sides[2];
    for (size_t side = 0; side < 2; side++) {
        sides[side] = (struct result){ .path = "/tmp/stoker-compare-XXXXXX" };
        FILE *file = fdopen(mkstemp(sides[side].path), "w");
        fprintf(file,
                "{\"kind\": \"machine\"}\n{\"kind\": \"cell\", \"workers\": 2, \"auto\": true, "
                "\"samples_per_s\": 100, \"rates\": [" AROUND_100
                "], \"first_epoch_separate\": true, "
                "\"first_epoch_samples_per_s\": %s}\n",
                rates[side]);
        fclose(file);
    }
    char *text = compare(&sides[0], &sides[1], BENCH_COMPARE_SLOWER);
    cr_assert_not_null(strstr(text, " first       10.0      3.00   0.30  SLOWER\n"), "%s", text);
    cr_assert_not_null(strstr(text, " later        100       100   1.00\n"), "%s", text);
    free(text);
    for (size_t side = 0; side < 2; side++)
        unlink(sides[side].path);
}

CleanTest(bench_compare, what_is_no_result_is_refused)
{
    struct result good = write_result("one", AROUND_100, "");
    struct result other = { .path = "/tmp/stoker-compare-no-such-file" };
    free(compare(&good, &other, BENCH_COMPARE_FAILED));
    free(compare(&other, &good, BENCH_COMPARE_FAILED));
    snprintf(other.path, sizeof(other.path), "/dev/null");
    free(compare(&good, &other, BENCH_COMPARE_FAILED));
    unlink(good.path);
}
