/* write_resized.c - resize what comes in: for check_resize_pillow.py, which knows what must come
 * out.
 *
 * stdin: "channels height width to_height to_width\n" and the image's bytes, again and again.
 * stdout: the bytes of each resized image.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/gpu/planned_transform.h"

struct job {
    unsigned channels, height, width, to_height, to_width;
};

/* Everything that one job takes, freed with it. */
struct work {
    struct stk_planned planned;
    unsigned char *in, *out;
    void *scratch;
};

static bool prepare(struct work *work, const struct job *job)
{
    const stoker_transform transform = { .resize = { job->to_height, job->to_width } };
    const struct stk_convert_options convert = { .to = STOKER_DTYPE_UINT8,
                                                 .channels = job->channels,
                                                 .scale = 1.0F };
    *work = (struct work){ .in = NULL };
    if (stk_planned_make(&work->planned, &transform, 0, job->height, job->width, false, convert) !=
        0)
        return false;
    const size_t scratch_bytes = (stk_transform_scratch_bytes(&work->planned.plan) + 63) / 64 * 64;
    work->in = malloc((size_t)job->height * job->width * job->channels);
    work->out = malloc(work->planned.convert.to_bytes);
    work->scratch = aligned_alloc(64, scratch_bytes);
    if (work->in == NULL || work->out == NULL || work->scratch == NULL)
        return false;
    for (size_t i = 0; i < scratch_bytes; i++)
        ((unsigned char *)work->scratch)[i] = 0;
    return true;
}

static bool run(struct work *work, const struct job *job)
{
    const size_t in_bytes = (size_t)job->height * job->width * job->channels;
    if (fread(work->in, 1, in_bytes, stdin) != in_bytes)
        return false;
    const struct stk_image image = { .pixels = work->in,
                                     .height = job->height,
                                     .width = job->width };
    stk_transform_row(&work->planned.plan, work->scratch, &image, 0, 0, NULL, work->out);
    const size_t out_bytes = work->planned.convert.to_bytes;
    return fwrite(work->out, 1, out_bytes, stdout) == out_bytes && fflush(stdout) == 0;
}

int main(void)
{
    struct job job;
    static struct work work;
    while (scanf("%u %u %u %u %u", &job.channels, &job.height, &job.width, &job.to_height,
                 &job.to_width) == 5 &&
           getchar() == '\n') {
        const bool done = prepare(&work, &job) && run(&work, &job);
        free(work.in);
        free(work.out);
        free(work.scratch);
        if (!done)
            return 1;
    }
    return 0;
}
