#!/bin/bash
# The viewer on terminals of several types: with and without UTF-8 and colours, the mouse on request, and
# the terminal as before after every way out.
set -u
source=${IPUSCOPE_SOURCE_DIR:?}
. "$source/tests/support/view_terminal.sh"

# A shell whose programs find a terminal of the type $1, the locale $2 and, where it is 1, NO_COLOR.
shell_as()
{
	start 90 28
	type_ "export TERM=$1 LC_ALL=$2; unset NO_COLOR COLORFGBG; [ $3 = 1 ] && export NO_COLOR=1"
	keys Enter
}

# Escapes that set colours on the screen as it is.
coloured() { "${tmux_[@]}" capture-pane -e -p -t v | grep -cE $'\e\\[([0-9]+;)*(3[0-8]|4[0-8]|9[0-7])[;m]'; }

# --- types, locales, colours ---------------------------------------------------------------------
for term in xterm-256color xterm screen linux vt100; do
	if ! infocmp $term >/dev/null 2>&1; then
		echo "skipped: the terminal type $term is not installed"
		continue
	fi
	for locale in C.UTF-8 C; do
		for bare in 0 1; do
			shell_as $term $locale $bare
			view
			see "Pipeline bubble" || continue
			settle
			colours=$(coloured)
			[ $bare = 1 ] && [ "$colours" != 0 ] && fail "$term $locale: colours with NO_COLOR"
			[ $bare = 0 ] && [ $term != vt100 ] && [ "$colours" = 0 ] && fail "$term $locale: no colours"
			keys 7
			see "device (sim)"
			if [ $locale = C ]; then
				screen | LC_ALL=C grep '[^ -~]' >/dev/null && fail "$term: not only ASCII in the locale C"
			fi
			keys Q
			sane 0 "$term in $locale"
		done
	done
done

# --- themes: other colours, the same text ----------------------------------------------------------
for theme in dark light; do
	shell_as xterm-256color C.UTF-8 0
	view --theme $theme
	see "Pipeline bubble"
	if [ $theme = dark ]; then
		settle
		screen | sed '/own cost/d' >"$work/dark.txt"
	else
		becomes "$(cat "$work/dark.txt")" sed '/own cost/d' || fail "the themes differ in text"
	fi
	"${tmux_[@]}" capture-pane -e -p -t v >"$work/$theme.colours"
	keys Q
	sane 0 "theme $theme"
done
cmp -s "$work/dark.colours" "$work/light.colours" && fail "the themes have the same colours"

# --- the mouse ---------------------------------------------------------------------------------------
mouse() { "${tmux_[@]}" display -p -t v '#{mouse_any_flag}'; }
# Press and release the left button at the cell $1, $2 (from 1), as xterm reports it.
click() { type_ $'\e'"[<0;$1;$2M"$'\e'"[<0;$1;$2m"; }

# Click on the title of the screen whose key is $1.
click_title() { click $(($(screen | head -1 | awk -v key=" $1" '{ print index($0, key) }') + 1)) 1; }

shell_as xterm-256color C.UTF-8 0
view
see "Pipeline bubble"
[ "$(mouse)" = 0 ] || fail "the mouse is reported unasked"
keys Q
sane 0 "without the mouse"

view --mouse
see "Pipeline bubble"
[ "$(mouse)" = 1 ] || fail "no mouse though it was asked for"
click_title 7
see "device (sim)"
# Press on the first lane and let go further on; then turn the wheel, from the whole run to a part of it.
row=$(screen | grep -n 'Engine::run' | head -1 | cut -d: -f1)
part() { screen | grep 'whole run .*\[.*\]' >/dev/null; }
whole() { screen | grep 'whole run ' >/dev/null && ! part; }
moved() { ! screen | grep -F 'cursor 0.00 ms' >/dev/null; }
until_() {
	for ((i = 0; i < 600; i++)); do
		! "$@" || return 0
		sleep 0.1
	done
	fail "never: $1"
}
keys 0 g
until_ whole
see "cursor 0.00 ms"
type_ $'\e'"[<0;30;${row}M"
until_ moved
type_ $'\e'"[<0;50;${row}m"
see "from x to the cursor"
type_ $'\e'"[<64;50;${row}M"
until_ part
keys 0
keys C-z
see "Stopped"
[ "$(mouse)" = 0 ] || fail "the mouse is reported while suspended"
type_ "clear; fg; echo ended \$?"
keys Enter
see "device (sim)"
[ "$(mouse)" = 1 ] || fail "no mouse after resuming"
click_title 1
see "Pipeline bubble"
keys Q
sane 0 "with the mouse"
for signal in TERM HUP INT; do
	view --mouse
	see "Pipeline bubble"
	kill -$signal "$(cat "$work/pid")"
	code=$((128 + $(kill -l $signal)))
	[ $signal = INT ] && code=0
	sane $code "SIG$signal with the mouse"
done

# A crash gives the terminal back, too; sanitizers take such signals themselves.
if ! grep -q __asan_init "$bin/ipu-view"; then
	for signal in SEGV ABRT; do
		view --mouse
		see "Pipeline bubble"
		kill -$signal "$(cat "$work/pid")"
		sane $((128 + $(kill -l $signal))) "SIG$signal"
		[ "$(mouse)" = 0 ] || fail "the mouse is reported after SIG$signal"
	done
fi

# By the settings, and not by the command line.
mkdir -p "$XDG_CONFIG_HOME/ipuscope"
echo '{"mouse": true, "screen": "timeline"}' >"$XDG_CONFIG_HOME/ipuscope/view.json"
view
see "device (sim)"
[ "$(mouse)" = 1 ] || fail "the settings do not turn the mouse on"
keys Q
sane 0 "with settings"
view --no-mouse --view summary
see "Pipeline bubble"
[ "$(mouse)" = 0 ] || fail "--no-mouse does not go before the settings"
keys Q
sane 0 "--no-mouse"
echo '{"follow": true}' >"$XDG_CONFIG_HOME/ipuscope/view.json"
view
see "Pipeline bubble"
screen | grep following >/dev/null && fail "a run that is over is followed"
keys Q
sane 0 "with settings that follow a run that is over"
rm -f "$work/run.db"
"$bin/make_database" "$work/run.db" --spans 10k --end hold >"$work/said" 2>&1 &
writer=$!
for _ in $(seq 600); do
	"$bin/ipu-report" "$work/run.db" summary 2>/dev/null | grep steps >/dev/null && break
	sleep 0.1
done
view
see "recording, following"
keys Q
sane 0 "with settings that follow"
view --no-follow
see "● recording"
screen | grep following >/dev/null && fail "--no-follow does not go before the settings"
keys Q
sane 0 "--no-follow"
kill -9 $writer
wait $writer 2>/dev/null
rm -r "$XDG_CONFIG_HOME/ipuscope"

[ $failures = 0 ] && echo "all terminals as they should be"
exit $((failures > 0))
