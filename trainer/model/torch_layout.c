/* torch_layout.c - see torch_layout.h. */
#include "trainer/model/torch_layout.h"

#include <string.h>

struct extents {
    uint64_t rows, h, w, c;
};

static struct extents extents_of(const stoker_model *model, const struct stk_parameter *parameter)
{
    struct extents e = { .rows = parameter->elements, .h = 1, .w = 1, .c = 1 };
    if (parameter->flattened.rank != 0) {
        e.h = parameter->flattened.h;
        e.w = parameter->flattened.w;
        e.c = parameter->flattened.c;
    } else if (model->layers[parameter->layer].kind == STK_CONV2D && parameter->rank == 4) {
        e.h = parameter->torch_shape[2];
        e.w = parameter->torch_shape[3];
        e.c = parameter->torch_shape[1];
    }
    e.rows /= e.h * e.w * e.c;
    return e;
}

/* Index in the file of element (row, y, x, channel). */
static uint64_t place(const struct extents *e, uint64_t row, uint64_t y, uint64_t x,
                      uint64_t channel)
{
    return ((row * e->c + channel) * e->h + y) * e->w + x;
}

void stk_layout_to_file(const stoker_model *model, const struct stk_parameter *parameter,
                        const float *here, void *file)
{
    const struct extents e = extents_of(model, parameter);
    unsigned char *const bytes = file;
    for (uint64_t row = 0; row < e.rows; row++)
        for (uint64_t y = 0; y < e.h; y++)
            for (uint64_t x = 0; x < e.w; x++)
                for (uint64_t channel = 0; channel < e.c; channel++, here++)
                    memcpy(bytes + place(&e, row, y, x, channel) * sizeof(float), here,
                           sizeof(float));
}

void stk_layout_from_file(const stoker_model *model, const struct stk_parameter *parameter,
                          const void *file, float *here)
{
    const struct extents e = extents_of(model, parameter);
    const unsigned char *const bytes = file;
    for (uint64_t row = 0; row < e.rows; row++)
        for (uint64_t y = 0; y < e.h; y++)
            for (uint64_t x = 0; x < e.w; x++)
                for (uint64_t channel = 0; channel < e.c; channel++, here++)
                    memcpy(here, bytes + place(&e, row, y, x, channel) * sizeof(float),
                           sizeof(float));
}
