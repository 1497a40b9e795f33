/* state_layout.h - where the fields of the 64-byte state of a loader lie; all little-endian.
 *
 *    0  magic "STKS"        4  version
 *    8  seed               16  epoch
 *   24  position: positions of the epoch delivered, over all ranks
 *   32  samples in the data set
 *   40  flags: bit 0 shuffle, bit 1 changes of a mix follow, bits 8..31 hash of options.order
 *   44  bytes of a row as stored
 *   48  fingerprint: form  52  fingerprint: content
 *   56  check: stk_mix64 over the words before
 */
#ifndef STK_STATE_LAYOUT_H
#define STK_STATE_LAYOUT_H

enum stk_state_layout {
    STK_STATE_VERSION_AT = 4,
    STK_STATE_SEED_AT = 8,
    STK_STATE_EPOCH_AT = 16,
    STK_STATE_POSITION_AT = 24,
    STK_STATE_COUNT_AT = 32,
    STK_STATE_FLAGS_AT = 40,
    STK_STATE_ROW_BYTES_AT = 44,
    STK_STATE_FORM_AT = 48,
    STK_STATE_CONTENT_AT = 52,
    STK_STATE_CHECK_AT = 56,
    STK_STATE_BYTES = 64
};

#endif
