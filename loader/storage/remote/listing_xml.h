/* listing_xml.h - reads XML documents of S3: lists of objects, and errors.
 *
 * A pull parser for what these documents consist of: elements, text, the five named entities and
 * those of numbers. A document type, CDATA and elements nested deeper than STK_XML_DEPTH_MAX are
 * refused; attributes are skipped, and comments and instructions before the outermost element.
 */
#ifndef STK_STORAGE_REMOTE_LISTING_XML_H
#define STK_STORAGE_REMOTE_LISTING_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STK_XML_DEPTH_MAX = 8 };

struct stk_xml {
    char *text; /* decoded in place */
    size_t size;
    size_t at;       /* next byte; after an error, the byte in error */
    const char *why; /* the error. NULL = none */
    const char *names[STK_XML_DEPTH_MAX];
    int depth;
    bool empty;  /* the element that began last has ended, too: <NAME/> */
    bool rooted; /* the outermost element has begun */
};

enum stk_xml_event { STK_XML_ERROR, STK_XML_BEGIN, STK_XML_END, STK_XML_DONE };

/* Find the next tag. *name is its element; at an END *value is the text behind the tag before,
 * decoded: all of an element that has no others inside. Both stay valid. */
enum stk_xml_event stk_xml_next(struct stk_xml *xml, const char **name, const char **value);

/* One object or common prefix of a list. */
struct stk_listed_key {
    const char *key;  /* whole, decoded */
    bool is_prefix;   /* of keys that continue behind a '/' */
    uint64_t size;    /* bytes; UINT64_MAX = not said */
    const char *etag; /* with its quotes; NULL = not said */
};

/* Returns 0 to go on; any other value ends the parsing, which returns it. */
typedef int stk_listed_key_found(void *context, const struct stk_listed_key *key);

enum { STK_CONTINUATION_BYTES = 2048 };

struct stk_list_page {
    bool truncated;                            /* another page follows */
    char continuation[STK_CONTINUATION_BYTES]; /* what to ask for it with */
};

/* Read a ListBucketResult (of ListObjectsV2), which is overwritten. Returns 0, what found()
 * returned, or STOKER_EFORMAT: then *why explains byte *at. */
int stk_list_parse(char *text, size_t size, stk_listed_key_found *found, void *context,
                   struct stk_list_page *page, const char **why, size_t *at);

/* What an error document says: "" where it does not. Messages are left out, since they may repeat
 * what was sent. */
struct stk_s3_error {
    char code[64];   /* "NoSuchBucket": letters only */
    char region[64]; /* where the bucket is */
};

void stk_s3_error_parse(struct stk_s3_error *out, char *text, size_t size);

enum { STK_S3_REASON_BYTES = 160, STK_S3_ERROR_BYTES = 512 };

/* Write ": NoSuchBucket: there is no such bucket" if the text begins as an error document, else "".
 */
void stk_s3_reason(char out[STK_S3_REASON_BYTES], const char *text, size_t size);

#endif
