/* json_read.h - reads values from one line of JSON: an object, as --format json writes it.
 *
 * Safe on any bytes: a line that is not such an object has no keys.
 */
#ifndef BENCH_COMPARE_JSON_READ_H
#define BENCH_COMPARE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

/* The place of the key's value in the outermost object; NULL if there is none. */
const char *bench_json_find(const char *line, const char *key);

/* Return false, and leave *out alone, if the key is missing or its value is of another kind. */
bool bench_json_read_number(const char *line, const char *key, double *out);
bool bench_json_read_bool(const char *line, const char *key, bool *out);

/* Long texts are cut. Escapes other than \" \\ and \/ become '?'. */
bool bench_json_read_text(const char *line, const char *key, char *out, size_t size);

/* Up to `max` numbers of an array; returns their number. */
size_t bench_json_read_numbers(const char *line, const char *key, double *out, size_t max);

#endif
