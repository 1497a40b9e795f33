/* cgroup.c - see cgroup.h. */
#include "loader/base/memory/cgroup.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/io/number_file.h"

enum { PATH_BYTES = 1024, LINE_BYTES = 4096, STAT_BYTES = 8192 };

/* version 1 has no "none", only a number of pages near
 * this */
#define NO_LIMIT     (UINT64_C(1) << 60)
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

/* The next line, without its end; NULL at the end of the file. A line that is too long comes in
 * pieces: no mount of a cgroup has one, and no piece looks like one. */
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

/* A hierarchy is looked for by what its line in either file says: version 1 by one of its
 * controllers, "" = version 2. Both are found in one pass, since the kernel takes long to write
 * these files. */
enum { VERSION_2, VERSION_1, VERSIONS };

struct groups {
    char path[VERSIONS][PATH_BYTES];
    bool found[VERSIONS];
};

/* "4:memory,pids:/slurm/job_7" is cut into its controllers and its path; NULL: it is no such
 * line. */
static const char *cut_group(char *line, const char **controllers)
{
    char *list = strchr(line, ':');
    char *path = list == NULL ? NULL : strchr(list + 1, ':');
    if (path == NULL)
        return NULL;
    *path = '\0';
    *controllers = list + 1;
    return path + 1;
}

static void find_groups(struct groups *groups, const char *root, const char *controller)
{
    struct lines lines;
    *groups = (struct groups){ .found = { false } };
    if (!open_lines(&lines, root, "/proc/self/cgroup"))
        return;
    for (char *line; (line = next_line(&lines)) != NULL;) {
        const char *controllers = "";
        const char *path = cut_group(line, &controllers);
        const int version = controllers[0] == '\0' ? VERSION_2 : VERSION_1;
        if (path == NULL || groups->found[version] ||
            (version == VERSION_1 && !has_word(controllers, controller)))
            continue;
        groups->found[version] =
            snprintf(groups->path[version], PATH_BYTES, "%s", path) < PATH_BYTES;
    }
    close(lines.fd);
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

struct mount {
    int version;
    const char *top;
    const char *point;
};

/* "36 35 98:0 /top /sys/fs/cgroup rw,relatime shared:1 - cgroup2 none rw": the words behind the
 * dash and both paths before it. Cuts the line. */
static bool parse_mount(struct mount *mount, char *line, const char *controller)
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
    if (type == NULL ||
        (strcmp(type, "cgroup2") != 0 &&
         (strcmp(type, "cgroup") != 0 || options == NULL || !has_word(options, controller))))
        return false;
    mount->version = strcmp(type, "cgroup2") == 0 ? VERSION_2 : VERSION_1;
    words[0] = strtok_r(line, " ", &save);
    for (int i = 1; i < 5 && words[i - 1] != NULL; i++)
        words[i] = strtok_r(NULL, " ", &save);
    if (words[4] == NULL)
        return false;
    unescape(words[3]);
    unescape(words[4]);
    mount->top = words[3];
    mount->point = words[4];
    return true;
}

/* A group's folder; groups above the first `top` bytes of its path cannot be seen. */
struct folder {
    bool found;
    char path[PATH_BYTES];
    size_t top;
};

/* Where the group is beneath the mount of its hierarchy. One that lies elsewhere is the mount's
 * own. */
static bool place_group(struct folder *folder, const char *root, const char *group,
                        const struct mount *mount)
{
    const char *top = mount->top;
    const size_t covered = strcmp(top, "/") == 0 ? 0 : strlen(top);
    const bool beneath = strncmp(group, top, covered) == 0 &&
                         (group[covered] == '/' || group[covered] == '\0') &&
                         strstr(group, "/..") == NULL;
    const char *rest = beneath && strcmp(group + covered, "/") != 0 ? group + covered : "";
    folder->top = strlen(root) + strlen(mount->point);
    return snprintf(folder->path, sizeof(folder->path), "%s%s%s", root, mount->point, rest) <
           (int)sizeof(folder->path);
}

/* The folders of this process's group: with version 2, and with version 1 of that controller. */
static void find_folders(struct folder folders[VERSIONS], const char *root, const char *controller)
{
    struct groups groups;
    struct lines lines;
    folders[VERSION_2].found = folders[VERSION_1].found = false;
    find_groups(&groups, root, controller);
    if ((!groups.found[VERSION_2] && !groups.found[VERSION_1]) ||
        !open_lines(&lines, root, "/proc/self/mountinfo"))
        return;
    for (char *line; (line = next_line(&lines)) != NULL;) {
        struct mount mount;
        if (!parse_mount(&mount, line, controller))
            continue;
        struct folder *folder = &folders[mount.version];
        if (groups.found[mount.version] && !folder->found)
            folder->found = place_group(folder, root, groups.path[mount.version], &mount);
    }
    close(lines.fd);
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

/* The first bytes of a file in it; "" if there are none. */
static void read_text(const struct folder *folder, const char *file, char *text, size_t text_bytes)
{
    char name[PATH_BYTES + 64];
    text[0] = '\0';
    if (snprintf(name, sizeof(name), "%s/%s", folder->path, file) < (int)sizeof(name))
        (void)stk_text_file_read(name, text, text_bytes);
}

static uint64_t number_of(const struct folder *folder, const char *file)
{
    char text[64];
    read_text(folder, file, text, sizeof(text));
    return stk_number_in(text, "");
}

static uint64_t zero_if_unknown(uint64_t number)
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

/* What a version calls its files; file pages that were used twice are half counted, as the kernel
 * counts them. */
struct memory_names {
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
        const uint64_t found = number_of(folder, names->limits[i]);
        limit = found < limit ? found : limit;
    }
    const uint64_t used = limit < NO_LIMIT ? number_of(folder, names->used) : UINT64_MAX;
    char stat[STAT_BYTES];
    if (used == UINT64_MAX)
        return;
    read_text(folder, "memory.stat", stat, sizeof(stat));
    stk_memory_room_lower(room, limit, used,
                          zero_if_unknown(stk_number_in(stat, names->inactive)) +
                              zero_if_unknown(stk_number_in(stat, names->active)) / 2);
}

void stk_cgroup_memory(const char *root, struct stk_memory_room *room)
{
    static const struct memory_names versions[VERSIONS] = {
        [VERSION_2] = { { "memory.max", "memory.high" },
                        "memory.current",
                        "inactive_file ",
                        "active_file " },
        [VERSION_1] = { { "memory.limit_in_bytes", NULL },
                        "memory.usage_in_bytes",
                        "total_inactive_file ",
                        "total_active_file " },
    };
    struct folder folders[VERSIONS];
    find_folders(folders, root, "memory");
    for (int i = 0; i < VERSIONS; i++)
        if (folders[i].found)
            do {
                lower_by_group(&folders[i], &versions[i], room);
            } while (go_up(&folders[i]));
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

static uint32_t cpus_of_group(const struct folder *folder, int version)
{
    char text[64];
    char *end = NULL;
    if (version == VERSION_1)
        return cpus_of(number_of(folder, "cpu.cfs_quota_us"),
                       number_of(folder, "cpu.cfs_period_us"));
    read_text(folder, "cpu.max", text, sizeof(text));
    const uint64_t quota = strtoull(text, &end, 10);
    return end == text ? UINT32_MAX : cpus_of(quota, strtoull(end, NULL, 10));
}

uint32_t stk_cgroup_cpus(const char *root)
{
    uint32_t least = UINT32_MAX;
    struct folder folders[VERSIONS];
    find_folders(folders, root, "cpu");
    for (int i = 0; i < VERSIONS; i++)
        if (folders[i].found)
            do {
                const uint32_t cpus = cpus_of_group(&folders[i], i);
                least = cpus < least ? cpus : least;
            } while (go_up(&folders[i]));
    return least;
}
