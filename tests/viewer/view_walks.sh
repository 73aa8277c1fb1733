#!/usr/bin/env bash
# The walks of docs/walks.md. Its commands are run as they stand, every screen in it is played anew and
# compared, and the answers read off the screens are what sqlite3 says. A screen is a block
#
#	```text SIZE REPORT KEYS
#
# with REPORT `run` or `run,other`, and KEYS as view_play takes them. UPDATE_GOLDEN=1 rewrites the document's
# screens.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
. "$IPUSCOPE_SOURCE_DIR/tests/support/view_unmeasured.sh"

play=$(realpath "${IPUSCOPE_VIEW_PLAY:-./view_play}")
document=$IPUSCOPE_SOURCE_DIR/docs/walks.md
export XDG_STATE_HOME=$work/state LC_ALL=C.UTF-8
if ! locale -a 2>/dev/null | grep -iE '^c\.utf-?8$' >/dev/null; then
	echo "skipped: there is no locale C.UTF-8"
	exit 77
fi
cd "$work"
ln -s "$IPUSCOPE_SOURCE_DIR/examples" examples
sed -n '/^```/q; s/^    //p' "$document" >commands
grep -q '^\$tutorial' commands || fail "the document has no commands"
command -v sqlite3 >/dev/null || {
	echo "skipped: there is no sqlite3"
	exit 77
}
PATH=$bin:$PATH bash -e commands >out.txt 2>err.txt || fail "the document's commands: $(cat err.txt)"

# On a busy machine what recording cost would be the first advice.
for report in run other sick; do
	sqlite3 $report/profile.db 'UPDATE overhead_sum_rows SET record_ns_estimate = 0, write_ns = 0'
done

# screen SIZE REPORT KEYS
screen() {
	# shellcheck disable=SC2086
	"$play" "$1" "$3" ${2//,/ } | unmeasured
}

replay() {
	local line size report keys inside=
	while IFS= read -r line; do
		if [ -n "$inside" ]; then
			[ "$line" != '```' ] || { inside= && printf '%s\n' "$line"; }
			continue
		fi
		printf '%s\n' "$line"
		case $line in '```text '[0-9]*) ;; *) continue ;; esac
		read -r _ size report keys <<<"$line"
		inside=1
		screen "$size" "$report" "$keys" || fail "$line"
	done <"$document"
}

replay >walks.md
if [ -n "${UPDATE_GOLDEN:-}" ]; then
	cp walks.md "$document"
elif ! diff -u -b "$document" walks.md; then # -b: columns are as wide as their host times
	fail 'the screens are others than docs/walks.md shows'
fi

# Values in the sentences are those of a screen.
part() { awk -v wanted="$1" '/^```/ { inside = !inside; next } inside == wanted' walks.md; }
for value in $(part 0 | grep -oE '[0-9]+\.[0-9]{4,}'); do
	part 1 | grep -F -- "$value" >/dev/null || fail "no screen shows $value, which a sentence of docs/walks.md has"
done

# --- the answers ------------------------------------------------------------------------------------
# answer TEXT REPORT SQL: the screens show TEXT, which is what the query says.
answers=0
answer() {
	local said
	said=$(sqlite3 "$2/profile.db" "ATTACH 'other/profile.db' AS other; $3")
	[ "$said" = "$1" ] || fail "the screen shows \"$1\", SQL says \"$said\""
	answers=$((answers + 1))
}
# shown REGEX: what the first screen that has it shows of it, blanks made one. All is read: who writes into a pipe
# that nobody reads any more fails.
shown() { sed 's/  */ /g' walks.md | awk '/^```text/ { on = 1; next } /^```/ { on = 0 } on' | grep -oE "$1" | awk 'NR == 1'; }

work_ns="sum(total_ns) FILTER (WHERE phase <> 'U')"
trained="clock = 'device' AND mode = 'train'"
slowest="SELECT stage FROM stage_sums WHERE $trained GROUP BY stage ORDER BY $work_ns DESC LIMIT 1"
answer "$(shown 'slowest stage [0-9] on IPU [0-9]')" run \
	"SELECT printf('slowest stage %d on IPU %d', stage, ipu) FROM stage_sums WHERE stage = ($slowest) LIMIT 1"
answer "$(shown '[0-9.]+ us for each micro-batch')" run "SELECT printf('%.1f us for each micro-batch',
	$work_ns / sum(count) FILTER (WHERE phase = 'F') / 1e3) FROM stage_sums WHERE $trained AND stage = ($slowest)"

layer=$(shown '▶Dense_[0-9]+ [0-9]+ [0-9,]+' | grep -oE 'Dense_[0-9]+')
answer "$(shown '▶Dense_[0-9]+ [0-9]+ [0-9,]+')" run "SELECT printf('▶%s %d %,d', layer, count(DISTINCT operation), sum(s.cycles))
	FROM device_steps s JOIN operations USING (operation) WHERE mode = 'train' AND weight_update = 0 AND layer = '$layer'"

percent="100.0 * (makespan_ns * stages - busy_ns) / (makespan_ns * stages)"
answer "$(shown 'bubble [0-9.]+ % \(theory [^|]*comm. [0-9.]+')" run "SELECT printf(
	'bubble %.1f %% (theory %.1f %%): ╱up %.1f ╲down %.1f ▒imb. %.1f ≈comm. %.1f', $percent,
	100 * theory_idle_fraction, share * ramp_up_ns, share * ramp_down_ns, share * imbalance_ns,
	share * communication_ns)
	FROM (SELECT *, 100.0 / (makespan_ns * stages) AS share FROM bubbles WHERE $trained AND weight_update = 0)"
answer "$(shown 'idle for .*us \([0-9,]+ ns\)' | grep -oE '[0-9,]+ ns')" run "SELECT printf('%,d ns', max(gap)) FROM (
	SELECT start_ns - max(start_ns + dur_ns) OVER (ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND
	1 PRECEDING) AS gap FROM spans WHERE $trained AND ipu = 0 AND weight_update = 0 AND depth = 0)"

answer "$(shown '▶Dense[^ ]+_grad [0-9.]+ [0-9.]+')" run "SELECT printf('▶%s %.6g %.6g', key, greatest_std, last_std)
	FROM tensor_sums WHERE kind = 'gradient' ORDER BY greatest_std DESC LIMIT 1"

answer "$(shown 'Fullest tile [^:]+: [0-9,]+ B, [0-9.]+ %')" run "SELECT printf('Fullest tile %d,%d: %,d B, %.2f %%',
	ipu, tile, sum(bytes), 100.0 * sum(bytes) / max(capacity)) FROM tile_memory GROUP BY ipu, tile
	ORDER BY sum(bytes) DESC, ipu, tile LIMIT 1"

fullest="(SELECT max(used) FROM (SELECT sum(bytes) AS used FROM %s.tile_memory GROUP BY ipu, tile))"
# shellcheck disable=SC2059
answer "$(shown 'fullest tile bytes .* B worse [0-9.]+ %' | grep -oE '\+[0-9]+ B')" run \
	"SELECT printf('%+d B', $(printf "$fullest" other) - $(printf "$fullest" main))"
answer "$(shown 'Dense_10/bias:0_grad [0-9.]+ [0-9.]+ \+[0-9.]+')" run "SELECT printf('%s %.6g %.6g %+.6g', key,
	s.greatest_std, t.greatest_std, t.greatest_std - s.greatest_std)
	FROM main.tensor_sums s JOIN other.tensor_sums t USING (key) WHERE key = 'Dense_10/bias:0_grad'"

answer "$(shown '0 bad Dense[^ ]+ F [0-9]+ [0-9]+')" sick "SELECT printf('0 bad %s %s %d %d', key, phase, step, n_nan)
	FROM nonfinite_trail WHERE position = 0"
screen 80x24 sick 'HVojjjj<Enter>' | grep '^── F0 stage 1 forward' >/dev/null || fail 'a bad number does not lead to its moment'
# --- fifteen tasks ----------------------------------------------------------------------------------
# In terminals of four sizes, of which a task has two: at most six keys, where a word typed at a prompt is one, to a screen that says it.
POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' "$bin/ipu-train" examples/inspect-tensors.json --epochs 100000 -q >live.out 2>&1 &
trainer=$!
trap 'kill -CONT $trainer 2>/dev/null || true; kill $trainer 2>/dev/null || true; wait $trainer 2>/dev/null || true; rm -rf "$work"' EXIT
recorded() { [ "$(sqlite3 -readonly "$(echo tf_report__*)/profile.db" 'SELECT count(*) FROM metric_sums' 2>/dev/null || echo 0)" -gt 0 ]; }
until_ recorded
ln -s tf_report__* live
# It goes on while it is looked at.
kill -STOP $trainer

tasks=0
while IFS='|' read -r _ _ task report keys text _; do
	report=$(tr -d '` ' <<<"$report") text=${text#*\`} text=${text%\`*} keys=${keys#*\`} keys=${keys%\`*}
	read -ra pressed <<<"$keys"
	[ ${#pressed[@]} -le 6 ] || fail "$task: ${#pressed[@]} keys: $keys"
	played=
	for key in "${pressed[@]}"; do
		case $key in Enter | Backspace | Space | Tab | Esc) played+="<$key>" ;; *) played+=$key ;; esac
	done
	[ "$report" != live ] || kill -CONT $trainer
	sweep '80x24 120x40' '100x30 200x60'
	for size in ${swept[*]}; do
		rm -f ./*rows.csv ./*picture.svg
		# shellcheck disable=SC2086
		"$play" $size "$played" ${report//,/ } >wide && tr -s " " <wide >said || fail "$task: $keys"
		grep -F -- "$(tr -s " " <<<"$text")" said >/dev/null || fail "$task: at $size $keys does not lead to \"$text\": $(cat said)"
		case $text in
		*.csv) [ "$(wc -l <"$(echo ./*rows.csv)")" -gt 40 ] || fail "$task: $(cat ./*rows.csv)" ;;
		*.svg) grep '</svg>' ./*picture.svg >/dev/null || fail "$task: $(cat ./*picture.svg)" ;;
		esac
	done
	[ "$report" != live ] || kill -STOP $trainer
	tasks=$((tasks + 1))
done < <(grep -E '^\| [0-9]+ \|' "$document")
[ $tasks -eq 15 ] || fail "the document has $tasks tasks"
kill $trainer
kill -CONT $trainer
wait $trainer 2>/dev/null || true

answer "$(shown '2 3.49166e.15 [0-9.e+]+')" sick "SELECT printf('%d %.6g %.6g', weight_update, mean, std) FROM tensor_stats
	WHERE kind = 'gradient' AND std IS NOT NULL ORDER BY std DESC LIMIT 1"
answer "$(shown 'step 17 of [0-9]+, [0-9.]+ MB')" run "SELECT printf('step %d of %d, %.3g MB', program_step, last, live / 1048576.0)
	FROM (SELECT program_step, always_live_bytes + not_always_live_bytes AS live, max(program_step) OVER () AS last
		FROM liveness WHERE ipu = 0) ORDER BY live DESC LIMIT 1"
echo "the screens are as docs/walks.md shows them, and $answers answers and $tasks tasks as sqlite3 gives them"
