#!/usr/bin/env bash
# What `ipu-report export chrome`, speedscope and folded cost: spans/s and the memory that is the program's own, beside two
# limits of the same run: a plain scan of span_rows, and writing as many bytes to the same disk. Least of REPEATS each; of
# the export also the processor's seconds, which other work on the machine changes less.
# Usage: bench_export.sh BUILD_DIR [SPANS [REPEATS]]
set -euo pipefail
export LC_ALL=C # a point in its numbers

build=$(cd "$1" && pwd)
spans=${2:-3000000}
repeats=${3:-3}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

. "$here/bench_seconds.sh"

"$build/tests/trace_make" run.db large "$spans" 8
spans=$(sqlite3 run.db 'SELECT count(*) FROM span_rows')
echo 0 >anon
scan=$(seconds sqlite3 run.db 'SELECT sum(start_ns + dur_ns + site_id + context_id) FROM span_rows')
for format in chrome speedscope folded; do
	echo 0 >anon
	took=$(seconds "$build/bin/ipu-report" run.db export $format -o out)
	memory=$(cat anon)
	bytes=$(stat -c %s out)
	echo 0 >anon
	# One block is 256 KiB, as our writes are.
	written=$(seconds dd if=/dev/zero of=out bs=262144 count=$((bytes / 262144 + 1)) conv=fsync)
	rm -f out
	cpu=$({ TIMEFORMAT='%U %S'; time "$build/bin/ipu-report" run.db export $format -o out --force >/dev/null; } 2>&1 | awk '{ print $1 + $2 }')
	awk -v c="$cpu" -v f=$format -v n="$spans" -v t="$took" -v s="$scan" -v w="$written" -v b="$bytes" -v m="$memory" 'BEGIN {
		printf "%-10s %6.2f M spans/s, %5.0f MB in %.2f s (processor %.2f s), %.1f MB of memory; scan %.2f s (ratio %.1f), write(2) %.2f s (ratio %.1f)\n",
			f, n / t / 1e6, b / 1e6, t, c, m / 1024, s, t / s, w, t / w }'
done
