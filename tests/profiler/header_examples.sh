#!/usr/bin/env bash
# The example at the top of every public header compiles, in C and in C++: a line of a comment that a tab follows is a
# line of it.
set -uo pipefail
source=${IPUSCOPE_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for tool in cc c++; do
	command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done

headers=("$source"/*/ipuscope/*.h)
includes=()
for header in "${headers[@]}"; do
	includes+=("-I${header%/ipuscope/*}")
done

compiles() {
	cc -x c -std=c11 -Wall -Wextra -Wpedantic -Werror "${includes[@]}" -fsyntax-only "$1" &&
		c++ -x c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror "${includes[@]}" -fsyntax-only "$1"
}

failed=0
wrong() {
	echo "FAILED: $*" >&2
	failed=1
}

[ -f "${headers[0]}" ] || wrong "there is no public header under $source"
for header in "${headers[@]}"; do
	name=${header##*/}
	example=$work/${name%.h}.c
	sed -n '/^ \*\//q; s/^ \*\t//p; s/^ \*$//p' "$header" >"$example"
	grep -q "^#include <ipuscope/$name>" "$example" || wrong "$header has no example of its own"
	compiles "$example" || wrong "the example of $header does not compile"
	# A test that nothing fails tests nothing.
	sed 's/message, sizeof(message))/message)/' "$example" >"$work/broken.c"
	if compiles "$work/broken.c" 2>/dev/null; then wrong "the example of $header compiles with an argument less"; fi
done
exit $failed
