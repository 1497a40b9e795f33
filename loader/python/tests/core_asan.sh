#!/usr/bin/env bash
# core_asan.sh - the extension's tests under AddressSanitizer and UndefinedBehaviorSanitizer.
#
# usage: core_asan.sh BUILD [pytest's arguments]
#
# BUILD is configured with clang, -DSTOKER_SANITIZE=address,undefined and -DSTOKER_BUILD_PYTHON=ON, and its target
# stoker_python is built. The interpreter is not instrumented, so the sanitizer's runtime is loaded before it, and its
# own leaks are not reported; PYTHONMALLOC=malloc lets the sanitizer see each object. Needs pytest; PYTHON names the interpreter.
set -euo pipefail
build=$(cd "$1" && pwd)
shift
cd "$(dirname "${BASH_SOURCE[0]}")"
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
runtime=$("$compiler" -print-file-name=libclang_rt.asan-x86_64.so)
[ -e "$runtime" ] || runtime=$("$compiler" -print-file-name="libclang_rt.asan-$(uname -m).so")
[ -e "$runtime" ] || { echo "core_asan: $compiler has no shared AddressSanitizer: is it clang?" >&2; exit 1; }
LD_PRELOAD=$runtime ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 PYTHONMALLOC=malloc \
    PYTHONPATH=$build/python exec "${PYTHON:-python3}" -X faulthandler -m pytest -q --capture=sys test_core_*.py "$@"
