#!/usr/bin/env bash
# check_loaderbench_ranks.sh - loaderbench on several ranks: one voice, every sample once over all ranks, rates of all
# together; and a rank that fails, ends, differs or is interrupted ends the others, with its name.
#
# usage: check_loaderbench_ranks.sh LOADERBENCH STOKER_PACK LIBSTOKER_MPI [MPIRUN]     skips (77) without the last two
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tool=$(realpath "$1")
pack=$(realpath "$2")
export STOKER_MPI=${3:+$(realpath "$3")}
mpirun=${4:-}
if [ -z "$mpirun" ] || [ -z "$STOKER_MPI" ]; then
    echo "check_loaderbench_ranks: SKIPPED: ranks meet by MPI, which this build lacks"
    exit 77
fi
. "$here/scratch.sh"
cd "$scratch"
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
data='synth:digits?count=1001'
fast=(--quiet --workers 0,1 --pin-memory off --batch-size 64 --repeats 2 --seconds 0.02 --peer-timeout 20)

# One rank: output in out.R, err.R, its status in status.R, its process in pid.R. mpirun must not end the others.
# OTHER: a word that replaces the last one for rank 1.
cat >rank.sh <<'SH'
#!/usr/bin/env bash
rank=$OMPI_COMM_WORLD_RANK
if [ "$rank" -eq 1 ] && [ -n "$OTHER" ]; then set -- "${@:1:$#-1}" "$OTHER"; fi
"$@" >"out.$rank" 2>"err.$rank" &
trap "kill $!" TERM
echo $! >"pid.$rank"
wait $!
echo $? >"status.$rank"
SH
chmod +x rank.sh
export OTHER=""

# start COUNT WORD...: COUNT ranks. finish: wait for them, $ended is mpirun's status, $statuses those of the ranks.
start() {
    ranks=$1
    rm -f out.[0-9] err.[0-9] status.[0-9] pid.[0-9]
    "$here/../mpi/ranks.sh" "$mpirun" "$1" ./rank.sh "$tool" "${@:2}" >mpirun.out 2>&1 &
    started=$!
}
finish() {
    local rank
    ended=0
    wait $started || ended=$?
    statuses=()
    for ((rank = 0; rank < ranks; rank++)); do statuses+=("$(cat "status.$rank" 2>/dev/null || echo none)"); done
}

# right FILE COUNT: JSON of COUNT ranks that have verified all samples.
right() {
    [ "$(grep -c '"kind": "machine".*"ranks": '"$2"', "launcher": ' "$1")" -eq 1 ] || fail "$2 ranks: $(head -c 900 "$1")"
    [ "$(grep -c '"kind": "cell".*"verified": 1001[,}].*"ranks": '"$2"', "slowest_rank": [0-9]*, "slowest_rank_samples_per_s": [0-9]' "$1")" -eq 2 ] ||
        fail "$2 ranks: not two cells that have verified 1001 samples: $(grep '"kind": "cell"' "$1" | head -c 3000)"
    grep -q '"kind": "ceiling"' "$1" || fail "$2 ranks: no ceilings"
    if grep '"kind": "cell"' "$1" | grep -q '"error": "'; then fail "$2 ranks: a cell failed: $(cat "$1")"; fi
}

# ---- counts
for count in 2 3; do
    start $count "${fast[@]}" --format json "$data"
    finish
    [ "${statuses[*]//0/}" = "$(printf '%*s' $((count - 1)) '')" ] || fail "$count ranks: ${statuses[*]}: $(cat err.* mpirun.out)"
    right out.0 $count
    [ ! -s out.1 ] || fail "rank 1 prints: $(head -c 300 out.1)"
    [ ! -s err.0 ] || fail "standard error: $(cat err.0)"
done

# ---- the other forms; and one process prints what it always has
start 2 "${fast[@]}" --ceilings off --format csv "$data"
finish
head -n 1 out.0 | grep -q ',ranks,slowest_rank,slowest_rank_samples_per_s,date' || fail "csv: $(head -n 1 out.0)"
python3 -c 'import csv; assert len({len(row) for row in csv.reader(open("out.0"))}) == 1' || fail "csv: rows of different lengths"
start 2 "${fast[@]}" "$data"
finish
grep -q '^# ranks    2 of [a-zA-Z ]*: ' out.0 || fail "table: $(cat out.0)"
[ "$(grep -c 'slowest: rank [01], ' out.0)" -eq 2 ] || fail "table: no slowest rank"
grep -qE '^# verdict  (2 ranks together\.|Machine busy)' out.0 || fail "verdict: $(cat out.0)"
grep -q '^options.rank = STOKER_RANK_AUTO;' out.0 || fail "the advice lacks the rank"
start 2 "${fast[@]}" --ceilings off --format html "$data"
finish
grep -q '^{"kind": "machine".*"ranks": 2' out.0 || fail "html: no ranks"
for form in json csv table; do
    "$tool" "${fast[@]}" --ceilings off --quiet --format $form "$data" >one.$form || fail "one process, $form"
    if grep -qE 'ranks|slowest|RANK_AUTO' one.$form; then fail "one process speaks of ranks: $form"; fi
done

# ---- a cache that ranks of a node share: the union is the same
"$pack" --quiet --codec png --shard-samples 200 "$data" shards:set
for share in on off; do
    start 2 "${fast[@]}" --format json --share-cache $share shards:set
    finish
    right out.0 2
done

# ---- a rank with another data set, with damaged files, that ends, that is interrupted
OTHER='synth:digits?count=1002'
start 2 "${fast[@]}" "$data"
finish
[ "${statuses[*]}" = "1 1" ] || fail "another data set: ${statuses[*]}"
grep -q 'rank 1 has opened another data set' err.0 || fail "another data set is not named: $(cat err.0)"
cp -r set damaged
printf 'xxxxxxxx' | dd of=damaged/shard-000001.stk bs=1 seek=4130 conv=notrunc status=none
OTHER=shards:damaged
start 2 "${fast[@]}" shards:set
finish
[ "${statuses[*]}" = "1 1" ] || fail "damaged files on one rank: ${statuses[*]}"
grep -q 'rank 1 failed: .*shard-000001.stk' err.0 || fail "the damage is not named: $(cat err.0)"
OTHER=/nowhere
start 2 "${fast[@]}" "$data"
finish
[ "${statuses[*]}" = "1 1" ] || fail "a rank without a data set: ${statuses[*]}"
grep -q 'rank 1 failed: ' err.0 || fail "a rank without a data set is not named: $(cat err.0)"
OTHER=
for signal in KILL INT; do
    start 2 "${fast[@]}" --repeats 500 --format json "$data"
    for _ in $(seq 1000); do
        [ ! -s out.0 ] || break
        sleep 0.01
    done
    sleep 0.5
    kill -$signal "$(cat pid.1)"
    finish
    case $signal in
    KILL) # mpirun ends the others
        for _ in $(seq 1000); do
            [ -e "/proc/$(cat pid.0)" ] || break
            sleep 0.01
        done
        [ "${statuses[0]}" != 0 ] && [ ! -e "/proc/$(cat pid.0)" ] || fail "a killed rank: mpirun $ended, ranks ${statuses[*]}"
        ;;
    INT)
        [ "${statuses[0]}" -eq 130 ] || fail "an interrupted rank: ${statuses[*]} $(cat err.0)"
        grep -q 'interrupted' err.0 || fail "an interrupted rank: $(cat err.0)"
        ;;
    esac
done

# ---- what ranks do not measure together, and half a description
start 2 "${fast[@]}" --trace t.json "$data"
finish
[ "${statuses[*]}" = "1 1" ] || fail "--trace: ${statuses[*]}"
grep -q 'records the threads of one process' err.0 || fail "--trace is not refused: $(cat err.0)"
status=0
RANK=0 WORLD_SIZE=2 "$tool" "${fast[@]}" "$data" 2>err || status=$?
[ "$status" -eq 1 ] || fail "torchrun: $status"
grep -q 'torchrun does not start' err || fail "torchrun: $(cat err)"
status=0
RANK=0 "$tool" "${fast[@]}" "$data" 2>err || status=$?
[ "$status" -eq 1 ] || fail "half a description: $status"
grep -q WORLD_SIZE err || fail "half a description: $(cat err)"
verdict
