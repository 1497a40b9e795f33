/* json_read.h - take values out of one line of JSON: an object, as --format json writes it.
 *
 * Reads any bytes without harm. What is no such object simply has no such key.
 */
#ifndef BENCH_COMPARE_JSON_READ_H
#define BENCH_COMPARE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

/* The value of that key of the outermost object, in the line; NULL if there is none. */
const char *bench_json_find(const char *line, const char *key);

/* Each returns false, and leaves *out alone, if the key is missing or its value of another kind. */
bool bench_json_read_number(const char *line, const char *key, double *out);
bool bench_json_read_bool(const char *line, const char *key, bool *out);

/* A text that is too long is cut. Escapes other than \" \\ and \/ become '?'. */
bool bench_json_read_text(const char *line, const char *key, char *out, size_t size);

/* Up to `max` numbers of an array; returns their number. */
size_t bench_json_read_numbers(const char *line, const char *key, double *out, size_t max);

#endif
