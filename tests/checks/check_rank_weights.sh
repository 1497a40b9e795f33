#!/usr/bin/env bash
# check_rank_weights.sh - with --deterministic the weights depend on ranks x --accumulate alone, to the bit: also if ranks
# are killed and others continue.
#
# usage: check_rank_weights.sh MPIRUN MNIST HOUSING
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mpirun=$1
mnist=$(realpath "$2")
housing=$(realpath "$3")

. "$here/scratch.sh"
cd "$scratch"
unset STOKER_DATA RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
common=(--deterministic --threads 1 --workers 1 --quiet)

# ranks N PROGRAM [ARGUMENT...]
ranks() { "$here/../mpi/ranks.sh" "$mpirun" "$@" "${common[@]}"; }

# ---- dropout (preset pytorch), and a last update in which one rank has 5 samples and the others none: 245 = 8 x 30 + 5
digits=(--data 'synth:digits?count=245' --preset pytorch --epochs 2 --batch-size 5)
"$mnist" "${digits[@]}" "${common[@]}" --accumulate 6 --save one.safetensors >/dev/null
ranks 2 "$mnist" "${digits[@]}" --accumulate 3 --save two.safetensors >/dev/null || fail "2 ranks ended with $?"
same one.safetensors two.safetensors "2 ranks x 3 passes: other weights than 6 passes of one"

# ---- killed and continued by others: 2 x 3, then 3 x 2, then 1 x 6
cat >noted.sh <<'EOF'
echo $$ >"process.${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-x}}"
exec "$@"
EOF

# killed N ARGUMENT...: N ranks train until they have saved; then the last one is killed, which ends all. A run that was
# over sooner is started again.
killed() {
    local ranks=$1 try before after
    shift
    before=$(stat -c %Y.%i part.safetensors 2>/dev/null || true)
    for try in 1 2 3 4 5; do
        rm -f process.*
        ranks "$ranks" bash noted.sh "$mnist" "${digits[@]}" --save part.safetensors --save-every 3 "$@" >out 2>&1 &
        local run=$! status=0
        while kill -0 "$run" 2>/dev/null; do
            after=$(stat -c %Y.%i part.safetensors 2>/dev/null || true)
            [ "$after" = "$before" ] || break
            sleep 0.01
        done
        kill -KILL "$(cat "process.$((ranks - 1))")" 2>/dev/null || true
        wait "$run" 2>/dev/null || status=$?
        [ "$status" -eq 0 ] || return 0
        before=$(stat -c %Y.%i part.safetensors)
    done
    fail "the run of $ranks ranks was always over before it was killed (last: $(tail -n 3 out))"
}
killed 2 --accumulate 3
[ -s part.safetensors ] || fail "nothing was saved: $(cat out)"
killed 3 --accumulate 2 --load part.safetensors
"$mnist" "${digits[@]}" "${common[@]}" --accumulate 6 --load part.safetensors --save part.safetensors >/dev/null ||
    fail "one rank does not continue: $?"
same one.safetensors part.safetensors "killed and continued by other ranks: other weights"

# ---- the other program
{
    echo 'a,b,price'
    for i in $(seq 61); do echo "$((i % 7)),$((i * i % 11)),$((2 * (i % 7) + i * i % 11))"; done
} >table.csv
table=(--data 'csv:table.csv?label=price' --epochs 3 --batch-size 8)
"$housing" "${table[@]}" "${common[@]}" --accumulate 2 --save one.safetensors >/dev/null
ranks 2 "$housing" "${table[@]}" --save two.safetensors >/dev/null || fail "housing on 2 ranks ended with $?"
same one.safetensors two.safetensors "housing: 2 ranks have other weights than 2 passes of one"

verdict
