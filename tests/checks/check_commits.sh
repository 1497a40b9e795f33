#!/usr/bin/env bash
# check_commits.sh - the subjects of the last 20 commits: "area: imperative", at most 72 characters.
#
# Skips (77) without a git history, or in a shallow clone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# violations: print each line of standard input that is no good subject.
violations() {
    awk 'length > 72 { print "over 72 characters: " $0; next }
         !/^[a-z0-9_\/., -]+: [a-z]/ { print "not \"area: imperative\": " $0 }'
}

good='loader/api: return STOKER_EINVAL for a negative timeout'
long="loader: return STOKER_EINVAL for a timeout that is negative, as the docs say"
for bad in "Fix the loader" "loader: Return an error" "loader return an error" "$long"; do
    if [ "$(printf '%s\n%s\n' "$good" "$bad" | violations | wc -l)" -ne 1 ]; then
        echo "check_commits: the self-test missed: $bad" >&2
        exit 1
    fi
done

if [ "$(git rev-parse --is-shallow-repository 2>/dev/null)" != false ] || ! git rev-parse -q --verify HEAD >/dev/null; then
    echo "SKIPPED: no complete git history"
    exit 77
fi
found=$(git log -20 --no-merges --format=%s | violations)
[ -z "$found" ] || printf '%s\n' "$found" >&2
[ -z "$found" ]
