/* sizing.h - chooses the numbers that the options leave open, by the machine and the samples. */
#ifndef STK_SIZING_H
#define STK_SIZING_H

#include <stdint.h>

#include "loader/api/loader.h"

/* Rows per ticket: as many as are gathered in about 50 us. */
uint32_t stk_sizing_span_rows(const stoker_loader *loader);

/* Rows that a worker takes at once before it has measured how long rows take (pace.h): few if they
 * are read or decoded, which may take any time; a whole ticket if they are only gathered or there
 * is a single worker. */
uint32_t stk_sizing_share_rows(const stoker_loader *loader);

/* Set the number of CPUs, of workers, and of workers that run at first. */
void stk_sizing_choose_workers(stoker_loader *loader);

/* Slots of the ring. Call after choose_workers. */
uint32_t stk_sizing_slot_count(stoker_loader *loader);

/* Memory for `count` slots. */
uint64_t stk_sizing_slots_bytes(const stoker_loader *loader, uint32_t count);

/* The part of `bytes`, a limit on memory, that a cache leaves to batches. */
uint64_t stk_sizing_batches_share(const stoker_loader *loader, uint64_t bytes);

/* This process's part of the memory that was left when the loader was made. */
uint64_t stk_sizing_memory_share(const stoker_loader *loader);

/* Buffers on a device: prefetch_batches if given, else enough to copy ahead. Call after the slots
 * are made. */
uint32_t stk_sizing_buffer_count(const stoker_loader *loader);

/* Reads that a worker keeps in flight: a window of bytes by the usual length of a sample, so that
 * one long sample does not slow the others down. Bounded by the scratch, each place of which has
 * room for the longest. */
uint32_t stk_sizing_read_depth(const stoker_dataset *dataset);

#endif
