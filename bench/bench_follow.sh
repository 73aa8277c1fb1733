#!/usr/bin/env bash
# What being watched costs: training that records everything it can, with and without `ipu-view --follow` (Timeline) attached in a
# terminal of 250x60, the order alternating; then a writer that does nothing but record (make_database). Prints, over all pairs, the
# median of the ratios (watched / alone) and the quarter of them on each side, for wall time (training: Engine::run in the report;
# make_database: the whole) and for the writer's own processor time, which others on the machine disturb less; and what the viewer
# itself took of the processors. A pair says something where each of its runs takes 3 s or more: choose KEY VALUE so (the means are
# printed); make_database is given so much.
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
TIMEFORMAT='%R %U %S'
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
log, began = 0, time.monotonic()
until = began + 300
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
print("%.3f %.1f %.3f" % (usage.ru_utime + usage.ru_stime, log / 1e6, time.monotonic() - began), file=open("watched", "a"))
PYTHON
}

# timed COMMAND...: the seconds of the processors it takes, to the file `cpu`; and of the clock, to `wall`.
timed() {
	{ time "$@" >/dev/null 2>said || touch failed; } 2>times.txt
	if [ -e failed ]; then
		cat said >&2
		exit 1
	fi
	awk '{ print $2 + $3 >"cpu"; print $1 >"wall" }' times.txt
}

trained() {
	timed "$bin/ipu-train" "$run" --quiet --evaluate null "${more[@]}"
	sqlite3 -readonly report/*/profile.db "SELECT sum(dur_ns) / 1e9 FROM executions WHERE mode = 'train'" >wall
}

spans=2000000
recorded() {
	timed "$bin/make_database" big.db --spans "$spans"
}

# once WHAT PATTERN: seconds of WHAT by the clock and of the processors; PATTERN: of the database to watch, "": nobody does.
once() {
	rm -rf report big.db* ended
	[ -z "$2" ] || watch "$2" &
	"$1"
	touch ended
	wait
	echo "$(cat wall) $(cat cpu)"
}

# of NAME WITH WITHOUT: the two columns of `pairs` as a median ratio, its quartiles, and means.
of() {
	awk -v a="$2" -v b="$3" '{ print $a / $b, $a, $b }' pairs | sort -n | awk -v name="$1" '
		function at(share,   place, low) {
			place = 1 + (NR - 1) * share
			low = int(place)
			return r[low] + (low < NR ? (place - low) * (r[low + 1] - r[low]) : 0)
		}
		{ r[NR] = $1; with += $2; without += $3 }
		END { printf "%-28s median of %d ratios %.4f (half of them %.4f to %.4f, all %.4f to %.4f), means %.3f s watched, %.3f s alone\n",
			name, NR, at(0.5), at(0.25), at(0.75), r[1], r[NR], with / NR, without / NR }'
}

compare() {
	local name=$1 what=$2 pattern=$3 i with without
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
	of "$name, wall" 1 3
	of "$name, its processors" 2 4
	awk '{ cpu += $1; most = $2 > most ? $2 : most; time += $3 } END {
		printf "%-28s %.3f s of the processors per run, %.1f %% of one; greatest log %.1f MB\n",
			"  the viewer", cpu / NR, 100 * cpu / time, most }' watched
}

once trained "" >/dev/null # warm-up
compare training trained "report/*/profile.db"
read -r took _ < <(once recorded "")
spans=$(awk -v took="$took" -v spans="$spans" 'BEGIN { printf "%d", spans * 3.5 / took + 1 }')
compare make_database recorded big.db
