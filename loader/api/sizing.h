/* sizing.h - how many there should be of what the options leave open: by the machine, and by what
 * samples are like. */
#ifndef STK_SIZING_H
#define STK_SIZING_H

#include <stdint.h>

#include "loader/api/loader.h"

/* Rows that make a ticket: as many as can be gathered in about 50 us. */
uint32_t stk_sizing_span_rows(const stoker_loader *loader);

/* The least rows of a ticket that a worker takes at once, before it knows how long rows take (pace):
 * few if they are read or decoded, since that may take any time; all of them if they are only
 * gathered, or if there is no other worker to share them with. */
uint32_t stk_sizing_part_rows(const stoker_loader *loader);

/* The CPUs, how many workers there are and how many of them begin. */
void stk_sizing_choose_workers(stoker_loader *loader);

/* Slots of the ring; the workers are chosen. */
uint32_t stk_sizing_slot_count(const stoker_loader *loader);

/* Buffers on a device: as much as may be held of the ring, where that was said; otherwise enough to
 * copy ahead. The slots are made. */
uint32_t stk_sizing_buffer_count(const stoker_loader *loader);

#endif
