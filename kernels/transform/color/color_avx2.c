/* color_avx2.c - color steps, eight pixels at once. */
#define COLOR_NAME(name) name##_avx2
#include "kernels/transform/color/color_body.h"
