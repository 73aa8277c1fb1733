#!/usr/bin/env bash
# The example at the top of every public header compiles: of a C header in C and C++, of a C++ header as C++11 and
# C++17. A line of a comment that a tab follows is a line of it.
set -uo pipefail
source=${IPUSCOPE_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for tool in cc c++; do
	command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done

headers=("$source"/*/ipuscope/*.h "$source"/*/ipuscope/*.hpp)
includes=()
for header in "${headers[@]}"; do
	includes+=("-I${header%/ipuscope/*}")
done

strict=(-Wall -Wextra -Wpedantic -Werror "${includes[@]}" -fsyntax-only)
compiles() {
	case $1 in
	*.c) cc -x c -std=c11 "${strict[@]}" "$1" && c++ -x c++ -std=c++11 "${strict[@]}" "$1" ;;
	*) c++ -x c++ -std=c++11 "${strict[@]}" "$1" && c++ -x c++ -std=c++17 "${strict[@]}" "$1" ;;
	esac
}

failed=0
wrong() {
	echo "FAILED: $*" >&2
	failed=1
}

[ -f "${headers[0]}" ] || wrong "there is no public header under $source"
for header in "${headers[@]}"; do
	name=${header##*/}
	case $name in
	*.hpp) example=$work/${name%.hpp}.cpp break='s/"run.db")/"run.db", 1, 2)/' ;;
	*) example=$work/${name%.h}.c break='s/message, sizeof(message))/message)/' ;;
	esac
	sed -n '/^ \*\//q; s/^ \*\t//p; s/^ \*$//p' "$header" >"$example"
	grep -q "^#include <ipuscope/$name>" "$example" || wrong "$header has no example of its own"
	compiles "$example" || wrong "the example of $header does not compile"
	# A test that nothing fails tests nothing.
	sed "$break" "$example" >"$work/broken.${example##*.}"
	if compiles "$work/broken.${example##*.}" 2>/dev/null; then wrong "the example of $header compiles with arguments of another number"; fi
done
exit $failed
