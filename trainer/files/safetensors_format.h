/* safetensors_format.h - what the reader and the writer of the format must agree on. */
#ifndef STK_TRAINER_SAFETENSORS_FORMAT_H
#define STK_TRAINER_SAFETENSORS_FORMAT_H

/* The checksum lies at a fixed place, so that it can be compared before anything is parsed. */
#define STK_CHECKSUM_KEY    "stoker.crc32c"
#define STK_CHECKSUM_PREFIX "{\"__metadata__\":{\"" STK_CHECKSUM_KEY "\":\""
#define STK_FORMAT_KEY      "stoker.format"
#define STK_OWN_KEYS        "stoker."
#define STK_METADATA_NAME   "__metadata__"

enum {
    STK_LENGTH_BYTES = 8,
    STK_CHECKSUM_DIGITS = 8,
    STK_CHECKSUM_AT = STK_LENGTH_BYTES + sizeof(STK_CHECKSUM_PREFIX) - 1
};

#endif
