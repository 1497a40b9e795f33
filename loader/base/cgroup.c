/* cgroup.c - see cgroup.h. */
#include "loader/base/cgroup.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/number_file.h"

enum { PATH_BYTES = 1024, LINE_BYTES = 4096 };

#define NO_LIMIT     (UINT64_C(1) << 60) /* version 1 has no "none", only a number of pages near this */
#define MARGIN_BYTES (UINT64_C(1) << 30)
#define MARGIN_SHARE 8

/* ---- lines ---- */

struct lines {
    int fd;
    size_t begin;
    size_t end;
    char text[LINE_BYTES];
};

static bool open_lines(struct lines *lines, const char *root, const char *path)
{
    char name[PATH_BYTES];
    lines->begin = lines->end = 0;
    lines->fd = snprintf(name, sizeof(name), "%s%s", root, path) < (int)sizeof(name)
                    ? open(name, O_RDONLY | O_CLOEXEC)
                    : -1;
    return lines->fd >= 0;
}

/* The next line, without its end; NULL at the end of the file. A line that is too long comes in pieces: no mount
 * of a cgroup has one, and no piece looks like one. */
static char *next_line(struct lines *lines)
{
    for (;;) {
        char *const from = lines->text + lines->begin;
        char *const stop = memchr(from, '\n', lines->end - lines->begin);
        if (stop != NULL) {
            *stop = '\0';
            lines->begin += (size_t)(stop - from) + 1;
            return from;
        }
        memmove(lines->text, from, lines->end - lines->begin);
        lines->end -= lines->begin;
        lines->begin = 0;
        const size_t room = sizeof(lines->text) - 1 - lines->end;
        const ssize_t got = room > 0 ? read(lines->fd, lines->text + lines->end, room) : 0;
        if (got > 0) {
            lines->end += (size_t)got;
        } else if (lines->end > 0) {
            lines->text[lines->end] = '\0';
            lines->begin = lines->end = 0;
            return lines->text;
        } else {
            return NULL;
        }
    }
}

/* ---- which group, and where its folder is ---- */

/* Returns true if the list "a,b,c" has the word. */
static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

/* "4:memory,pids:/slurm/job_7" gives the path, if its controllers are those: "" = version 2. */
static const char *group_in_line(char *line, const char *controller)
{
    char *list = strchr(line, ':');
    char *path = list == NULL ? NULL : strchr(list + 1, ':');
    if (path == NULL)
        return NULL;
    *path = '\0';
    const bool same = controller[0] == '\0' ? list[1] == '\0' : has_word(list + 1, controller);
    return same ? path + 1 : NULL;
}

static bool find_group(const char *root, const char *controller, char group[PATH_BYTES])
{
    struct lines lines;
    bool found = false;
    if (!open_lines(&lines, root, "/proc/self/cgroup"))
        return false;
    for (char *line; !found && (line = next_line(&lines)) != NULL;) {
        const char *path = group_in_line(line, controller);
        found = path != NULL && snprintf(group, PATH_BYTES, "%s", path) < PATH_BYTES;
    }
    close(lines.fd);
    return found;
}

/* "\040" is a space. In place. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        const bool octal = from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' &&
                           from[2] <= '7' && from[3] >= '0' && from[3] <= '7';
        *to++ =
            octal ? (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0')) : *from;
        from += octal ? 4 : 1;
    }
    *to = '\0';
}

/* "36 35 98:0 /top /sys/fs/cgroup rw,relatime shared:1 - cgroup2 none rw": the words behind the dash and both
 * paths before it. */
static bool parse_mount(char *line, const char *controller, const char **top, const char **point)
{
    char *words[5] = { NULL };
    char *rest = strstr(line, " - ");
    char *save = NULL;
    if (rest == NULL)
        return false;
    *rest = '\0';
    const char *type = strtok_r(rest + 3, " ", &save);
    (void)strtok_r(NULL, " ", &save);
    const char *options = strtok_r(NULL, " ", &save);
    const bool wanted =
        type != NULL && (controller[0] == '\0' ? strcmp(type, "cgroup2") == 0
                                               : strcmp(type, "cgroup") == 0 && options != NULL &&
                                                     has_word(options, controller));
    if (!wanted)
        return false;
    words[0] = strtok_r(line, " ", &save);
    for (int i = 1; i < 5 && words[i - 1] != NULL; i++)
        words[i] = strtok_r(NULL, " ", &save);
    if (words[4] == NULL)
        return false;
    unescape(words[3]);
    unescape(words[4]);
    *top = words[3];
    *point = words[4];
    return true;
}

/* A group's folder; groups above the first `top` bytes of its path cannot be seen. */
struct folder {
    char path[PATH_BYTES];
    size_t top;
};

/* Where the group is beneath the mount of its hierarchy. One that lies elsewhere is the mount's own. */
static bool place_group(struct folder *folder, const char *root, const char *group, const char *top,
                        const char *point)
{
    const size_t covered = strcmp(top, "/") == 0 ? 0 : strlen(top);
    const bool beneath = strncmp(group, top, covered) == 0 &&
                         (group[covered] == '/' || group[covered] == '\0') &&
                         strstr(group, "/..") == NULL;
    const char *rest = beneath && strcmp(group + covered, "/") != 0 ? group + covered : "";
    folder->top = strlen(root) + strlen(point);
    return snprintf(folder->path, sizeof(folder->path), "%s%s%s", root, point, rest) <
           (int)sizeof(folder->path);
}

static bool find_folder(struct folder *folder, const char *root, const char *controller)
{
    char group[PATH_BYTES];
    struct lines lines;
    bool found = false;
    if (!find_group(root, controller, group) || !open_lines(&lines, root, "/proc/self/mountinfo"))
        return false;
    for (char *line; !found && (line = next_line(&lines)) != NULL;) {
        const char *top;
        const char *point;
        found = parse_mount(line, controller, &top, &point) &&
                place_group(folder, root, group, top, point);
    }
    close(lines.fd);
    return found;
}

/* Move to the parent group. False: no visible parent. */
static bool go_up(struct folder *folder)
{
    char *slash = strrchr(folder->path, '/');
    if (slash == NULL || strlen(folder->path) <= folder->top)
        return false;
    *slash = '\0';
    return true;
}

static uint64_t number_in(const struct folder *folder, const char *file, const char *key)
{
    char name[PATH_BYTES + 64];
    (void)snprintf(name, sizeof(name), "%s/%s", folder->path, file);
    return stk_number_file_read(name, key);
}

static uint64_t known(uint64_t number)
{
    return number == UINT64_MAX ? 0 : number;
}

/* ---- memory ---- */

void stk_memory_room_lower(struct stk_memory_room *room, uint64_t limit, uint64_t used,
                           uint64_t reclaimable)
{
    const uint64_t fixed = used > reclaimable ? used - reclaimable : 0;
    const uint64_t left = limit > fixed ? limit - fixed : 0;
    const uint64_t share = limit / MARGIN_SHARE;
    const uint64_t margin = share < MARGIN_BYTES ? share : MARGIN_BYTES;
    const uint64_t spare = left > margin ? left - margin : 0;
    room->left = left < room->left ? left : room->left;
    room->spare = spare < room->spare ? spare : room->spare;
}

/* What a version calls its files; file pages that were used twice are half counted, as the kernel counts them. */
struct memory_names {
    const char *controller;
    const char *limits[2];
    const char *used;
    const char *inactive;
    const char *active;
};

static void lower_by_group(const struct folder *folder, const struct memory_names *names,
                           struct stk_memory_room *room)
{
    uint64_t limit = UINT64_MAX;
    for (int i = 0; i < 2 && names->limits[i] != NULL; i++) {
        const uint64_t found = number_in(folder, names->limits[i], "");
        limit = found < limit ? found : limit;
    }
    const uint64_t used = limit < NO_LIMIT ? number_in(folder, names->used, "") : UINT64_MAX;
    if (used == UINT64_MAX)
        return;
    stk_memory_room_lower(room, limit, used,
                          known(number_in(folder, "memory.stat", names->inactive)) +
                              known(number_in(folder, "memory.stat", names->active)) / 2);
}

void stk_cgroup_memory(const char *root, struct stk_memory_room *room)
{
    static const struct memory_names versions[] = {
        { "", { "memory.max", "memory.high" }, "memory.current", "inactive_file ", "active_file " },
        { "memory",
          { "memory.limit_in_bytes", NULL },
          "memory.usage_in_bytes",
          "total_inactive_file ",
          "total_active_file " },
    };
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        struct folder folder;
        if (!find_folder(&folder, root, versions[i].controller))
            continue;
        do {
            lower_by_group(&folder, &versions[i], room);
        } while (go_up(&folder));
    }
}

/* ---- CPUs ---- */

/* "200000 100000" pays for two; "max 100000" for all. */
static uint32_t cpus_of(uint64_t quota, uint64_t period)
{
    if (quota == 0 || quota >= INT64_MAX || period == 0 || period == UINT64_MAX)
        return UINT32_MAX;
    const uint64_t cpus = quota / period + (quota % period != 0);
    return cpus < UINT32_MAX ? (uint32_t)cpus : UINT32_MAX;
}

static uint32_t cpus_of_group(const struct folder *folder, bool unified)
{
    char name[PATH_BYTES + 64];
    char text[64];
    char *end = NULL;
    if (!unified)
        return cpus_of(number_in(folder, "cpu.cfs_quota_us", ""),
                       number_in(folder, "cpu.cfs_period_us", ""));
    (void)snprintf(name, sizeof(name), "%s/cpu.max", folder->path);
    (void)stk_text_file_read(name, text, sizeof(text));
    const uint64_t quota = strtoull(text, &end, 10);
    return end == text ? UINT32_MAX : cpus_of(quota, strtoull(end, NULL, 10));
}

uint32_t stk_cgroup_cpus(const char *root)
{
    static const char *const controllers[2] = { "", "cpu" };
    uint32_t least = UINT32_MAX;
    for (int i = 0; i < 2; i++) {
        struct folder folder;
        if (!find_folder(&folder, root, controllers[i]))
            continue;
        do {
            const uint32_t cpus = cpus_of_group(&folder, i == 0);
            least = cpus < least ? cpus : least;
        } while (go_up(&folder));
    }
    return least;
}
