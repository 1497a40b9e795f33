#!/usr/bin/env bash
# check_pages.sh - troff sets the programs' manual pages without a warning, and the shells complete their words.
#
# usage: check_pages.sh PAGES
# PAGES is the folder of what the build has the programs print, as it is installed below share.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/scratch.sh"
cd "$1"

# ---- manual pages
renderers=()
if command -v groff >/dev/null; then renderers+=("groff -man -Tutf8 -ww -z"); fi
if command -v man >/dev/null; then renderers+=("env MANWIDTH=80 man --warnings=w -l"); fi
for page in man/man1/*.1; do
    for renderer in ${renderers[@]+"${renderers[@]}"}; do
        # shellcheck disable=SC2086  # a command and its options
        $renderer "$page" 2>&1 >/dev/null | head -n 5 >"$scratch/warnings"
        [ ! -s "$scratch/warnings" ] || fail "$renderer $page: $(cat "$scratch/warnings")"
    done
done
if command -v man >/dev/null; then
    MANWIDTH=80 LC_ALL=C.UTF-8 man -l man/man1/stoker-mnist.1 | col -bx >"$scratch/text"
    grep -q -- '--optimizer NAME' "$scratch/text" || fail "the manual page lacks an option: $(head -n 40 "$scratch/text")"
    grep -q '^EXIT STATUS' "$scratch/text" || fail "the manual page has no exit status"
    if grep -q '‐' "$scratch/text"; then fail "the manual page has hyphens that no shell takes for '-'"; fi
fi

# ---- bash
# completes FUNCTION WANTED WORD...: the completions of the last word, with the options of compopt in front.
compopt() { asked+="$* "; }
completes() {
    local function=$1 wanted=$2 asked='' COMPREPLY=()
    shift 2
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    "$function" || true # it fails if nothing completes the word
    [ "$asked${COMPREPLY[*]-}" = "$wanted" ] || fail "$*: bash completes \"$asked${COMPREPLY[*]-}\", not \"$wanted\""
}
for file in bash-completion/completions/*; do
    # shellcheck disable=SC1090
    . "$file"
done
completes _stoker_pack '--quality --quiet' stoker-pack --qu
completes _stoker_pack 'lz4' stoker-pack --codec l
completes _stoker_pack 'png' stoker-pack --codec = pn # bash parts words at '='
completes _stoker_pack '' stoker-pack --level ''
completes _stoker_pack '-o default -o nospace shards:' stoker-pack synth:digits sh
completes _stoker_pack '-o default ' stoker-pack folder : /tm # the shell's own file names
completes _loaderbench '-o nospace on,off' loaderbench --pin-memory on,of
completes _loaderbench '-o default ' loaderbench -o ''
completes _stoker_mnist '-o dirnames ' stoker-mnist --log-dir ''
completes _stoker_mnist '-o default -o nospace mnist: mix:' stoker-mnist --data m
completes _stoker_mnist '' stoker-mnist ''
completes _stoker_housing '' stoker-housing --preset '' # of stoker-mnist only: a word without meaning
completes _stoker_housing 'man bash zsh fish' stoker-housing --help = ''

# ---- the other shells read their files
if command -v zsh >/dev/null; then
    for file in zsh/site-functions/*; do zsh -n "$file" || fail "zsh cannot read $file"; done
fi
if command -v fish >/dev/null; then
    for file in fish/vendor_completions.d/*; do fish --no-execute "$file" || fail "fish cannot read $file"; done
fi

verdict
if [ ${#renderers[@]} -eq 0 ]; then
    echo "check_pages: SKIPPED: no manual page was set: neither groff nor man is installed (Debian: groff-base)"
    exit 77
fi
