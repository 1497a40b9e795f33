# scratch.sh - for checks to source: $scratch, a folder that goes when the check ends, and a count of failures
# that becomes the exit status.
# shellcheck shell=bash
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

fail() {
    echo "$(basename "$0" .sh): $*" >&2
    failures=$((failures + 1))
}

# The last line of a check.
verdict() {
    echo "$failures failures"
    [ "$failures" -eq 0 ]
}
