#!/bin/bash
# A database that another program empties while it is open: one line or a message on the screen, never a signal, and the
# terminal as before.
set -u
source=${IPUSCOPE_SOURCE_DIR:?}
. "$source/tests/support/view_terminal.sh"

cp "$work/run.db" "$work/whole.db"
start 100 30
view --follow --view timeline
see "device (sim)"
: >"$work/run.db"
for key in Right 1 3 6 7 Down Enter t s; do
	keys $key
	settle
done
keys Escape Q
sane 0 "emptied under the viewer"

# An export whose reader has taken the first byte is in the middle of the file.
for form in chrome speedscope folded html; do
	cp "$work/whole.db" "$work/run.db"
	{
		"$bin/ipu-report" "$work/run.db" export $form -o - 2>"$work/err"
		echo $? >"$work/code"
	} | {
		head -c 1 >/dev/null
		: >"$work/run.db"
		cat >/dev/null
	}
	case $(cat "$work/code") in
	0) ;; # had read all of it
	1 | 2) [ "$(wc -l <"$work/err")" -eq 1 ] && grep -F "run.db: " "$work/err" >/dev/null || fail "export $form: $(cat "$work/err")" ;;
	*) fail "export $form ends with $(cat "$work/code"): $(cat "$work/err")" ;;
	esac
done
[ $failures -eq 0 ]
