/* json.h - a string as JSON writes it. */
#ifndef BENCH_OUTPUT_JSON_H
#define BENCH_OUTPUT_JSON_H

#include <stdio.h>

/* With quotes; whatever the bytes are, the result is valid JSON in UTF-8. */
void bench_json_string(FILE *file, const char *text);

#endif
