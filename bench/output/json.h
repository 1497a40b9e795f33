/* json.h - writes a JSON string. */
#ifndef BENCH_OUTPUT_JSON_H
#define BENCH_OUTPUT_JSON_H

#include <stdio.h>

/* With quotes; any bytes become valid JSON in UTF-8. */
void bench_json_string(FILE *file, const char *text);

#endif
