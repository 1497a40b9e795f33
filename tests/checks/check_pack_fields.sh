#!/usr/bin/env bash
# check_pack_fields.sh - samples with an image, a mask, boxes and a caption: the same from an archive, from folders and
# from shards of either, kept, compressed and packed again, in every direction; and the shards hold what their description
# says.
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
ends 0 --verify --shard-samples 150 "$tar" "shards:$scratch/of-tar"
grep -qx 'verified all fields' "$scratch/out" || fail "not verified"
grep -qx 'samples 300' "$scratch/out" || fail "not 300 samples"
[ ! -s "$scratch/err" ] || fail "something on standard error"
ends 0 --verify --shard-samples 150 --workers 1 "$folders" "shards:$scratch/of-folders"
[ "$(find "$scratch/of-tar" -name '*.stk' | wc -l)" -ge 2 ] || fail "not several shards"
same of-tar of-folders
[ "$(python3 tests/checks/read_fields.py "$scratch" "$scratch/of-tar")" = 300 ] || fail "another reader sees other parts"

# Again: nothing is written; after a lost shard, only what is missing.
before=$(stat -c %y "$scratch"/of-tar/*.stk)
ends 0 --shard-samples 150 "$tar" "shards:$scratch/of-tar"
grep -qx 'kept_samples 300' "$scratch/out" || fail "packed twice"
[ "$before" = "$(stat -c %y "$scratch"/of-tar/*.stk)" ] || fail "written twice"
last=$(find "$scratch/of-tar" -name '*.stk' | sort | tail -n 1)
rm "$last"
ends 0 --verify --shard-samples 150 "$tar" "shards:$scratch/of-tar"
same of-tar of-folders


# A damaged index of an earlier run, and a shard of something else, are not kept.
cp "$last" "$scratch/whole"
printf '\377' | dd of="$last" bs=1 seek=$(($(stat -c %s "$last") - 1)) conv=notrunc status=none
ends 1 --shard-samples 150 "$tar" "shards:$scratch/of-tar"
grep -q 'its index is damaged' "$scratch/err" || fail "a damaged index is not refused"
mv "$scratch/whole" "$last"
cp "$last" "$scratch/of-tar/other.stk"
ends 1 --shard-samples 150 "$tar" "shards:$scratch/of-tar"
grep -q 'not of this packing' "$scratch/err" || fail "a foreign shard is not refused"
rm "$scratch/of-tar/other.stk"

# Shards of shards, and every codec.
ends 0 --verify --shard-samples 150 "shards:$scratch/of-tar" "shards:$scratch/again"
same of-tar again
for codec in raw lz4 zstd; do
    ends 0 --verify --codec $codec "shards:$scratch/of-tar" "shards:$scratch/$codec"
    ends 0 --verify --codec raw "shards:$scratch/$codec" "shards:$scratch/$codec-raw"
    same raw $codec-raw
done

# Blocks of both codecs, with samples of several parts.
for codec in keep lz4; do
    ends 0 --verify --codec $codec --block 64K --shard-samples 100 "shards:$scratch/of-tar" "shards:$scratch/blocks-$codec"
done

# The same batches from each, by hash: shuffled, packed and padded, with any number of workers, on the CPU and on a
# stand-in for a GPU.
for form in packed padded; do
    "$hashes" "$tar" $form 0 cpu >"$scratch/due" || fail "no batches of the archive"
    [ "$(wc -l <"$scratch/due")" -eq 20 ] || fail "not 20 batches, $form"
    for source in "$tar" "$folders" "shards:$scratch/of-tar" "shards:$scratch/zstd" "shards:$scratch/blocks-keep" \
        "shards:$scratch/blocks-lz4"; do
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

# Into archives and folders, with keys and labels, and from there into all forms: every data set has the same batches.
# spec: the line of the report that opens the target.
spec() {
    sed -n 's/^spec //p' "$scratch/out"
}
labeled="tar:$scratch/fields.tar?fields=png,mask.png,boxes.npy,caption.txt,cls,__key__"
"$hashes" "$labeled" packed 3 cpu >"$scratch/due"
# pack_same SOURCE TARGET OPTION...: it has the batches of the source; its spec is in $found.
pack_same() {
    local source=$1 target=$2
    shift 2
    ends 0 --verify "$@" "$source" "$target"
    grep -qx 'verified all fields' "$scratch/out" || fail "not verified: $target"
    found=$(spec)
    # Folders have the key last, and the label before it, as here.
    "$hashes" "$found" packed 3 cpu >"$scratch/found" || fail "no batches: $found"
    cmp -s "$scratch/due" "$scratch/found" || fail "other batches: $found"
}
for codec in keep png; do
    pack_same "$labeled" "tar:$scratch/$codec.tar" --codec $codec
    of_tar=$found
    pack_same "$labeled" "folder:$scratch/$codec-folder" --codec $codec --workers 1
    of_folder=$found
    pack_same "$of_folder" "tar:$scratch/$codec-again.tar" --codec $codec
    pack_same "$of_tar" "shards:$scratch/$codec-shards"
    pack_same "$found" "folder:$scratch/$codec-again" --codec $codec
    diff -r "$scratch/$codec-folder" "$scratch/$codec-again" || fail "other files"
done
cmp "$scratch/keep-folder/image/s0007.png" "$scratch/image/s0007.png" || fail "an image is not kept"
cmp "$scratch/keep-folder/boxes/s0006.npy" "$scratch/boxes/s0006.npy" || fail "NumPy writes other bytes"

# Images become JPEG files, masks do not; a name of over 100 bytes is kept.
ends 0 --verify --codec jpeg "$tar" "tar:$scratch/jpeg.tar"
grep -qx 'verified all fields but images' "$scratch/out" || fail "JPEG is not lossless"
tar tf "$scratch/jpeg.tar" >"$scratch/list"
grep -qx '0000000007.jpg' "$scratch/list" || fail "no JPEG file"
grep -qx '0000000007.mask.png' "$scratch/list" || fail "a mask is no PNG file"
mkdir -p "$scratch/long/image/a b" "$scratch/long/text/a b"
long="a b/$(printf 'k%.0s' {1..150})"
cp "$scratch/image/s0001.png" "$scratch/long/image/$long.png"
printf '\377 no text' >"$scratch/long/text/$long.md"
ends 0 --verify --codec keep "folder:image=$scratch/long/image,text=$scratch/long/text?key=1" "tar:$scratch/long.tar"
tar tf "$scratch/long.tar" >"$scratch/list"
grep -qx "$long.text.bin" "$scratch/list" || fail "a long name is not kept"

# Again: compared only. A foreign file, a lost one and another archive are refused.
ends 0 "$labeled" "tar:$scratch/png.tar"
grep -qx 'kept_samples 300' "$scratch/out" || fail "an archive is packed twice"
ends 0 "$labeled" "folder:$scratch/png-folder"
grep -qx 'kept_samples 300' "$scratch/out" || fail "a folder is packed twice"
touch "$scratch/png-folder/boxes/x.npy"
ends 1 "$labeled" "folder:$scratch/png-folder"
grep -q 'remove the others' "$scratch/err" || fail "a foreign file is not refused"
rm "$scratch/png-folder/boxes/x.npy" "$scratch/png-folder/boxes/s0003.npy"
ends 1 "$labeled" "folder:$scratch/png-folder"
grep -q 's0003.npy is missing' "$scratch/err" || fail "a lost file is not refused"
ends 1 --codec keep "$labeled" "tar:$scratch/png.tar"
grep -q 'differs from what would be packed' "$scratch/err" || fail "another archive is not refused"

# A field alone keeps its name in shards, compressed or not.
python3 - "$scratch/emb.npy" <<'END'
import sys
header = "{'descr': '|u1', 'fortran_order': False, 'shape': (64, 3)}".ljust(117) + "\n"
open(sys.argv[1], "wb").write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(range(192)))
END
alone="npy:emb=$scratch/emb.npy"
"$hashes" "$alone" padded 1 cpu >"$scratch/due"
for codec in raw zstd; do
    ends 0 --verify --codec $codec "$alone" "shards:$scratch/alone-$codec"
    "$hashes" "shards:$scratch/alone-$codec" padded 1 cpu >"$scratch/found" || fail "no batches of a field alone"
    cmp "$scratch/due" "$scratch/found" || fail "a field alone is another one in shards: $codec"
done
grep -q 'emb=' "$scratch/due" || fail "the field alone has no name"

# Refused.
ends 1 --codec keep "concat:($labeled)+($labeled)" "tar:$scratch/twice.tar"
grep -q 'sample 300: its key is that of another sample: "s0000"' "$scratch/err" || fail "a key twice is not refused"
ends 1 --codec keep "concat:($labeled)+($labeled)" "folder:$scratch/twice"
grep -q 'its key is not behind the one before' "$scratch/err" || fail "keys out of order are not refused"
mv "$scratch/long/image/$long.png" "$scratch/long/image/a.b.png"
mv "$scratch/long/text/$long.md" "$scratch/long/text/a.b.md"
ends 1 --codec keep "folder:image=$scratch/long/image,text=$scratch/long/text?key=1" "tar:$scratch/dots.tar"
grep -q 'its key has a dot' "$scratch/err" || fail "a key with a dot is not refused"
[ ! -e "$scratch/dots.tar" ] || fail "half an archive is left"
ends 1 "tar:$scratch/fields.tar?fields=png,left=mask.png" "folder:$scratch/left"
grep -q 'begins with mask or seg' "$scratch/err" || fail "a mask of another name is not refused"
ends 1 --shard-samples 150 --codec raw "$tar" "shards:$scratch/of-tar"
grep -q 'another packing' "$scratch/err" || fail "another packing is not refused"
verdict
