#!/usr/bin/env bash
# check_trainer_programs.sh - stoker-mnist and stoker-housing on small made-up data: the promises of the command
# line, what is shown and written, and that a run which was stopped ends as one which was not.
#
# usage: check_trainer_programs.sh MNIST HOUSING
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mnist=$(realpath "$1")
housing=$(realpath "$2")

. "$(dirname "${BASH_SOURCE[0]}")/scratch.sh"
cd "$scratch"
unset STOKER_DATA
data='synth:digits?count=640'
small=(--data "$data" --epochs 2 --batch-size 32 --threads 1 --workers 1)

# refuses STATUS WORD... : that exit status, one line on standard error, nothing on standard output.
refuses() {
    local want=$1 status=0
    shift
    "$@" >out 2>err || status=$?
    [ "$status" -eq "$want" ] || fail "exit status $status, not $want: $*"
    [ "$(wc -l <err)" -eq 1 ] || fail "not one line about: $*"
    [ ! -s out ] || fail "something was printed for: $*"
}

# ---- command line
for program in "$mnist" "$housing"; do
    name=${program##*/}
    "$program" --help >shown || fail "$name --help ended with $?"
    grep -q "^usage: $name \[options\]" shown || fail "$name --help"
    "$program" --version | grep -qE "^$name [0-9.]+, libstoker [0-9.]+$" || fail "$name --version"
    refuses 2 "$program" --nonsense
    refuses 2 "$program" --epochs 0
    refuses 2 "$program" --epochs
    refuses 2 "$program" --optimizer newton
    refuses 2 "$program" --memory-budget 1Q
    refuses 2 "$program" --save-every 3
    refuses 2 "$program" --eval-only
    refuses 2 "$program" stray
done
# each default is the program's own
"$mnist" --help | tr -s ' \n' ' ' >shown
grep -qF -- '--batch-size N samples of one pass, or max: the most that fits in --memory-budget or else half of the memory that is free (fast 256; pytorch 64) --accumulate N' shown ||
    fail "mnist --help: other defaults of --batch-size"
grep -qF -- '--betas A,B of the Adam family (fast 0.7,0.9; pytorch 0.9,0.999) ' shown || fail "mnist --help: --betas"
"$housing" --help | tr -s ' \n' ' ' >shown
grep -qF -- '--epochs N passes over the training data (300) ' shown || fail "housing --help: --epochs"
grep -qF -- '(adam) --lr X learning rate; another --optimizer has its own (0.01) --betas A,B of the Adam family (0.9,0.999) ' shown || fail "housing --help: Adam"
grep -qF -- '0 = at the end only (50) ' shown || fail "housing --help: --eval-every"
if grep -qE '\bfast\b|stoker-mnist|pytorch|housing [0-9]' shown; then fail "housing --help mentions another program"; fi
"$mnist" --help | awk 'length($0) > 80 { bad = 1 } END { exit bad }' || fail "mnist --help has long lines"
"$mnist" --data "$data" --summary | sed 's/^\[made-up digits\] //' | awk 'length($0) > 80 { bad = 1 } END { exit bad }' ||
    fail "mnist --summary has long lines"
refuses 2 "$housing" --preset fast
refuses 2 "$mnist" --ema 1
grep -q 'from 0 to 0.9999999' err || fail "the range is reported wrongly: $(cat err)"
refuses 2 "$mnist" --nesterov # of what momentum?
refuses 2 "$mnist" --preset fast --momentum 0.9
grep -q -- '--momentum has no effect on adam' err || fail "does not say what has no effect: $(cat err)"
refuses 2 "$mnist" --gamma 0.5
refuses 2 "$mnist" --optimizer sgd --betas 0.9,0.99
refuses 2 "$mnist" --eval-only --load x.safetensors --save y.safetensors
refuses 1 "$mnist" --data "$data" --epochs 1 --batch-size 64 --schedule cosine --warmup 10
grep -q -- '--warmup 10: the run has 10 updates' err || fail "a warm-up as long as the run is not refused: $(cat err)"
refuses 2 "$mnist" --mean 0.5
refuses 2 "$mnist" --std 0.5
refuses 2 "$mnist" --quiet=yes
grep -q 'no value belongs in' err || fail "a value too many is called unknown: $(cat err)"
refuses 1 "$mnist" --data 'synth:bytes?count=100&shape=28x28'
grep -q -- '--test-data' err || fail "does not say how to test on a set in one piece: $(cat err)"

# ---- what could not be written at the end is reported before the first step
mkdir folder
for wrong in nowhere/x.safetensors folder; do
    refuses 1 "$mnist" --data "$data" --save "$wrong"
done
for words in --help --version --list-devices; do
    status=0
    "$mnist" $words >/dev/full 2>err || status=$?
    [ "$status" -eq 1 ] || fail "to a full disk it ended with $status: $words"
done
refuses 1 "$mnist" --data idx:nowhere
refuses 1 "$mnist" --data "$data" --device abacus
refuses 1 "$mnist" --data "$data" --device cpu --amp fp16
grep -q 'computes in float32 and bfloat16 only' err || fail "no reason: $(cat err)"
refuses 1 "$mnist" --data "$data" --device cpu --benchmark
refuses 1 "$mnist" --data "$data" --device cpu --tf32 on
grep -q 'rounds no factors' err || fail "no reason: $(cat err)"
STOKER_CUDART=/nowhere/libcudart.so refuses 1 "$mnist" --data "$data" --amp fp16
grep -q 'computes in float32 and bfloat16 only (leave it out, .*), and no GPU is available: ' err || fail "no way out: $(cat err)"
refuses 2 "$mnist" --data "$data" --amp fp8
refuses 1 "$mnist" --data "$data" --load nowhere.safetensors
refuses 1 "$mnist" --data "$data" --memory-budget 1K
refuses 1 "$housing" # there is no table here
refuses 2 "$mnist" --lerning-rate 1
grep -q -- '--lerning-rate' err || fail "the bad option is not named"

# ---- a whole run, not on a terminal
"$mnist" "${small[@]}" --save whole.safetensors --log-dir events --log log.csv \
    --save-every 7 --trace trace.json >shown 2>err || fail "a run ended with $?: $(cat err)"
[ ! -s err ] || fail "standard error, which is no terminal, was written to: $(cat err)"
if grep -v '^\[made-up digits\] ' shown; then fail "a line does not say that the digits are made up"; fi
if grep -q $'\r' shown; then fail "a carriage return, but no terminal"; fi
number='[0-9]+(\.[0-9]+)?'
epoch="epoch [12]/2 \| step [0-9]+/40 \| loss $number \| accuracy $number % \| $number samples/s"
epoch="$epoch \| data wait $number % \| test loss $number \| test $number %"
[ "$(grep -cE "^\[made-up digits\] $epoch\$" shown)" -eq 2 ] || fail "not two lines of epochs"
grep -qE "trained $number s, $number samples/s, data wait $number %\$" shown || fail "no seconds"
tail -n 1 shown | grep -qE "test accuracy: [0-9]{1,3}\.[0-9]{2} %\$" || fail "no accuracy at the end"
grep -q 'fc2' shown || fail "no table of layers"
for file in whole.safetensors log.csv; do [ -s "$file" ] || fail "$file is not there"; done
if command -v python3 >/dev/null; then # 2 epochs of 20 batches
    python3 "$here/check_trace.py" trace.json 1 40 >out || fail "the trace is not as promised"
fi
[ "$(find . -name 'trace.json*' | wc -l)" -eq 1 ] || fail "--trace left something behind"
refuses 1 "$mnist" --quiet --data "$data" --trace nowhere/trace.json
[ -n "$(find events -type f -size +0 -name '*tfevents*')" ] || fail "no event file"
[ "$(wc -l <log.csv)" -ge 40 ] || fail "the log has $(wc -l <log.csv) lines"
head -n 1 log.csv | grep -q 'loss' || fail "the log has no header"

# ---- the same again, quietly
"$mnist" "${small[@]}" --quiet --save again.safetensors >shown
[ "$(wc -l <shown)" -eq 3 ] || fail "--quiet shows $(wc -l <shown) lines"
same whole.safetensors again.safetensors "the same run twice, and other weights"
[ "$(weights whole.safetensors | wc -c)" -gt 100000 ] || fail "there are no weights to compare"
"$mnist" "${small[@]}" --seed 1 --quiet --save other.safetensors >/dev/null
if cmp -s <(weights whole.safetensors) <(weights other.safetensors); then fail "the seed does nothing"; fi

# ---- a 0 is a value, not the default
short=(--data "$data" --steps 4 --optimizer adam --schedule constant --threads 1 --quiet)
"$mnist" "${short[@]}" --betas 0.9,0.999 --save beta9.safetensors >/dev/null
"$mnist" "${short[@]}" --betas 0,0.999 --save beta0.safetensors >/dev/null
if cmp -s <(weights beta9.safetensors) <(weights beta0.safetensors); then fail "--betas 0,0.999 trains with 0.9"; fi
"$mnist" "${short[@]}" --lr 0 --save rate0.safetensors >/dev/null
"$mnist" "${short[@]}" --lr 0 --steps 1 --save rate0once.safetensors >/dev/null
same rate0.safetensors rate0once.safetensors "--lr 0 changes the weights"

# ---- tested alone: as at the end of training
"$mnist" "${small[@]}" --quiet --eval-only --load again.safetensors >alone
[ "$(tail -n 1 alone)" = "$(tail -n 1 shown)" ] || fail "--eval-only: $(tail -n 1 alone)"

# ---- the rate of a preset is its optimizer's
"$mnist" --data "$data" --preset pytorch --optimizer adam --summary >shown
grep -qE ' optimizer +adam, betas 0.9, 0.999$' shown || fail "adam with the rate of adadelta: $(grep optimizer shown)"
"$mnist" --data "$data" --preset pytorch --summary >shown
grep -qE ' optimizer +adadelta, rate 1$' shown || fail "preset pytorch: $(grep optimizer shown)"

# ---- a schedule is not stretched
refuses 1 "$mnist" "${small[@]}" --epochs 4 --quiet --load whole.safetensors
grep -q 'one-cycle, 40 updates: the schedule of the checkpoint' err || fail "does not say why: $(cat err)"
"$mnist" "${small[@]}" --epochs 4 --quiet --weights whole.safetensors >/dev/null || fail "a new schedule: $?"

# ---- stopped, and resumed
long=(--data "$data" --preset pytorch --epochs 2 --batch-size 8 --accumulate 2 --threads 1 --quiet)
"$mnist" "${long[@]}" --save long.safetensors >/dev/null || fail "the long run ended with $?"

# stopped SIGNAL: start the long run, let it save once, send the signal; $status is its end. A run
# that was over sooner than the signal came is started again.
stopped() {
    local try
    for try in 1 2 3 4 5; do
        rm -f part*.safetensors
        "$mnist" "${long[@]}" --save part.safetensors --save-every $((9 + try)) >shown 2>err &
        local process=$!
        while [ ! -e part.safetensors ] && kill -0 "$process" 2>/dev/null; do sleep 0.01; done
        kill "-$1" "$process" 2>/dev/null || true
        status=0
        wait "$process" 2>/dev/null || status=$? # bash would report the kill
        [ "$status" -eq 0 ] || return 0
    done
    fail "the run was always over before SIG$1 came"
}

stopped INT
[ "$status" -eq 130 ] || fail "Ctrl-C ended with $status: $(cat err)"
grep -qE 'stopped after [0-9]+ of 80 updates; saved to part\.safetensors$' shown || fail "no word about the stop"
again=$(sed -n 's/^.*continue with: //p' shown)
[ -n "$again" ] || fail "no command to continue is shown"
bash -c "$again" >/dev/null || fail "'$again' ended with $?"
same long.safetensors part.safetensors "stopped by Ctrl-C and resumed: other weights"

stopped KILL
[ "$status" -eq 137 ] || fail "SIGKILL ended with $status"
"$mnist" "${long[@]}" --load part.safetensors --save part.safetensors >/dev/null || fail "to continue: $?"
same long.safetensors part.safetensors "killed and resumed: other weights"

# ---- the largest batch within a budget
"$mnist" --data "$data" --summary --batch-size max --memory-budget 40M >shown || fail "max: $?"
grep -qE 'batch +[0-9]+ samples' shown || fail "the batch that was chosen is not reported"

# ---- 16 bits: half the activations, on the back end that has them everywhere; and it learns
"$mnist" --data "$data" --summary --preset pytorch --device ref >shown || fail "--device ref: $?"
wide=$(sed -nE 's/.*activations +([0-9,]+).*/\1/p' shown | tr -d ,)
"$mnist" --data "$data" --summary --preset pytorch --device ref --amp fp16 >shown || fail "--amp fp16: $?"
narrow=$(sed -nE 's/.*activations +([0-9,]+).*/\1/p' shown | tr -d ,)
awk -v w="$wide" -v n="$narrow" 'BEGIN { exit !(n > 0 && n < 0.52 * w) }' || fail "fp16 takes $narrow of $wide"
grep -q '16-bit parameters' shown || fail "no 16-bit parameters in the table"

# ---- a number of updates gives the number of epochs, if nothing else does
"$mnist" --data "$data" --batch-size 64 --steps 25 --summary >shown || fail "--steps 25: $?"
grep -qE ' epochs +3 of 10 updates, 25 in all$' shown || fail "--steps alone: $(grep epochs shown)"
"$mnist" --data "$data" --batch-size 64 --steps 25 --epochs 2 --summary >shown || fail "--steps --epochs: $?"
grep -qE ' epochs +2 of 10 updates, 20 in all$' shown || fail "--steps with --epochs: $(grep epochs shown)"

# ---- devices
"$mnist" --list-devices >shown || fail "--list-devices: $?"
grep -qE '^cpu ' shown || fail "no CPU is listed"
grep -qE '^cuda' shown || fail "no word about GPUs"

# ---- two devices
refuses 1 "$mnist" --data "$data" --device cpu --split 3
grep -q 'a second device is missing' err || fail "no reason: $(cat err)"
refuses 1 "$mnist" --data "$data" --device cpu,cpu --split 3
refuses 2 "$mnist" --data "$data" --device cpu,ref --split 0
"$mnist" --data "$data" --summary --device cpu,ref --split 4 >shown || fail "--split 4: $?"
grep -q ' cpu, layers 1 to 4$' shown || fail "no table of the first device"
grep -q ' ref, layers 5 to 10$' shown || fail "no table of the second device"

# ---- housing, on a table in which the last column is twice the first, plus the second
{
    echo 'a,b,"price, high"'
    for i in $(seq 60); do echo "$((i % 7)),$((i * i % 11)),$((2 * (i % 7) + i * i % 11))"; done
} >table.csv
"$housing" --data 'csv:table.csv?label=price%2C high' --epochs 60 --batch-size 16 --eval-every 20 \
    --threads 1 --log mse.csv >shown || fail "housing ended with $?"
[ "$(grep -cE "^epoch [246]0/60 \| .* \| test loss $number\$" shown)" -eq 3 ] || fail "housing: no epochs"
mse=$(sed -nE "s/^test mse: ($number)\$/\1/p" shown)
awk -v mse="${mse:-99}" 'BEGIN { exit !(mse < 9) }' || fail "housing learnt nothing: test mse $mse"
"$housing" --data 'csv:table.csv?label=price%2C high' --epochs 60 --batch-size 16 --quiet --deterministic \
    --device ref --amp bf16 >shown || fail "housing in bf16 ended with $?"
mse=$(sed -nE "s/^test mse: ($number)\$/\1/p" shown)
awk -v mse="${mse:-99}" 'BEGIN { exit !(mse < 15) }' || fail "housing learnt nothing in bf16: test mse $mse"
"$housing" --data 'csv:table.csv?label=price%2C high' --epochs 60 --batch-size 8 --accumulate 2 --quiet \
    --device cpu,ref --split 2 --threads 1 >shown || fail "housing over two devices ended with $?"
mse=$(sed -nE "s/^test mse: ($number)\$/\1/p" shown)
awk -v mse="${mse:-99}" 'BEGIN { exit !(mse < 15) }' || fail "housing learnt nothing over two devices: test mse $mse"
if grep -q accuracy shown mse.csv; then fail "housing has no classes, and reports an accuracy"; fi

# ---- what was trained on is not tested on: the checkpoint knows data, split and seed
table=(--data 'csv:table.csv?label=price%2C high' --epochs 20 --batch-size 16 --threads 1 --quiet)
"$housing" "${table[@]}" --seed 5 --save split.safetensors >trained || fail "--seed 5 ended with $?"
"$housing" "${table[@]}" --eval-only --load split.safetensors >alone || fail "--eval-only ended with $?"
[ "$(tail -n 1 alone)" = "$(tail -n 1 trained)" ] || fail "--eval-only without a seed: $(cat alone), $(cat trained)"
mkdir moved && cp table.csv moved/
"$housing" --data 'csv:moved/table.csv?label=price%2C high' --eval-only --quiet --load split.safetensors >alone ||
    fail "the same data in another folder are refused"
for how in --load --weights; do
    refuses 1 "$housing" "${table[@]}" --eval-only $how split.safetensors --seed 3
    grep -q 'seed=5' err || fail "does not say which seed: $(cat err)"
done
refuses 1 "$housing" "${table[@]}" --weights split.safetensors --seed 3
refuses 1 "$housing" "${table[@]}" --load split.safetensors --seed 3
refuses 1 "$housing" --data 'csv:table.csv?label=price%2C high&test=0.5' --eval-only --load split.safetensors
head -n 40 table.csv >short.csv && mv short.csv moved/table.csv
refuses 1 "$housing" --data 'csv:moved/table.csv?label=price%2C high' --eval-only --load split.safetensors
"$housing" "${table[@]}" --seed 3 --test-data 'csv:table.csv?label=price%2C high' --eval-only \
    --weights split.safetensors >alone || fail "--test-data is refused"

# ---- with --ema the averages are what is tested, said so, and saved beside the weights
average=(--data "$data" --epochs 1 --batch-size 32 --threads 1)
"$mnist" "${average[@]}" --ema 0.9 --save average.safetensors >shown || fail "--ema ended with $?"
grep -qE ' \| averaged weights: test loss ' shown || fail "the epoch's line does not say what was tested"
"$mnist" "${average[@]}" --eval-only --load average.safetensors >alone
grep -q 'test accuracy (averaged weights): ' alone || fail "--eval-only does not say what it tested: $(cat alone)"
[ "$(tail -n 1 alone)" = "$(tail -n 1 shown)" ] || fail "--eval-only of averages: $(tail -n 1 alone)"
"$mnist" "${average[@]}" --eval-only --load average.safetensors --ema 0 >alone
"$mnist" "${average[@]}" --eval-only --weights average.safetensors >kept
cmp -s alone kept || fail "--ema 0 does not test the weights"
if grep -q averaged alone; then fail "the weights are called averages"; fi
two=(--data "$data" --batch-size 32 --threads 1 --schedule constant --quiet)
"$mnist" "${two[@]}" --ema 0.9 --epochs 2 --save whole2.safetensors >/dev/null
"$mnist" "${two[@]}" --ema 0.9 --epochs 1 --save half.safetensors >/dev/null
"$mnist" "${two[@]}" --epochs 2 --load half.safetensors --save half.safetensors >/dev/null || fail "continued averages: $?"
same whole2.safetensors half.safetensors "continuing does not end with the same weights"
same whole2.safetensors half.safetensors "continuing does not keep the averages" ema.

# ---- a run that diverges ends with an error, and spoils nothing
good=(--data 'csv:table.csv?label=price%2C high' --batch-size 16 --threads 1 --quiet --optimizer sgd --schedule constant)
"$housing" "${good[@]}" --epochs 5 --lr 0.001 --save good.safetensors >/dev/null || fail "sgd ended with $?"
cp good.safetensors before.safetensors
status=0
"$housing" "${good[@]}" --epochs 300 --lr 10 --load good.safetensors --save good.safetensors --save-every 200 \
    --log bad.csv --log-dir bad >shown 2>err || status=$?
[ "$status" -eq 1 ] || fail "a run that diverged ended with $status"
grep -qE 'training diverged: the training loss is (nan|infinite) after [0-9]+ updates' err || fail "not reported: $(cat err)"
cmp -s good.safetensors before.safetensors || fail "a good checkpoint was overwritten"
tail -n 1 bad.csv | grep -qE '(nan|inf)' || fail "no nan in the log: $(tail -n 1 bad.csv)"
LC_ALL=C grep -qaP 'train/loss\x15\x00\x00[\xc0\x80][\x7f\xff]' bad/* || fail "no nan in the events"
mkfifo nobody
timeout 20 "$housing" "${good[@]}" --epochs 1 --log nobody >shown 2>err && fail "a FIFO that nothing reads took the log"
[ "$(wc -l <err)" -eq 1 ] || fail "not one line about a FIFO: $(cat err)"
refuses 1 "$mnist" --data "$data" --epochs 1 --quiet --device ref --amp fp16 --batch-size 64 --lr 1e6 \
    --optimizer sgd --schedule constant --save overflow.safetensors
grep -q 'training diverged.* that were skipped' err || fail "an overflow in fp16 is not reported: $(cat err)"
[ ! -e overflow.safetensors ] || fail "what overflowed is saved"
refuses 1 "$mnist" --data "$data" --epochs 1 --quiet --device ref --amp fp16 --batch-size 160 --mean 0 --std 1e-6 \
    --save overflow.safetensors
grep -q 'all 4 updates were skipped' err || fail "a run without an update is not reported: $(cat err)"
[ ! -e overflow.safetensors ] || fail "a run without an update is saved"

# ---- a checkpoint names its network
"$mnist" --data "$data" --preset pytorch --epochs 1 --batch-size 64 --save torchlike.safetensors --quiet >/dev/null
"$mnist" --data "$data" --load torchlike.safetensors --epochs 2 --batch-size 64 --quiet >/dev/null ||
    fail "a checkpoint of preset pytorch cannot be continued without --preset"
refuses 1 "$mnist" --data "$data" --load torchlike.safetensors --preset fast
grep -q 'preset pytorch' err || fail "does not say which preset: $(cat err)"

verdict
