#!/usr/bin/env bash
# dependencies.sh FOLDER - compile into FOLDER the libraries whose archives Debian builds without -fPIC, so that they can go
# into the wheel's libstoker: zlib, libpng, libjpeg-turbo and Zstandard.
#
# Debian's own sources, with its patches, so they are of the versions that the tests of this system ran with. apt keeps its
# state beside FOLDER: nothing is installed, and root is not needed. A finished FOLDER is left as it is.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: dependencies.sh FOLDER" >&2; exit 2; }
folder=$1
[ ! -e "$folder/complete" ] || exit 0

mkdir -p "$folder"
folder=$(realpath "$folder")
state=$folder.apt
rm -rf "$folder" "$state"
mkdir -p "$folder" "$state/lists/partial" "$state/cache/archives/partial" "$state/parts" "$state/source"

# The system's lists of packages, as lists of sources.
touch "$state/list"
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    case $list in
    *.list) [ ! -e "$list" ] || sed -nE 's/^deb /deb-src /p' "$list" >>"$state/list" ;;
    *.sources) sed -E 's/^Types:.*/Types: deb-src/' "$list" >"$state/parts/${list##*/}" ;;
    esac
done
options=(-o APT::Sandbox::User= -o Debug::NoLocking=1 -o "Dir::State=$state" -o "Dir::State::status=/var/lib/dpkg/status"
    -o "Dir::State::lists=$state/lists" -o "Dir::Cache=$state/cache" -o "Dir::Etc::sourcelist=$state/list"
    -o "Dir::Etc::sourceparts=$state/parts")
apt-get "${options[@]}" update || echo "some lists of sources are missing"
cd "$state/source"
# The newest version that the mirror has: its lists may be ahead of its files.
for package in zlib libpng1.6 libjpeg-turbo libzstd; do
    for version in $(apt-cache "${options[@]}" showsrc "$package" | sed -nE 's/^Version: //p' | sort -rV | uniq); do
        ! apt-get "${options[@]}" source "$package=$version" || continue 2
        echo "$package $version could not be fetched" >&2
    done
    exit 1
done

jobs=$(nproc)
export CFLAGS="-O3 -fPIC -fvisibility=hidden" PKG_CONFIG_PATH=$folder/lib/pkgconfig

cd "$state"/source/zlib-*/
./configure --static --prefix="$folder"
make -j "$jobs" libz.a
make install

cd "$state"/source/libpng*/
CPPFLAGS="-I$folder/include" LDFLAGS="-L$folder/lib" ./configure --disable-shared --enable-static --with-pic --prefix="$folder"
make -j "$jobs" libpng16.la
make install-libLTLIBRARIES install-pkgincludeHEADERS install-nodist_pkgincludeHEADERS install-pkgconfigDATA
make install-data-hook install-exec-hook || true

cd "$state"/source/libjpeg-turbo-*/
cmake -S . -B made -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$folder" -DCMAKE_INSTALL_LIBDIR="$folder/lib" \
    -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DWITH_JPEG8=OFF -DREQUIRE_SIMD=ON
cmake --build made --target jpeg-static -j "$jobs"
cp made/libjpeg.a "$folder/lib"
cp jconfig.h jpeglib.h jmorecfg.h jerror.h "$folder/include" 2>/dev/null || cp made/jconfig.h jpeglib.h jmorecfg.h jerror.h "$folder/include"
cp made/pkgscripts/libjpeg.pc "$folder/lib/pkgconfig"

cd "$state"/source/libzstd-*/lib
make -j "$jobs" PREFIX="$folder" LIBDIR="$folder/lib" install-static install-includes install-pc

(cd "$state/source" && printf 'compiled from Debian source %s\n' *.dsc) >"$folder/sources.txt"
rm -rf "$state"
touch "$folder/complete"
