#!/usr/bin/env bash
# What being watched costs: training that records everything it can, with and without `ipu-view --follow` (Timeline) attached in a
# terminal of 250x60, the order alternating; then a writer that does nothing but record (make_database). Prints the median ratio of
# training times (Engine::run in the report; make_database: the whole), and what the viewer itself took of the processors.
# Usage: bench_follow.sh BIN_DIR RUN [PAIRS [KEY VALUE ...]]
set -euo pipefail

bin=$(cd "$1" && pwd)
run=$(realpath "$2")
pairs=${3:-11}
shift $(($# < 3 ? $# : 3))
more=("$@")
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
cd "$work"
export LC_ALL=C.UTF-8 TERM=xterm-256color
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true","autoReport.directory":"report"}'

# watch PATTERN: a viewer on the first file that matches, its output read and thrown away, until the run has ended; its processor
# seconds and the greatest log to the file `watched`.
watch() {
	exec python3 - "$bin/ipu-view" "$1" <<'PYTHON'
import fcntl, glob, os, pty, select, struct, subprocess, sys, termios, time

while not (found := glob.glob(sys.argv[2])):
    time.sleep(0.01)
# Before the first commit there is nothing to be opened.
while subprocess.run([sys.argv[1], found[0], "--text"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
    time.sleep(0.01)
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 250, 0, 0))
    os.execv(sys.argv[1], [sys.argv[1], "--follow", "--view", "timeline", found[0]])
log, until = 0, time.monotonic() + 300
while time.monotonic() < until and not os.path.exists("ended"):
    if select.select([terminal], [], [], 0.1)[0]:
        try:
            os.read(terminal, 65536)
        except OSError:
            break
    try:
        log = max(log, os.stat(found[0] + "-wal").st_size)
    except OSError:
        pass
os.write(terminal, b"Q")
try:
    while os.read(terminal, 65536): # it ends when the last picture has been taken
        pass
except OSError:
    pass
usage = os.wait4(pid, 0)[2]
print("%.3f %.1f" % (usage.ru_utime + usage.ru_stime, log / 1e6), file=open("watched", "a"))
PYTHON
}

trained() {
	"$bin/ipu-train" "$run" --quiet --evaluate null "${more[@]}" >/dev/null 2>&1
	sqlite3 -readonly report/*/profile.db "SELECT sum(dur_ns) / 1e9 FROM executions WHERE mode = 'train'"
}

recorded() {
	local from=$EPOCHREALTIME
	"$bin/make_database" big.db --spans 4M
	awk -v from="$from" -v to="$EPOCHREALTIME" 'BEGIN { print to - from }'
}

# once WHAT PATTERN: seconds of WHAT; PATTERN: of the database to watch, "": nobody does.
once() {
	rm -rf report big.db* ended
	[ -z "$2" ] || watch "$2" &
	"$1"
	touch ended
	wait
}

compare() {
	local name=$1 what=$2 pattern=$3 i with without
	once "$what" "" >/dev/null # warm-up
	rm -f watched
	for ((i = 0; i < pairs; i++)); do
		if ((i % 2)); then
			without=$(once "$what" "")
			with=$(once "$what" "$pattern")
		else
			with=$(once "$what" "$pattern")
			without=$(once "$what" "")
		fi
		echo "$with $without"
	done >pairs
	awk '{ print $1 / $2, $1, $2 }' pairs | sort -n | awk -v name="$name" '{ r[NR] = $1; with += $2; without += $3 } END {
		printf "%-16s median ratio of %d pairs %.4f (%.4f to %.4f), means %.3f s and %.3f s alone\n", name, NR,
		NR % 2 ? r[(NR + 1) / 2] : (r[NR / 2] + r[NR / 2 + 1]) / 2, r[1], r[NR], with / NR, without / NR }'
	awk '{ cpu += $1; most = $2 > most ? $2 : most } END { printf "%-16s %.3f s of the processors per run, greatest log %.1f MB\n",
		"  the viewer", cpu / NR, most }' watched
}

compare training trained "report/*/profile.db"
compare make_database recorded big.db
