#!/usr/bin/env bash
# check_node_ranks.sh - four processes of a job hold a data set once in memory; one that is killed does not matter.
#
# usage: check_node_ranks.sh NODE_RANKS     $STOKER_NODE_MB megabytes, default 40
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

rows=$((${STOKER_NODE_MB:-40} * 1000))
{
    printf '\223NUMPY\001\000\166\000'
    printf '%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': ($rows, 1000), }"
    head -c $((rows * 1000)) /dev/urandom
} >"$scratch/rows.npy"

"$1" "npy:$scratch/rows.npy" 4
"$1" "npy:$scratch/rows.npy" 4 kill
