/* listing_xml.c - see listing_xml.h. */
#include "loader/storage/remote/listing_xml.h"

#include <stdio.h>
#include <stdlib.h>
#include <stoker/error.h>
#include <string.h>

#include "loader/base/text/printable.h"
#include "loader/storage/remote/url.h"

/* ---- tags ----------------------------------------------------------------------- */

static enum stk_xml_event refuse(struct stk_xml *xml, size_t at, const char *why)
{
    xml->why = why;
    xml->at = at;
    return STK_XML_ERROR;
}

/* Returns the first byte behind `end`, searched from `from`, or 0. */
static size_t behind(const struct stk_xml *xml, size_t from, const char *end)
{
    const size_t bytes = strlen(end);
    const char *found =
        from > xml->size ? NULL : memmem(xml->text + from, xml->size - from, end, bytes);
    return found == NULL ? 0 : (size_t)(found - xml->text) + bytes;
}

/* Returns the byte behind the tag that begins at `at` and may have attributes, or 0. */
static size_t tag_end(const struct stk_xml *xml, size_t at)
{
    char quote = '\0';
    for (; at < xml->size; at++) {
        const char c = xml->text[at];
        if (quote == '\0' && c == '>')
            return at + 1;
        if (quote == '\0' && (c == '"' || c == '\''))
            quote = c;
        else if (c == quote)
            quote = '\0';
    }
    return 0;
}

/* Decode the entity at `from`, behind its '&', up to the ';' at `end`. Returns the bytes written to
 * `to`, or 0 if there is no such entity. */
static size_t decode_entity(char *to, const char *from, const char *end)
{
    static const struct {
        const char *name, meant;
    } named[] = { { "lt", '<' }, { "gt", '>' }, { "amp", '&' }, { "quot", '"' }, { "apos", '\'' } };
    const struct stk_piece name = { from, (size_t)(end - from) };
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
        if (stk_piece_is(name, named[i].name)) {
            *to = named[i].meant;
            return 1;
        }
    const bool hex = name.bytes > 2 && from[0] == '#' && from[1] == 'x';
    const char *digits = from + (hex ? 2 : 1);
    uint32_t code = 0;
    if (from[0] != '#' || digits >= end || end - digits > 7)
        return 0;
    for (; digits < end; digits++) {
        static const char all[] = "0123456789abcdefABCDEF";
        const char *found = *digits == '\0' ? NULL : strchr(all, *digits);
        if (found == NULL || (!hex && found - all > 9))
            return 0;
        code =
            code * (hex ? 16 : 10) + (uint32_t)(found - all > 15 ? found - all - 6 : found - all);
    }
    return code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)
               ? 0
               : stk_utf8_encode(to, code);
}

/* Decode text[from..to) in place and end it by a 0, at the '<' at the latest. */
static bool decode_text(struct stk_xml *xml, size_t from, size_t to)
{
    char *out = xml->text + from;
    for (size_t at = from; at < to; at++) {
        if (xml->text[at] != '&') {
            *out++ = xml->text[at];
            continue;
        }
        const char *end = memchr(xml->text + at, ';', to - at);
        const size_t bytes = end == NULL ? 0 : decode_entity(out, xml->text + at + 1, end);
        if (bytes == 0) {
            (void)refuse(xml, at, "an unknown entity");
            return false;
        }
        out += bytes;
        at = (size_t)(end - xml->text);
    }
    *out = '\0';
    return true;
}

/* Returns the place of the next tag's '<', or SIZE_MAX. Comments and instructions are skipped where
 * documents have them: before the outermost element. */
static size_t find_tag(struct stk_xml *xml)
{
    for (;;) {
        const size_t open = behind(xml, xml->at, "<");
        if (open == 0 || open == xml->size) {
            (void)refuse(xml, xml->size, "the document ends too early");
            return SIZE_MAX;
        }
        const bool comment = xml->size - open >= 3 && memcmp(xml->text + open, "!--", 3) == 0;
        if (xml->rooted || (!comment && xml->text[open] != '?'))
            return open - 1;
        const size_t next = behind(xml, open + (comment ? 3 : 1), comment ? "-->" : "?>");
        if (next == 0) {
            (void)refuse(xml, open, "a comment or an instruction without an end");
            return SIZE_MAX;
        }
        xml->at = next;
    }
}

static enum stk_xml_event begin(struct stk_xml *xml, char *name, size_t bytes, size_t end,
                                const char **out)
{
    if (xml->depth == STK_XML_DEPTH_MAX)
        return refuse(xml, xml->at, "nested too deeply");
    xml->rooted = true;
    xml->empty = xml->text[end - 2] == '/';
    xml->at = end;
    name[bytes] = '\0'; /* in place of what ended it, which is done with */
    xml->names[xml->depth++] = *out = name;
    return STK_XML_BEGIN;
}

static enum stk_xml_event end_of(struct stk_xml *xml, const char *value, const char **name,
                                 const char **out)
{
    *name = xml->names[--xml->depth];
    *out = value;
    return STK_XML_END;
}

enum stk_xml_event stk_xml_next(struct stk_xml *xml, const char **name, const char **value)
{
    if (xml->why != NULL)
        return STK_XML_ERROR;
    if (xml->empty) {
        xml->empty = false;
        return end_of(xml, "", name, value);
    }
    if (xml->rooted && xml->depth == 0)
        return STK_XML_DONE;
    const size_t from = xml->at, tag = find_tag(xml);
    if (tag == SIZE_MAX)
        return STK_XML_ERROR;
    const size_t end = tag_end(xml, tag);
    if (end == 0)
        return refuse(xml, tag, "a tag without an end");
    const bool closes = xml->text[tag + 1] == '/';
    char *at = xml->text + tag + (closes ? 2 : 1);
    size_t bytes = 0;
    while (strchr(" \t\r\n/>", at[bytes]) == NULL) /* the '>' at the latest; a 0 ends it, too */
        bytes++;
    if (bytes == 0 || at[0] == '!' || at[0] == '?')
        return refuse(xml, tag, "a tag that is no element");
    if (!closes)
        return begin(xml, at, bytes, end, name);
    const struct stk_piece piece = { at, bytes };
    if (xml->depth == 0 || !stk_piece_is(piece, xml->names[xml->depth - 1]))
        return refuse(xml, tag, "a closing tag of another element");
    xml->at = end;
    return decode_text(xml, from, tag) ? end_of(xml, xml->text + from, name, value) : STK_XML_ERROR;
}

/* ---- lists ---------------------------------------------------------------------- */

static bool read_size(const char *text, uint64_t *out)
{
    const size_t digits = strspn(text, "0123456789");
    *out = digits > 0 && digits < 20 ? strtoull(text, NULL, 10) : UINT64_MAX;
    return digits > 0 && digits < 20 && text[digits] == '\0';
}

/* Keys are encoded if the document says so, wherever it says it. */
static bool is_encoded(const char *text, size_t size)
{
    static const char said[] = "<EncodingType>url</EncodingType>";
    return memmem(text, size, said, sizeof(said) - 1) != NULL;
}

static const char *take_member(struct stk_listed_key *key, const char *name, const char *value)
{
    if (strcmp(name, key->is_prefix ? "Prefix" : "Key") == 0)
        key->key = value;
    else if (strcmp(name, "ETag") == 0)
        key->etag = value;
    else if (strcmp(name, "Size") == 0 && !read_size(value, &key->size))
        return "a size that is no number";
    return NULL;
}

static const char *take_page_member(struct stk_list_page *page, const char *name, const char *value)
{
    if (strcmp(name, "IsTruncated") == 0) {
        page->truncated = strcmp(value, "true") == 0;
    } else if (strcmp(name, "NextContinuationToken") == 0) {
        if (strlen(value) >= sizeof(page->continuation))
            return "a continuation token that is too long";
        memcpy(page->continuation, value, strlen(value) + 1);
    }
    return NULL;
}

/* At the end of an element in Contents or CommonPrefixes, or of these themselves. */
static const char *take_end(struct stk_listed_key *key, const struct stk_xml *xml, bool encoded,
                            const char *name, const char *value)
{
    if (xml->depth == 2)
        return take_member(key, name, value);
    if (key->key == NULL || (!key->is_prefix && key->size == UINT64_MAX))
        return "an object without a key or a size";
    if (encoded && !stk_url_decode(xml->text + (key->key - xml->text), true))
        return "a key that is not encoded";
    return NULL;
}

int stk_list_parse(char *text, size_t size, stk_listed_key_found *found, void *context,
                   struct stk_list_page *page, const char **why, size_t *at)
{
    const bool encoded = is_encoded(text, size);
    struct stk_xml xml = { .text = text, .size = size };
    struct stk_listed_key key = { .key = NULL };
    const char *name = NULL, *value = NULL;
    bool inside = false; /* of Contents or CommonPrefixes */
    enum stk_xml_event event;
    *page = (struct stk_list_page){ .truncated = false };
    *why = NULL;
    while (*why == NULL && (event = stk_xml_next(&xml, &name, &value)) > STK_XML_ERROR &&
           event != STK_XML_DONE) {
        if (event == STK_XML_BEGIN && xml.depth == 1 && strcmp(name, "ListBucketResult") != 0) {
            *why = "not a list of objects";
        } else if (event == STK_XML_BEGIN && xml.depth == 2) {
            const bool prefix = strcmp(name, "CommonPrefixes") == 0;
            inside = prefix || strcmp(name, "Contents") == 0;
            key = (struct stk_listed_key){ .is_prefix = prefix, .size = UINT64_MAX };
        } else if (event == STK_XML_END && inside && xml.depth <= 2) {
            *why = take_end(&key, &xml, encoded, name, value);
            const int rc = *why == NULL && xml.depth == 1 ? found(context, &key) : 0;
            inside = xml.depth == 2;
            if (rc != 0)
                return rc;
        } else if (event == STK_XML_END && xml.depth == 1) {
            *why = take_page_member(page, name, value);
        }
    }
    if (*why == NULL)
        *why = xml.why;
    if (*why == NULL && page->truncated && page->continuation[0] == '\0')
        *why = "a part of a list without a continuation token";
    *at = xml.at;
    return *why == NULL ? STOKER_OK : STOKER_EFORMAT;
}

/* ---- errors --------------------------------------------------------------------- */

void stk_s3_error_parse(struct stk_s3_error *out, char *text, size_t size)
{
    struct stk_xml xml = { .text = text, .size = size };
    const char *name = NULL, *value = NULL;
    enum stk_xml_event event;
    *out = (struct stk_s3_error){ .code = "" };
    while ((event = stk_xml_next(&xml, &name, &value)) == STK_XML_BEGIN || event == STK_XML_END) {
        char *to = event == STK_XML_END && strcmp(name, "Code") == 0     ? out->code
                   : event == STK_XML_END && strcmp(name, "Region") == 0 ? out->region
                                                                         : NULL;
        if (to == NULL)
            continue;
        size_t bytes = 0;
        while (bytes < sizeof(out->code) - 1 &&
               (value[bytes] == '-' || (value[bytes] >= '0' && value[bytes] <= '9') ||
                ((value[bytes] | 0x20) >= 'a' && (value[bytes] | 0x20) <= 'z')))
            bytes++;
        memcpy(to, value, bytes);
        to[bytes] = '\0';
    }
}

void stk_s3_reason(char out[STK_S3_REASON_BYTES], const char *text, size_t size)
{
    static const char *const known[][2] = {
        { "AccessDenied", "these keys may not, or there are none" },
        { "ExpiredToken", "the session token has expired" },
        { "InvalidAccessKeyId", "the access key is unknown" },
        { "NoSuchBucket", "there is no such bucket" },
        { "PermanentRedirect", "the bucket is in another region: set AWS_REGION" },
        { "RequestTimeTooSkewed", "the clock of this machine is wrong" },
        { "SignatureDoesNotMatch", "the secret key is wrong" },
    };
    char copy[STK_S3_ERROR_BYTES];
    struct stk_s3_error error;
    const size_t bytes = size < sizeof(copy) ? size : sizeof(copy);
    memcpy(copy, text, bytes);
    stk_s3_error_parse(&error, copy, bytes);
    const char *advice = "";
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(error.code, known[i][0]) == 0)
            advice = known[i][1];
    (void)snprintf(out, STK_S3_REASON_BYTES, "%s%s%s%s", error.code[0] != '\0' ? ": " : "",
                   error.code, advice[0] != '\0' ? ": " : "", advice);
}
