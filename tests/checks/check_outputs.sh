#!/usr/bin/env bash
# check_outputs.sh - no program replaces anything but a regular file by its output.
#
# usage: check_outputs.sh LOADERBENCH HOUSING STOKER_PACK
# The victims lie in a scratch folder: a FIFO with a reader, a link to it, and, as root, a device node
# that mknod makes there.
set -euo pipefail
loaderbench=$(realpath "$1")
housing=$(realpath "$2")
pack=$(realpath "$3")
. "$(dirname "${BASH_SOURCE[0]}")/scratch.sh"
trap 'rm -rf "$scratch"; [ -z "${reader:-}" ] || kill "$reader" 2>/dev/null || true' EXIT
cd "$scratch"

# fresh KIND: the file "victim" of that kind; "victim.svg" is a link to it.
fresh() {
    rm -f victim
    if [ "$1" = fifo ]; then mkfifo victim; else mknod -m 666 victim c 1 3; fi
    ln -sf victim victim.svg
}

# keeps STATUS KIND COMMAND...: it ends with that status, and the victim is what it was.
keeps() {
    local want=$1 kind=$2 status=0 before
    shift 2
    fresh "$kind"
    before=$(stat -c '%F %i' victim)
    if [ "$kind" = fifo ] && [ "$want" -eq 0 ]; then
        timeout 10 cat victim >received &
        reader=$!
        sleep 0.2 # a FIFO that nothing reads yet is refused
    fi
    timeout 60 "$@" >out 2>err || status=$?
    if [ -n "${reader:-}" ]; then
        wait "$reader" || fail "nothing reached the FIFO: $*"
        [ -s received ] || fail "nothing was written to the FIFO: $*"
        reader=
    fi
    [ "$status" -eq "$want" ] || fail "exit status $status, not $want: $* ($(tail -n 1 err))"
    [ "$(stat -c '%F %i' victim)" = "$before" ] || fail "the $before became a $(stat -c %F victim): $*"
    [ -L victim.svg ] || fail "the link was replaced: $*"
}

for i in {1..40}; do echo "$i,$((i * i % 17)),$((3 * i % 7))"; done | sed '1i a,b,y' >table.csv
"$pack" --quiet --codec raw 'synth:digits?count=20' shards:rows
measure=("$loaderbench" -q --workers 1 --pin-memory off --batch-size 2 --repeats 1 --epochs 1 --seconds 0.001
    --ceilings off 'synth:digits?count=100')
fit=("$housing" -q --data 'csv:table.csv?label=y&test=0.2' --epochs 1)
"$pack" --quiet 'synth:digits?count=20' folder:images 2>err || grep -q 'was built without' err

kinds=(fifo)
if [ "$(id -u)" -eq 0 ] && mknod probe c 1 3 2>/dev/null && : 2>/dev/null >probe; then kinds+=(device); fi
for kind in "${kinds[@]}"; do
    keeps 0 "$kind" "${measure[@]}" -o victim
    keeps 0 "$kind" "${measure[@]}" --trace victim.svg
    keeps 0 "$kind" "${fit[@]}" --trace victim
    keeps 1 "$kind" "${fit[@]}" --save victim
    keeps 1 "$kind" "$pack" --quiet 'synth:digits?count=20' tar:victim
    if [ -d images ]; then keeps 0 "$kind" "$loaderbench" -q --open 'folder:images?index=victim'; fi
done

# Without a reader, a FIFO is refused at once.
for command in "${measure[*]} -o victim" "${fit[*]} --trace victim"; do
    # shellcheck disable=SC2086  # words, none of which has blanks
    keeps 1 fifo $command
    grep -q 'nothing reads this FIFO' err || fail "not said that the FIFO has no reader: $(cat err)"
done

# A link to a regular file stays, and what it leads to is new; standard output is written to in place.
echo old >real && chmod 640 real && ln -s real link
"${measure[@]}" -o link
[ -L link ] && [ "$(stat -c %a real)" = 640 ] && grep -q 'samples/s' real || fail "-o through a link"
{ echo first; "${measure[@]}" -o /dev/stdout; echo last; } >all
[ "$(head -n 1 all)$(tail -n 1 all)" = firstlast ] && grep -q 'samples/s' all || fail "-o /dev/stdout"

# Nothing of the temporaries is left.
[ -z "$(find . -maxdepth 1 -name '.*tmp*')" ] || fail "left behind: $(ls -A)"

echo "${#kinds[@]} kinds of victims"
verdict
