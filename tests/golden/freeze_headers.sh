#!/usr/bin/env bash
# freeze_headers.sh - keep a copy of all public headers as of a released version: golden/headers-VERSION.
#
# usage: freeze_headers.sh VERSION    for example 1.0
# check.frozen_headers holds every later version against it, so a copy is made once and never changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=${1:?usage: freeze_headers.sh VERSION}
to=tests/golden/headers-$version/stoker
current=$(sed -nE 's/^#define STOKER_VERSION_STRING "([0-9]+\.[0-9]+)\..*/\1/p' loader/include/stoker/version.h)
[ "$version" = "$current" ] || { echo "freeze_headers: stoker/version.h is $current" >&2; exit 1; }
[ ! -e "$to" ] || { echo "freeze_headers: $to exists: what is released does not change" >&2; exit 1; }
mkdir -p "$to"
cp loader/include/stoker/*.h trainer/include/stoker/*.h "$to"
echo "$to: $(find "$to" -name '*.h' | wc -l) headers"
