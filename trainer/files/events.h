/* events.h - scalars in TensorBoard's event files.
 *
 *   file     record, record, ...                        (TFRecord)
 *   record   u64 LE length │ u32 masked CRC-32C of it │ event │ u32 masked CRC-32C of the event
 *   event    protobuf Event: 1 wall_time, double; 2 step, varint; and one of
 *            3 file_version "brain.Event:2"    the first event of a file
 *            5 summary { 1 value { 1 tag, 2 simple_value, float } }
 *            7 session_log { 1 status START }  a run continues: later steps in older files are void
 *   mask     ((crc >> 15) | (crc << 17)) + 0xA282EAD8
 */
#ifndef STK_TRAINER_EVENTS_H
#define STK_TRAINER_EVENTS_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

enum {
    STK_EVENT_TAG_BYTES_MAX = 256,
    STK_EVENTS_PATH_BYTES = 4096,
    STK_EVENTS_BUFFER_BYTES = 8192
};

struct stk_events {
    int fd;
    size_t used; /* bytes in the buffer */
    char path[STK_EVENTS_PATH_BYTES];
    uint8_t buffer[STK_EVENTS_BUFFER_BYTES];
};

/* Creates events.out.tfevents.TIME.HOST in the directory, which is created with its parents if
 * missing. wall_time_s: seconds since 1970. first_step > 0: the run continues after that step. */
int stk_events_open(struct stk_events *events, const char *directory, double wall_time_s,
                    uint64_t first_step, stoker_error *error);

/* One scalar; it may stay in the buffer until a flush. tag: 1..STK_EVENT_TAG_BYTES_MAX bytes. */
int stk_events_scalar(struct stk_events *events, const char *tag, uint64_t step, double wall_time_s,
                      float value, stoker_error *error);
int stk_events_flush(struct stk_events *events, stoker_error *error);

/* Flush, close. After a failed open, or twice, it does nothing. */
int stk_events_close(struct stk_events *events, stoker_error *error);

#endif
