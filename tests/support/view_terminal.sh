# What scripts share that run ipu-view in a real terminal: a tmux of their own, the recording that
# view_make writes ($work/run.db), keys in, screens out. Sourced; the caller looks at $failures.
bin=${IPUSCOPE_BIN_DIR:?}
make=${IPUSCOPE_VIEW_MAKE:-./view_make}
work=$(mktemp -d)
report=$work/run.db # what view() shows
failures=0
tmux_=(tmux -L "ipuview$$" -f "${IPUSCOPE_SOURCE_DIR:?}/tests/support/tmux.conf")

if ! command -v tmux >/dev/null; then
	echo "skipped: tmux is not installed"
	exit 77
fi
if ! locale -a 2>/dev/null | grep -iE '^c\.utf-?8$' >/dev/null; then
	echo "skipped: there is no locale C.UTF-8"
	exit 77
fi
trap '"${tmux_[@]}" kill-server 2>/dev/null; rm -rf "$work"' EXIT
unset NO_COLOR TMUX
export LC_ALL=C.UTF-8 XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state
"${tmux_[@]}" start-server \; set -g exit-empty off
"$make" "$work/run.db" || { echo "view_make failed"; exit 1; }

fail()
{
	echo "FAILED: $*"
	failures=$((failures + 1))
	screen | sed 's/^/    | /'
}

screen() { "${tmux_[@]}" capture-pane -p -t v 2>/dev/null; }
keys() { "${tmux_[@]}" send-keys -t v "$@"; }
# Literal characters, one by one.
type_() { "${tmux_[@]}" send-keys -t v -l "$1"; }

# Wait until the screen holds $1: a minute, which no machine is too busy for.
see()
{
	for _ in $(seq 600); do
		screen | grep -F -- "$1" >/dev/null && return 0
		sleep 0.1
	done
	fail "never shown: $1"
	return 1
}

# Wait until the screen, as the command $2... makes it of its input, is $1.
becomes()
{
	local want=$1
	shift
	for _ in $(seq 600); do
		[ "$(screen | "$@")" = "$want" ] && return 0
		sleep 0.1
	done
	diff -u <(echo "$want") <(screen | "$@")
	return 1
}

# played N: the screen after the Nth key, which `view_play --each` wrote into $work/played.
played() { awk -v wanted="$1" 'BEGIN { RS = "\f" } NR == wanted' "$work/played"; }

# Until two looks in a row are the same: for a start, and where nothing is known to wait for.
settle()
{
	local before after
	before=$(screen)
	for _ in $(seq 50); do
		sleep 0.1
		after=$(screen)
		[ "$before" = "$after" ] && return
		before=$after
	done
}

# Wait until there is the file $1.
appears()
{
	for _ in $(seq 600); do
		[ -e "$1" ] && return 0
		sleep 0.1
	done
	fail "never made: $1"
	return 1
}

# A shell in a window of $1 x $2; its terminal's settings are noted.
start()
{
	"${tmux_[@]}" kill-session -t v 2>/dev/null
	"${tmux_[@]}" new-session -d -s v -x "$1" -y "$2" \
		"env -u NO_COLOR LC_ALL=C.UTF-8 PS1='ready> ' bash --norc --noprofile"
	see 'ready>' || return
	rm -f "$work/started"
	type_ "stty -g >'$work/stty.before'; clear; : >'$work/started'"
	keys Enter
	appears "$work/started"
}

# Run ipu-view with the arguments on $report, and say how it ended.
view()
{
	rm -f "$work/pid"
	type_ "clear; sh -c 'echo \$\$ >\"$work/pid\"; exec \"$bin/ipu-view\" $* \"$report\"'; echo ended \$?"
	keys Enter
}

# The terminal is as it was: settings, the normal screen, the cursor, no clicks reported.
sane()
{
	see "ended $1" || return
	rm -f "$work/sane"
	type_ "stty -g >'$work/stty.after'; : >'$work/sane'"
	keys Enter
	appears "$work/sane" || return
	cmp -s "$work/stty.before" "$work/stty.after" || fail "$2: stty differs"
	[ "$("${tmux_[@]}" display -p -t v '#{alternate_on} #{cursor_flag} #{mouse_any_flag}')" = "0 1 0" ] ||
		fail "$2: the alternate screen, no cursor or the mouse is left"
}
