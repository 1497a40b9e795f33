/* fields_page.c - runs the functions of docs/fields.md over samples that make_fields.py has made.
 *
 * usage: fields_page COUNT in the folder of the samples; exit status 0 = each saw all of them
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <stoker/stoker.h>

int segmentation(uint64_t *pixels);
int text(uint64_t *letters);
int own_data(const float *x, const int32_t *y, uint64_t count, stoker_dataset **out);

#include <fields_page.h> /* cut out by cut_example.cmake */

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
    stoker_row rows[STOKER_FIELDS_MAX] = { { .data = row, .bytes_max = sizeof(row) },
                                           { .data = &label, .bytes_max = sizeof(label) } };
    if (rc == STOKER_OK)
        rc = stoker_dataset_read(dataset, 4, rows, NULL);
    const uint64_t last = rc == STOKER_OK ? (uint64_t)row[COLUMNS - 1] : 0;
    stoker_dataset_close(&dataset);
    return check("own_data", rc, last * 10 + (uint64_t)label.index, 64 * 10 + 5);
}

/* The sum of the steps of an epoch's walks: 1000 walks of 64 steps. Returns -1 if a walk is
 * missing. */
static double sum_walks(int32_t workers)
{
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    double sum = 0;
    uint64_t seen = 0;
    options.epochs = 1;
    options.num_workers = workers;
    int rc = stoker_dataset_create(&dataset, &walks, NULL, NULL);
    if (rc == STOKER_OK)
        rc = stoker_loader_create(&loader, dataset, &options, NULL);
    while (rc >= 0 && (rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED) {
        if (rc != STOKER_OK)
            continue;
        const float *walk = batch.fields[0].values.data;
        for (uint32_t i = 0; i < 64 * batch.count; i++)
            sum += (double)walk[i] * walk[i];
        seen += batch.count;
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    return rc == STOKER_FINISHED && seen == 1000 ? sum : -1;
}

/* The mean square of step n of such a walk is n. */
static int check_walks(void)
{
    const double sum = sum_walks(0), mean = sum / 64000;
    if (sum == sum_walks(2) && mean > 30 && mean < 35)
        return 0;
    (void)fprintf(stderr, "walks: mean square %g, of another run %g\n", mean, sum_walks(2) / 64000);
    return 1;
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
    return bad + check_own_data() + check_walks();
}
