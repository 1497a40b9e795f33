#!/usr/bin/env bash
# check_python.sh - the Python package installs by pip, is complete, and passes its tests.
#
# The package is linked to the libstoker.so of this build, so only the module is compiled. `./run setup test` makes the virtual
# environment with NumPy, JAX, pytest and the build backend. STOKER_PYTHON names a Python with more, such as PyTorch.
#
# usage: check_python.sh LIBSTOKER.SO BUILD_DIR [PYTEST_OPTION...]        77 = there is no such environment
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

library=$(realpath "$1")
build=$(cd "$2" && pwd)/check-python
shift 2
python=${STOKER_PYTHON:-$PWD/build/python-env/bin/python}
if ! "$python" -c 'import pytest, numpy, scikit_build_core' 2>/dev/null; then
    python=$PWD/build/python-env/bin/python
fi
if ! "$python" -c 'import pytest, numpy, scikit_build_core' 2>/dev/null; then
    echo "SKIPPED: no virtual environment in build/python-env; ./run setup test makes it (it needs the package index)"
    exit 77
fi

mkdir -p "$build"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# pip copies nothing of the tree: what scikit-build-core leaves out is missing here.
if ! "$python" -m pip install --quiet --no-index --no-deps --no-build-isolation --no-compile --target "$scratch/site" \
    --config-settings="cmake.define.STOKER_PYTHON_LIBSTOKER=$library" --config-settings="build-dir=$build/tree" \
    loader/python >"$build/log" 2>&1; then
    grep -vE '^ *$' "$build/log" | tail -n 40 >&2
    echo "check_python: pip cannot install loader/python" >&2
    exit 1
fi

site=$scratch/site
for file in loader/python/stoker/*; do
    case $file in *.py | *.pyi | *py.typed) [ -e "$site/stoker/${file##*/}" ] || { echo "check_python: $file is not installed" >&2; exit 1; } ;; esac
done
grep -q '^License-File: LICENSE' "$site"/stoker-*.dist-info/METADATA || { echo "check_python: no license" >&2; exit 1; }

# Outside the tree, so that the installed package is what is tested.
tests=$PWD/loader/python/tests
cd "$scratch"
PYTHONPATH=$site PYTHONDONTWRITEBYTECODE=1 STOKER_PROGRAMS="${library%/loader/*}" \
    "$python" -m pytest -q -p no:cacheprovider -rs "$@" "$tests"
