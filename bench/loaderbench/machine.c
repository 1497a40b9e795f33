/* machine.c - describes this machine from /proc. */
#include "bench/loaderbench/machine.h"
#include "bench/loaderbench/timing.h"
#include "loader/base/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

uint32_t bench_cpus(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count < 1 ? 1 : (uint32_t)count;
}

/* Busy time of the CPUs of this process, from "cpuN user nice system idle iowait irq softirq steal"
 * of /proc/stat, in ticks. */
static uint64_t busy_ticks(void)
{
    cpu_set_t set;
    FILE *file = fopen("/proc/stat", "re");
    if (file == NULL || sched_getaffinity(0, sizeof(set), &set) != 0) {
        if (file != NULL)
            fclose(file);
        return 0;
    }
    char line[1024];
    uint64_t sum = 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        unsigned cpu = 0;
        unsigned long long user, nice, system, idle, wait, irq, soft, steal;
        if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &user, &nice,
                   &system, &idle, &wait, &irq, &soft, &steal) == 9 &&
            cpu < CPU_SETSIZE && CPU_ISSET(cpu, &set))
            sum += user + nice + system + irq + soft + steal;
    }
    fclose(file);
    return sum;
}

struct bench_cpu_use bench_cpu_use_now(void)
{
    return (struct bench_cpu_use){ .at_ns = stk_now_ns(),
                                   .own_ns = bench_cpu_ns(),
                                   .all_ticks = busy_ticks() };
}

double bench_others_cpus(const struct bench_cpu_use *begun)
{
    const struct bench_cpu_use now = bench_cpu_use_now();
    const double seconds = (double)(now.at_ns - begun->at_ns) / 1e9;
    const double all = (double)(now.all_ticks - begun->all_ticks) / (double)sysconf(_SC_CLK_TCK);
    const double own = (double)(now.own_ns - begun->own_ns) / 1e9;
    if (begun->all_ticks == 0 || now.all_ticks == 0 || seconds <= 0)
        return NAN;
    return fmax(all - own, 0) / seconds;
}

/* The rest of the first line that starts with `key`, without blanks and colon. */
static void find_line(const char *path, const char *key, char *out, size_t size)
{
    out[0] = '\0';
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    char line[1024];
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        const char *value = line + strlen(key);
        value += strspn(value, " \t:");
        snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
        break;
    }
    fclose(file);
}

static uint64_t status_bytes(const char *key)
{
    char text[64];
    find_line("/proc/self/status", key, text, sizeof(text));
    return strtoull(text, NULL, 10) * 1024; /* the kernel writes kB and means KiB */
}

uint64_t bench_rss_bytes(void)
{
    return status_bytes("VmRSS");
}

uint64_t bench_rss_peak_bytes(void)
{
    return status_bytes("VmHWM");
}

bool bench_rss_peak_reset(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool done = write(fd, "5", 1) == 1;
    close(fd);
    return done;
}

static void join_args(char *out, size_t size, int argc, char *const *argv)
{
    size_t used = 0;
    for (int index = 1; index < argc && used < size; index++) {
        int wrote = snprintf(out + used, size - used, index > 1 ? " %s" : "%s", argv[index]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    if (used >= size) /* mark the cut */
        snprintf(out + size - 4, 4, "...");
}

static void describe_moment(struct bench_machine *out)
{
    const time_t now = time(NULL);
    double loads[3] = { NAN, NAN, NAN };
    struct tm utc;
    if (gmtime_r(&now, &utc) == NULL ||
        strftime(out->date, sizeof(out->date), "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        out->date[0] = '\0';
    (void)getloadavg(loads, 3);
    out->load_1m = loads[0];
    out->load_5m = loads[1];
    out->load_15m = loads[2];
}

void bench_machine_describe(struct bench_machine *out, int argc, char *const *argv)
{
    struct utsname system = { 0 };
    uname(&system);
    *out = (struct bench_machine){ .schema = BENCH_SCHEMA, .cpus = bench_cpus() };
    snprintf(out->tool_version, sizeof(out->tool_version), "%s", STOKER_VERSION_STRING);
    snprintf(out->library_version, sizeof(out->library_version), "%s", stoker_version());
    snprintf(out->kernel, sizeof(out->kernel), "%.60s %.60s %.30s", system.sysname, system.release,
             system.machine);
    snprintf(out->host, sizeof(out->host), "%s", system.nodename);
    snprintf(out->commit, sizeof(out->commit), "%s", bench_build_commit());
    snprintf(out->compiler, sizeof(out->compiler), "%s", bench_build_compiler());
    describe_moment(out);
    find_line("/proc/cpuinfo", "model name", out->cpu, sizeof(out->cpu));
    join_args(out->args, sizeof(out->args), argc, argv);
    out->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

void bench_machine_moment(const struct bench_machine *machine, char out[BENCH_MOMENT_BYTES])
{
    char load[32] = "-";
    if (isfinite(machine->load_1m))
        snprintf(load, sizeof(load), "%.2f", machine->load_1m);
    snprintf(out, BENCH_MOMENT_BYTES, "%s on %s, load %s, commit %s, %s", machine->date,
             machine->host, load, machine->commit, machine->compiler);
}

/* "/dev/vda ext4" for the mount of a file: the device number "major:minor" is the third word of a
 * line of mountinfo; type and source follow " - ". */
static void find_disk(const char *path, char *out, size_t size)
{
    struct stat about;
    out[0] = '\0';
    FILE *file = stat(path, &about) == 0 ? fopen("/proc/self/mountinfo", "re") : NULL;
    if (file == NULL)
        return;
    char wanted[32], line[2048];
    snprintf(wanted, sizeof(wanted), "%u:%u", major(about.st_dev), minor(about.st_dev));
    while (fgets(line, sizeof(line), file) != NULL) {
        char device[32] = "", type[64] = "", source[200] = "";
        const char *tail = strstr(line, " - ");
        bool parsed = tail != NULL && sscanf(line, "%*s %*s %31s", device) == 1 &&
                      sscanf(tail, " - %63s %199s", type, source) == 2;
        if (parsed && strcmp(device, wanted) == 0) {
            snprintf(out, size, "%s %s", source, type);
            break;
        }
    }
    fclose(file);
}

void bench_machine_describe_dataset(struct bench_machine *out, const stoker_dataset *dataset,
                                    const char *spec, const char *path)
{
    snprintf(out->dataset, sizeof(out->dataset), "%s", spec);
    snprintf(out->dataset_name, sizeof(out->dataset_name), "%s", stoker_dataset_name(dataset));
    out->samples = stoker_dataset_get_info(dataset)->count;
    out->row_bytes = stoker_dataset_field_bytes(dataset, 0);
    const char *found = stoker_dataset_get_info(dataset)->description;
    snprintf(out->found, sizeof(out->found), "%s", found != NULL ? found : "");
    if (path[0] != '\0')
        find_disk(path, out->disk, sizeof(out->disk));
}
