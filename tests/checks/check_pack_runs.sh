#!/usr/bin/env bash
# check_pack_runs.sh - every way to run stoker-pack ends in the same bytes: 1, 2, 3 or more ranks, a run that is killed or
# fails at any of its calls and is started again. No such run leaves a file that counts as complete but is not.
#
# usage: check_pack_runs.sh STOKER_PACK PACK_CALLS.SO [MPIRUN]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tool=$(realpath "$1")
calls=$(realpath "$2")
mpirun=${3:-}
. "$here/scratch.sh"
cd "$scratch"
# The preloaded library comes before the runtime of a sanitizer.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE

# ends STATUS WORD...: the tool ends so. What it prints on standard error is in err.
ends() {
    local due=$1 status=0
    shift
    "$tool" --quiet "$@" 2>err || status=$?
    [ "$status" -eq "$due" ] || fail "exit status $status, not $due: $* ($(head -c 300 err))"
}

# ---- the table: what is packed into which form; those of several fields need Python to make them
declare -A words=(
    [shards]="--shard-samples 9 synth:digits?count=40&seed=3"
    [folder]="synth:digits?count=12&seed=3"
    [tar]="synth:digits?count=12&seed=3"
)
cases=(shards folder tar)
if command -v python3 >/dev/null; then
    python3 "$here/make_fields.py" "$scratch" 9
    fields="tar:fields.tar?fields=png,mask.png,boxes.npy,caption.txt,cls,__key__"
    cases+=(shards+fields folder+fields tar+fields)
    words[shards+fields]="--shard-samples 2 --codec lz4 $fields"
    words[folder+fields]=$fields words[tar+fields]=$fields
fi
for case in "${cases[@]}"; do
    # shellcheck disable=SC2086  # words, parted at spaces
    ends 0 ${words[$case]} "${case%+*}:whole.$case"
done

# ---- ranks: the bytes of one process. A bad sample is left out by the rank that has it, in the end one shard is empty
# ranks N WORD...: N ranks, as torchrun starts them; statuses in `statuses`, what they print in out.R and err.R.
ranks() {
    local count=$1 rank pids=()
    shift
    statuses=()
    rm -f out.* err.*
    for ((rank = 0; rank < count; rank++)); do
        RANK=$rank WORLD_SIZE=$count "$tool" "$@" >out.$rank 2>err.$rank &
        pids+=($!)
    done
    for rank in "${!pids[@]}"; do
        wait "${pids[$rank]}" && statuses+=(0) || statuses+=($?)
    done
}
ends 0 'synth:digits?count=12&seed=3' folder:images
for name in 3 4 5; do # a shard of its own
    printf 'xxxx' | dd of="$(find images -name '*.png' | sort | sed -n $((name + 1))p)" bs=1 seek=60 conv=notrunc status=none
done
ends 3 --shard-samples 3 folder:images shards:whole.bad
[ "$(grep -c 'left out' err)" -eq 3 ] || fail "three bad samples: $(cat err)"
for case in shards shards+fields bad; do
    [ -e "whole.$case" ] || continue
    [ $case = bad ] && what="--shard-samples 3 folder:images" due=3 || what=${words[$case]} due=0
    for count in 1 2 3 11; do
        rm -rf target
        # shellcheck disable=SC2086
        ranks $count $what shards:target
        [ "$(printf '%s\n' "${statuses[@]}" | sort -n | tail -n 1)" -eq $due ] || fail "$case, $count ranks: ${statuses[*]}"
        diff -r target "whole.$case" || fail "$case, $count ranks: other bytes"
        # Complete: every rank finds its shards so, and one process all of them.
        # shellcheck disable=SC2086
        ends $due --verify $what shards:target
        diff -r target "whole.$case" || fail "$case, $count ranks: written again"
        [ "$(sed -n 's/^samples //p' out.* | paste -sd+ | bc)" -eq "$("$tool" $what shards:target | sed -n 's/^kept_samples //p')" ] ||
            fail "$case: $count ranks report other numbers of samples: $(cat out.*)"
    done
done
# A rank that does not run leaves a set that does not open; any number of ranks completes it.
rm -rf target
# shellcheck disable=SC2086
RANK=1 WORLD_SIZE=3 ends 0 ${words[shards]} shards:target
ends 1 shards:target tar:never.tar
grep -q 'missing' err || fail "a third of a set opened: $(cat err)"
# shellcheck disable=SC2086
ranks 2 --quiet ${words[shards]} shards:target
diff -r target whole.shards || fail "continued by another number of ranks: other bytes"
for form in folder tar; do
    RANK=1 WORLD_SIZE=2 ends 1 'synth:digits?count=60' $form:refused
    grep -q "rank 1: refused: 2 ranks of torchrun cannot write one $form: " err || fail "$form is not refused: $(cat err)"
    [ ! -e refused ] || fail "$form: something was made"
done
RANK=0 WORLD_SIZE=2 ends 1 --verify 'synth:digits?count=60' shards:refused
grep -q 'verify in one process afterwards' err || fail "--verify of a rank: $(cat err)"
RANK=0 ends 1 'synth:digits?count=60' shards:refused
grep -q 'WORLD_SIZE' err || fail "half a description: $(cat err)"
if [ -n "$mpirun" ]; then
    rm -rf target
    # shellcheck disable=SC2086
    "$here/../mpi/ranks.sh" "$mpirun" 3 "$tool" --quiet ${words[shards]} shards:target 2>err || fail "mpirun: $(cat err)"
    diff -r target whole.shards || fail "mpirun: other bytes"
else
    echo "check_pack_runs: MPIRUN SKIPPED: there is none" >&2
fi

# ---- killed, or failing, at each call: nothing half written, the same in the end
# sound WHAT WHOLE: each file of WHAT that has a final name has the bytes that it has in WHOLE.
sound() {
    local file
    while read -r file; do
        cmp -s "$file" "$2${file#"$1"}" || fail "$file is half written"
    done < <(find "$1" -type f ! -name '.*' 2>/dev/null)
}
for case in "${cases[@]}"; do
    form=${case%+*}
    for how in KILL FAIL; do
        hit=0
        step=1 # of the calls that may fail, writes are most
        [ $how = KILL ] || step=7
        for ((number = 0; number < 400; number += step)); do
            rm -rf target
            status=0
            # shellcheck disable=SC2086
            env LD_PRELOAD="$calls" STOKER_TEST_$how=$number "$tool" --quiet ${words[$case]} "$form:target" 2>err &
            wait $! 2>/dev/null || status=$? # waited for, so that the shell reports no kill
            [ "$status" -ne 0 ] || break
            [ "$status" -eq 137 ] || [ "$status $how" = "1 FAIL" ] || fail "$case, $how $number: status $status: $(cat err)"
            hit=$((hit + 1))
            sound target "whole.$case"
            if [ $form = shards ] && ! diff -rq --exclude='.*' target "whole.$case" >/dev/null 2>&1; then
                ends 1 shards:target tar:never.tar
            elif [ -e target/.stoker-pack ]; then # a power loss: bytes that were never synced are lost
                find target -name '*.png' | sort | head -n 1 | while read -r file; do : >"$file"; done
            fi
            # shellcheck disable=SC2086
            ends 0 ${words[$case]} "$form:target"
            diff -r target "whole.$case" || fail "$case: after $how $number, another packing"
            [ -z "$(find . -maxdepth 1 -name '.*' -type f)" ] || fail "$case: after $how $number, a hidden file remains"
        done
        [ "$hit" -ge 3 ] || fail "$case, $how: only $hit times"
        echo "check_pack_runs: $case: $how at $hit calls"
    done
done
rm -rf target
for form in shards folder tar; do # no room
    status=0
    (
        trap '' XFSZ
        ulimit -f 8
        exec "$tool" --quiet --workers 1 'synth:pictures?count=9&size=128' "$form:target"
    ) 2>err || status=$?
    [ "$status" -eq 1 ] && grep -q 'File too large' err || fail "$form: no room is not named: $(cat err)"
    [ -z "$(find target -type f ! -name '.*' 2>/dev/null)" ] || fail "$form: half a file has its name"
    rm -rf target
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
    rm -rf target calls
    # shellcheck disable=SC2086
    LD_PRELOAD=$calls STOKER_TEST_CALLS=$PWD/calls "$tool" --quiet ${words[$case]} "${case%+*}:target" || fail "$case, noted"
    ordered "${case%+*}"
done

# ---- a stray file in an unfinished folder keeps it unfinished
rm -rf target
LD_PRELOAD=$calls STOKER_TEST_KILL=20 "$tool" --quiet 'synth:digits?count=12&seed=3' folder:target 2>err &
wait $! 2>/dev/null || true
touch target/0000003/stray.png
ends 1 'synth:digits?count=12&seed=3' folder:target
grep -q 'remove the others' err || fail "a stray file was not noticed: $(cat err)"
[ -e target/.stoker-pack ] || fail "a folder with a stray file counts as finished"

# ---- two at one target: the second fails at once, the first is not disturbed
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
    ends 1 "$long" "$form:target"
    grep -q 'another stoker-pack is packing into it' err || fail "$form: the first packer is not noticed: $(cat err)"
    kill -CONT $pid
    wait $pid || fail "$form: the first packer was disturbed"
    ends 0 "$long" "$form:target" # compares all of it
done
verdict
