#!/bin/bash
# The viewer in a real terminal: tmux at 80x24 and 200x50, screens compared with golden text, and the
# terminal sane after every way out. `view_tmux.sh [SECONDS]`: how long random keys are pressed (3).
# UPDATE_GOLDEN=1 rewrites the saved screens.
set -u
source=${IPUSCOPE_SOURCE_DIR:?}
seconds=${1:-3}
golden=$source/tests/golden
. "$source/tests/support/view_terminal.sh"
. "$source/tests/support/view_steady.sh"

compare()
{
	local name=$1
	if [ -n "${UPDATE_GOLDEN:-}" ]; then
		settle
		screen | steady >"$golden/$name.txt"
	else
		becomes "$(cat "$golden/$name.txt")" steady || fail "$name differs from tests/golden/$name.txt"
	fi
}

# The screen after key $1 at size $2 is the one that test_view_screens compares.
as_saved()
{
	becomes "$(awk -v want="==== $1 on run" '/^====/ { on = $0 == want; next } on' \
		"$golden/view_screens_$2.txt" | steady)" steady ||
		fail "the screen of $1 at $2 is not as saved"
}

# --- every screen, at both sizes -----------------------------------------------------------------
for size in 80x24 200x50; do
	start "${size%x*}" "${size#*x}"
	view
	see "Pipeline bubble" || continue
	as_saved 1 $size
	keys 7
	see "device (sim)"
	as_saved 7 $size
	type_ "0g"
	see "cursor 0.0"
	type_ "++++]]]"
	see "F3 stage 0 forward"
	compare "view_timeline_zoomed_$size"
	type_ "}"
	see "idle: bubble"
	type_ "/update"
	keys Enter
	see "stage 0 weight update"
	keys 8
	see "Dense_128/kernel:0_grad"
	type_ "jj"
	compare "view_tensors_$size"
	keys 1
	see "At a glance"
	keys '?'
	see "The screen Summary"
	as_saved '?' $size
	keys q
	see "At a glance"
	keys q
	sane 0 "quit at $size"
done

# --- ASCII without colour --------------------------------------------------------------------------
start 80 24
type_ "export TERM=vt100"
keys Enter
view --ascii --color never --view timeline
see "device (sim)"
type_ "0g++++"
compare view_timeline_ascii
screen | LC_ALL=C grep '[^ -~]' >/dev/null && fail "--ascii shows other characters"
keys Q
sane 0 "quit on a vt100"

# --- sizes -------------------------------------------------------------------------------------------
start 80 24
view --view timeline
see "device (sim)"
"${tmux_[@]}" resize-window -t v -x 20 -y 5
see "too small"
[ "$(screen | grep -c .)" = 1 ] || fail "a small screen shows more than one line"
"${tmux_[@]}" resize-window -t v -x 100 -y 30
see "device (sim)"
for size in "40 10" "39 30" "150 9" "250 60" "1 1" "80 24"; do
	"${tmux_[@]}" resize-window -t v -x "${size% *}" -y "${size#* }"
	sleep 0.05
done
see "device (sim)"

# --- suspend and resume ------------------------------------------------------------------------------
keys C-z
see "Stopped"
[ "$("${tmux_[@]}" display -p -t v '#{alternate_on}')" = 0 ] || fail "suspended on the alternate screen"
type_ "clear; fg; echo ended \$?"
keys Enter
see "device (sim)"

# --- ways out ----------------------------------------------------------------------------------------
pid() { cat "$work/pid"; }
keys C-c
sane 0 "Ctrl-C"
for signal in TERM HUP; do
	view
	see "Pipeline bubble"
	kill -$signal "$(pid)"
	sane $((128 + $(kill -l $signal))) "SIG$signal"
done

# --- a database that cannot be shown -------------------------------------------------------------------
type_ "clear; '$bin/ipu-view' /etc/passwd; echo ended \$?"
keys Enter
see "ended 2"

# --- garbage -------------------------------------------------------------------------------------------
start 100 30
view
see "Pipeline bubble"
RANDOM=4711
end=$((SECONDS + seconds))
while [ $SECONDS -lt $end ]; do
	line=
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
		code=$((RANDOM % 126 + 1))
		# Not the keys that leave, suspend, write files or stop the terminal's output.
		case $code in 3 | 17 | 19 | 26 | 28 | 87 | 81 | 113) code=43 ;; esac
		line="$line$(printf ' %02x' $code)"
	done
	# shellcheck disable=SC2086
	"${tmux_[@]}" send-keys -t v -H $line
	"${tmux_[@]}" resize-window -t v -x $((RANDOM % 180 + 10)) -y $((RANDOM % 50 + 3))
	kill -0 "$(pid)" 2>/dev/null || { fail "random keys ended it"; break; }
done
"${tmux_[@]}" resize-window -t v -x 100 -y 30
settle
keys Escape
sleep 0.2
keys Escape
sleep 0.2
keys 7
see "whole run" # its lanes may be hidden
keys Q
sane 0 "random keys"

[ $failures = 0 ] && echo "all screens as they should be"
exit $((failures > 0))
