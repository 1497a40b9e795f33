#!/bin/sh
# fetch-mnist.sh - have the four files of MNIST in a directory, checked.
#
#   datasets/fetch-mnist.sh DIR
#
# Files that are there (plain or .gz, any spelling that mnist:DIR knows) are checked and
# kept. Missing ones are downloaded to a temporary name, unpacked to check their SHA-256,
# and only then moved into place: DIR never holds half a file under a real name.
#
# STOKER_MNIST_URL   the one place to download from, instead of the public mirrors
#
# Exit status: 0 all four are there and right, 1 they are not, 2 wrong usage.
set -u

mirrors="https://ossci-datasets.s3.amazonaws.com/mnist https://storage.googleapis.com/cvdf-datasets/mnist"

# SHA-256 of the unpacked bytes.
files="\
train images idx3 ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db
train labels idx1 65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5
t10k images idx3 0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7
t10k labels idx1 ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"

complain() {
    echo "fetch-mnist: $*" >&2
}

sha256() {
    if command -v sha256sum >/dev/null 2>&1; then
        sha256sum
    else
        shasum -a 256
    fi | cut -d' ' -f1
}

# unpacked_sha256 FILE: by content, not by name; a damaged gzip gives some other sum.
unpacked_sha256() {
    if gzip -t "$1" 2>/dev/null; then
        gzip -dc <"$1" | sha256
    else
        sha256 <"$1"
    fi
}

# download URL FILE
download() {
    if command -v curl >/dev/null 2>&1; then
        curl -fsSL --connect-timeout 10 --max-time 300 --retry 2 -o "$2" "$1"
    elif command -v wget >/dev/null 2>&1; then
        wget -q --timeout=10 --tries=3 -O "$2" "$1"
    else
        complain "neither curl nor wget is installed"
        return 1
    fi
}

# present HALF WHAT KIND: print the file that mnist:DIR would open, if there is one.
present() {
    for suffix in "" .gz; do
        for separator in - .; do
            file="$dir/$1-$2$separator$3-ubyte$suffix"
            if [ -e "$file" ]; then
                echo "$file"
                return 0
            fi
        done
    done
    return 1
}

# fetch HALF WHAT KIND SHA256
fetch() {
    name="$1-$2-$3-ubyte.gz"
    for mirror in ${STOKER_MNIST_URL:-$mirrors}; do
        echo "fetch-mnist: $mirror/$name"
        if ! download "$mirror/$name" "$partial"; then
            complain "$mirror/$name: could not be downloaded"
        elif [ "$(unpacked_sha256 "$partial")" != "$4" ]; then
            complain "$mirror/$name: not the file of MNIST (its SHA-256 differs)"
        else
            chmod 644 "$partial" && mv -f "$partial" "$dir/$name" && return 0
        fi
    done
    return 1
}

if [ $# -ne 1 ] || [ -z "$1" ]; then
    echo "usage: $0 DIR" >&2
    exit 2
fi
dir=$1
if ! mkdir -p "$dir"; then
    complain "$dir: cannot be made"
    exit 1
fi

partial="$dir/.fetch-mnist.$$"
trap 'rm -f "$partial"' EXIT
trap 'exit 1' HUP INT TERM

failed=0
while read -r half what kind sum; do
    if file=$(present "$half" "$what" "$kind"); then
        if [ "$(unpacked_sha256 "$file")" != "$sum" ]; then
            complain "$file: not the file of MNIST (its SHA-256 differs); move it away and try again"
            failed=1
        fi
    elif ! fetch "$half" "$what" "$kind" "$sum"; then
        failed=1
        break
    fi
done <<EOF
$files
EOF

if [ $failed -ne 0 ]; then
    complain "MNIST is not complete in $dir"
    exit 1
fi
echo "fetch-mnist: MNIST is complete in $dir"
