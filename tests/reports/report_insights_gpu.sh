#!/usr/bin/env bash
# Insights on GPUs: made recordings of one cause each, whose shares follow from how they are made; and what the viewer's first screen says
# of them.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
command -v sqlite3 >/dev/null || { echo "skipped: sqlite3 is absent"; exit 77; }
cd "$work"

# recorded NAME: imports NAME.db from lines of KIND NAME START DURATION STREAM CALL_START CALL_DURATION, times in us; KIND is kernel,
# gpu_memcpy or cpu (a span of the host, without what follows).
recorded() {
	awk 'BEGIN { printf "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"GPU\"}], \"traceEvents\": [" }
	function event(kind, name, pid, tid, start, length_, more) {
		printf "%s{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %s, \"tid\": %s, \"ts\": %s, \"dur\": %s, \"args\": {%s}}",
			events++ ? ",\n" : "", kind, name, pid, tid, start, length_, more
	}
	$1 == "cpu" { event("cpu_op", $2, 100, 100, $3, $4, ""); next }
	{
		event($1, $2, 0, $5, $3, $4, "\"device\": 0, \"stream\": " $5 ", \"correlation\": " NR)
		event("cuda_runtime", $1 == "kernel" ? "cudaLaunchKernel" : "cudaMemcpyAsync", 100, 100, $6, $7, "\"correlation\": " NR)
	}
	END { print "]}" }' >"$1.json"
	"$bin/ipu-report" import "$1.json" --force -o "$1.db" >said 2>&1 || fail "$1: $(cat said)"
}

# told NAME ID COLUMN: of the insight; nothing where it is not said.
told() {
	"$bin/ipu-report" "$1.db" insights --where "id = '$2'" --json >answer.json || fail "$1: insights"
	sqlite3 :memory: "SELECT json_extract(CAST(readfile('answer.json') AS TEXT), '\$.rows[0].$3')"
}

# number NAME ID WANTED: its share, to 1e-6.
number() {
	local is
	is=$(told "$1" "$2" share)
	awk -v is="$is" -v wanted="$3" 'BEGIN { exit !(is - wanted < 1e-6 && wanted - is < 1e-6) }' || fail "$1: $2: share $is, not $3"
}

# only NAME ID...: no other advice.
only() {
	local name=$1 found
	shift
	found=$("$bin/ipu-report" "$name.db" insights --where "severity = 'advice'" --csv --columns id | tr -d '\r' | tail -n +2 | sort | tr '\n' ' ')
	[ "$found" = "$(printf '%s\n' "$@" | sort | tr '\n' ' ' | sed 's/^ $//')" ] || fail "$name: advice $found, not $*"
}

# Ten kernels of 10 us, one each 100 us, each called when the one before is long over, by a call as long as the kernel and longer:
# 990 - 100 of 910 us are idle, that is from 0 to 910.
for ((i = 0; i < 10; i++)); do
	echo "kernel gemm $((1000 + 100 * i)) 10 7 $((980 + 100 * i)) 15"
done | recorded waits
only waits device_idle short_kernels
number waits device_idle "$(awk 'BEGIN { print 810 / 910 }')"
told waits device_idle sentence | grep '^GPU 0 is idle for 89.01 % .*; 100.00 % of the gaps .* not yet begun' >/dev/null || fail "waits: $(told waits device_idle sentence)"
told waits short_kernels sentence | grep '^100.00 % of 10 launches .*: 15 us a call, 10 us on the device' >/dev/null || fail "waits: $(told waits short_kernels sentence)"
[ "$(told waits hot_kernel subject)" = gemm ] || fail "waits: the kernel $(told waits hot_kernel subject)"
number waits hot_kernel 1
# Nothing is said of tracks, the critical path being known.
[ -z "$(told waits hot_span id)" ] || fail "waits: $(told waits hot_span sentence)"

# Means are those of the short ones: an eleventh kernel runs for 5 ms.
for ((i = 0; i < 10; i++)); do
	echo "kernel gemm $((1000 + 100 * i)) 10 7 $((980 + 100 * i)) 15"
done >eleven
echo "kernel long 20000 5000 7 19990 5" >>eleven
recorded eleven <eleven
told eleven short_kernels sentence | grep '^90.91 % of 11 launches .*: 15 us a call, 10 us on the device' >/dev/null ||
	fail "eleven: $(told eleven short_kernels sentence)"

# All were called before: the gaps are neither the host's nor a switch.
for ((i = 0; i < 10; i++)); do
	echo "kernel gemm $((1000 + 100 * i)) 10 7 $((100 + 5 * i)) 5"
done | recorded others
only others device_idle
told others device_idle sentence | grep '100.00 % of the gaps .* though the host had already called' >/dev/null || fail "others: $(told others device_idle sentence)"

# Copies of 40 us, then kernels of 60, back to back; and the same on two streams at once, where nothing waits for a copy.
for ((i = 0; i < 10; i++)); do
	echo "gpu_memcpy HtoD $((1000 + 100 * i)) 40 7 $((100 + 5 * i)) 2"
	echo "kernel gemm $((1040 + 100 * i)) 60 7 $((102 + 5 * i)) 2"
done | recorded copies
only copies device_copies
number copies device_copies 0.4
for ((i = 0; i < 10; i++)); do
	echo "gpu_memcpy HtoD $((1000 + 100 * i)) 40 8 $((100 + 5 * i)) 2"
	echo "kernel gemm $((1000 + 100 * i)) 100 7 $((102 + 5 * i)) 2"
done | recorded beside
only beside ''

# Exchanges of 50 us of which 20 are beside a kernel: 30 of each 100.
for ((i = 0; i < 10; i++)); do
	echo "kernel gemm $((1000 + 100 * i)) 70 7 $((100 + 5 * i)) 2"
	echo "kernel ncclDevKernel_AllReduce $((1050 + 100 * i)) 50 8 $((102 + 5 * i)) 2"
done | recorded exchanges
only exchanges exposed_communication
number exchanges exposed_communication 0.3
told exchanges exposed_communication sentence | grep 'computes during 40.00 % of it' >/dev/null || fail "exchanges: $(told exchanges exposed_communication sentence)"

# A kernel's name may have thousands of letters: the rows are found by all of it, the sentence has its two ends.
long="gemm_$(printf 'float_%.0s' {1..200})end"
echo "kernel $long 1000 10 7 980 15" | recorded long
[ "$(told long hot_kernel keys)" = "name=$long" ] || fail "the long name: $(told long hot_kernel keys)"
told long hot_kernel sentence | grep '"gemm_float_[a-z_]*…[a-z_]*float_end" takes' >/dev/null || fail "the long name: $(told long hot_kernel sentence)"

# The first screen has the same figures.
"$bin/ipu-view" exchanges.db --view summary --text --width 120 >screen.txt
grep -q ' device  *GPU 0: compute 70.00 %, communication alone 30.00 %  *A Accelerators' screen.txt || fail "the screen: $(head -5 screen.txt)"
grep -q ' advice  *GPU 0 communicates for 500 us' screen.txt || fail "the screen: $(head -8 screen.txt)"

# A profiler's own span says nothing of the program: of the host alone, the call with most of the rest.
{
	echo "cpu outer 1000 900"
	echo "cpu inner 1010 800"
} | recorded host
sed -i 's/"traceEvents": \[/&{"ph": "X", "cat": "Trace", "name": "Profiler (0)", "pid": "Spans", "tid": "Profiler", "ts": 0, "dur": 5000},/' host.json
"$bin/ipu-report" import host.json --force -o host.db >said 2>&1 || fail "host: $(cat said)"
[ "$(told host hot_span subject)" = inner ] || fail "host: the span $(told host hot_span subject): $(told host hot_span sentence)"
echo ok
