#!/usr/bin/env bash
# check_pack_ranks.sh - stoker-pack on several ranks: the bytes of one, with any number, whatever happens to a rank on the
# way, and whatever number begins again.
#
# usage: check_pack_ranks.sh STOKER_PACK PACK_CALLS.SO [MPIRUN]
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

# one WORD...: one process, alone.
one() {
    "$tool" --quiet "$@" 2>err || fail "one process ended with $?: $* ($(head -c 300 err))"
}

# ranks N WORD...: N ranks, as torchrun would start them; statuses in `statuses`, standard error in err.R, standard output
# in out.R. `odd`: what the odd rank, number `odd_rank` or "all", has in its environment.
odd=() odd_rank=1 limit=unlimited
ranks() {
    local count=$1 rank pids=() words
    shift
    statuses=()
    for ((rank = 0; rank < count; rank++)); do
        words=()
        [ "$rank" != "$odd_rank" ] && [ "$odd_rank" != all ] || words=("${odd[@]}")
        (
            trap '' XFSZ
            [ "$rank" != "$odd_rank" ] || ulimit -f "$limit"
            exec env RANK="$rank" WORLD_SIZE="$count" "${words[@]}" "$tool" "$@"
        ) >"out.$rank" 2>"err.$rank" &
        pids+=($!)
    done
    if [ -n "${stopped_ms:-}" ]; then
        wait "${pids[0]}" || true # the odd one is stopped, and let go when the others have ended
        kill -CONT "${pids[$odd_rank]}" 2>/dev/null || true
    fi
    for ((rank = 0; rank < count; rank++)); do
        status=0
        wait "${pids[$rank]}" 2>/dev/null || status=$?
        statuses+=("$status")
    done
}

# good WHAT: all ranks of the last run ended well.
good() {
    local status
    for status in "${statuses[@]}"; do
        [ "$status" -eq 0 ] || fail "$1: ${statuses[*]}: $(cat err.*)"
    done
}

# same WHAT WHOLE: the packing in "target" is complete, has the bytes of WHOLE, and nothing else is left.
same() {
    diff -r target "$2" || fail "$1: another packing"
}

# sound WHOLE: what has a final name in "target" has the bytes that it has in WHOLE.
sound() {
    local file
    for file in target/*.stk; do
        [ ! -e "$file" ] || cmp -s "$file" "$1/${file#target/}" || fail "$file is half written"
    done
}

source='synth:digits?count=3000&seed=3'
# ---- the bytes of one process, with every codec
for codec in raw png zstd; do
    one --codec $codec --shard-bytes 64K "$source" "shards:whole.$codec"
    for count in 2 3 8; do
        rm -rf target
        ranks "$count" --codec $codec --shard-bytes 64K "$source" shards:target
        good "$codec, $count ranks"
        same "$codec, $count ranks" "whole.$codec"
        cat out.* err.* >all
        [ "$(grep -c '^samples 3000$' all)" -eq 1 ] || fail "not one rank reports: $(cat all)"
    done
done

# ---- samples of several fields, and bad ones
cases=(rows)
declare -A words=([rows]="--shard-bytes 16K synth:digits?count=60&seed=3")
if command -v python3 >/dev/null; then
    python3 "$here/make_fields.py" "$scratch" 40
    fields="tar:fields.tar?fields=png,mask.png,boxes.npy,caption.txt,cls,__key__"
    cases+=(fields)
    words[fields]="--shard-bytes 16K $fields"
    one --quiet "synth:digits?count=200" folder:images
    printf 'xxxx' | dd of="$(find images -name '*.png' | sort | sed -n 7p)" bs=1 seek=60 conv=notrunc status=none
    status=0
    "$tool" --shard-bytes 16K --quiet folder:images shards:whole.bad 2>err || status=$?
    [ "$status" -eq 3 ] || fail "a bad sample: $status"
    ranks 3 --shard-bytes 16K --quiet folder:images shards:target.bad
    [ "${statuses[*]}" = "3 0 0" ] || fail "a bad sample, 3 ranks: ${statuses[*]}"
    [ "$(cat err.? | grep -c 'left out')" -eq 1 ] || fail "the bad sample is not reported once: $(cat err.?)"
    diff -r target.bad whole.bad || fail "a bad sample: another packing"
fi
for case in "${cases[@]}"; do
    # shellcheck disable=SC2086  # words, parted at spaces
    one ${words[$case]} "shards:whole.$case"
    rm -rf target
    # shellcheck disable=SC2086
    ranks 3 --verify ${words[$case]} shards:target
    good "$case"
    same "$case" "whole.$case"
    grep -q '^verified ' out.0 || fail "$case: rank 0 did not verify"
    # Complete: the next run finds it so, with ranks or without.
    # shellcheck disable=SC2086
    ranks 2 ${words[$case]} shards:target
    good "$case, complete"
    grep -qx "kept_samples $(sed -n 's/^samples //p' out.0)" out.0 || fail "$case: packed twice"
    # shellcheck disable=SC2086
    one ${words[$case]} shards:target
    same "$case, complete" "whole.$case"
done

# ---- one rank is killed at a call, or a call or a write fails: the others name it, and another number continues
# ended NAME: rank 0 ended well, or named rank 1.
ended() {
    [ "${statuses[0]}" -eq 0 ] || grep -q 'rank 1 ' err.0 || fail "$1: rank 0 did not name rank 1: $(cat err.0)"
    ! grep -q 'Sanitizer' err.* || fail "$1: $(cat err.*)"
}
for case in "${cases[@]}"; do
    for how in KILL FAIL; do
        hit=0
        step=2 # of few calls, some are the same; writes are counted only if one of them is to fail
        [ $how = KILL ] || step=5
        for ((number = 1; number < 10 * step; number += step)); do
            rm -rf target
            odd=(LD_PRELOAD="$calls" STOKER_TEST_$how=$number)
            # shellcheck disable=SC2086
            ranks 2 --quiet --peer-timeout 1 ${words[$case]} shards:target
            odd=()
            [ "${statuses[1]}" -eq 0 ] || hit=$((hit + 1))
            [ $how = KILL ] || [ "${statuses[1]}" -le 1 ] || fail "call $number fails: status ${statuses[1]}: $(cat err.1)"
            [ $how = KILL ] || [ "${statuses[1]}" -eq 0 ] || grep -q '^stoker-pack: rank 1: ' err.1 ||
                fail "$case: call $number fails, and rank 1 does not say so"
            ended "$case, $how $number"
            sound "whole.$case"
            # shellcheck disable=SC2086
            case $((number / step % 3)) in
            0) one ${words[$case]} shards:target ;;
            1) ranks 3 --quiet ${words[$case]} shards:target && good "$case: after $how $number" ;;
            *) ranks 2 --quiet ${words[$case]} shards:target && good "$case: after $how $number" ;;
            esac
            same "$case: after $how $number" "whole.$case"
            [ "$(ls -A target)" = "$(ls -A "whole.$case")" ] || fail "$case: something is left: $(ls -A target)"
        done
        [ "$hit" -ge 3 ] || fail "$case, $how: only $hit times"
        echo "check_pack_ranks: $case: $how at $hit calls"
    done
done

# ---- a rank that stops while it holds a part is named, and finds that it is late
rm -rf target
odd=(LD_PRELOAD="$calls" STOKER_TEST_STOP=0 STOKER_TEST_MATCH=/.part-)
stopped_ms=1
# shellcheck disable=SC2086
ranks 2 --quiet --peer-timeout 1 ${words[rows]} shards:target
unset stopped_ms
odd=()
[ "${statuses[0]}" -eq 1 ] || fail "a stopped rank is waited for: ${statuses[*]}"
grep -qE 'rank 1 \(process [0-9]+ on .*\) has done nothing for' err.0 || fail "a stopped rank is not named: $(cat err.0)"
# shellcheck disable=SC2086
one ${words[rows]} shards:target
same "after a stopped rank" whole.rows

# ---- a rank that does not come, and one whose files may not grow
rm -rf target
status=0
# shellcheck disable=SC2086
RANK=0 WORLD_SIZE=2 "$tool" --peer-timeout 1 ${words[rows]} shards:target 2>err || status=$?
[ "$status" -eq 1 ] || fail "one of two ranks: $status"
grep -q 'rank 1 of 2 has not come within 1 s' err || fail "the rank that is missing is not named: $(cat err)"
limit=8
# shellcheck disable=SC2086
ranks 2 --quiet --peer-timeout 1 ${words[rows]} shards:target
limit=unlimited
[ "${statuses[1]}" -eq 0 ] || grep -q 'File too large' err.1 || fail "no room is not named: $(cat err.1)"
sound whole.rows
# shellcheck disable=SC2086
ranks 3 --quiet ${words[rows]} shards:target
good "after no room"
same "after no room" whole.rows

# ---- the parts of another packing are refused, and so is a damaged one
rm -rf target
odd=(LD_PRELOAD="$calls" STOKER_TEST_KILL=0 STOKER_TEST_MATCH=/.parts/shard-)
odd_rank=all
# shellcheck disable=SC2086
ranks 2 --quiet --peer-timeout 1 ${words[rows]} shards:target
odd=() odd_rank=1
if [ -e target/.parts/plan ]; then
    ranks 2 --quiet --shard-bytes 16K 'synth:digits?count=60&seed=4' shards:target
    [ "${statuses[*]}" = "1 1" ] || fail "another source: ${statuses[*]}"
    grep -q 'earlier run packed another set: "source synth:digits?count=60&seed=3"' err.0 || fail "another source is not named: $(cat err.0)"
    status=0
    "$tool" --quiet --shard-bytes 16K --codec zstd --level 3 'synth:digits?count=60&seed=3' shards:target 2>err || status=$?
    [ "$status" -eq 1 ] || fail "other options: $status"
    grep -q 'packed another set: "--codec keep", and this is "--codec zstd"' err || fail "other options are not named: $(cat err)"
    for part in target/.parts/part-*; do
        printf 'x' | dd of="$part" bs=1 seek=4100 conv=notrunc status=none
        truncate -s -1 "$part"
    done
    # shellcheck disable=SC2086
    ranks 2 --quiet ${words[rows]} shards:target
    good "after truncated parts"
    same "after truncated parts" whole.rows
else
    fail "no folder of parts was left"
fi

# ---- two packings at one target, what does not divide, and half a description
rm -rf target
status=0
mkdir target
if command -v flock >/dev/null; then
    # shellcheck disable=SC2086
    flock target env RANK=0 WORLD_SIZE=2 "$tool" ${words[rows]} shards:target 2>err || status=$?
    [ "$status" -eq 1 ] || fail "a target that one process packs: $status"
    grep -q 'is packing into it' err || fail "the single packer is not named: $(cat err)"
fi
for form in folder tar; do
    ranks 2 --quiet 'synth:digits?count=60' $form:refused
    [ "${statuses[*]}" = "1 1" ] || fail "$form: ${statuses[*]}"
    grep -q "2 ranks of torchrun cannot pack into $form: " err.0 || fail "$form is not refused: $(cat err.0)"
    [ ! -e refused ] || fail "$form: something was made"
done
status=0
# shellcheck disable=SC2086
RANK=0 "$tool" ${words[rows]} shards:target 2>err || status=$?
[ "$status" -eq 1 ] || fail "half a description: $status"
grep -q 'WORLD_SIZE' err || fail "half a description: $(cat err)"

# ---- Slurm's variables, and a real mpirun
rm -rf target
# shellcheck disable=SC2086
SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=1 "$tool" --quiet ${words[rows]} shards:target &
pid=$!
# shellcheck disable=SC2086
SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 "$tool" --quiet ${words[rows]} shards:target || fail "Slurm, rank 0: $?"
wait $pid || fail "Slurm, rank 1: $?"
same "Slurm" whole.rows
if [ -n "$mpirun" ]; then
    for count in 2 3 8; do
        rm -rf target
        # shellcheck disable=SC2086
        "$here/../mpi/ranks.sh" "$mpirun" $count "$tool" --verify ${words[rows]} shards:target >out 2>err || fail "mpirun -n $count: $(cat err)"
        same "mpirun -n $count" whole.rows
        [ "$(grep -c '^samples' out)" -eq 1 ] || fail "mpirun -n $count: $(cat out)"
    done
else
    echo "check_pack_ranks: MPIRUN SKIPPED: there is none" >&2
fi
verdict
