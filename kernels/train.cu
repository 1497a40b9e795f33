/* train.cu - all kernels of a training step, in one fat binary. */
#include "kernels/train_batch_norm.cu"
#include "kernels/train_channel_sums.cu"
#include "kernels/train_dropout.cu"
#include "kernels/train_elementwise.cu"
#include "kernels/train_loss.cu"
#include "kernels/train_pool.cu"
#include "kernels/train_update.cu"
