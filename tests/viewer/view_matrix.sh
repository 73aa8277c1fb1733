#!/bin/bash
# Every screen in real terminals looks as it does without one: tmux at several sizes, as several types of
# terminal, with and without UTF-8 and colour, on reports of runs.
# `view_matrix.sh [--all] [REPORT ...]`: --all takes every combination (minutes), else two; without REPORT,
# the recording of view_make.
set -u
. "${IPUSCOPE_SOURCE_DIR:?}/tests/support/view_terminal.sh"
play=${IPUSCOPE_VIEW_PLAY:-./view_play}
screens=0

sizes="80x24 40x12" terms="xterm-256color vt100" both=
if [ "${1:-}" = --all ]; then
	sizes="40x12 80x24 132x43 250x60" terms="xterm-256color screen linux vt100" both=1
	shift
fi
reports=("$@")
[ ${#reports[@]} = 0 ] && reports=("$work/run.db")

# One viewer, all its screens: $1 report, $2 size, $3 TERM, $4 UTF-8 or C, $5 colour.
walk()
{
	local report=$1 size=$2 term=$3 locale=C color=$5 ascii=--ascii keys='123456789H?' pressed=0 want
	local colours=8
	[ "$4" = utf8 ] && locale=C.UTF-8 ascii=
	[ "$term" = xterm-256color ] && colours=256
	[ "$color" = never ] || [ "$term" = vt100 ] && colours=0
	"${tmux_[@]}" kill-session -t v 2>/dev/null
	"${tmux_[@]}" new-session -d -s v -x "${size%x*}" -y "${size#*x}" \
		"LC_ALL=$locale TERM=$term exec '$bin/ipu-view' --color $color '$report'"
	# shellcheck disable=SC2086
	LC_ALL=C.UTF-8 "$play" --each $ascii --colours $colours "$size" "$keys" "$report" | sed -e 's/ *$//' >"$work/played"
	while [ $pressed -lt ${#keys} ]; do
		"${tmux_[@]}" send-keys -t v -l "${keys:pressed:1}"
		pressed=$((pressed + 1)) screens=$((screens + 1))
		want=$(played $pressed)
		if ! becomes "$want" sed -e 's/ *$//' >"$work/differs"; then
			echo "FAILED: $report at $size, TERM=$term, $4, color $color, keys ${keys:0:pressed}:"
			head -20 "$work/differs"
			failures=$((failures + 1))
		fi
	done
	"${tmux_[@]}" send-keys -t v -l Q
}

for report in "${reports[@]}"; do
	for size in $sizes; do
		for term in $terms; do
			if [ -n "$both" ]; then
				for locale in utf8 C; do
					for color in always never; do
						walk "$report" "$size" "$term" "$locale" $color
					done
				done
			elif [ "$size $term" = "80x24 xterm-256color" ]; then
				walk "$report" "$size" "$term" utf8 always
			elif [ "$size $term" = "40x12 vt100" ]; then
				walk "$report" "$size" "$term" C never
			fi
		done
	done
done
echo "$screens screens compared, $failures otherwise"
exit $((failures > 0))
