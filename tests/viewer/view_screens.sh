#!/usr/bin/env bash
# Every screen as it was saved, at four sizes, each on the recording that has most to show there, without a
# terminal (view_tmux.sh and view_matrix.sh compare with terminals). UPDATE_GOLDEN=1 rewrites what is saved.
set -euo pipefail
make=${IPUSCOPE_VIEW_MAKE:-./view_make} play=${IPUSCOPE_VIEW_PLAY:-./view_play}
golden=${IPUSCOPE_SOURCE_DIR:?}/tests/golden
. "$IPUSCOPE_SOURCE_DIR/tests/support/view_steady.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8 XDG_STATE_HOME=$work/state
if ! locale -a 2>/dev/null | grep -iE '^c\.utf-?8$' >/dev/null; then
	echo "skipped: there is no locale C.UTF-8"
	exit 77
fi
for topic in device gpu liveness memory metrics model ranks tensors; do
	"$make" "$work/$topic.db" $topic
done
"$make" "$work/run.db"

# A recording and keys.
screens=(
	'run 1' 'run 2' 'memory 3' 'liveness 4' 'model 5E' 'model 6' 'run 7' 'device 7b' 'tensors 8' 'metrics 9'
	'tensors H' 'ranks X' 'gpu A' 'run :' 'run ?'
)
# Other ways to look, at the smaller size.
ways=(
	'memory 3v' 'memory 3vv' 'memory 3vvv' 'memory 3b' 'liveness 4v' 'model 6b' 'model 6v' 'run 7v' 'run 7vv'
	'device 7vvv' 'device 7i' 'run 7<Enter>' 'run 7o' 'tensors 8v' 'tensors 8vv' 'tensors 8<Enter>'
	'ranks Xsv' 'ranks Xvvb' 'metrics 9<Enter>' 'tensors Hv' 'tensors HV' 'run 1y'
	'gpu Ab' 'gpu Av' 'gpu Avb' 'gpu Avv' 'gpu Avvv' 'gpu Avvvv' 'gpu Avvvvv' 'gpu Avvvvvv' 'gpu 1' 'gpu 7' 'gpu 7b'
)

failed=0
for size in 40x12 80x24 132x43 200x50; do
	name=view_screens_$size.txt
	shown=("${screens[@]}")
	[ $size = 80x24 ] && shown+=("${ways[@]}")
	for screen in "${shown[@]}"; do
		read -r recording keys <<<"$screen"
		echo "==== $keys on $recording"
		"$play" $size "$keys" "$work/$recording.db" | steady
	done >"$work/$name"
	if [ -n "${UPDATE_GOLDEN:-}" ]; then
		cp "$work/$name" "$golden/$name"
	elif ! diff -u "$golden/$name" "$work/$name"; then
		echo "FAILED: screens at $size are others than in tests/golden/$name"
		failed=1
	fi
done
exit $failed
