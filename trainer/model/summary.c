/* summary.c - a network as a table. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "trainer/model/digits.h"
#include "trainer/model/model.h"

/* Appends as snprintf does, piece by piece. */
struct page {
    char *text;
    size_t bytes;
    size_t length; /* characters of the whole table, written or not */
};

__attribute__((format(printf, 2, 3))) static void print(struct page *page, const char *format, ...)
{
    const size_t room = page->length < page->bytes ? page->bytes - page->length : 0;
    va_list arguments;
    va_start(arguments, format);
    const int length =
        vsnprintf(room > 0 ? page->text + page->length : NULL, room, format, arguments);
    va_end(arguments);
    if (length > 0)
        page->length += (size_t)length;
}

static uint64_t parameters_of(const stoker_model *model, const struct stk_layer *layer)
{
    uint64_t elements = 0;
    if (layer->weight >= 0)
        elements += model->parameters[layer->weight].elements;
    if (layer->bias >= 0)
        elements += model->parameters[layer->bias].elements;
    return elements;
}

static bool has_window(const struct stk_layer *layer)
{
    return layer->kind == STK_CONV2D || layer->kind == STK_MAX_POOL || layer->kind == STK_AVG_POOL;
}

static void print_layer(struct page *page, const stoker_model *model, const struct stk_layer *layer)
{
    char kind[32];
    int used = snprintf(kind, sizeof(kind), "%s", stk_layer_kind_name(layer->kind));
    if (has_window(layer))
        (void)snprintf(kind + used, sizeof(kind) - (size_t)used, " %" PRIu32 "x%" PRIu32,
                       layer->kernel[0], layer->kernel[1]);
    print(page, "%-20s %-16s %12s %12s %15s\n", layer->name, kind, stk_shape_text(layer->out).text,
          stk_digits(parameters_of(model, layer)).text, stk_digits(layer->flops).text);
}

/* Bytes that the layers write per sample; flatten writes none. */
static uint64_t output_bytes(const stoker_model *model)
{
    uint64_t bytes = 0;
    for (uint32_t i = 1; i < model->layer_count; i++)
        if (model->layers[i].kind < STK_SOFTMAX_CROSS_ENTROPY &&
            model->layers[i].kind != STK_FLATTEN)
            bytes += sizeof(float) * stk_shape_elements(model->layers[i].out);
    return bytes;
}

size_t stoker_model_summary(const stoker_model *model, char *text, size_t bytes)
{
    struct page page = { .text = text, .bytes = text == NULL ? 0 : bytes };
    if (page.bytes > 0)
        text[0] = '\0';
    if (model == NULL)
        return 0;
    print(&page, "%-20s %-16s %12s %12s %15s\n", "layer", "kind", "output", "parameters",
          "FLOPs a sample");
    for (uint32_t i = 0; i < model->layer_count; i++)
        print_layer(&page, model, &model->layers[i]);
    stoker_model_size size;
    stoker_model_get_size(model, &size);
    print(&page, "%-20s %-16s %12s %12s %15s\n", "total", "", "", stk_digits(size.parameters).text,
          stk_digits(size.flops_per_sample).text);
    print(&page, "parameters %s bytes, outputs of all layers %s bytes a sample\n",
          stk_digits(size.parameters * sizeof(float)).text, stk_digits(output_bytes(model)).text);
    return page.length;
}
