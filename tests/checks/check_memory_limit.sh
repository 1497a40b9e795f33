#!/usr/bin/env bash
# check_memory_limit.sh - in a control group of 64 or 128 MiB a loader over a larger set finishes its epoch.
#
# usage: check_memory_limit.sh EPOCH_IN_MEMORY STOKER_PACK     skips (77) if no such group can be made
set -euo pipefail

skip() { echo "SKIPPED: $*: no memory limit was tried"; exit 77; }
limit=$((64 << 20))
group=
scratch=$(mktemp -d)
# shellcheck disable=SC2317 # called by the trap
clean_up() {
    rm -rf "$scratch"
    for _ in 1 2 3 4 5; do
        { [ -z "$group" ] || rmdir "$group"; } 2>/dev/null && return
        sleep 0.2 # its last process is still leaving
    done
}
trap clean_up EXIT

# The folder of our own group: version 1 if it has memory, else version 2.
own=$(sed -n 's/^[0-9]*:\([^:]*,\)\{0,1\}memory\(,[^:]*\)\{0,1\}:\(.*\)/\3/p' /proc/self/cgroup | head -n 1)
if [ -n "$own" ]; then
    mount=$(awk '{ for (i = 7; i < NF; i++) if ($i == "-" && $(i + 1) == "cgroup" && ("," $NF ",") ~ /,memory,/) { print $5; exit } }' /proc/self/mountinfo)
    file=memory.limit_in_bytes
else
    own=$(sed -n 's/^0:://p' /proc/self/cgroup)
    mount=$(awk '{ for (i = 7; i < NF; i++) if ($i == "-" && $(i + 1) == "cgroup2") { print $5; exit } }' /proc/self/mountinfo)
    file=memory.max
fi
[ -d "${mount:-/none}$own" ] || skip "there are no control groups"
group=$mount$own/stoker-test-$$
mkdir "$group" 2>/dev/null || { group=; skip "no group can be made in $mount$own"; }
[ -e "$group/$file" ] || skip "groups have no memory controller here"
echo "$limit" 2>/dev/null >"$group/$file" || skip "groups have no memory controller here"
sh -c "echo \$\$ >'$group/cgroup.procs'" 2>/dev/null || skip "no process may move to $group"

# 200 MB: 200,000 rows of 1000 bytes.
{
    printf '\223NUMPY\001\000\166\000'
    printf '%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (200000, 1000), }"
    head -c 200000000 /dev/zero
} >"$scratch/rows.npy"

# shellcheck disable=SC2016 # expanded by the inner shell
inside() { sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"; }

expect() { # WORDS COMMAND...: it ends well and prints them
    local words=$1 shown status=0
    shift
    shown=$(inside "$@" 2>&1) || status=$?
    echo "$shown"
    [ "$status" = 0 ] || { echo "ended with $status: $*" >&2; exit 1; }
    case $shown in *"$words"*) ;; *) echo "without \"$words\"" >&2; exit 1 ;; esac
}
expect "200000 rows, end STOKER_FINISHED, cache none" "$1" "npy:$scratch/rows.npy"
expect "200000 rows, end STOKER_FINISHED, cache decoded, paused 1" "$1" "npy:$scratch/rows.npy" 1000000000
expect "200000 rows, end STOKER_FINISHED, cache decoded, paused 0" "$1" "npy:$scratch/rows.npy" 10000000

# Single rows of 1000 bytes at random: each page is begun long before it is full.
"$2" --quiet --codec lz4 --level 1 "npy:$scratch/rows.npy" "shards:$scratch/shards"
echo $((2 * limit)) >"$group/$file"
expect "200000 rows, end STOKER_FINISHED, cache decoded, paused 1" "$1" "shards:$scratch/shards" 1000000000
echo "in 64 MiB and in 128: all epochs ended"
