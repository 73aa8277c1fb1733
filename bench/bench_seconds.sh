# Sourced by benchmarks of commands: seconds(), and the memory of the commands in the file `anon`. $repeats is set.

# seconds COMMAND...: the least of all repeats, and in `anon` the most memory (kB) of its own that any took.
seconds() {
	local least= from to own pid
	for ((i = 0; i < repeats; i++)); do
		rm -f out out.db
		from=$(date +%s%N)
		"$@" >/dev/null 2>&1 &
		pid=$!
		while own=$(awk '/^RssAnon/ { print $2 }' /proc/$pid/status 2>/dev/null) && [ -n "$own" ]; do
			[ "$own" -le "$(cat anon)" ] || echo "$own" >anon
			sleep 0.05
		done
		wait $pid
		to=$(date +%s%N)
		[ -n "$least" ] && [ "$least" -le $((to - from)) ] || least=$((to - from))
	done
	awk -v ns="$least" 'BEGIN { printf "%.3f\n", ns / 1e9 }'
}
