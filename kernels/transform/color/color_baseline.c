/* color_baseline.c - color steps for any CPU. */
#define COLOR_NAME(name) name##_baseline
#include "kernels/transform/color/color_body.h"
