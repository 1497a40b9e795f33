#!/usr/bin/env bash
# check_pack.sh - the real stoker-pack: there and back through every form, continued, on damaged sources and with bad
# usage.
#
# usage: check_pack.sh STOKER_PACK
set -euo pipefail
tool=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. tests/checks/scratch.sh

# ends STATUS WORD...: the tool ends so. Its output is in out and err.
ends() {
    local due=$1 status=0
    shift
    "$tool" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    [ "$status" -eq "$due" ] || fail "exit status $status, not $due: $* ($(head -c 300 "$scratch/err"))"
}

# says WORDS: the last run's report has this line.
says() {
    grep -qx -- "$1" "$scratch/out" || fail "no line \"$1\" in: $(tr '\n' ';' <"$scratch/out")"
}

# ---- usage
ends 0 --help
grep -q '^usage: stoker-pack' "$scratch/out" || fail "--help"
ends 0 --version
for words in "" "synth:digits" "synth:digits nowhere" "synth:digits zip:x" "--codec gif synth:digits shards:x" \
    "--quality 0 synth:digits shards:x" "--workers 0 synth:digits shards:x" "--shard-samples 0 synth:digits shards:x" \
    "--shard-samples 1X synth:digits shards:x" "--codec raw synth:digits folder:x" "--nonsense synth:digits shards:x" \
    "--quality 50 synth:digits shards:x" "--quality 50 --codec png synth:digits folder:x" \
    "--shard-samples 9 synth:digits tar:x" "synth:digits shards:x more"; do
    # shellcheck disable=SC2086  # words, parted at spaces
    ends 2 $words
    [ "$(wc -l <"$scratch/err")" -eq 1 ] || fail "not one line about: $words"
done
for words in --help --version "synth:digits?count=3 shards:$scratch/lost"; do
    status=0
    # shellcheck disable=SC2086  # words, parted at spaces
    "$tool" $words >/dev/full 2>"$scratch/err" || status=$?
    [ "$status" -eq 1 ] || fail "to a full disk it ended with $status: $words"
done
ends 1 nosuch:x "shards:$scratch/none"
ends 1 --codec png 'synth:bytes?count=10&shape=5&dtype=float32' "shards:$scratch/none"

# ---- on a terminal of 40 columns no line reaches the edge
if command -v script >/dev/null; then
    script -qc "stty cols 40; '$tool' 'synth:digits?count=100000' 'shards:$scratch/narrow' >/dev/null" /dev/null \
        </dev/null | tr '\r' '\n' >"$scratch/terminal"
    grep -q '^packed [0-9]* of 100000' "$scratch/terminal" || fail "no line on the terminal"
    if grep -qE '.{40}' "$scratch/terminal"; then fail "a line of 40 columns or more wraps"; fi
fi

# ---- there and back: pixels and labels stay what they were
source='synth:digits?count=1500&seed=3'
ends 0 --codec raw --shard-samples 300 --verify "$source" "shards:$scratch/shards"
says 'samples 1500'
says 'bad_samples 0'
says 'verified all fields'
[ ! -s "$scratch/err" ] || fail "something on standard error, which is no terminal"
for shard in "$scratch"/shards/*.stk; do
    [ $(($(stat -c %s "$shard") % 4096)) -eq 0 ] || fail "$shard does not end with a block"
done
[ "$(find "$scratch/shards" -name '*.stk' | wc -l)" -eq 5 ] || fail "not five shards"
ends 0 --verify "shards:$scratch/shards" "folder:$scratch/folder"
says 'verified all fields'
ends 0 --verify --codec keep "folder:$scratch/folder" "tar:$scratch/set.tar"
says 'verified all fields'
says 'found 1000 of 1500 image headers read: 28x28, gray'
ends 0 --verify --codec raw "tar:$scratch/set.tar" "shards:$scratch/back"
says 'verified all fields'
ends 0 --verify --codec lz4 "shards:$scratch/back" "shards:$scratch/lz4"
ends 0 --verify --codec zstd --level 3 "shards:$scratch/back" "shards:$scratch/zstd"
ends 0 --verify --codec zstd --level 19 "shards:$scratch/zstd" "shards:$scratch/zstd-19"
[ "$(cat "$scratch"/zstd-19/*.stk | wc -c)" -lt "$(cat "$scratch"/lz4/*.stk | wc -c)" ] || fail "zstd packs no smaller than LZ4"
ends 1 --codec zstd --level 5 "shards:$scratch/back" "shards:$scratch/zstd"
ends 2 --level 3 "shards:$scratch/back" "shards:$scratch/no"
ends 2 --codec lz4 --level 13 "shards:$scratch/back" "shards:$scratch/no"
ends 0 --verify --codec raw --shard-samples 300 --block 100K "$source" "shards:$scratch/blocks"
ends 0 --verify --codec lz4 --shard-samples 300 --block 1G "shards:$scratch/blocks" "shards:$scratch/lz4-blocks"
ends 0 --codec raw --shard-samples 300 "shards:$scratch/lz4-blocks" "shards:$scratch/unblocked"
for shard in "$scratch"/shards/*.stk; do
    cmp -i 4096 "$shard" "$scratch/unblocked/$(basename "$shard")" || fail "blocks change $shard"
done
ends 1 --codec raw --shard-samples 300 --block 99K "$source" "shards:$scratch/blocks"
ends 2 --block 4095 "$source" "shards:$scratch/no"
ends 2 --block 2G "$source" "shards:$scratch/no"
ends 2 --block 1M "$source" "tar:$scratch/no"
ends 0 --verify --codec png "shards:$scratch/lz4" "shards:$scratch/png"
ends 0 --verify "folder:$scratch/folder" "shards:$scratch/kept"
ends 0 --verify --codec jpeg "$source" "shards:$scratch/jpeg"
says 'verified all fields but images'
ends 0 --verify 'synth:bytes?count=700&shape=9&dtype=float32' "shards:$scratch/floats"

# What is a PNG or JPEG file stays that file, byte for byte, whichever way it goes.
ends 0 --codec keep "folder:$scratch/folder" "shards:$scratch/keep-shards"
ends 0 --codec keep "shards:$scratch/keep-shards" "tar:$scratch/keep.tar"
cmp "$scratch/keep.tar" "$scratch/set.tar" || fail "kept through shards, an archive has other bytes"
ends 0 --codec keep "tar:$scratch/keep.tar" "folder:$scratch/keep-folder"
ends 0 --codec keep "shards:$scratch/jpeg" "tar:$scratch/jpeg.tar"
ends 0 --codec keep --verify "tar:$scratch/jpeg.tar" "folder:$scratch/jpeg-folder"
ends 0 --codec keep --verify "folder:$scratch/jpeg-folder" "tar:$scratch/jpeg-again.tar"
if command -v python3 >/dev/null; then
    python3 - "$scratch" <<'PYTHON' || fail "kept files have other bytes"
import glob, sys, tarfile
scratch = sys.argv[1]

def files(name):
    return sorted(open(path, "rb").read() for path in glob.glob(f"{scratch}/{name}/*/*"))

def members(name):
    with tarfile.open(f"{scratch}/{name}") as tar:
        return sorted(tar.extractfile(m).read() for m in tar if not m.name.endswith(".cls"))

pngs, jpegs = files("folder"), members("jpeg.tar")
assert len(pngs) == 1500 and pngs == files("keep-folder") == members("keep.tar")
assert len(jpegs) == 1500 and all(j[:3] == b"\xff\xd8\xff" for j in jpegs)
assert jpegs == files("jpeg-folder") == members("jpeg-again.tar")
stored = b"".join(open(path, "rb").read() for path in glob.glob(f"{scratch}/jpeg/*.stk"))
assert all(j in stored for j in jpegs[::50])
PYTHON
fi

# Rows that begin as a file does are rows.
mkdir -p "$scratch/rows/a"
printf '\377\330\377\340' >"$scratch/rows/a/0.raw"
ends 0 --codec raw "folder:$scratch/rows?extensions=raw&height=2&width=2&channels=1" "shards:$scratch/rows-raw"
ends 0 --codec keep --verify "shards:$scratch/rows-raw" "shards:$scratch/rows-kept"
says 'verified all fields'
ends 0 --codec lz4 "shards:$scratch/rows-raw" "shards:$scratch/rows-lz4"
ends 0 --codec keep --verify "shards:$scratch/rows-lz4" "tar:$scratch/rows.tar"

# Classes keep their names on the way.
cp -r "$scratch/folder" "$scratch/named"
mv "$scratch/named/0000008" "$scratch/named/ape"
mv "$scratch/named/0000009" "$scratch/named/bee"
ends 0 --verify "folder:$scratch/named" "shards:$scratch/named-shards"
ends 0 --verify "shards:$scratch/named-shards" "folder:$scratch/named-again"
[ "$(ls "$scratch/named")" = "$(ls "$scratch/named-again")" ] || fail "the classes have other names"

# The same by a reader that is not ours. A folder's order is by class, so rows are compared as sets.
if command -v python3 >/dev/null; then
    python3 - "$scratch" <<'PYTHON' || fail "another reader sees other rows"
import glob, os, struct, sys, tarfile
scratch = sys.argv[1]

def rows(name):
    found = []
    for path in sorted(glob.glob(f"{scratch}/{name}/*.stk")):
        b = open(path, "rb").read()
        assert b[:8] == b"\x89STK\r\n\x1a\n" and struct.unpack_from("<Q", b, 32)[0] == len(b)
        index_at, (count, fields) = struct.unpack_from("<Q", b, 40)[0], struct.unpack_from("<QI", b, 64)
        entries = index_at + 160 * fields
        for i in range(count):
            at, size, _, codec = struct.unpack_from("<QQIB3x", b, entries + 24 * i)
            label = struct.unpack_from("<q", b, entries + 24 * count + 8 * i)[0]
            assert codec == 0
            found.append((b[at:at + size], label))
    return found

there, back = rows("shards"), rows("back")
assert len(there) == 1500 and all(len(row) == 784 for row, _ in there)
assert sorted(there) == sorted(back), "there and back"
files = {}
with tarfile.open(f"{scratch}/set.tar") as tar:
    for member in tar:
        key, ending = member.name.split(".")
        files.setdefault(key, {})[ending] = tar.extractfile(member).read()
assert len(files) == 1500
pngs = sorted(glob.glob(f"{scratch}/folder/*/*.png"))
classes = sorted(os.listdir(f"{scratch}/folder"))
assert len(classes) == 10
by_bytes = sorted((open(p, "rb").read(), classes.index(p.split("/")[-2])) for p in pngs)
assert by_bytes == sorted((f["png"], int(f["cls"])) for f in files.values()), "folder and archive"
PYTHON
fi

# ---- documents, packed into rows of one length: from an archive and from shards, resumed after the loss of a shard
mkdir "$scratch/texts"
for i in $(seq 100 399); do
    printf "%$((i * i % 97 + 1))s" "$i" >"$scratch/texts/$i.txt"
done
tar -cf "$scratch/texts.tar" -C "$scratch/texts" --sort=name .
documents="tar:$scratch/texts.tar?fields=txt"
ends 0 --verify "$documents" "shards:$scratch/documents"
ends 0 --verify --shard-samples 30 "packed:128:($documents)?field=txt&block=0&fields=tokens,cu_seqlens,positions" \
    "shards:$scratch/rows-of-text"
grep -qE '^found 300 documents packed into [0-9]+ rows of 128, [0-9.]+ % padding' "$scratch/out" ||
    fail "no padding in: $(cat "$scratch/out")"
rows=(--shard-samples 30 "packed:128:(shards:$scratch/documents)?block=0&fields=tokens,cu_seqlens,positions" \
    "shards:$scratch/rows-of-shards")
ends 0 --verify "${rows[@]}"
for name in rows-of-text rows-of-shards; do
    ends 0 "shards:$scratch/$name" "tar:$scratch/$name.tar"
done
cmp "$scratch/rows-of-text.tar" "$scratch/rows-of-shards.tar" || fail "packed from shards, rows differ"
cp -r "$scratch/rows-of-shards" "$scratch/rows-at-once"
rm "$(find "$scratch/rows-of-shards" -name '*.stk' | sort | tail -n 1)"
ends 0 "${rows[@]}"
grep -qE '^kept_samples [1-9]' "$scratch/out" || fail "nothing was kept: $(cat "$scratch/out")"
diff -r --exclude='.*' "$scratch/rows-at-once" "$scratch/rows-of-shards" || fail "a resumed packing of rows differs"

# ---- the same bytes with any number of workers
for workers in 1 5; do
    ends 0 --quiet --workers $workers --codec png --shard-samples 200 "$source" "shards:$scratch/w$workers"
done
diff -r "$scratch/w1" "$scratch/w5" || fail "the number of workers changes bytes"

# ---- continued; kills at each call are in check_pack_runs.sh
pack=(--quiet --workers 2 --codec png --shard-samples 150 "$source")
ends 0 "${pack[@]}" "shards:$scratch/whole"
cp -r "$scratch/whole" "$scratch/killed"
rm "$scratch"/killed/shard-00000[4-9].stk "$scratch"/killed/shard-0000[1-9]*.stk 2>/dev/null || true
before=$(stat -c %Y.%i "$scratch/killed/shard-000000.stk")
ends 1 "shards:$scratch/killed" "shards:$scratch/never"
grep -q 'last one is missing' "$scratch/err" || fail "unfinished shards opened"
ends 0 --workers 2 --codec png --shard-samples 150 --verify "$source" "shards:$scratch/killed"
grep -q '^kept_samples [1-9]' "$scratch/out" || fail "nothing was kept"
says 'samples 1500'
[ "$before" = "$(stat -c %Y.%i "$scratch/killed/shard-000000.stk")" ] || fail "a finished shard was written again"
diff -r --exclude='.*' "$scratch/whole" "$scratch/killed" || fail "a resumed packing differs"

# ---- what is there is not written over, nor mixed with
ends 1 "$source" "tar:$scratch/set.tar"
grep -q 'differs from what would be packed, from byte [0-9]* on; remove it, or pack elsewhere' "$scratch/err" ||
    fail "no way out: $(cat "$scratch/err")"
ends 1 'synth:digits?count=1500&seed=4' "folder:$scratch/folder"
grep -q 'not this packing: .* is missing; remove it, or pack elsewhere' "$scratch/err" ||
    fail "no way out: $(cat "$scratch/err")"
cp -r "$scratch/folder" "$scratch/bent"
printf 'x' | dd of="$(find "$scratch/bent" -name '0000000900.png')" bs=1 seek=60 conv=notrunc status=none
ends 1 "$source" "folder:$scratch/bent"
grep -q '/0000000900.png has other bytes; remove it, or pack elsewhere' "$scratch/err" ||
    fail "no way out: $(cat "$scratch/err")"
ends 1 'synth:digits?count=1501&seed=3' "folder:$scratch/folder"
grep -q ' is missing; remove it' "$scratch/err" || fail "what is missing is not reported: $(cat "$scratch/err")"
ends 1 'synth:digits?count=1499&seed=3' "folder:$scratch/folder"
grep -q '10 folders with 1500 files, of which 10 with 1499' "$scratch/err" || fail "one too many: $(cat "$scratch/err")"
ends 1 "$source" "tar:$scratch/folder"
ends 1 "$source" "folder:$scratch/set.tar"
ends 1 "${pack[@]}" --codec raw "shards:$scratch/whole"
grep -q 'another packing' "$scratch/err" || fail "another packing was not noticed"
if command -v flock >/dev/null; then
    mkdir "$scratch/locked"
    status=0
    flock "$scratch/locked/.shard-000000.stk.tmp" "$tool" "${pack[@]}" "shards:$scratch/locked" 2>"$scratch/err" || status=$?
    [ "$status" -eq 1 ] || fail "two packers of one shard: $status"
    grep -q 'another stoker-pack is packing into it' "$scratch/err" || fail "the other packer is not named"
fi

# ---- what is there and right is found so, and not touched: shards, a folder, an archive
ends 0 "$source" "tar:$scratch/twice.tar"
for target in "shards:$scratch/whole" "folder:$scratch/folder" "tar:$scratch/twice.tar"; do
    case $target in shards:*) words=(--codec png --shard-samples 150) ;; *) words=() ;; esac
    before=$(find "${target#*:}" -printf '%p %T@ %i %s\n' | sort | sha256sum)
    ends 0 "${words[@]}" "$source" "$target"
    says 'samples 1500'
    says 'kept_samples 1500'
    ends 0 --verify "${words[@]}" "$source" "$target"
    says 'verified all fields'
    [ "$before" = "$(find "${target#*:}" -printf '%p %T@ %i %s\n' | sort | sha256sum)" ] || fail "$target was touched"
done
cp "$scratch/twice.tar" "$scratch/longer.tar"
printf 'x' >>"$scratch/longer.tar"
ends 1 "$source" "tar:$scratch/longer.tar"
grep -q 'continues after what would be packed' "$scratch/err" || fail "more than an archive: $(cat "$scratch/err")"
truncate -s -1 "$scratch/longer.tar"
truncate -s -1 "$scratch/longer.tar"
ends 1 "$source" "tar:$scratch/longer.tar"
[ "$(stat -c %s "$scratch/longer.tar")" -eq $(($(stat -c %s "$scratch/twice.tar") - 1)) ] || fail "an archive was changed"
mkdir "$scratch/strangers"
echo mine >"$scratch/strangers/mine"
ends 1 "$source" "folder:$scratch/strangers"
[ "$(cat "$scratch/strangers/mine")" = mine ] && [ "$(ls -A "$scratch/strangers")" = mine ] ||
    fail "a stranger's folder was changed"

# ---- damage: in what is packed, and in what was
cp -r "$scratch/whole" "$scratch/spoilt"
printf 'x' | dd of="$scratch/spoilt/shard-000001.stk" bs=1 seek=4110 conv=notrunc status=none
ends 4 --verify "${pack[@]}" "shards:$scratch/spoilt"
grep -q 'shard-000001.stk: offset 4096' "$scratch/err" || fail "the damaged record is not named: $(cat "$scratch/err")"
printf 'x' | dd of="$scratch/spoilt/shard-000001.stk" bs=1 seek=130 conv=notrunc status=none
ends 1 "${pack[@]}" "shards:$scratch/spoilt"
victim=$(find "$scratch/folder" -name '*.png' | sort | sed -n 7p)
printf 'xxxx' | dd of="$victim" bs=1 seek=60 conv=notrunc status=none
ends 3 --verify "folder:$scratch/folder" "shards:$scratch/without"
says 'samples 1499'
says 'bad_samples 1'
grep -q "$(basename "$victim")" "$scratch/err" || fail "the bad sample is not named"

verdict
