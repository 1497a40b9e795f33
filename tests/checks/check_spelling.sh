#!/usr/bin/env bash
# check_spelling.sh - a mistyped word gets one line with what was probably meant, in the same words by
# all programs.
#
# usage: check_spelling.sh LOADERBENCH MNIST HOUSING STOKER_PACK
set -euo pipefail
if [ $# -ne 4 ]; then
    echo "usage: check_spelling.sh LOADERBENCH MNIST HOUSING STOKER_PACK" >&2
    exit 2
fi
loaderbench=$(realpath "$1")
mnist=$(realpath "$2")
housing=$(realpath "$3")
pack=$(realpath "$4")
. "$(dirname "${BASH_SOURCE[0]}")/scratch.sh"
cd "$scratch"
printf 'a,b,y\n1,2,0\n2,1,1\n3,4,0\n' >table.csv

# says STATUS TEXT COMMAND...: that exit status, and one line on standard error that contains TEXT.
says() {
    local want=$1 text=$2 status=0
    shift 2
    "$@" >out 2>err || status=$?
    if [ "$status" -ne "$want" ] || [ "$(wc -l <err)" -ne 1 ] || ! grep -qF -- "$text" err; then
        fail "status $status, \"$(cat err)\": not $want and \"$text\": $*"
    fi
}

# Options, and the message if no option is similar.
says 2 "unknown option '--optimiser' (did you mean '--optimizer'?); try --help" "$mnist" --optimiser sgd
says 2 "unknown option '--epoch5=3' (did you mean '--epochs'?); try --help" "$housing" --epoch5=3
says 2 "unknown option '--wrokers' (did you mean '--workers'?); try --help" "$loaderbench" --wrokers 1 synth:digits
says 2 "unknown option '--codecs' (did you mean '--codec'?); try --help" "$pack" --codecs png synth:digits tar:x
for program in "$loaderbench" "$mnist" "$housing" "$pack"; do
    says 2 "unknown option '--xylophone'; try --help" "$program" --xylophone
    says 2 "unknown option '-x'; try --help" "$program" -x
    says 2 "a value is missing after '--workers'" "$program" --workers
    says 2 "no value belongs in '--quiet=1'" "$program" --quiet=1
done
says 2 "'--re' may mean several options; try --help" "$loaderbench" --re 1

# Words that are values.
says 2 "'admw' is not one of sgd, adam, adamw, adagrad, rmsprop, adadelta, adamax, asgd (did you mean 'adamw'?)" \
    "$mnist" --optimizer admw
says 2 "'jpg' is not one of keep, raw, lz4, png, jpeg, zstd (did you mean 'jpeg'?)" "$pack" --codec jpg synth:digits tar:x
says 2 "(did you mean 'cuda'?)" "$loaderbench" --device gpu synth:digits
says 1 "(did you mean 'cuda'?)" "$mnist" --device gpu --data 'synth:digits?count=10'
says 2 "(did you mean 'float32'?)" "$loaderbench" --dtype flaot32 synth:digits
says 2 "(did you mean 'html'?)" "$loaderbench" --format htm synth:digits

# The right cure.
says 1 'csv:table.csv?label=COLUMN&test=0.2 keeps' "$housing" --data table.csv

# Data sets and their parameters.
says 1 "\"mnst\" is no format (did you mean 'mnist'?)" "$loaderbench" mnst:foo
says 1 "lable: no such parameter (did you mean 'label'?)" "$loaderbench" 'csv:table.csv?lable=y'
says 1 "cuont: no such parameter (did you mean 'count'?)" "$pack" 'synth:digits?cuont=9' tar:x

# Names from outside are printed without what moves a terminal.
mkdir hostile
printf 'a,y\n1,2\n2,3\n3,4\n4,5\n' >$'hostile/t\033[2J\rble.csv'
"$housing" --data "csv:$(echo hostile/*)?label=y&test=0.2" --epochs 1 >shown 2>&1 || fail "$(cat shown)"
"$pack" --quiet 'synth:digits?count=9' $'tar:no\033[2J/where' >>shown 2>&1 || true
if ! grep -qF 't?[2J?ble.csv' shown || ! grep -qF 'no?[2J/.where' shown || LC_ALL=C grep -q $'[\033\r]' shown; then
    fail "an escape reached the terminal: $(cat -v shown)"
fi

verdict
