/* operand.c - opens a data set in parentheses: see spec.h. Apart from spec.c, which opens nothing. */
#include <string.h>

#include "datasets/views/spec.h"
#include "loader/base/error.h"
#include "loader/base/memory.h"

int stk_spec_open(stoker_dataset **out, struct stk_spec_text operand, const char *format,
                  const stoker_dataset_options *options, stoker_error *error)
{
    char *spec = stk_calloc(operand.bytes + 1, 1);
    if (spec == NULL)
        return stk_refuse_spec(error, STOKER_ENOMEM, "%s: the spec", format);
    memcpy(spec, operand.at, operand.bytes);
    const int rc = stoker_dataset_open(out, spec, options, error);
    stk_free(spec);
    return rc;
}
