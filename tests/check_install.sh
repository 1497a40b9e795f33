#!/usr/bin/env bash
# check_install.sh - an installed Stoker serves a project that knows nothing of this tree.
#
# usage: check_install.sh CC BUILD_DIR
# Shared and static, each built as Release (so without assertions: a variable used only in one
# would warn), installed to a scratch prefix, and used through find_package and pkg-config.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cc=$1
mkdir -p "$2/check-install"
build=$(cd "$2/check-install" && pwd)
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

# quiet COMMAND...: show the output only if the command fails.
quiet() {
    "$@" >"$build/log" 2>&1 || { cat "$build/log" >&2; return 1; }
}

install_library() {
    local kind=$1 shared=$2
    quiet cmake -S . -B "$build/$kind" -G Ninja -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS="$shared" -DSTOKER_WERROR=ON \
        -DSTOKER_BUILD_TESTS=OFF -DSTOKER_BUILD_BENCH=OFF -DCMAKE_INSTALL_PREFIX="$prefix/$kind" \
        -DCMAKE_INSTALL_LIBDIR=lib
    quiet cmake --build "$build/$kind"
    quiet cmake --install "$build/$kind"
}

consume_by_cmake() {
    local kind=$1
    rm -rf "$build/consumer-$kind"
    quiet cmake -S tests/install -B "$build/consumer-$kind" -G Ninja -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_PREFIX_PATH="$prefix/$kind" -DSTOKER_WANTED="$version"
    quiet cmake --build "$build/consumer-$kind"
    "$build/consumer-$kind/consumer"
}

consume_by_pkg_config() {
    local kind=$1 static=()
    [ "$kind" = shared ] || static=(--static)
    export PKG_CONFIG_PATH=$prefix/$kind/lib/pkgconfig
    [ "$(pkg-config --modversion stoker)" = "$version" ]
    # shellcheck disable=SC2046  # flags are words
    "$cc" -std=c11 tests/install/main.c -o "$prefix/consumer" \
        $(pkg-config "${static[@]}" --cflags --libs stoker)
    LD_LIBRARY_PATH=$prefix/$kind/lib "$prefix/consumer"
}

version=$(sed -n 's/.*STOKER_VERSION_STRING "\(.*\)"/\1/p' loader/include/stoker/version.h)

for kind in shared static; do
    if [ $kind = shared ]; then install_library $kind ON; else install_library $kind OFF; fi
    consume_by_cmake $kind
    consume_by_pkg_config $kind
done

# Nothing installed may lead back to where it was built.
if grep -rlF "$PWD" "$prefix/shared/lib/cmake" "$prefix/shared/lib/pkgconfig" "$prefix/shared/include"; then
    echo "check_install: these files name the source tree" >&2
    exit 1
fi
