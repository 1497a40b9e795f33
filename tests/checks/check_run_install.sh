#!/usr/bin/env bash
# check_run_install.sh - ./run install asks for root before it builds, only if it needs it, and builds what is
# tested.
#
# usage: check_run_install.sh
# A copy of ./run is started in a scratch folder with stand-ins for cmake and sudo that write down how they
# were called; as a user without write permission for the prefix.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/checks/scratch.sh
mkdir -p "$scratch/bin" "$scratch/closed"
cp run "$scratch"
printf '#!/bin/sh\necho cmake "$@" >>"%s/calls"\nmkdir -p build/install\n: >>build/install/CMakeCache.txt\n: >>build/install/install_manifest.txt\n' \
    "$scratch" >"$scratch/bin/cmake"
# shellcheck disable=SC2016 # the stand-in's own words
printf '#!/bin/sh\necho sudo "$@" >>"%s/calls"\n[ -z "$REFUSED" ] || exit 1\n[ "$1" = -v ] || "$@"\n' "$scratch" >"$scratch/bin/sudo"
chmod +x "$scratch/bin/"*
chmod 555 "$scratch/closed"
as_user=()
if [ "$(id -u)" -eq 0 ]; then
    command -v setpriv >/dev/null || exit 77
    chmod 777 "$scratch"
    as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi

fail() {
    echo "check_run_install: $*: $(cat "$scratch/calls" "$scratch/out")" >&2
    failures=$((failures + 1))
}

# installs STATUS REFUSED PREFIX: ./run install ends with that status; sudo's answer is no if REFUSED.
installs() {
    local status=0
    rm -rf "$scratch/calls" "$scratch/build"
    : >"$scratch/calls" && chmod 666 "$scratch/calls"
    "${as_user[@]}" env PATH="$scratch/bin:$PATH" REFUSED="$2" bash "$scratch/run" install "$3" >"$scratch/out" 2>&1 ||
        status=$?
    [ "$status" -eq "$1" ] || fail "exit status $status, not $1"
}

# What the machine lacks would be installed by the stand-in of sudo, which cannot: leave it out.
printf '#!/bin/sh\nexit 0\n' >"$scratch/bin/apt-get" && chmod +x "$scratch/bin/apt-get"

installs 0 '' "$scratch/closed/prefix"
[ "$(head -n 1 "$scratch/calls")" = 'sudo -v' ] || fail "root is not asked for first"
grep -q '^sudo cmake --install' "$scratch/calls" || fail "it is not installed as root"
grep -q -- '-DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=RelWithDebInfo' "$scratch/calls" || fail "another build than the tested one"
installs 1 yes "$scratch/closed/prefix"
if grep -q '^cmake' "$scratch/calls"; then fail "it was built without leave"; fi
installs 0 '' "$scratch/open/prefix"
if grep -qE '^sudo (-v|cmake)' "$scratch/calls"; then fail "root is asked for without need"; fi

verdict
