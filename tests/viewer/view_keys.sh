#!/bin/bash
# Every key of the key table, pressed on every screen it is for, in a real terminal: the screen is the one that the
# same keys lead to without a terminal. `view_keys.sh [EVERY]`: compare after so many keys (40), before each Esc, and
# at the end of each screen.
set -u
. "${IPUSCOPE_SOURCE_DIR:?}/tests/support/view_terminal.sh"
play=${IPUSCOPE_VIEW_PLAY:-./view_play}
every=${1:-40}
total=0 compared=0

# tmux's name of the key that view_play calls $1.
tmux_key()
{
	case $1 in
	'<PgUp>') echo PPage ;;
	'<PgDn>') echo NPage ;;
	'<Shift-Left>') echo S-Left ;;
	'<Shift-Right>') echo S-Right ;;
	'<Shift-Tab>') echo BTab ;;
	'<Backspace>') echo BSpace ;;
	'<Esc>') echo Escape ;;
	'<Ctrl-'*) key=${1#<Ctrl-} && echo "C-$(echo "${key%>}" | tr '[:upper:]' '[:lower:]')" ;;
	'<<>') echo '<' ;;
	'<'*) key=${1#<} && echo "${key%>}" ;;
	*) echo "$1" ;;
	esac
}

same()
{
	compared=$((compared + 1))
	becomes "$(played $count)" sed 's/ *$//' || fail "after ${keys[*]:0:count} the screen is another"
}

press()
{
	# It would stop what a key before it has begun, on a busy machine alone.
	[ "$1" = '<Esc>' ] && same
	"${tmux_[@]}" send-keys -t v -- "$(tmux_key "$1" | sed 's/^;$/\\;/')"
	[ "$1" = '<Esc>' ] && sleep 0.05 # else it and the next key are one, as Alt is
	count=$((count + 1))
	[ $((count % every)) = 0 ] && same
}

for screen in 1:summary 2:insights 3:memory 4:liveness 5:programs 6:operations 7:timeline 8:tensors 9:metrics H:health X:communication A:accelerators P:whatif \
	::sql '?:help'; do
	"${tmux_[@]}" kill-session -t v 2>/dev/null
	"${tmux_[@]}" new-session -d -s v -x 80 -y 24 "TERM=xterm-256color exec '$bin/ipu-view' '$work/run.db'"
	see '? help' || break
	keys=("${screen%:*}")
	[ "$screen" = ::sql ] && keys+=('<Esc>')
	while IFS= read -r key; do
		case $key in
		# Those that leave, follow time or need a mouse.
		q | Q | '<F10>' | '<wheel '* | F | Z | '<F5>' | r | '<Tab>' | '<Shift-Tab>' | '?' | '<F1>') continue ;;
		esac
		keys+=("$key")
		case $key in
		# A prompt or a list is open.
		/ | '<F3>' | '\' | f | '<F4>' | o | m | "'" | y | W | '<Enter>') keys+=('<Esc>') ;;
		esac
	done < <("$play" --keys "${screen##*:}")
	(IFS= && "$play" --each --colours 256 80x24 "${keys[*]}" "$work/run.db") | sed 's/ *$//' >"$work/played"
	count=0
	for key in "${keys[@]}"; do
		press "$key"
	done
	total=$((total + count))
	same
done
echo "$total keys pressed, $compared screens compared"
exit $((failures > 0))
