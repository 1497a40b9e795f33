/* member_fields.h - choose which members of a sample become fields: the parameter fields= of tar:
 * and folder pairs.
 *
 *   fields=jpg,seg.png,boxes.npy,caption.txt,cls,__key__
 *
 *   jpg;jpeg;png;webp   image    KIND image, named "image" if it is the first
 *   X.seg.png, mask.png  mask    KIND mask, named by what is before .png
 *   boxes.npy           array    named "boxes"
 *   cls                 label    int64, named "label"
 *   __key__             bytes    the key of the sample, named "key"
 *   anything else       bytes    named by it, without .txt, .json and so on if something is left
 *
 * NAME=EXTENSION names a field otherwise.
 */
#ifndef STK_DATASETS_MEMBER_FIELDS_H
#define STK_DATASETS_MEMBER_FIELDS_H

#include <stdbool.h>
#include <stoker/dataset.h>

enum {
    STK_MEMBER_FIELDS_MAX = 64,
    STK_EXTENSIONS_BYTES = 128 /* longest "jpg;jpeg", with its final 0 */
};

enum stk_member_use {
    STK_MEMBER_IMAGE,
    STK_MEMBER_MASK,
    STK_MEMBER_ARRAY,
    STK_MEMBER_BYTES,
    STK_MEMBER_LABEL,
    STK_MEMBER_KEY
};

struct stk_member_field {
    char name[STOKER_FIELD_NAME_BYTES];
    char extensions[STK_EXTENSIONS_BYTES]; /* separated by ';' */
    enum stk_member_use use;
};

struct stk_member_fields {
    struct stk_member_field at[STK_MEMBER_FIELDS_MAX];
    uint32_t count;
};

/* Parse a list. *what is static and says what is wrong, with the item at text[*at..*at + *bytes).
 * STOKER_ESPEC (an item is empty, or no name can be made of it; two are labels or keys),
 * STOKER_ELIMIT. */
int stk_member_fields_parse(struct stk_member_fields *out, const char *text, const char **what,
                            const char **item, int *item_bytes);

/* Image and label, as without fields=. */
void stk_member_fields_default(struct stk_member_fields *out);

#endif
