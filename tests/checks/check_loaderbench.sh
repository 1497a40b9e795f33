#!/usr/bin/env bash
# check_loaderbench.sh - the real tool on a small made-up data set: all forms, all promises of the
# command line, and bad usage.
#
# usage: check_loaderbench.sh LOADERBENCH
set -euo pipefail
tool=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. tests/checks/scratch.sh
data='synth:digits?count=2000'
fast=("--workers=0,2" "--pin-memory=off,auto" "--batch-size=64,300" --repeats 3 --seconds 0.03 --quiet)

# refuses WORD... : exit status 2, one line on standard error that names the tool, nothing printed.
refuses() {
    local status=0
    "$tool" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    [ "$status" -eq 2 ] || fail "exit status $status, not 2: $*"
    [ "$(wc -l <"$scratch/err")" -eq 1 ] || fail "not one line about: $*"
    grep -q '^loaderbench: ' "$scratch/err" || fail "the line does not name the program: $*"
    [ ! -s "$scratch/out" ] || fail "something was printed for: $*"
}

# runs FORMAT OPTION...: measure the small sweep in that format.
runs() {
    local form=$1
    shift
    "$tool" "${fast[@]}" --format "$form" "$@" "$data" >"$scratch/$form" 2>"$scratch/err" ||
        fail "--format $form ended with $?: $(cat "$scratch/err")"
    [ ! -s "$scratch/err" ] || fail "--format $form wrote to standard error, which is no terminal"
}

"$tool" --help | diff - tests/golden/loaderbench-help.txt || fail "--help changed"
for words in --help --list; do
    if "$tool" $words | grep -E '.{81}'; then fail "$words is wider than 80 columns"; fi
done
"$tool" --version | grep -qE '^loaderbench [0-9.]+, libstoker [0-9.]+$' || fail "--version"
grep -q 'parts in turn' <<<"$("$tool" --list)" || fail "--list"

refuses
refuses --workers 1-0 "$data"
refuses --workers 0,,1 "$data"
refuses --batch-size 0 "$data"
refuses --dtype float31 "$data"
refuses --format yaml "$data"
refuses --nonsense "$data"
refuses "$data" "$data"
refuses --cold "$data" # it lies in no file
refuses --device tpu "$data"
refuses --device cuda:x "$data"
refuses --device cpu:1 "$data"
refuses --non-blocking on "$data" # there is no copy
refuses --convert device "$data"
refuses --cache device "$data"
refuses --device cuda --convert gpu "$data"
refuses --device cuda --headspace "$data" # of no step
refuses --beside x "$data"
refuses --open --format csv "$data" # it prints JSON
refuses --like-pytorch --format json "$data"
refuses --trace "$scratch/same" -o "$scratch/same" "$data"
refuses --headspace=3 "$data"
grep -q 'no value belongs in' "$scratch/err" || fail "a value too many is called unknown: $(cat "$scratch/err")"
refuses --layout chw "$data"
refuses --mean 0.5,0.5 --std 1,1 "$data" # there is one channel
refuses --workers 257 "$data"
grep -q 'from 0 to 256' "$scratch/err" || fail "the range is not reported: $(cat "$scratch/err")"

for form in table json; do runs "$form" --epochs 1; done
for form in csv html; do runs "$form" --ceilings off; done # ceilings take most of the time

[ "$(grep -cE '^ +[02] +(off|auto) +[0-9]+ first +[0-9.]+ [kMG] ' "$scratch/table")" -eq 8 ] || fail "the table lacks rows"
[ "$(grep -cE '^ +later +[0-9.]+ [kMG] ' "$scratch/table")" -eq 8 ] || fail "the table lacks later epochs"
grep -qE '^# cpu, float32, cache [a-z]+(, read by [a-z]+)?$' "$scratch/table" || fail "the table does not say what of"
if grep -vE '^(options|train)' "$scratch/table" | LC_ALL=C.UTF-8 grep -E '.{81}'; then
    fail "the table is wider than 80 columns"
fi
grep -qE '^# verdict +(Batch 64, float32: num_workers|Machine busy: figures not usable)' "$scratch/table" || fail "no verdict"
grep -q '^stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;' "$scratch/table" || fail "nothing to paste"
if grep -qi 'nan\b' "$scratch/table" "$scratch/csv" "$scratch/json"; then fail "NaN was printed"; fi
grep -q '</html>' "$scratch/html" || fail "the page is not closed"
[ "$(grep -c '^{"kind": "cell"' "$scratch/html")" -eq 8 ] || fail "the page lacks rows"

if command -v python3 >/dev/null; then
    while IFS= read -r line; do
        printf '%s\n' "$line" | python3 -m json.tool >/dev/null || fail "no JSON: $line"
    done <"$scratch/json"
    python3 - "$scratch/json" "$scratch/csv" <<'PYTHON' || fail "the rows are not as promised"
import csv, json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
cells = [row for row in rows if row["kind"] == "cell"]
assert rows[0]["kind"] == "machine" and rows[0]["schema"] == 5, rows[0]
assert rows[-1]["kind"] == "advice" and rows[-1]["options"], rows[-1]
assert len(cells) == 8, len(cells)
for cell in cells:
    assert cell["error"] is None, cell
    assert cell["verified"] == 2000, cell
    assert cell["samples_per_s_min"] <= cell["samples_per_s"] <= cell["samples_per_s_max"], cell
    assert cell["samples_per_s"] > 0 and cell["ceiling_share"] > 0, cell
    assert cell["cache"] == "decoded" and cell["ceiling"] == "gather", cell
    assert cell["first_epoch_separate"] and cell["first_epoch_repeats"] == 3, cell
    assert 0 < cell["first_epoch_samples_per_s"], cell
    assert cell["first_epoch_ceiling"] == "decode" and cell["first_epoch_ceiling_share"] > 0, cell
    assert cell["first_epoch_limit"] and cell["cached_share"] > 0.99, cell
    assert cell["first_batch_ms"] > 0 and cell["whole_epochs"] and cell["repeats"] == 3, cell
assert {row["name"] for row in rows if row["kind"] == "ceiling"} == {"gather", "decode", "memcpy"}
with open(sys.argv[2], newline="") as file:
    table = list(csv.DictReader(file))
assert sum(row["kind"] == "cell" for row in table) == 8
assert all(None not in row and None not in row.values() for row in table), "ragged rows"
PYTHON
fi

# From a file, one worker reads a first epoch alone; from the cache the consumer helps it if there is another CPU.
if command -v python3 >/dev/null; then
    python3 -c 'import sys; sys.stdout.buffer.write(bytes((0, 0, 8, 3, 0, 0, 1, 0, 0, 0, 0, 8, 0, 0, 0, 8)) + bytes(256 * 64))' \
        >"$scratch/rows"
    "$tool" --workers 1 --pin-memory off --batch-size 64 --repeats 1 --epochs 1 --seconds 0.01 --quiet --cache decoded \
        --format json "idx:$scratch/rows" >"$scratch/one" || fail "one worker on a file: $?"
    python3 - "$scratch/one" <<'PYTHON' || fail "the ceilings are not those of the threads that work"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
cell = next(row for row in rows if row["kind"] == "cell")
cpus = next(row["cpus"] for row in rows if row["kind"] == "machine")
threads = {row["name"]: row["threads"] for row in rows if row["kind"] == "ceiling"}
assert cell["first_epoch_ceiling"].startswith("bare ") and threads[cell["first_epoch_ceiling"]] == 1, rows
assert cell["ceiling"] == "gather" and threads["gather"] == min(2, cpus), rows
PYTHON
fi

# What is to be pasted compiles.
if command -v "${CC:-cc}" >/dev/null; then
    {
        echo '#include <stoker/stoker.h>'
        echo 'int count(void); int count(void) {'
        sed -n '/^# paste this:/,/^# or, in Python:/{//!p}' "$scratch/table"
        echo 'return (int)options.batch_size; }'
    } >"$scratch/paste.c"
    "${CC:-cc}" -std=c11 -Wall -Werror -fsyntax-only -I loader/include "$scratch/paste.c" ||
        fail "what is to be pasted does not compile"
fi

# Without a cache all epochs are of one kind, and one line; on a narrow terminal rows have 80 columns.
"$tool" --workers 0,2 --pin-memory off --batch-size 64 --repeats 2 --seconds 0.01 --cache none --quiet "$data" \
    >"$scratch/uncached"
[ "$(grep -cE '^ +[02] +off +64 all +[0-9.]+ [kMG] ' "$scratch/uncached")" -eq 2 ] || fail "--cache none: $(cat "$scratch/uncached")"
if grep -qE '^ +later|first epoch' "$scratch/uncached"; then fail "--cache none knows two kinds of epochs"; fi
if command -v script >/dev/null; then
    narrow="NO_COLOR=1 '$tool' --workers 0,2 --pin-memory off --batch-size 64 --repeats 2 --seconds 0.01 --quiet '$data'"
    script -qc "stty cols 80; $narrow" /dev/null </dev/null | tr -d '\r' >"$scratch/narrow"
    grep -q '^# workers' "$scratch/narrow" || fail "no table on the terminal"
    if grep -vE '^(options|train)' "$scratch/narrow" | LC_ALL=C.UTF-8 grep -E '.{81}'; then fail "the table is wider than a terminal of 80 columns"; fi
    script -qc "stty cols 80; $narrow --wide" /dev/null </dev/null >"$scratch/wide"
    grep -qE '^# workers.{90}' "$scratch/wide" || fail "--wide is narrow"
fi

# With transforms, in planes: decoding alone, and with them; a first epoch against the one, later ones against the other.
"$tool" --workers 1 --pin-memory off --batch-size 64 --repeats 2 --seconds 0.02 --quiet --layout nchw --random-crop 24 \
    --flip on --mean 0.5 --std 0.25 --format json "$data" >"$scratch/crop" || fail "--layout nchw --random-crop: $?"
for name in decode "decode + transform" transform; do
    grep -q "\"kind\": \"ceiling\", \"name\": \"$name\".*\"samples_per_s\": [0-9]" "$scratch/crop" || fail "no ceiling '$name'"
done
grep -q '"layout": "nchw".*"first_epoch_ceiling": "decode + transform".*"ceiling": "transform"' "$scratch/crop" ||
    fail "ceilings of the wrong kind: $(cat "$scratch/crop")"
grep -q 'options.layout = STOKER_LAYOUT_NCHW' "$scratch/crop" || fail "the layout is not pasted"
grep -qF 'transform=stoker.Transform(random_crop=(24, 24), flip=True, normalize=((0.5,), (0.25,))))' "$scratch/crop" ||
    fail "the transform is not pasted in Python: $(grep -o 'stoker.Transform.*' "$scratch/crop")"

# A cell that fails is a row, and the exit status says so; the other cells are still measured.
status=0
"$tool" --quiet --workers 0 --pin-memory off --batch-size 1,65536 --prefetch 2 --dtype as-stored --repeats 1 --seconds 0.01 \
    --verify off --ceilings off --format json 'synth:bytes?count=70000&shape=4096x4096' >"$scratch/failed" || status=$? # 2 TiB
[ "$status" -eq 1 ] || fail "a failing cell ended with $status"
[ "$(grep -c '"kind": "cell"' "$scratch/failed")" -eq 2 ] || fail "a cell is missing"
grep -q '"batch_size": 65536.*"error": "create: ' "$scratch/failed" || fail "the row shows no error"
grep -q '"batch_size": 1,.*"error": null' "$scratch/failed" || fail "the good cell failed too"

# A file is complete or not there.
"$tool" "${fast[@]}" --ceilings off --format json -o "$scratch/file.json" "$data" >"$scratch/out"
[ ! -s "$scratch/out" ] || fail "-o printed something as well"
tail -n 1 "$scratch/file.json" | grep -q '"kind": "advice"' || fail "-o: the file is not complete"
[ "$(find "$scratch" -name 'file.json*' | wc -l)" -eq 1 ] || fail "-o left something behind"
"$tool" --open --repeats 2 -o "$scratch/open.json" "$data" >"$scratch/out"
[ ! -s "$scratch/out" ] && grep -q '"kind": "open"' "$scratch/open.json" || fail "--open -o: no file"
for wrong in "--trace $scratch/nowhere/x" "--like-pytorch --beside $scratch/nowhere"; do
    # shellcheck disable=SC2086  # words, parted at spaces
    if "$tool" "${fast[@]}" -o "$scratch/none" $wrong "$data" 2>/dev/null; then fail "accepted: $wrong"; fi
    [ ! -e "$scratch/none" ] || fail "-o made a file, though nothing was measured: $wrong"
done

# Stopped on the way there is no file, nor a part of one. (A file system without nameless files
# keeps the part: Linux has them on all that one would build on.)
"$tool" --quiet --workers 0 --pin-memory off --repeats 1000 -o "$scratch/stopped" "$data" &
stopped=$!
sleep 0.5
kill -KILL $stopped
wait $stopped 2>/dev/null || true
[ -z "$(find "$scratch" -name 'stopped*')" ] || fail "stopped, it left something behind"

# Ctrl-C: what was measured is written, with -o too, and one line says what was left out. A shell
# without job control starts what runs beside it with SIGINT ignored, so Python starts it.
if command -v python3 >/dev/null; then
    cat >"$scratch/interrupt.py" <<'PYTHON'
import os, re, signal, subprocess, sys, time
out, wanted, words = sys.argv[1], sys.argv[2], sys.argv[3:]
signal.signal(signal.SIGINT, signal.SIG_DFL)
with open(out, "w") as file:
    tool = subprocess.Popen(words, stdout=file, stderr=subprocess.PIPE, text=True)
def catches():
    caught = re.search(r"SigCgt:\s*(\w+)", open(f"/proc/{tool.pid}/status").read())
    return int(caught.group(1), 16) >> (signal.SIGINT - 1) & 1
def measures(): # a worker runs: the first group has begun
    return wanted in open(out).read() if wanted else len(os.listdir(f"/proc/{tool.pid}/task")) > 1
while tool.poll() is None and not (catches() and measures()):
    time.sleep(0.05)
tool.send_signal(signal.SIGINT)
message = tool.communicate()[1]
assert tool.returncode == 130, (tool.returncode, message)
assert message.startswith("loaderbench: interrupted; ") and message.count("\n") == 1, message
assert "cells are left out" in message, message
PYTHON
    stop=("$tool" --workers 0,1 --pin-memory off --batch-size 64 --ceilings off --verify off --quiet)
    python3 "$scratch/interrupt.py" "$scratch/cut.json" '"kind": "cell"' "${stop[@]}" --dtype uint8,float32 \
        --repeats 40 --seconds 0.03 --format json "$data" || fail "interrupted after the first rows"
    [ "$(grep -c '"kind": "cell".*"repeats": 40' "$scratch/cut.json")" -ge 2 ] || fail "the first rows are not complete"
    tail -n 1 "$scratch/cut.json" | grep -q '"kind": "advice"' || fail "interrupted, the rest is missing"
    python3 "$scratch/interrupt.py" "$scratch/empty" '' "${stop[@]}" --repeats 1000 --format html -o "$scratch/cut.html" \
        "$data" || fail "interrupted in its first group"
    tail -n 1 "$scratch/cut.html" | grep -q '</html>' || fail "interrupted, the page is not complete"
fi

# What cannot be written is a failure, even if nothing is measured.
for words in --help --list --version "--open --repeats 1 $data"; do
    status=0
    # shellcheck disable=SC2086  # words, parted at spaces
    "$tool" $words >/dev/full 2>"$scratch/err" || status=$?
    [ "$status" -eq 1 ] || fail "to a full disk it ended with $status: $words"
done

# On a terminal of 40 columns the line that counts down is no longer than that.
if command -v script >/dev/null; then
    script -qc "stty cols 40; '$tool' --workers 0 --pin-memory off --batch-size 64 --repeats 2 --seconds 0.01 \
        '$data' >/dev/null" /dev/null </dev/null | tr '\r' '\n' >"$scratch/terminal"
    grep -q '^\[1/' "$scratch/terminal" || fail "no line on the terminal"
    if grep -qE '.{40}' "$scratch/terminal"; then fail "a line of 40 columns or more wraps"; fi
fi

# Elsewhere one line every few seconds, the first one at once; the sweep ends in the time that it was given.
begin=$(date +%s)
"$tool" --budget 1 --html "$scratch/beside.html" "$data" >"$scratch/plain" 2>"$scratch/progress" || fail "--budget --html: $?"
[ $(($(date +%s) - begin)) -le 60 ] || fail "--budget 1 took more than a minute"
head -n 1 "$scratch/progress" | grep -qE '^loaderbench: \[1/[0-9]+\] 0:0[0-9] left, ' || fail "no progress: $(cat "$scratch/progress")"
grep -q '</html>' "$scratch/beside.html" && grep -q '^# paste this' "$scratch/plain" || fail "--html is not beside the table"
grep -q '"kind": "advice"' "$scratch/beside.html" || fail "--html has no verdict"
refuses --open --html "$scratch/x.html" "$data"
if command -v python3 >/dev/null; then
    sed '1,/^# or, in Python:/d' "$scratch/plain" | python3 -c 'import ast, sys; call = ast.parse(sys.stdin.read()).body[0].value
assert {word.arg for word in call.keywords} >= {"batch_size", "shuffle", "num_workers", "dtype"}' || fail "the Python to paste"
fi

# A machine with other work has no verdict, and --strict says so by its status.
busy=()
for ((cpu = 0; cpu < $(nproc); cpu++)); do
    (while :; do :; done) &
    busy+=($!)
done
status=0
"$tool" "${fast[@]}" --ceilings off --strict "$data" >"$scratch/out" || status=$?
kill "${busy[@]}"
wait "${busy[@]}" 2>/dev/null || true
[ "$status" -eq 3 ] || fail "--strict on a busy machine ended with $status: $(cat "$scratch/out")"
grep -q 'Machine busy: figures not usable' "$scratch/out" || fail "a busy machine has a verdict: $(cat "$scratch/out")"
tr -s '#\n ' ' ' <"$scratch/out" | grep -qE 'Other programs used [0-9.]+ of [0-9]+ CPUs' ||
    fail "other programs are not named: $(cat "$scratch/out")"

# The consumer of known speed is the limit, and headspace knows it.
"$tool" --quiet --workers 2 --pin-memory off --batch-size 64 --repeats 1 --step-us 2000 --headspace \
    --ceilings off --format json "$data" >"$scratch/step"
if command -v python3 >/dev/null; then
    python3 - "$scratch/step" <<'PYTHON' || fail "--step-us and --headspace do not agree"
import json, sys
cell = next(row for row in map(json.loads, open(sys.argv[1])) if row["kind"] == "cell")
assert cell["samples_per_s"] <= 64 / 0.002 * 1.05, cell
assert 0 < cell["headspace_samples_per_s"] <= 64 / 0.002 * 1.05, cell
assert cell["ceiling_share"] is None, cell
PYTHON
fi

# A trace of each cell, in one file; the figures are printed as without it.
for batch in 64 300; do # 2 epochs of 2000 samples
    "$tool" --quiet --workers 0,3 --pin-memory off --batch-size $batch --repeats 1 --seconds 0.2 \
        --ceilings off --format json --trace "$scratch/$batch.json" "$data" >"$scratch/traced" ||
        fail "--trace ended with $?"
    [ "$(grep -c '"error": null' "$scratch/traced")" -eq 2 ] || fail "--trace: a cell is missing"
    [ "$(find "$scratch" -name "$batch.json*" | wc -l)" -eq 1 ] || fail "--trace left something behind"
    if command -v python3 >/dev/null; then
        python3 tests/checks/check_trace.py "$scratch/$batch.json" 2 $((2 * ((2000 + batch - 1) / batch))) ||
            fail "--trace: batches of $batch"
    fi
done
refuses --trace "$scratch/x.json" --like-pytorch "$data"
refuses --trace '' "$data"
status=0
"$tool" --workers 0 --trace "$scratch/nowhere/x.json" "$data" >"$scratch/out" 2>"$scratch/err" || status=$?
[ "$status" -eq 1 ] || fail "a trace that cannot be written ended with $status"
[ "$(wc -l <"$scratch/err")" -eq 1 ] || fail "not one line about a trace that cannot be written"
[ ! -s "$scratch/out" ] || fail "measured, although the trace cannot be written"

# A data set that is not there is a failure, not bad usage.
status=0
"$tool" "idx:$scratch/nothing" 2>"$scratch/err" || status=$?
[ "$status" -eq 1 ] || fail "a missing file ended with $status"
[ "$(wc -l <"$scratch/err")" -eq 1 ] || fail "not one line about a missing file"

"$tool" -q --like-pytorch "$data" >"$scratch/pytorch"
[ "$(grep -cE '^Finish with: [0-9.]+ second, num_workers=[0-9]+$' "$scratch/pytorch")" -eq 20 ] ||
    fail "--like-pytorch: $(cat "$scratch/pytorch")"
grep -qE '^this loader: with pin_memory [0-9.]+ times as fast as without \([0-9.]+ to [0-9.]+ over' "$scratch/pytorch" ||
    fail "no verdict on pinning"
grep -q '^no GPU here: page-locking cannot help' "$scratch/pytorch" || fail "pinning without a GPU is praised"
printf 'pin_memory=%s\nFinish with: %s second, num_workers=5\n' True 3 False 2 >"$scratch/other"
"$tool" -q --like-pytorch --beside "$scratch/other" "$data" >"$scratch/pytorch"
grep -qF 'the other: with pin_memory 0.67 times as fast' "$scratch/pytorch" || fail "--beside: no verdict"
grep -qE '^ +5 .* \| +3.0000 +2.0000 +0.67$' "$scratch/pytorch" || fail "--beside: not beside"
status=0
"$tool" --like-pytorch --beside "$0" "$data" >/dev/null 2>"$scratch/err" || status=$?
[ "$status" -eq 1 ] || fail "--beside with no times in the file ended with $status"

# A missing GPU is reported, and nothing is measured.
status=0
STOKER_CUDART="$scratch/no-such-library.so" "$tool" --device cuda "$data" >"$scratch/out" 2>"$scratch/err" || status=$?
[ "$status" -eq 1 ] || fail "--device cuda without a runtime ended with $status"
grep -q '^loaderbench: --device: ' "$scratch/err" || fail "does not say why there is no GPU: $(cat "$scratch/err")"

verdict
