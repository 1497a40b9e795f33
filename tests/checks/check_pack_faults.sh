#!/usr/bin/env bash
# check_pack_faults.sh - stoker-pack where things go wrong: killed at each call that gives a name or
# waits for the disk, two of it at one target, a full disk; and the order of those calls.
#
# usage: check_pack_faults.sh STOKER_PACK PACK_CALLS.SO [full-disk]
#        full-disk: that part alone, for this script itself in a mount namespace of its own
set -euo pipefail
script=$(realpath "${BASH_SOURCE[0]}")
tool=$(realpath "$1")
calls=$(realpath "$2")
part=${3:-}
. "$(dirname "${BASH_SOURCE[0]}")/scratch.sh"
cd "$scratch"
# The preloaded library comes before the runtime of a sanitizer.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"

# ends STATUS WORD...: the tool ends so. What it prints on standard error is in err.
ends() {
    local due=$1 status=0
    shift
    "$tool" --quiet "$@" 2>err || status=$?
    [ "$status" -eq "$due" ] || fail "exit status $status, not $due: $* ($(head -c 300 err))"
}

# sound WHAT WHOLE: each file of WHAT that has a final name has the bytes that it has in WHOLE.
sound() {
    local file
    while read -r file; do
        cmp -s "$file" "$2${file#"$1"}" || fail "$file is half written"
    done < <(find "$1" -type f ! -name '.*' 2>/dev/null)
}

# ---- a full disk, then room: an error that says so, nothing half written, the same in the end
full_disk() {
    local form source='synth:digits?count=4000&seed=5' words=()
    mkdir disk
    mount -t tmpfs -o size=1m none disk || exit 77
    for form in shards folder tar; do
        words=()
        [ $form != shards ] || words=(--shard-bytes 300K --codec raw)
        ends 0 "${words[@]}" "$source" "$form:whole.$form"
        mount -o remount,size=1m disk
        ends 1 "${words[@]}" "$source" "$form:disk/target"
        grep -q 'No space left on device' err || fail "$form: a full disk is not named: $(cat err)"
        sound disk/target "whole.$form"
        [ $form != tar ] || [ -z "$(ls -A disk)" ] || fail "tar: something remains: $(ls -A disk)"
        mount -o remount,size=64m disk
        ends 0 "${words[@]}" "$source" "$form:disk/target"
        diff -r disk/target "whole.$form" || fail "$form: after a full disk, another packing"
        rm -rf disk/target
    done
    umount disk
    [ "$failures" -eq 0 ] || exit 1
    echo "check_pack_faults: full disk: all is well"
}
if [ "$part" = full-disk ]; then
    full_disk
    exit
fi

# ---- the rest takes small packings, of a few files; those of several fields if there is Python to make them
cases=(shards folder tar)
if command -v python3 >/dev/null; then
    cases+=(shards+fields folder+fields tar+fields)
    python3 "$(dirname "$script")/make_fields.py" "$scratch" 9
fi
fields="tar:fields.tar?fields=png,mask.png,boxes.npy,caption.txt,cls,__key__"
words() {
    case $1 in
    shards+fields) echo "--shard-bytes 16K $fields" ;;
    *+fields) echo "$fields" ;;
    shards) echo "--shard-bytes 64K synth:digits?count=200&seed=3" ;;
    folder) echo "synth:digits?count=30&seed=3" ;;
    tar) echo "synth:digits?count=60&seed=3" ;;
    esac
}
for case in "${cases[@]}"; do
    form=${case%+*}
    # shellcheck disable=SC2046  # words, parted at spaces
    ends 0 $(words $case) "$form:whole.$case"
done

# ---- killed at each of its calls, and started again: nothing half written, the same in the end
for case in "${cases[@]}"; do
    form=${case%+*}
    killed=0
    for number in $(seq 0 200); do
        rm -rf target
        status=0
        # shellcheck disable=SC2046
        LD_PRELOAD=$calls STOKER_TEST_KILL=$number "$tool" --quiet $(words $case) "$form:target" 2>err &
        wait $! 2>/dev/null || status=$? # waited for, so that the shell reports no kill
        [ "$status" -eq 137 ] || break
        killed=$((killed + 1))
        sound target "whole.$case"
        # shellcheck disable=SC2046
        ends 0 $(words $case) "$form:target"
        diff -r target "whole.$case" || fail "$case: killed at call $number, another packing is the result"
        [ -z "$(find . -maxdepth 1 -name '.*' -type f)" ] || fail "$case: killed at call $number, a hidden file remains"
    done
    [ "$status" -eq 0 ] || fail "$case: exit status $status after $killed kills: $(head -c 300 err)"
    [ "$killed" -ge 3 ] || fail "$case: killed only $killed times"
    echo "check_pack_faults: $case: killed at each of $killed calls"
done

# ---- killed at any moment
for form in folder tar; do
    ends 0 'synth:digits?count=900&seed=3' "$form:timed.$form"
    for delay in 0.005 0.01 0.02 0.03 0.05 0.08; do
        rm -rf target
        "$tool" --quiet --workers 2 'synth:digits?count=900&seed=3' "$form:target" 2>err &
        pid=$!
        sleep $delay
        kill -9 $pid 2>/dev/null || true
        wait $pid 2>/dev/null || true
        sound target "timed.$form"
        ends 0 --workers 3 'synth:digits?count=900&seed=3' "$form:target"
        diff -r target "timed.$form" || fail "$form: killed after $delay s, another packing is the result"
    done
done

# ---- the order of calls: bytes are on the disk before they have a name, names before they count
# ordered FORM: judges the file "calls". A sum of zeros is that of a folder.
ordered() {
    awk -v form="$1" '
        function base(path) { sub(/.*\//, "", path); return path }
        function bad(what) { print what ": " $0; wrong = 1 }
        $1 == "mkdir" { made = 1 }
        $1 == "sync" && $3 ~ /^0+$/ { unnamed = 0; made = 0 }
        $1 == "sync" { sum[base($2)] = $3 }
        $1 == "syncfs" { unsynced = 0; made = 0 }
        $1 == "rename" && form == "folder" && base($3) != ".stoker-pack" { names++; unsynced++; next }
        $1 == "rename" {
            names++
            if (made) bad("something is in a new folder before that is on the disk")
            if (sum[base($2)] != $4) bad("bytes were not on the disk before they had a name")
            unnamed = 1
        }
        $1 == "unlink" && base($2) == ".stoker-pack" {
            if (unsynced > 0) bad("files were not on the disk before the mark went")
            unnamed = 1
        }
        END {
            if (unnamed) bad("the last name was not waited for")
            if (names == 0) bad("no names")
            exit wrong
        }' calls || fail "$1: $(tr '\n' ';' <calls | head -c 2000)"
}
for case in "${cases[@]}"; do
    form=${case%+*}
    rm -rf target calls
    # shellcheck disable=SC2046
    LD_PRELOAD=$calls STOKER_TEST_CALLS=$PWD/calls "$tool" --quiet $(words $case) "$form:target" || fail "$case, noted"
    ordered $form
done

# ---- two at one target: the second fails at once and names the first, which is not disturbed
long='synth:digits?count=20000&seed=1'
for form in shards folder tar; do
    rm -rf target
    "$tool" --quiet --workers 1 "$long" "$form:target" &
    pid=$!
    for _ in $(seq 1000); do
        [ -z "$(find . -path './.target*' -o -path './target/.*')" ] || break
        sleep 0.01
    done
    kill -STOP $pid # it holds the lock for as long as this takes
    ends 1 'synth:digits?count=20000&seed=2' "$form:target"
    grep -qx "stoker-pack: target: another stoker-pack, process $pid, is packing into it" err ||
        fail "$form: the first packer is not named: $(cat err)"
    kill -CONT $pid
    wait $pid || fail "$form: the first packer was disturbed"
    ends 0 "$long" "$form:target" # compares all of it
done

# ---- a full disk takes a mount: for anyone but root, in a user namespace of its own
own=(unshare -m)
[ "$(id -u)" -eq 0 ] || own=(unshare -rm)
if "${own[@]}" true 2>/dev/null; then
    status=0
    "${own[@]}" "$script" "$tool" "$calls" full-disk || status=$?
    [ "$status" -ne 77 ] || echo "check_pack_faults: FULL DISK SKIPPED: a tmpfs cannot be mounted here" >&2
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || fail "full disk: $status"
else
    echo "check_pack_faults: FULL DISK SKIPPED: no mount namespace can be made here" >&2
fi

verdict
