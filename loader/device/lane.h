/* lane.h - a stream of a GPU that one worker uses by itself, beside the device's own.
 *
 *   worker    queues decoding, copies and kernels on its lane ─▶ waits, asleep ─▶ publishes its rows
 *   consumer  copies what is published from GPU memory to GPU memory, on the device's stream
 *
 * Because the worker has waited, no event is needed between the two streams. A lane belongs to one
 * thread at a time, and is closed before its device. Errors are the device's, which has then
 * failed.
 */
#ifndef STK_DEVICE_LANE_H
#define STK_DEVICE_LANE_H

#include <stddef.h>

#include "loader/device/device.h"

struct stk_lane;

/* Open a lane of a GPU that copies batches. Returns 0, STOKER_ENOMEM, or STOKER_EDEVICE with the
 * reason in `why`. */
int stk_lane_open(struct stk_lane **out, struct stk_device *device, char why[STK_DEVICE_WHY_BYTES]);

/* Nothing is in progress on it, or the device has failed. Sets *at to NULL; NULL is allowed. */
void stk_lane_close(struct stk_lane **at);

/* The stream, for libraries that queue work themselves. */
void *stk_lane_stream(const struct stk_lane *lane);

/* Make the GPU current in this thread, for what follows; leave restores what was. Each 0 or
 * STOKER_EDEVICE. */
int stk_lane_enter(struct stk_lane *lane);
void stk_lane_leave(struct stk_lane *lane);

/* Between enter and leave: queue a copy from host memory, which stays as it is until wait(), or a
 * kernel, whose arguments are copied at once; wait, asleep, for everything that was queued. Each
 * returns 0 or STOKER_EDEVICE. */
int stk_lane_copy(struct stk_lane *lane, void *to, const void *from, size_t bytes);
int stk_lane_launch(struct stk_lane *lane, const struct stk_device_launch *launch);
int stk_lane_wait(struct stk_lane *lane);

#endif
