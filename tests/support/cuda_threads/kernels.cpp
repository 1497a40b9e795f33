// kernels.cpp - the source of all kernels as a module for cuda_threads.h. A test compares its table with the library's,
// so a new kernel needs a row here.
#include "device.h"

#include "kernels/train/train.cu"
#include "kernels/transform/gpu/transform.cu"

#define IN_EACH_TYPE(name)                                                                         \
    CUDA_KERNEL(name##_f32), CUDA_KERNEL(name##_f16), CUDA_KERNEL(name##_bf16)

static const cuda_threads_kernel kernels[] = {
    IN_EACH_TYPE(stk_train_softmax_cross_entropy),
    IN_EACH_TYPE(stk_train_mse),
    IN_EACH_TYPE(stk_train_gradient_norm),
    CUDA_KERNEL(stk_train_prepare),
    IN_EACH_TYPE(stk_train_update),
    IN_EACH_TYPE(stk_train_cast),
    IN_EACH_TYPE(stk_train_add_gradient),
    IN_EACH_TYPE(stk_train_relu),
    IN_EACH_TYPE(stk_train_relu_backward),
    IN_EACH_TYPE(stk_train_add),
    IN_EACH_TYPE(stk_train_bias_relu),
    IN_EACH_TYPE(stk_train_max_pool_forward),
    IN_EACH_TYPE(stk_train_max_pool_backward),
    IN_EACH_TYPE(stk_train_avg_pool_forward),
    IN_EACH_TYPE(stk_train_avg_pool_backward),
    IN_EACH_TYPE(stk_train_dropout),
    IN_EACH_TYPE(stk_train_batch_norm),
    IN_EACH_TYPE(stk_train_batch_norm_moments),
    IN_EACH_TYPE(stk_train_batch_norm_sums),
    CUDA_KERNEL(stk_train_batch_norm_finish),
    CUDA_KERNEL(stk_train_move_statistics),
    IN_EACH_TYPE(stk_train_batch_norm_backward_sums),
    IN_EACH_TYPE(stk_train_batch_norm_backward),
    IN_EACH_TYPE(stk_train_bias_gradient),
    CUDA_KERNEL(stk_crop_f32_nhwc),
    CUDA_KERNEL(stk_crop_f32_nchw),
    CUDA_KERNEL(stk_crop_f16_nhwc),
    CUDA_KERNEL(stk_crop_f16_nchw),
    CUDA_KERNEL(stk_crop_bf16_nhwc),
    CUDA_KERNEL(stk_crop_bf16_nchw),
    CUDA_KERNEL(stk_crop_u8_nhwc),
    CUDA_KERNEL(stk_crop_u8_nchw),
    CUDA_KERNEL(stk_rectangles),
    CUDA_KERNEL(stk_taps),
    CUDA_KERNEL(stk_resize),
    CUDA_KERNEL(stk_keep),
    CUDA_KERNEL(stk_rows),
    CUDA_KERNEL(stk_retouch),
    CUDA_KERNEL(stk_gray),
    CUDA_KERNEL(stk_rotate),
    CUDA_KERNEL(stk_color),
    CUDA_KERNEL(stk_blur_along),
    CUDA_KERNEL(stk_blur_across),
    CUDA_KERNEL(stk_mixup_u8),
    CUDA_KERNEL(stk_mixup_f16),
    CUDA_KERNEL(stk_mixup_bf16),
    CUDA_KERNEL(stk_mixup_f32),
    CUDA_KERNEL(stk_cutmix),
    {},
};

CUDA_MODULE(kernels)
