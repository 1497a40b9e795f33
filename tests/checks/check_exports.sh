#!/usr/bin/env bash
# check_exports.sh - a library exports stoker_* and nothing else, and all that its headers promise.
#
# usage: check_exports.sh LIBRARY PART    PART/include/stoker holds its headers
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

exported=$(nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | sort -u)
unversioned=$(nm -D --defined-only "$1" | awk '$2 != "A" && $3 !~ /@@STOKER_[0-9.]+$/ { print $3 }')
strangers=$(printf '%s\n' "$exported" | grep -v '^stoker_' || true)

# STOKER_API declarations: the name before "(" or, for a table, before ";".
promised=$(cat "$2"/include/stoker/*.h | tr '\n' ' ' |
    grep -oE 'STOKER_API [^;{(]*(\(|;)' | grep -oE 'stoker_[a-z0-9_]+ ?[(;]$' | tr -d ' (;' | sort -u)
missing=$(comm -13 <(printf '%s\n' "$exported") <(printf '%s\n' "$promised"))
unannounced=$(comm -23 <(printf '%s\n' "$exported" | grep '^stoker_' || true) <(printf '%s\n' "$promised"))

[ -z "$unversioned" ] || printf 'exported without a version (loader/stoker.map):\n%s\n' "$unversioned" >&2
[ -z "$strangers" ] || printf 'exported, but not stoker_*:\n%s\n' "$strangers" >&2
[ -z "$missing" ] || printf 'promised by a header, but not exported:\n%s\n' "$missing" >&2
[ -z "$unannounced" ] || printf 'exported, but in no public header:\n%s\n' "$unannounced" >&2

echo "$(printf '%s\n' "$exported" | wc -l) exported, $(printf '%s\n' "$promised" | wc -l) promised"
[ -n "$promised" ] && [ -z "$strangers$missing$unannounced$unversioned" ]
