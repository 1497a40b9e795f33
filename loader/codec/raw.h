/* raw.h - the codec of unpacked rows: a copy.
 *
 * A codec of NULL means the same and lets the pipeline skip the copy.
 */
#ifndef STK_CODEC_RAW_H
#define STK_CODEC_RAW_H

#include <stoker/codec.h>

extern const stoker_codec stk_codec_raw;

#endif
