#!/usr/bin/env bash
# ranks.sh - start a program on several ranks of this machine, of which there may be more than CPUs.
#
# usage: ranks.sh [--passed] MPIRUN RANKS PROGRAM [ARGUMENT...]
#
# --passed: what counts is that every rank prints "passed", not mpirun's exit status.
set -euo pipefail
by_status=true
if [ "$1" = --passed ]; then
    by_status=false
    shift
fi
mpirun=$1 ranks=$2
shift 2

# Open MPI refuses root and more ranks than cores by default; others know neither variable.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
# MPI libraries keep memory until the program ends.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
# Two mpiruns that make or remove Open MPI's folder in /tmp at the same time fail.
session=$(mktemp -d)
trap 'rm -rf "$session"' EXIT
export OMPI_MCA_orte_tmpdir_base=$session
if $by_status; then
    timeout -k 5 1500 "$mpirun" -n "$ranks" "$@"
    exit
fi
output=$(timeout -k 5 1500 "$mpirun" -n "$ranks" "$@" 2>&1) || true
[ "$(grep -c '^passed$' <<<"$output")" -eq "$ranks" ] && exit
printf '%s\n' "$output"
exit 1
