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

# weights FILE [PREFIX]: the bytes of a checkpoint's tensors whose names begin so, in the order of names.
weights() {
    python3 - "$1" "${2:-model.}" <<'EOF'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
begin = 8 + struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:begin])
for name in sorted(name for name in header if name.startswith(sys.argv[2])):
    first, end = header[name]["data_offsets"]
    sys.stdout.buffer.write(data[begin + first:begin + end])
EOF
}

# same A B WHAT [PREFIX]: two checkpoints hold the same weights, bit for bit.
same() {
    [ "$(weights "$1" "${4:-model.}" | wc -c)" -gt 100 ] || fail "$1 holds no weights"
    cmp -s <(weights "$1" "${4:-model.}") <(weights "$2" "${4:-model.}") || fail "$3"
}

# The last line of a check.
verdict() {
    echo "$failures failures"
    [ "$failures" -eq 0 ]
}
