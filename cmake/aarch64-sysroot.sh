#!/usr/bin/env bash
# aarch64-sysroot.sh FOLDER - unpack Debian's arm64 libraries in FOLDER, for cmake/aarch64.cmake.
#
# apt resolves the packages with a state of its own beside FOLDER: nothing is installed here, no architecture is
# added to this system's, and root is not needed. A finished FOLDER is left as it is.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: aarch64-sysroot.sh FOLDER" >&2; exit 2; }
folder=$1
[ ! -e "$folder/complete" ] || exit 0

# What ./run build installs, for arm64.
packages="libc6-dev libgcc-12-dev libstdc++-12-dev liburing-dev libdeflate-dev libdnnl-dev libpng-dev libjpeg-dev
    libwebp-dev liblz4-dev libzstd-dev"
# Only headers are needed of these, not the packages that they depend on: Criterion's library does not start under
# qemu (tests/support/forked_criterion.c).
headers="libcriterion-dev"

mkdir -p "$folder"
folder=$(realpath "$folder")
state=$folder.apt
rm -rf "$folder" "$state"
mkdir -p "$folder/usr/lib" "$folder/usr/bin" "$state/lists/partial" "$state/cache/archives/partial"
: >"$state/status"
options=(-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User= -o Debug::NoLocking=1
    -o "Dir::State=$state" -o "Dir::State::status=$state/status" -o "Dir::State::lists=$state/lists"
    -o "Dir::Cache=$state/cache")

apt-get "${options[@]}" update
# shellcheck disable=SC2086  # one word per package
apt-get "${options[@]}" install -y --download-only --no-install-recommends $packages
# shellcheck disable=SC2086
(cd "$state/cache/archives" && apt-get "${options[@]}" download $headers)

# One /lib and one /bin, as on an installed system; not every package says so.
ln -s usr/lib usr/bin "$folder"
for archive in "$state"/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$archive" | tar -x --keep-directory-symlink -C "$folder"
done
# An absolute link would lead out of the folder.
find "$folder" -type l -lname '/*' | while read -r link; do
    ln -snf "$(realpath -m --relative-to="$(dirname "$link")" "$folder$(readlink "$link")")" "$link"
done
rm -rf "$state"
touch "$folder/complete"
