/* write_mixed.c - mix what comes in, as a loader does: for check_blend_torch.py, which repeats it.
 *
 * stdin: "rows channels height width mixup_alpha cutmix_alpha position\n" and the float32 pixels,
 * planes first, again and again. stdout: "lambda top left bottom right\n" (%a; the box 0 0 0 0 for
 * mixup), and the mixed pixels.
 */
#include <stdio.h>
#include <stdlib.h>

#include "loader/pipeline/batch/blend.h"

enum { FLOATS_MAX = 1 << 22 };

struct job {
    unsigned rows, channels, height, width, position;
    float mixup_alpha, cutmix_alpha;
};

static bool read_job(struct job *job, float *pixels, size_t *count)
{
    if (scanf("%u %u %u %u %f %f %u", &job->rows, &job->channels, &job->height, &job->width,
              &job->mixup_alpha, &job->cutmix_alpha, &job->position) != 7 ||
        getchar() != '\n')
        return false;
    *count = (size_t)job->rows * job->channels * job->height * job->width;
    return job->rows >= 2 && *count <= FLOATS_MAX &&
           fread(pixels, sizeof(pixels[0]), *count, stdin) == *count;
}

static void mix(const struct job *job, float *pixels)
{
    const size_t elements = (size_t)job->channels * job->height * job->width;
    const struct stk_mix_array array = { .height = job->height,
                                         .width = job->width,
                                         .planes = job->channels,
                                         .pixel_bytes = sizeof(float) };
    const struct stk_blend_plan plan = { .on = true,
                                         .options = { .mixup_alpha = job->mixup_alpha,
                                                      .cutmix_alpha = job->cutmix_alpha,
                                                      .probability = 1.0F },
                                         .seed = 7,
                                         .height = job->height,
                                         .width = job->width };
    const struct stk_mix_rows rows = { .at = (uint8_t *)(void *)pixels,
                                       .stride_bytes = elements * sizeof(float),
                                       .count = job->rows };
    struct stk_mix_draw draw;
    stk_blend_draw(&plan, 3, job->position, job->rows, &draw);
    const struct stk_mix_box box = stk_blend_box(&array, &draw);
    if (draw.how == STK_MIXED_UP)
        stk_mixup_rows(STK_MIX_F32, &rows, elements, draw.steps);
    else
        stk_cutmix_rows(&rows, &box);
    printf("%a %u %u %u %u\n", (double)draw.lambda, draw.top, draw.left, draw.bottom, draw.right);
}

int main(void)
{
    static float pixels[FLOATS_MAX];
    struct job job;
    size_t count;
    while (read_job(&job, pixels, &count)) {
        mix(&job, pixels);
        if (fwrite(pixels, sizeof(pixels[0]), count, stdout) != count || fflush(stdout) != 0)
            return 1;
    }
    return 0;
}
