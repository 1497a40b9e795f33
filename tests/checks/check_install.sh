#!/usr/bin/env bash
# check_install.sh - an installed Stoker serves a project that knows nothing of this tree.
#
# usage: check_install.sh CC BUILD_DIR
# The shared library is the one in BUILD_DIR; the static one is built here without assertions: a variable
# used only in one would warn. Both are installed to a scratch
# prefix and used through find_package and through pkg-config; so are the examples, which are run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cc=$1
tree=$(cd "$2" && pwd)
build=$tree/check-install
mkdir -p "$build"
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

# quiet COMMAND...: show where it went wrong, if it does.
quiet() {
    "$@" >"$build/log" 2>&1 || { grep -A 20 -m 1 -E '^FAILED|rror' "$build/log" >&2; return 1; }
}

install_shared() {
    quiet cmake --install "$tree" --prefix "$prefix/shared"
}

# check_static_deps.sh uses the same tree, with the same flags, afterwards; pack.sh gives it its name.
install_static() {
    quiet cmake -S . -B "$build/pack" -G Ninja -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O0 -DNDEBUG" -DBUILD_SHARED_LIBS=OFF -DSTOKER_STATIC_DEPS=OFF -DSTOKER_OWN_DECODERS=OFF \
        -DSTOKER_WERROR=ON -DSTOKER_NVCC_KERNELS=OFF -DSTOKER_BUILD_TESTS=OFF -DSTOKER_BUILD_BENCH=OFF
    quiet cmake --build "$build/pack"
    quiet cmake --install "$build/pack" --prefix "$prefix/static"
}

# pack_sets KIND: a data set for each codec that the library was built with, by the installed packer.
pack_sets() {
    local codec
    mkdir -p "$prefix/sets-$1"
    sets=("synth:digits?count=1000")
    for codec in raw lz4 zstd png jpeg; do
        if "$prefix/$1/bin/stoker-pack" --quiet --codec $codec "${sets[0]}" "shards:$prefix/sets-$1/$codec" \
            2>"$build/log"; then
            sets+=("shards:$prefix/sets-$1/$codec")
        else
            grep -q 'was built without' "$build/log" || { cat "$build/log" >&2; return 1; }
        fi
    done
}

consume_by_cmake() {
    local kind=$1
    rm -rf "$build/consumer-$kind"
    quiet cmake -S tests/install -B "$build/consumer-$kind" -G Ninja -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_PREFIX_PATH="$prefix/$kind" -DSTOKER_WANTED="$version"
    quiet cmake --build "$build/consumer-$kind"
    "$build/consumer-$kind/consumer" "${sets[@]}" | tee "$build/$kind.hashes"
    "$build/consumer-$kind/trainer_consumer"
}

# Files for the examples to read.
write_samples() {
    mkdir "$prefix/samples"
    python3 tests/checks/make_fields.py "$prefix/samples" 20
    seq -f %07.0f 0 999 >"$prefix/samples/lines"
    python3 - "$prefix/samples" <<'EOF'
import struct, sys
tokens = struct.pack("<5000H", *range(5000))
with open(sys.argv[1] + "/tokens.bin", "wb") as file: # llm.c's
    file.write(struct.pack("<256i", 20240520, 1, 5000, *[0] * 253) + tokens)
with open(sys.argv[1] + "/encrypted", "wb") as file:
    file.write(bytes(byte ^ 0x5A for byte in tokens))
EOF
}

# prints WANTED EXAMPLE [ARGUMENT...], in the folder of samples.
prints() {
    local wanted=$1 got
    shift
    got=$(cd "$prefix/samples" && "$examples/$1" "${@:2}")
    [ "$got" = "$wanted" ] || { printf 'check_install: %s prints:\n%s\nand not:\n%s\n' "$*" "$got" "$wanted" >&2; return 1; }
}

# Each id once, except for those that make the ranks' shares equal.
run_ranks() {
    local rank pids=()
    for rank in 0 1; do
        RANK=$rank WORLD_SIZE=2 "$examples/ranks" >"$prefix/samples/rank$rank" &
        pids+=($!)
    done
    wait "${pids[0]}" && wait "${pids[1]}" && [ "$(wc -l <"$prefix/samples/rank0")" -eq 501 ] && [ "$(wc -l <"$prefix/samples/rank1")" -eq 501 ] &&
        cmp <(grep -hv again "$prefix/samples"/rank[01] | sort -n) <(seq 0 1000)
}

# The second run continues the first: each step once, other windows, each target after its input.
run_tokens() {
    "$examples/tokens" "$prefix/samples/tokens.bin" >"$prefix/samples/steps"
    cmp <(awk '$2 % 64 == 0 && $4 == $2 + 1 && !seen[$2]++ { print $1 }' "$prefix/samples/steps") <(seq -f %.0f: 0 9)
}

run_examples() {
    examples=$build/examples-$1
    rm -rf "$examples"
    quiet cmake -S examples -B "$examples" -G Ninja -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER=g++ \
        -DCMAKE_PREFIX_PATH="$prefix/$1" -DCMAKE_C_FLAGS=-Werror -DCMAKE_CXX_FLAGS=-Werror
    quiet cmake --build "$examples"
    prints "$(printf 'epoch %d: 1000 samples\n' 0 1 2)" epochs
    prints "$(printf 'epoch %d: labels 4485\n' 0 1 2; printf 'kept: 64 of epoch %d\n' 0 1 2)" epochs_cpp
    prints "20 pairs, pixels of each class: 200 193 187 186 194" segmentation image mask
    prints "sum 499500: the epoch is over" own_dataset lines
    prints "3 samples, sum 1217: success" own_codec
    prints "sum 12497500: the epoch is over" own_reader encrypted
    run_tokens
    run_ranks || { echo "check_install: the ranks do not share an epoch" >&2; return 1; }
    if "$examples/epochs_cpp" mnist:nowhere 2>"$build/log" || ! grep -q '^STOKER_ENOENT: nowhere/train-images' "$build/log"; then
        echo "check_install: stoker::error is lost: $(cat "$build/log")" >&2
        return 1
    fi
}

consume_by_pkg_config() {
    local kind=$1 libdir
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix/$kind" -name stoker.pc)")
    export PKG_CONFIG_PATH
    [ "$(pkg-config --modversion stoker)" = "$version" ]
    libdir=$(pkg-config --variable=libdir stoker)
    # shellcheck disable=SC2046  # flags are words
    "$cc" -std=c11 tests/install/main.c -o "$prefix/consumer" \
        $(pkg-config --cflags --libs stoker)
    LD_LIBRARY_PATH=$libdir "$prefix/consumer" "${sets[@]}"
    # shellcheck disable=SC2046
    "$cc" -std=c11 tests/install/trainer.c -o "$prefix/consumer" \
        $(pkg-config --cflags --libs stoker-trainer)
    LD_LIBRARY_PATH=$libdir "$prefix/consumer"
}

# A parent project keeps its settings, and installs what is its own.
serve_subproject() {
    rm -rf "$build/parent"
    quiet cmake -S tests/install/parent -B "$build/parent" -G Ninja -DCMAKE_C_COMPILER="$cc" -DSTOKER_TREE="$PWD"
    quiet cmake --build "$build/parent" --target parent
    "$build/parent/parent" "synth:digits?count=1000"
    quiet cmake --install "$build/parent" --prefix "$prefix/parent"
    [ "$(cd "$prefix/parent" && find . -type f)" = ./bin/parent ] || {
        echo "check_install: a parent project installs: $(cd "$prefix/parent" && find . -type f)" >&2
        exit 1
    }
}

version=$(sed -n 's/.*STOKER_VERSION_STRING "\(.*\)"/\1/p' loader/include/stoker/version.h)

write_samples
for kind in shared static; do
    install_$kind
    pack_sets $kind
    consume_by_cmake $kind
    consume_by_pkg_config $kind
    run_examples $kind
done

# The static one decodes by the libraries alone (-DSTOKER_OWN_DECODERS=OFF): our decoders are not in
# it, and it delivers the same bytes.
nm "$(find "$prefix/static" -name libstoker.a)" >"$build/static.symbols" 2>/dev/null
if grep -q ' stk_jpeg_huffman_begin$' "$build/static.symbols"; then
    echo "check_install: STOKER_OWN_DECODERS=OFF leaves our decoder of JPEG codes in the library" >&2
    exit 1
fi
grep -q '^png\.c\.o:' "$build/static.symbols"
if sed -n '/^png\.c\.o:/,/^$/p' "$build/static.symbols" | grep libdeflate; then
    echo "check_install: STOKER_OWN_DECODERS=OFF leaves our fast path of PNG files in the library" >&2
    exit 1
fi
cmp "$build/shared.hashes" "$build/static.hashes"

serve_subproject

# The documents that messages and headers name are there, and lead nowhere else than to what is installed.
tests/checks/check_links.sh "$prefix/shared/share/doc/stoker"
for file in share/doc/stoker/{LICENSE,README.md,docs/formats/README.md,docs/sweep.svg,trainer/programs/README.md} share/stoker/fetch-mnist.sh; do
    [ -s "$prefix/shared/$file" ] || { echo "check_install: $file is not installed" >&2; exit 1; }
done
[ -x "$prefix/shared/share/stoker/fetch-mnist.sh" ]

# Each program has its manual page and its completions.
for program in "$prefix/shared/bin/"*; do
    name=$(basename "$program")
    for file in man/man1/$name.1 bash-completion/completions/$name zsh/site-functions/_$name fish/vendor_completions.d/$name.fish; do
        [ -s "$prefix/shared/share/$file" ] || { echo "check_install: share/$file is not installed" >&2; exit 1; }
    done
done

if [ -x "$prefix/shared/bin/loaderbench" ]; then
    "$prefix/shared/bin/loaderbench" --version
fi

# Nothing installed may lead back to where it was built.
if grep -rlF --include='*.cmake' --include='*.pc' --include='*.h' --include='*.hpp' -e "$PWD" -e "$tree" \
    "$prefix/shared" "$prefix/static"; then
    echo "check_install: these files name the tree they were built from" >&2
    exit 1
fi
