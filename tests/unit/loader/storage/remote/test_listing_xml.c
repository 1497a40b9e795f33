/* test_listing_xml.c - pages of S3's lists, and its error documents. */
#include <stoker/error.h>

#include "loader/storage/remote/listing_xml.h"
#include "support/leaks.h"

#define HEAD                                                                                       \
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- a > b -->\n"                                 \
    "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
#define TAIL "</ListBucketResult>"

/* What was found, as one line of text. */
struct lines {
    char text[1024];
    int stop_after; /* keys; 0 = never */
    int count;
};

static int take(void *context, const struct stk_listed_key *key)
{
    struct lines *lines = context;
    const size_t used = strlen(lines->text);
    char size[32] = "";
    if (!key->is_prefix)
        (void)snprintf(size, sizeof(size), " %llu", (unsigned long long)key->size);
    (void)snprintf(lines->text + used, sizeof(lines->text) - used, "%s%s%s%s|", key->key, size,
                   key->etag == NULL ? "" : " ", key->etag == NULL ? "" : key->etag);
    lines->count++;
    return lines->stop_after == lines->count ? 7 : 0;
}

/* In memory of its own size, so that AddressSanitizer sees every byte too far. */
static int parse(const char *document, size_t bytes, struct lines *lines,
                 struct stk_list_page *page, const char **why)
{
    size_t at = 0;
    char *text = malloc(bytes > 0 ? bytes : 1);
    memcpy(text, document, bytes);
    const int rc = stk_list_parse(text, bytes, take, lines, page, why, &at);
    cr_assert_leq(at, bytes);
    cr_assert_eq(rc == STOKER_EFORMAT, *why != NULL);
    free(text);
    return rc;
}

static const char aws_page[] = HEAD
    "<Name>bucket</Name><Prefix>part%3D1/</Prefix><NextContinuationToken>1ue/Gc&amp;x=="
    "</NextContinuationToken><KeyCount>3</KeyCount><MaxKeys>3</MaxKeys><Delimiter>/</Delimiter>"
    "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>\n"
    "<Contents><Key>part%3D1/a%2Bb+c.tar</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified>"
    "<ETag>&quot;fba9dede5f27731c9771645a39863328&quot;</ETag><Size>434234</Size>"
    "<Owner><ID>1</ID><DisplayName>x</DisplayName></Owner><StorageClass>STANDARD</StorageClass>"
    "</Contents>\n<Contents><Size>0</Size><Key>part%3D1/%C3%A4</Key></Contents>"
    "<CommonPrefixes><Prefix>part%3D1/sub/</Prefix></CommonPrefixes>" TAIL;

CleanTest(listing_xml, pages_are_read)
{
    static const struct {
        const char *document, *found, *continuation;
    } cases[] = {
        { aws_page,
          "part=1/a+b c.tar 434234 \"fba9dede5f27731c9771645a39863328\"|part=1/\xc3\xa4 0|"
          "part=1/sub/|",
          "1ue/Gc&x==" },
        { HEAD "<Contents><Key>a&lt;&#x41;&#228;&apos;%2B+</Key><Size>1</Size></Contents>"
               "<IsTruncated>false</IsTruncated>" TAIL,
          "a<A\xc3\xa4'%2B+ 1|", "" }, /* not encoded */
        { HEAD TAIL, "", "" },
        { "<ListBucketResult/>", "", "" },
        { HEAD "<Prefix/><CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes>" TAIL "\n", "a/|",
          "" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lines lines = { .text = "" };
        struct stk_list_page page;
        const char *why = NULL;
        cr_assert_eq(parse(cases[i].document, strlen(cases[i].document), &lines, &page, &why),
                     STOKER_OK, "%d: %s", (int)i, why);
        cr_assert_str_eq(lines.text, cases[i].found);
        cr_assert_eq(page.truncated, cases[i].continuation[0] != '\0');
        cr_assert_str_eq(page.continuation, cases[i].continuation);
    }
}

CleanTest(listing_xml, what_is_no_page_is_refused)
{
    static const struct {
        const char *document, *why;
    } cases[] = {
        { "", "the document ends too early" },
        { "<html><body>proxy</body></html>", "not a list of objects" },
        { "<!DOCTYPE x [<!ENTITY a \"b\">]><ListBucketResult/>", "a tag that is no element" },
        { HEAD "<Contents><Key><![CDATA[x]]></Key>" TAIL, "a tag that is no element" },
        { HEAD "<Contents><Key>&a;</Key>" TAIL, "an unknown entity" },
        { HEAD "<Contents><Key>&#0;</Key>" TAIL, "an unknown entity" },
        { HEAD "<Contents><Key>&#xd800;</Key>" TAIL, "an unknown entity" },
        { HEAD "<Contents><Key>&#x1234567890;</Key>" TAIL, "an unknown entity" },
        { HEAD "<Contents><Key>a</Size></Contents>" TAIL, "a closing tag of another element" },
        { HEAD "<Contents><Key>a</Key></Contents>" TAIL, "an object without a key or a size" },
        { HEAD "<Contents><Size>1</Size></Contents>" TAIL, "an object without a key or a size" },
        { HEAD "<Contents><Size>-1</Size></Contents>" TAIL, "a size that is no number" },
        { HEAD "<Contents><Size>99999999999999999999</Size></Contents>" TAIL,
          "a size that is no number" },
        { HEAD
          "<EncodingType>url</EncodingType><Contents><Key>%zz</Key><Size>1</Size></Contents>" TAIL,
          "a key that is not encoded" },
        { HEAD "<IsTruncated>true</IsTruncated>" TAIL,
          "a part of a list without a continuation token" },
        { HEAD "<a><a><a><a><a><a><a><a><a>", "nested too deeply" },
        { HEAD "<a b=\"", "a tag without an end" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lines lines = { .text = "" };
        struct stk_list_page page;
        const char *why = NULL;
        cr_assert_eq(parse(cases[i].document, strlen(cases[i].document), &lines, &page, &why),
                     STOKER_EFORMAT, "%d", (int)i);
        cr_assert_str_eq(why, cases[i].why);
        cr_assert_str_empty(lines.text);
    }
}

CleanTest(listing_xml, the_caller_ends_it)
{
    struct lines lines = { .stop_after = 2 };
    struct stk_list_page page;
    const char *why = NULL;
    cr_assert_eq(parse(aws_page, sizeof(aws_page) - 1, &lines, &page, &why), 7);
    cr_assert_eq(lines.count, 2);
}

/* No prefix is a page; a changed bit is noticed or changes what it says, and no byte beyond the
 * document is read. */
CleanTest(listing_xml, damaged_pages_are_survived)
{
    const size_t size = sizeof(aws_page) - 1;
    char damaged[sizeof(aws_page)];
    for (size_t at = 0; at < size; at++)
        for (int bit = -1; bit < 8; bit++) {
            struct lines lines = { .text = "" };
            struct stk_list_page page;
            const char *why = NULL;
            memcpy(damaged, aws_page, size);
            if (bit >= 0)
                damaged[at] = (char)(damaged[at] ^ 1 << bit);
            const int rc = parse(damaged, bit < 0 ? at : size, &lines, &page, &why);
            cr_assert(rc == STOKER_EFORMAT || (bit >= 0 && rc == STOKER_OK));
        }
}

CleanTest(listing_xml, errors_are_read)
{
    static const struct {
        const char *document, *code, *region, *reason;
    } cases[] = {
        { "<?xml version=\"1.0\"?>\n<Error><Code>AuthorizationHeaderMalformed</Code><Message>The "
          "authorization header is malformed; the region 'us-east-1' is wrong; expecting "
          "'eu-west-1'</Message><Region>eu-west-1</Region></Error>",
          "AuthorizationHeaderMalformed", "eu-west-1", ": AuthorizationHeaderMalformed" },
        { "<Error><Code>NoSuchBucket</Code><Message>cut off", "NoSuchBucket", "",
          ": NoSuchBucket: there is no such bucket" },
        { "<Error><Code>a b&#10;c</Code></Error>", "a", "", ": a" },
        { "<html>", "", "", "" },
        { "", "", "", "" },
        { "<Error><Message>its key is SECRET</Message><Code>ExpiredToken</Code></Error>",
          "ExpiredToken", "", ": ExpiredToken: the session token has expired" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512], reason[STK_S3_REASON_BYTES];
        struct stk_s3_error error;
        const size_t bytes = strlen(cases[i].document);
        memcpy(text, cases[i].document, bytes);
        stk_s3_reason(reason, text, bytes);
        cr_assert_str_eq(reason, cases[i].reason);
        stk_s3_error_parse(&error, text, bytes);
        cr_assert_str_eq(error.code, cases[i].code);
        cr_assert_str_eq(error.region, cases[i].region);
    }
}
