#!/usr/bin/env bash
# check_recipes.sh - the recipes of docs/recipes work: each patch is small, applies to this tree by itself, and with all of them
# the tests that their pages name are built and pass.
#
# usage: check_recipes.sh CC BUILD_DIR
# All five are built together, in a copy of the tree in BUILD_DIR, without optimization: most files are the same in each.
# A page has the targets behind `ninja -C build/release`, and the tests behind `ctest ... -R`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/checks/scratch.sh
command -v git >/dev/null || exit 77

cc=$1
build=$(cd "$2" && pwd)/check-recipes
tree=$build/tree
most_files=10 most_lines=60

# touched PATCH: the files that it changes outside of the folders that it adds.
touched() {
    local file
    sed -nE 's,^(\+\+\+ b|--- a)/,,p' "$1" | sort -u | while read -r file; do
        [ ! -d "$(dirname "$file")" ] || echo "$file"
    done
}

for i in {1..11}; do printf -- '--- a/tests/x%d.c\n+++ b/tests/x%d.c\n' "$i" "$i"; done >"$scratch/large.patch"
printf -- '--- /dev/null\n+++ b/tests/new/x.c\n' >>"$scratch/large.patch"
[ "$(touched "$scratch/large.patch" | wc -l)" -eq 11 ] || fail "the self-test counts $(touched "$scratch/large.patch" | wc -l) files, not 11"

# A repository of its own, or git would apply nothing in a folder that the one around it ignores.
rm -rf "$build"
mkdir -p "$tree"
tests/checks/sources.sh >"$scratch/files"
tar -cf - -T "$scratch/files" | tar -xf - -C "$tree"
git -C "$tree" init -q

recipes=(docs/recipes/*.patch)
[ ${#recipes[@]} -eq 5 ] || fail "${#recipes[@]} recipes, not 5"
for patch in "${recipes[@]}"; do
    page=${patch%.patch}.md
    files=$(touched "$patch" | wc -l)
    [ "$files" -le $most_files ] || fail "$patch changes $files files outside of the folders that it adds: at most $most_files"
    [ "$(wc -l <"$page")" -le $most_lines ] || fail "$page has more than $most_lines lines"
    git -C "$tree" apply --check "$PWD/$patch" || fail "$patch does not apply: make it again from this tree"
done
[ "$failures" -eq 0 ] || exit 1
for patch in "${recipes[@]}"; do
    git -C "$tree" apply "$PWD/$patch" || fail "$patch does not apply after those before it"
done

# quiet COMMAND...: show where it went wrong, if it does.
quiet() {
    "$@" >"$build/log" 2>&1 || { grep -A 20 -m 1 -E '^FAILED|rror' "$build/log" >&2; exit 1; }
}
quiet cmake -S "$tree" -B "$build/made" -G Ninja -DCMAKE_C_COMPILER="$cc" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O0" \
    -DSTOKER_WERROR=ON -DSTOKER_BUILD_TESTS=ON -DSTOKER_BUILD_BENCH=OFF -DSTOKER_NVCC_KERNELS=OFF -DSTOKER_CUDNN=OFF -DSTOKER_MPI=OFF \
    -DSTOKER_DNNL=OFF

known=$(ninja -C "$build/made" -t targets all | sed -n 's/: phony$//p')
for patch in "${recipes[@]}"; do
    page=${patch%.patch}.md
    read -ra targets < <(sed -n 's,.* ninja -C build/release ,,p' "$page")
    tests=$(sed -nE "s/^ +ctest .* -R '(.*)'$/\1/p" "$page")
    if ! grep -qxF "${targets[0]:-none}" <<<"$known"; then
        [[ ${targets[0]:-} == unit_kernels_source_* ]] && grep -q '^STOKER_CUDA_INCLUDE:.*NOTFOUND$' "$build/made/CMakeCache.txt" ||
            fail "$page: there is no target ${targets[0]:-of ninja}"
        continue
    fi
    quiet cmake --build "$build/made" --target "${targets[@]}"
    ran=$(ctest --test-dir "$build/made" -R "$tests" --no-tests=error --output-on-failure 2>&1) ||
        fail "$page: $(tail -n 40 <<<"$ran")"
    grep 'tests passed' <<<"$ran" | sed "s,^,$page: ,"
done
verdict
