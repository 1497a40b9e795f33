/* state_layout.h - the bytes of a loader's state; all numbers are little-endian.
 *
 *    0  magic "STK"         3  version
 *    4  bytes of the whole state
 *    8  seed               16  epoch
 *   24  position: samples of the epoch delivered, over all ranks
 *   32  samples in the data set
 *   40  flags: bit 0 shuffle, bits 8..31 hash of options.order
 *   44  bytes of a row as stored
 *   48  fingerprint: form  52  fingerprint: content
 *   56  per change of a mix's weights while it ran: position (8), one float64 per source
 *  end  check: stk_mix64 over all words before
 *
 * Changes that the mix was made with are part of its fingerprint.
 */
#ifndef STK_STATE_LAYOUT_H
#define STK_STATE_LAYOUT_H

enum stk_state_layout {
    STK_STATE_SIZE_AT = 4,
    STK_STATE_SEED_AT = 8,
    STK_STATE_EPOCH_AT = 16,
    STK_STATE_POSITION_AT = 24,
    STK_STATE_COUNT_AT = 32,
    STK_STATE_FLAGS_AT = 40,
    STK_STATE_ROW_BYTES_AT = 44,
    STK_STATE_FORM_AT = 48,
    STK_STATE_CONTENT_AT = 52,
    STK_STATE_CHANGES_AT = 56,
    STK_STATE_CHECK_BYTES = 8
};

#endif
