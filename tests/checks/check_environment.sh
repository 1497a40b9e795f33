#!/usr/bin/env bash
# check_environment.sh - a program with more rights than its caller runs no code that a variable names.
#
# usage: check_environment.sh CC OPEN_NAMED_LIBRARY FIELD_HASHES [TRAINER_LOGITS]
# Skips (77) the second half unless it is root and set-id files work.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# One function reads the environment for the libraries; what only programs read is theirs.
if grep -rn --include='*.[ch]' -w getenv loader datasets trainer |
    grep -v '^trainer/programs/\|^datasets/pack/\|^loader/base/environment.h'; then
    echo "use stk_environment() of loader/base/environment.h" >&2
    exit 1
fi
# One function loads libraries, and knows when it must not.
if grep -rn --include='*.[ch]' -w 'dlopen\|dlmopen' loader datasets trainer kernels bench | grep '(.*,' |
    grep -v '^loader/base/library.c\|^trainer/peers/mpi/plugin/mpi.c'; then
    echo "use stk_library_open() of loader/base/library.h" >&2
    exit 1
fi

. tests/checks/scratch.sh
chmod 777 "$scratch"
printf '#include <stdio.h>\n__attribute__((constructor)) static void run(void) { fputs("FOREIGN CODE\\n", stderr); }\n' |
    "$1" -shared -fPIC -x c - -o "$scratch/foreign.so"
export ASAN_OPTIONS=detect_leaks=0 # what may not be traced cannot be looked at

# set_id PROGRAM: makes $scratch/privileged of it
set_id() {
    cp "$1" "$scratch/privileged" && chown 65534:65534 "$scratch/privileged" 2>/dev/null && chmod 6755 "$scratch/privileged"
}
privileged=no
! set_id "$2" || [[ $("$scratch/privileged") != privileged* ]] || privileged=yes

# door VARIABLE PROGRAM ARGUMENT...: code gets in by the variable, unless the program is privileged. It runs to its end either way.
doors=0
door() {
    local variable=$1 program=$2
    shift 2
    env "$variable=$scratch/foreign.so" "$program" "$@" > "$scratch/shown" 2>&1 ||
        { echo "$variable: $program failed:" >&2; cat "$scratch/shown" >&2; exit 1; }
    if ! grep -q 'FOREIGN CODE' "$scratch/shown"; then
        echo "$variable: no code gets in by it here"
        return
    fi
    doors=$((doors + 1))
    [ $privileged = yes ] || return 0
    set_id "$program"
    env "$variable=$scratch/foreign.so" "$scratch/privileged" "$@" > "$scratch/shown" 2>&1 ||
        { echo "$variable: the privileged $program failed:" >&2; cat "$scratch/shown" >&2; exit 1; }
    if grep -q 'FOREIGN CODE' "$scratch/shown"; then
        echo "$variable: a privileged $program ran its code" >&2
        exit 1
    fi
}

door STOKER_CUDART "$2"
door NVTX_INJECTION64_PATH "$3" 'synth:digits?count=100' padded 1 cpu
if [ $# -gt 3 ]; then
    for variable in INTEL_LIBITTNOTIFY64 INTEL_JIT_PROFILER64 VS_PROFILER; do
        door $variable "$4" WRITE "$scratch/weights"
        rm -f "$scratch/weights"
    done
fi
[ $doors -ge 1 ] || { echo "no code was run by any variable: the check is broken" >&2; exit 1; }
[ $privileged = yes ] || { echo "SKIPPED: not root, or set-id bits have no effect here: no privileged program was run"; exit 77; }

# Also a library that no variable names is refused, since those that it reads itself would count.
set_id "$2"
shown=$("$scratch/privileged")
case $shown in
    "privileged not loaded: "*"elevated rights") echo "privileged programs: $doors doors, all closed" ;;
    *) echo "a privileged program: $shown" >&2; exit 1 ;;
esac
