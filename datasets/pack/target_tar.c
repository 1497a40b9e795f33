/* target_tar.c - pack into one archive in the form of WebDataset: KEY.png and KEY.cls. An existing archive is only
 * compared, never changed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/pack/archive.h"
#include "datasets/pack/names.h"

struct tar {
    const struct pack_plan *plan;
    struct pack_archive archive;
    struct pack_tally tally;
};

static void close_tar(void *self)
{
    struct tar *tar = self;
    pack_archive_close(&tar->archive);
    free(tar);
}

static bool open_tar(void **self, const struct pack_plan *plan, struct pack_start *start,
                     struct pack_failure *failure)
{
    const char *path = plan->arguments->target;
    (void)start; /* an archive cannot be resumed */
    if (plan->info->label_dtype == STOKER_DTYPE_FLOAT32)
        return pack_fail(failure, path, 0, "labels that are no classes do not fit in .cls files");
    struct tar *tar = calloc(1, sizeof(*tar));
    if (tar == NULL)
        return pack_fail(failure, path, ENOMEM, "opening");
    tar->plan = plan;
    if (!pack_archive_open(&tar->archive, path, failure)) {
        close_tar(tar);
        return false;
    }
    *self = tar;
    return true;
}

static bool add_sample(struct tar *tar, const struct pack_sample *sample,
                       struct pack_failure *failure)
{
    char name[64];
    char text[32];
    pack_file_name(name, sizeof(name), sample);
    tar->tally.samples++;
    if (!pack_archive_add(&tar->archive, name, sample->bytes, sample->size, failure))
        return false;
    if (tar->plan->info->label_dtype != STOKER_DTYPE_INT64)
        return true;
    const int length = snprintf(text, sizeof(text), "%" PRId64, sample->label.index);
    (void)snprintf(strrchr(name, '.'), 5, ".cls");
    return pack_archive_add(&tar->archive, name, text, (size_t)length, failure);
}

static bool add_batch(void *self, const struct pack_batch *batch, struct pack_failure *failure)
{
    struct tar *tar = self;
    for (uint32_t i = 0; i < batch->count; i++) {
        if (!add_sample(tar, &batch->samples[i], failure))
            return false;
    }
    return true;
}

static bool finish(void *self, struct pack_tally *tally, struct pack_failure *failure)
{
    struct tar *tar = self;
    if (pack_archive_existed(&tar->archive))
        tar->tally.kept_samples = tar->tally.samples;
    if (!pack_archive_finish(&tar->archive, failure))
        return false;
    tar->tally.bytes = tar->archive.at;
    tar->tally.files = 1;
    *tally = tar->tally;
    return true;
}

const struct pack_target pack_target_tar = {
    .open = open_tar, .add = add_batch, .finish = finish, .close = close_tar
};
