/* write_retouched.c - rotate, color and blur what comes in: for check_retouch_torch.py, which
 * repeats it.
 *
 * stdin: "channels height width sample brightness contrast saturation hue angle blur sigma\n" and
 * the image's bytes, again and again. stdout: the drawn order and amounts of the four color steps,
 * "%d %d %d %d %a %a %a %a\n", and the bytes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/gpu/planned_transform.h"

enum { SIDE_MAX = 512, BYTES_MAX = SIDE_MAX * SIDE_MAX * 4 };

struct job {
    unsigned channels, height, width, sample;
    stoker_transform transform;
};

static bool read_job(struct job *job)
{
    stoker_transform *const transform = &job->transform;
    *job = (struct job){ .channels = 0 };
    if (scanf("%u %u %u %u %f %f %f %f %f %u %f", &job->channels, &job->height, &job->width,
              &job->sample, &transform->brightness, &transform->contrast, &transform->saturation,
              &transform->hue, &transform->rotate_min, &transform->blur,
              &transform->sigma_min) != 11 ||
        getchar() != '\n')
        return false;
    transform->rotate_max = transform->rotate_min;
    transform->sigma_max = transform->sigma_min;
    return job->height <= SIDE_MAX && job->width <= SIDE_MAX && job->channels <= 4;
}

static bool run(const struct job *job, unsigned char *in, unsigned char *out)
{
    static struct stk_planned planned;
    const struct stk_convert_options convert = { .to = STOKER_DTYPE_UINT8,
                                                 .channels = job->channels,
                                                 .scale = 1.0F };
    const size_t bytes = (size_t)job->height * job->width * job->channels;
    struct stk_retouch drawn;
    if (fread(in, 1, bytes, stdin) != bytes ||
        stk_planned_make(&planned, &job->transform, 3, job->height, job->width, false, convert) !=
            0)
        return false;
    const size_t scratch_bytes = (stk_transform_scratch_bytes(&planned.plan) + 63) / 64 * 64;
    void *scratch = aligned_alloc(64, scratch_bytes);
    if (scratch == NULL)
        return false;
    for (size_t i = 0; i < scratch_bytes; i++)
        ((unsigned char *)scratch)[i] = 0;
    const struct stk_image image = { .pixels = in, .height = job->height, .width = job->width };
    stk_transform_row(&planned.plan, scratch, &image, 0, job->sample, NULL, out);
    free(scratch);
    stk_retouch_draw(&planned.plan.framing.retouch, 0, job->sample, &drawn);
    printf("%d %d %d %d %a %a %a %a\n", drawn.order[0], drawn.order[1], drawn.order[2],
           drawn.order[3], (double)drawn.amount[0], (double)drawn.amount[1],
           (double)drawn.amount[2], (double)drawn.amount[3]);
    return fwrite(out, 1, bytes, stdout) == bytes && fflush(stdout) == 0;
}

int main(void)
{
    static unsigned char in[BYTES_MAX], out[BYTES_MAX];
    struct job job;
    while (read_job(&job))
        if (!run(&job, in, out))
            return 1;
    return 0;
}
