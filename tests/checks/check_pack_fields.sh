#!/usr/bin/env bash
# check_pack_fields.sh - samples with an image, a mask, boxes and a caption: the same from an archive, from folders and
# from shards of either, kept, compressed and packed again; and the shards hold what their description says.
#
# usage: check_pack_fields.sh STOKER_PACK FIELD_HASHES [STANDIN_LIBCUDART]
set -euo pipefail
tool=$(realpath "$1")
hashes=$(realpath "$2")
standin=${3:-}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. tests/checks/scratch.sh
command -v python3 >/dev/null || exit 77

# ends STATUS WORD...: the tool ends so. Its output is in out and err.
ends() {
    local due=$1 status=0
    shift
    "$tool" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    [ "$status" -eq "$due" ] || fail "exit status $status, not $due: $* ($(head -c 300 "$scratch/err"))"
}

# same A B: two sets of shards are the same, byte for byte, but for their headers, which name their source.
same() {
    local shard
    [ "$(ls "$scratch/$1")" = "$(ls "$scratch/$2")" ] || fail "$1 and $2 have other shards"
    for shard in "$scratch/$1"/*.stk; do
        cmp -i 4096 "$shard" "$scratch/$2/$(basename "$shard")" || fail "$1 and $2 differ in $shard"
    done
}

python3 tests/checks/make_fields.py "$scratch" 300
tar="tar:$scratch/fields.tar?fields=png,mask.png,boxes.npy,caption.txt"
folders="folder:image=$scratch/image,mask=$scratch/mask,boxes=$scratch/boxes,caption=$scratch/caption"

# Kept: the archive and the folders make the same shards, with any number of workers.
ends 0 --verify --shard-bytes 64K "$tar" "shards:$scratch/of-tar"
grep -qx 'verified all fields' "$scratch/out" || fail "not verified"
grep -qx 'samples 300' "$scratch/out" || fail "not 300 samples"
[ ! -s "$scratch/err" ] || fail "something on standard error"
ends 0 --verify --shard-bytes 64K --workers 1 "$folders" "shards:$scratch/of-folders"
[ "$(find "$scratch/of-tar" -name '*.stk' | wc -l)" -ge 2 ] || fail "not several shards"
same of-tar of-folders
[ "$(python3 tests/checks/read_fields.py "$scratch" "$scratch/of-tar")" = 300 ] || fail "another reader sees other parts"

# Again: nothing is written; after a lost shard, only what is missing.
before=$(stat -c %y "$scratch"/of-tar/*.stk)
ends 0 --shard-bytes 64K "$tar" "shards:$scratch/of-tar"
grep -qx 'kept_samples 300' "$scratch/out" || fail "packed twice"
[ "$before" = "$(stat -c %y "$scratch"/of-tar/*.stk)" ] || fail "written twice"
last=$(find "$scratch/of-tar" -name '*.stk' | sort | tail -n 1)
rm "$last"
ends 0 --verify --shard-bytes 64K "$tar" "shards:$scratch/of-tar"
same of-tar of-folders


# A damaged index of an earlier run, and a shard of something else, are not kept.
cp "$last" "$scratch/whole"
printf '\377' | dd of="$last" bs=1 seek=$(($(stat -c %s "$last") - 1)) conv=notrunc status=none
ends 1 --shard-bytes 64K "$tar" "shards:$scratch/of-tar"
grep -q 'its index is damaged' "$scratch/err" || fail "a damaged index is not refused"
mv "$scratch/whole" "$last"
cp "$last" "$scratch/of-tar/other.stk"
ends 1 --shard-bytes 64K "$tar" "shards:$scratch/of-tar"
grep -q 'not of this packing' "$scratch/err" || fail "a foreign shard is not refused"
rm "$scratch/of-tar/other.stk"

# Shards of shards, and every codec.
ends 0 --verify --shard-bytes 64K "shards:$scratch/of-tar" "shards:$scratch/again"
same of-tar again
for codec in raw lz4 zstd; do
    ends 0 --verify --codec $codec "shards:$scratch/of-tar" "shards:$scratch/$codec"
    ends 0 --verify --codec raw "shards:$scratch/$codec" "shards:$scratch/$codec-raw"
    same raw $codec-raw
done

# The same batches from each, by hash: shuffled, packed and padded, with any number of workers, on the CPU and on a
# stand-in for a GPU.
for form in packed padded; do
    "$hashes" "$tar" $form 0 cpu >"$scratch/due" || fail "no batches of the archive"
    [ "$(wc -l <"$scratch/due")" -eq 20 ] || fail "not 20 batches, $form"
    for source in "$tar" "$folders" "shards:$scratch/of-tar" "shards:$scratch/zstd"; do
        for device in cpu ${standin:+gpu}; do
            for workers in 0 3; do
                STOKER_CUDART=$standin "$hashes" "$source" $form $workers $device >"$scratch/found" ||
                    fail "no batches: $source $form $workers $device"
                cmp -s "$scratch/due" "$scratch/found" || fail "other batches: $source $form $workers $device"
            done
        done
    done
    mv "$scratch/due" "$scratch/$form"
done
cmp -s "$scratch/packed" "$scratch/padded" && fail "padding changes nothing"

# Damage is found, and named.
shard=$(find "$scratch/again" -name '*.stk' | sort | head -n 1)
printf '\1' | dd of="$shard" bs=1 seek=4200 conv=notrunc status=none
ends 3 "shards:$scratch/again" "shards:$scratch/damaged"
grep -q 'checksum' "$scratch/err" || fail "damage is not reported"

# Refused.
ends 1 "$tar" "tar:$scratch/back.tar"
grep -q 'into shards:DIR only' "$scratch/err" || fail "fields in an archive are not refused"
ends 1 --codec jpeg "$tar" "shards:$scratch/jpeg"
grep -q 'keep, raw, lz4 or zstd' "$scratch/err" || fail "no codec is named"
ends 1 --codec raw "$tar" "shards:$scratch/of-tar"
grep -q 'another packing' "$scratch/err" || fail "another packing is not refused"
verdict
