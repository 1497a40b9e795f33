/* raw.h - the codec of rows that are stored as they are used: a copy.
 *
 * A sample whose codec is NULL means the same, and lets the pipeline skip the copy.
 */
#ifndef STK_CODEC_RAW_H
#define STK_CODEC_RAW_H

#include <stoker/codec.h>

extern const stoker_codec stk_codec_raw;

#endif
