#!/usr/bin/env bash
# A word is one quantity: whatever is called bubble, waiting or idle on any screen of five runs, at four sizes, in reports,
# their JSON and the page, is what SQL says of it, so that two screens never differ. The bubble is of all IPUs within weight updates, waiting of one IPU in executions, idle
# of a lane in the timeline's window. And each key that the line at the foot names does something there.
. "$IPUSCOPE_SOURCE_DIR/tests/support/view_trained.sh" || exit 1
failures=0 compared=0

# recorded NAME ARGUMENT...: the report NAME of a short training.
recorded() {
	local name=$1
	shift
	mkdir "in.$name"
	(cd "in.$name" && train 32 "$@" --data.limit 1000 --evaluate null >out 2>err) || fail "$*: $(cat "in.$name/err")"
	mv "in.$name"/tf_report__*/ "$name"
}

# figures WORD REGEX: the percentages behind the word in shown.txt, those of bars and folded lines too.
figures() {
	awk -v what="$1 $2[0-9.]+ ?%" '{
		for (; match($0, what); $0 = substr($0, RSTART + RLENGTH)) {
			value = substr($0, RSTART, RLENGTH - 1)
			sub(/ $/, "", value)
			sub(/^.* /, "", value)
			if (!said[value]++)
				print value
		}
	}' shown.txt
}

# known WORD QUERY VALUE...: each value is one of the query's, at as many digits as are shown.
declare -A shares # of a report and a query: its percentages with 0 to 9 digits
known() {
	local word=$1 rows=$2 value known
	shift 2
	[ $# -gt 0 ] || return 0
	[ -n "${shares[$report $rows]-}" ] || shares[$report $rows]=$(sqlite3 "$report/profile.db" "WITH RECURSIVE digits(n) AS (VALUES (0) UNION ALL
		SELECT n + 1 FROM digits WHERE n < 9) SELECT group_concat(printf('%.*f', n, 100 * share), ' ') FROM ($rows), digits")
	known=${shares[$report $rows]}
	for value; do
		[[ $value == *.* && " $known " == *" $value "* ]] || {
			echo "FAILED: $report, $screen: $word $value % is none of $known" >&2
			failures=$((failures + 1))
		}
		compared=$((compared + 1))
	done
}

bubble="SELECT 1 - 1.0 * sum(total_busy_ns) / sum(total_ns) AS share FROM bubble_sums WHERE mode = 'train' GROUP BY clock"
rate="SELECT sum(mean_bubble_rate * runs) / sum(runs) AS share FROM bubble_sums WHERE mode = 'train' GROUP BY clock"
waiting="SELECT 1.0 * sum(idle_ns) / sum(compute_ns + exchange_ns + sync_ns + host_io_ns + idle_ns) AS share FROM time_split GROUP BY clock, ipu"
window="(SELECT min(start_ns) AS a, max(start_ns + dur_ns) AS b FROM spans WHERE clock = 'device')"
idle="SELECT 1 - 1.0 * sum(dur_ns) / (b - a) AS share FROM spans, $window WHERE clock = 'device' AND depth = 0 GROUP BY track"

# counted COMMAND... -- KEY QUERY...: each number that the JSON which it prints has below a key, or in a row whose name that is, is one of the query's.
counted() {
	local command=() key rows
	while [ "$1" != -- ]; do
		command+=("$1")
		shift
	done
	"${command[@]}" >shown.json || fail "${command[*]}"
	while shift && [ $# -gt 0 ]; do
		key=$1 rows=$2 screen="${command[*]} ($1)"
		shift
		# shellcheck disable=SC2046
		known "$key" "$rows" $(sqlite3 :memory: "WITH shown AS (SELECT * FROM json_tree(readfile('shown.json'))),
				every AS (SELECT key, type, atom, parent FROM shown UNION ALL
					SELECT n.key, n.type, n.atom, n.parent + 1000000 * shown.id FROM shown, json_tree(shown.atom) n WHERE shown.key = 'numbers' AND shown.atom IS NOT NULL)
			SELECT printf('%.9f', 100 * v.atom) FROM every v LEFT JOIN every n ON n.parent = v.parent AND n.key = 'name'
			WHERE v.type IN ('real', 'integer') AND (v.key = '$key' OR v.key = 'value' AND n.atom = '$key')")
	done
}

# predicted: the bubbles of What if are of the times beside them, and the screen has those of the report.
predicted() {
	local wanted width
	"$bin/ipu-report" "$report" what-if --json >shown.json || fail "$report: what-if"
	[ "$(sqlite3 :memory: "SELECT count(*) FROM json_each(readfile('shown.json'), '$.rows') r WHERE r.value ->> 'idle_fraction' <>
		1 - 1.0 * (r.value ->> 'busy_ns') / ((r.value ->> 'stages') * (r.value ->> 'makespan_ns'))
		AND abs((r.value ->> 'idle_fraction') - 1 + 1.0 * (r.value ->> 'busy_ns') / ((r.value ->> 'stages') * (r.value ->> 'makespan_ns'))) > 1e-6")" = 0 ] ||
		fail "$report: what-if: $(cat shown.json)"
	wanted=$(sqlite3 :memory: "SELECT printf('%.2f', 100 * (value ->> 'idle_fraction')) FROM json_each(readfile('shown.json'), '$.rows')
		WHERE value ->> 'idle_fraction' IS NOT NULL")
	[ "$(wc -w <<<"$wanted")" -gt 0 ] || fail "$report: no bubble is predicted"
	for width in 120 200; do
		[ "$("$bin/ipu-view" "$report" --view whatif --text --width $width | grep -v '^ simulated' | grep -oE '[0-9.]+ %' | tr -d ' %')" = "$wanted" ] ||
			fail "$report: What if at $width: $("$bin/ipu-view" "$report" --view whatif --text --width $width), not $wanted"
	done
	screen='what-if'
	# shellcheck disable=SC2046
	known idle_fraction "$bubble" $(sqlite3 :memory: "SELECT printf('%.9f', 100 * (value ->> 'idle_fraction')) FROM json_each(readfile('shown.json'), '$.rows')
		WHERE value ->> 'kind' = 'measured' AND value ->> 'idle_fraction' IS NOT NULL")
}

# looked COMMAND...: what it prints, without bars, blanks and folded lines being one; its figures are SQL's.
looked() {
	screen="$*"
	"$@" 2>/dev/null | sed 's/[^ -~]/ /g' | tr -s '\n ' ' ' >shown.txt
	# shellcheck disable=SC2046
	known bubble "$bubble" $(figures bubble '(recorded )?')
	# shellcheck disable=SC2046
	known 'bubble rate' "$rate" $(figures 'bubble[ _]rate' '')
	# shellcheck disable=SC2046
	known waiting "$waiting" $(figures waiting 'for ')
	# No other form of the words has a percentage: it would be one that nobody compares.
	if grep -oE '(idle|waiting|bubble)( [a-z_]+){0,2} [0-9.]+ ?%' shown.txt |
		grep -vE '^(bubble|bubble recorded|bubble predicted|bubble[ _]rate|waiting for|bubble would be|latest bubble) [0-9]' >&2; then
		echo "FAILED: $report, $screen: a percentage that is compared with nothing" >&2
		failures=$((failures + 1))
	fi
}

recorded two --ipu.auto_select_ipus 2
recorded four --pipeline.stages '[0,1,1,2,3,3]' --pipeline.schedule Interleaved --ipu.auto_select_ipus 4 \
	--gradient_accumulation.steps_per_replica 16
recorded replicas --ipu.auto_select_ipus 4
recorded one "${no_pipeline[@]}"
recorded grouped --pipeline.schedule Sequential --ipu.auto_select_ipus 2
# A bubble of one stage, which another program may record: nobody shows it.
cp -r one one_foreign
sqlite3 one_foreign/profile.db "INSERT INTO bubble_sum_rows(rank, clock, mode, replica, stages, microbatches, runs, makespan_ns, least_makespan_ns,
		greatest_makespan_ns, busy_ns, ramp_up_ns, ramp_down_ns, imbalance_ns, communication_ns, all_ns, idle_fraction, bubble_rate, bubble_over_ideal,
		theory_idle_fraction, theory_bubble_rate, theory_bubble_over_ideal, idle_fractions, bubble_rates, bubbles_over_ideal, theory_idle_fractions,
		theory_bubble_rates, theory_bubbles_over_ideal)
	SELECT 0, clock, 'train', 0, 1, 4, 8, 800, 100, 100, 496, 104, 100, 60, 40, 800, 3.04, 3.04, 5, 0, 0, 0, 8, 8, 8, 8, 8, 8 FROM (SELECT 0 AS clock UNION SELECT 1);
	INSERT INTO bubble_rows(context_id, clock, schedule, stages, microbatches, makespan_ns, busy_ns, idle_fraction, bubble_rate, bubble_over_ideal,
		ramp_up_ns, ramp_down_ns, imbalance_ns, communication_ns)
	SELECT context_id, clock, NULL, 1, 4, 100, 62, 0.38, 0.38, 0.61, 13, 12, 8, 5 FROM stage_timing_rows WHERE clock = 1 GROUP BY context_id" ||
	fail "the bubble of one stage is not recorded"
[ "$(sqlite3 one_foreign/profile.db "SELECT count(*) > 1 FROM bubble_sums")" = 1 ] || fail "one_foreign has no bubble"
for report in two four replicas one one_foreign grouped; do
	before=$compared
	sweep 80x24 100x30 120x40 200x60
	for size in "${swept[@]}"; do
		looked "$play" --each $size 1G2vv7vvvb "$report"
		looked "$play" $size 7b "$report"
	done
	looked "$play" --each 160x50 345E6vv89H7vvvbb "$report"
	looked "$play" --each 160x50 7bbvv "$report"
	looked "$bin/ipu-view" "$report" --view summary --text --width 100
	for name in summary insights stages programs operations layers liveness metrics health; do
		looked "$bin/ipu-report" "$report" $name
	done
	"$bin/ipu-report" "$report" export html --force -o page.html >said || fail "$report: the page"
	looked sed -E 's/<[^>]*>/ /g; s/Bubble( of the (device|host) \((simulated|measured)\):)?/bubble/g; s/&[#a-z0-9]*;/ /g' page.html
	counted "$bin/ipu-report" "$report" bubbles --where "mode = 'train'" --json -- idle_fraction "$bubble, replica" bubble_rate "$rate, replica"
	for name in summary insights; do
		counted "$bin/ipu-report" "$report" $name --json -- idle_fraction "$bubble" measured_idle_fraction "$bubble" bubble_rate "$rate" waiting_share "$waiting"
	done
	if [[ $report = one* ]]; then
		# A run of one stage has no bubble, and its one IPU waits for no other.
		[ $compared = $before ] || fail "$report: $((compared - before)) percentages of a pipeline"
	else
		counted "$bin/ipu-report" "$report" time-split --json -- waiting_share "$waiting"
		[ $compared -gt $((before + 5)) ] || fail "$report: only $((compared - before)) percentages were found"
	fi
	predicted
	# Lanes of the device, which have one digit; the screen BSP has another word for what is between runs.
	screen=timeline
	for width in 80 200; do
		lanes=$("$bin/ipu-view" "$report" --view timeline --text --width $width | sed -n '/^device (sim)/,/^host/p')
		# shellcheck disable=SC2046
		known idle "$idle" $(grep -oE '[0-9.]+%$' <<<"$lanes" | tr -d %)
	done
	"$play" 120x40 7vvv "$report" | grep '^device (sim)' | grep 'no run *$' >/dev/null || fail "$report: BSP: $("$play" 120x40 7vvv "$report" | head -5)"
done
# hints KEYS...: at one of the sizes after the other.
hints() {
	for keys; do
		sweep 80x24 100x30 120x40 200x60
		for size in "${swept[@]}"; do
			"$play" --hints "$size" "$keys" "${reports[@]}" >shown.txt || {
				echo "FAILED: ${reports[*]}: keys at the foot that do nothing: $(cat shown.txt)" >&2
				failures=$((failures + 1))
			}
		done
	done
}

recorded cpu --ipu null --pipeline null
screens=(1 2 3 4 5 6 7 8 9 H X P ':<Esc>' '?')
reports=(two)
hints "${screens[@]}" 1j 2v 2vv 3v 3vv 3vvv '3<Enter>' '3<Enter>j' 4v 4vv 5E 5v 6v 6b '6<Enter>' 7v 7vv 7vvv 7b 7bb 8v 8vv 8vvv '8<Enter>' '8<Enter>vv' '8<Enter>vvvv' '9<Enter>' Hv HV Pj ':<Esc>v'
# As far as it goes: nothing that leads no further is offered.
hints 70 70++ '7++++++++++++++++++++++++++++++++++' 3+ 3+00 3v0 '4++++++++++++' 4+0 '9<Enter>++++++++++++' 9+0
reports=(one)
hints "${screens[@]}" 3v 3vv 3vvv 4v 7vv
reports=(cpu)
hints 1 2 3 4 5 6 8 9 H P
reports=(two four)
hints "${screens[@]}" 3v 3vvv 4v 6v 7vv 8vv 9v
"${IPUSCOPE_VIEW_MAKE:-$(dirname "$play")/view_make}" ranks.db ranks || fail "the recording of ranks is not written"
"$bin/foreign" foreign.db >out || fail "another program's recording: $(cat out)"
reports=(foreign.db)
hints 1 2 7 7j 7v 7vv
reports=(ranks.db)
hints X Xj Xs Xv Xvv Xvvb Xb Xbbb
# Two runs: what an IPU has nothing to do in executions is waiting there, too.
"$bin/ipu-report" diff two four --sections time_split --all >shown.txt
grep -E '^device .* waiting_ns ' shown.txt >/dev/null && ! grep idle shown.txt || {
	echo "FAILED: diff: $(cat shown.txt)" >&2
	failures=$((failures + 1))
}
for word in idle bubble waiting 'no run'; do
	"$play" 200x60 '7?' two >shown.txt && "$play" 200x60 '1?' two >>shown.txt
	grep -qE "^[ |]*$word  +" <(sed 's/[^ -~]/ /g' shown.txt) || fail "the help does not say what $word is"
done
[ $failures = 0 ] || fail "$failures percentages"
echo "$compared percentages are what SQL says"
