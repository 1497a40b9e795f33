/* readme_fields.c - runs the functions of README.md's section on fields over samples that make_fields.py has made.
 *
 * usage: readme_fields COUNT      in the folder of the samples; exit status 0 = each saw all of them
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <stoker/stoker.h>

int segmentation(uint64_t *pixels);
int text(uint64_t *letters);
int own_data(const float *x, const int32_t *y, uint64_t count, stoker_dataset **out);

#include <readme_fields.h> /* cut out by readme_example.cmake */

enum { ROWS = 5, COLUMNS = 13 };

static int check(const char *name, int rc, uint64_t seen, uint64_t expected)
{
    if (rc >= 0 && seen == expected)
        return 0;
    (void)fprintf(stderr, "%s: %s: %llu, not %llu\n", name, stoker_strerror(rc),
                  (unsigned long long)seen, (unsigned long long)expected);
    return 1;
}

static int check_own_data(void)
{
    static float x[ROWS * COLUMNS];
    static const int32_t y[ROWS] = { 3, 1, 4, 1, 5 };
    stoker_dataset *dataset = NULL;
    float row[COLUMNS];
    stoker_label label = { .index = 0 };
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)i;
    int rc = own_data(x, y, ROWS, &dataset);
    if (rc == STOKER_OK)
        rc = stoker_dataset_read(dataset, 4, row, sizeof(row), &label, NULL);
    const uint64_t last = rc == STOKER_OK ? (uint64_t)row[COLUMNS - 1] : 0;
    stoker_dataset_close(&dataset);
    return check("own_data", rc, last * 10 + (uint64_t)label.index, 64 * 10 + 5);
}

int main(int argc, char **argv)
{
    const uint64_t count = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t pixels = 0;
    uint64_t letters = 0;
    uint64_t expected = 0;
    for (uint64_t i = 0; i < count; i++) /* captions repeat "a caption " 0, 1 and 2 times */
        expected += 10 * (i % 3);
    int rc = segmentation(&pixels);
    int bad = check("segmentation", rc, pixels, 48 * count);
    rc = text(&letters);
    bad += check("text", rc, letters, expected);
    return bad + check_own_data();
}
