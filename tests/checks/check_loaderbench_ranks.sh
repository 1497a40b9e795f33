#!/usr/bin/env bash
# check_loaderbench_ranks.sh - loaderbench on several ranks: one voice, every sample once over all ranks, rates of all
# together; and a rank that fails, ends, differs or is interrupted ends the others, with its name.
#
# usage: check_loaderbench_ranks.sh LOADERBENCH STOKER_PACK LIBSTOKER_MPI [MPIRUN]     the last two may be ""
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tool=$(realpath "$1")
pack=$(realpath "$2")
export STOKER_MPI=$3
mpirun=${4:-}
. "$here/scratch.sh"
cd "$scratch"
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
data='synth:digits?count=1001'
fast=(--workers 0,1 --pin-memory off --batch-size 64 --repeats 2 --seconds 0.02 --peer-timeout 20)

# torchrun COUNT WORD...: COUNT ranks over TCP, as torchrun starts them. Statuses in `statuses`, output in out.R, err.R.
# other: words that replace the last one for rank 1.
# Ports lie below those that the system hands out.
other=() first_port=$((20000 + $$ % 12000)) pids=()
torchrun() {
    local count=$1 rank words
    shift
    first_port=$((first_port + 1))
    pids=() statuses=()
    for ((rank = 0; rank < count; rank++)); do
        words=("$@")
        if [ "$rank" -eq 1 ] && [ ${#other[@]} -gt 0 ]; then words=("${words[@]:0:$#-1}" "${other[@]}"); fi
        RANK=$rank WORLD_SIZE=$count LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$count MASTER_ADDR=127.0.0.1 STOKER_PORT=$first_port \
            "$tool" "${words[@]}" >"out.$rank" 2>"err.$rank" &
        pids+=($!)
    done
}
finish() {
    local pid status
    for pid in "${pids[@]}"; do
        status=0
        wait "$pid" 2>/dev/null || status=$?
        statuses+=("$status")
    done
}

# right FILE COUNT: JSON of COUNT ranks that have verified all samples.
right() {
    [ "$(grep -c '"kind": "machine".*"ranks": '"$2"', "launcher": ' "$1")" -eq 1 ] || fail "$2 ranks: $(head -c 900 "$1")"
    [ "$(grep -c '"kind": "cell".*"verified": 1001[,}].*"ranks": '"$2"', "slowest_rank": [0-9]*, "slowest_rank_samples_per_s": [0-9]' "$1")" -eq 2 ] ||
        fail "$2 ranks: not two cells that have verified 1001 samples: $(grep '"kind": "cell"' "$1" | head -c 3000)"
    grep -q '"kind": "ceiling"' "$1" || fail "$2 ranks: no ceilings"
    if grep '"kind": "cell"' "$1" | grep -q '"error": "'; then fail "$2 ranks: a cell failed: $(cat "$1")"; fi
}

# ---- counts, by each way to start ranks
for count in 2 3; do
    torchrun $count "${fast[@]}" --format json "$data"
    finish
    [ "${statuses[*]//0/}" = "$(printf '%*s' $((count - 1)) '')" ] || fail "$count ranks: ${statuses[*]}: $(cat err.*)"
    right out.0 $count
    [ ! -s out.1 ] || fail "rank 1 prints: $(head -c 300 out.1)"
    [ ! -s err.0 ] || fail "standard error: $(cat err.0)"
    if [ -n "$mpirun" ] && [ -n "$STOKER_MPI" ]; then
        "$here/../mpi/ranks.sh" "$mpirun" $count "$tool" "${fast[@]}" --format json "$data" >out 2>err || fail "mpirun -n $count: $(cat err)"
        right out $count
    fi
done

# ---- the other forms; and one process prints what it always has
torchrun 2 "${fast[@]}" --ceilings off --format csv "$data"
finish
head -n 1 out.0 | grep -q ',ranks,slowest_rank,slowest_rank_samples_per_s,date' || fail "csv: $(head -n 1 out.0)"
python3 -c 'import csv; assert len({len(row) for row in csv.reader(open("out.0"))}) == 1' || fail "csv: rows of different lengths"
torchrun 2 "${fast[@]}" "$data"
finish
grep -q '^# ranks    2 of torchrun: ' out.0 || fail "table: $(cat out.0)"
[ "$(grep -c 'slowest: rank [01], ' out.0)" -eq 2 ] || fail "table: no slowest rank"
grep -q '^# verdict  2 ranks together, each with ' out.0 || fail "verdict: $(cat out.0)"
grep -q '^options.rank = STOKER_RANK_AUTO;' out.0 || fail "the advice lacks the rank"
torchrun 2 "${fast[@]}" --ceilings off --format html "$data"
finish
grep -q ', 2 ranks together' out.0 || fail "html: no ranks"
for form in json csv table html; do
    "$tool" "${fast[@]}" --ceilings off --quiet --format $form "$data" >one.$form || fail "one process, $form"
    if grep -qE 'ranks|slowest|RANK_AUTO' one.$form; then fail "one process speaks of ranks: $form"; fi
done
torchrun 2 "${fast[@]}" --ceilings off --format json "$data"
finish
"$tool" --compare one.json out.0 >compared || true
grep -qx '# ranks was 1' compared || fail "--compare does not name the ranks: $(cat compared)"

# ---- a cache that ranks of a node share: the union is the same
"$pack" --quiet --codec png --shard-bytes 64K "$data" shards:set
for share in on off; do
    torchrun 2 "${fast[@]}" --format json --share-cache $share shards:set
    finish
    right out.0 2
done

# ---- a rank with another data set, with damaged files, that ends, that is interrupted
other=('synth:digits?count=1002')
torchrun 2 "${fast[@]}" "$data"
finish
[ "${statuses[*]}" = "1 1" ] || fail "another data set: ${statuses[*]}"
grep -q 'rank 1 has opened another data set' err.0 || fail "another data set is not named: $(cat err.0)"
cp -r set damaged
printf 'xxxxxxxx' | dd of=damaged/shard-000001.stk bs=1 seek=4130 conv=notrunc status=none
other=(shards:damaged)
torchrun 2 "${fast[@]}" shards:set
finish
[ "${statuses[*]}" = "1 1" ] || fail "damaged files on one rank: ${statuses[*]}"
grep -q 'rank 1 failed: .*shard-000001.stk' err.0 || fail "the damage is not named: $(cat err.0)"
other=(/nowhere)
torchrun 2 "${fast[@]}" "$data"
finish
[ "${statuses[*]}" = "1 1" ] || fail "a rank without a data set: ${statuses[*]}"
grep -q 'rank 1 failed: ' err.0 || fail "a rank without a data set is not named: $(cat err.0)"
other=()
for signal in KILL INT; do
    torchrun 2 "${fast[@]}" --repeats 500 --format json "$data"
    for _ in $(seq 1000); do
        [ ! -s out.0 ] || break
        sleep 0.01
    done
    sleep 0.5
    kill -$signal "${pids[1]}"
    finish
    case $signal in
    KILL)
        [ "${statuses[0]}" -eq 1 ] || fail "a killed rank: ${statuses[*]}"
        grep -q 'rank 1' err.0 || fail "a killed rank is not named: $(cat err.0)"
        ;;
    INT)
        [ "${statuses[0]}" -eq 130 ] || fail "an interrupted rank: ${statuses[*]} $(cat err.0)"
        grep -q 'interrupted' err.0 || fail "an interrupted rank: $(cat err.0)"
        ;;
    esac
done

# ---- what ranks do not measure together, and half a description
torchrun 2 "${fast[@]}" --trace t.json "$data"
finish
[ "${statuses[*]}" = "1 1" ] || fail "--trace: ${statuses[*]}"
grep -q 'records the threads of one process' err.0 || fail "--trace is not refused: $(cat err.0)"
status=0
RANK=0 "$tool" "${fast[@]}" "$data" 2>err || status=$?
[ "$status" -eq 1 ] || fail "half a description: $status"
grep -q WORLD_SIZE err || fail "half a description: $(cat err)"
verdict
