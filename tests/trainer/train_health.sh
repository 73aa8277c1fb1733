#!/usr/bin/env bash
# What the health rules say of training: the first bad number is the one that the captured values have; faults are found under their own
# names, and sound runs are quiet; lines, rows and instants are the same hits; judged again by its own rules, a run is judged alike.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

scan=$PWD/capture_scan
cd "$work"
examples=$IPUSCOPE_SOURCE_DIR/examples
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true","autoReport.directory":"report"}'
full='[{"tier": "full"}]'
stats='[{"tier": "stats"}]'
weights='[{"kind": "weight", "tier": "stats"}]'
health='[{"kind": ["weight", "optimizer_state"], "tier": "health"}]'

# record NAME PROGRAM...: the report in NAME.db, what was said in NAME.out and NAME.err. Every run is held to what is true of all.
record() {
	local name=$1 code=0
	shift
	rm -rf report
	"$@" >"$name.out" 2>"$name.err" || code=$?
	[ $code -eq "${wanted:-0}" ] || fail "$name: exit code $code: $(cat "$name.err")"
	mv report/*/profile.db "$name.db"
	[ "$(db "$name" "SELECT value FROM meta WHERE key = 'state'")" = complete ] || fail "$name: not complete"
	agrees "$name"
	[ -n "${incomplete:-}" ] || judged_again "$name"
}
db() { # NAME SQL
	sqlite3 -readonly "$1.db" "$2"
}
asks() { # NAME SQL ANSWER
	local answer
	answer=$(db "$1" "$2")
	[ "$answer" = "$3" ] || fail "$1: $2: $answer, not $3"
}

# Rows, lines and instants: the same rule, tensor and moment, each as often; of a rule 20 lines, and one that there are more.
# What a loss says of a tensor is of no stage: the view alone adds that of the tensor.
agrees() {
	local name=$1
	db "$name" "SELECT 'rule=' || rule || ' key=' || key || coalesce(' layer=' || layer, '') || coalesce(' phase=' || phase, '') ||
		coalesce(' epoch=' || epoch, '') || coalesce(' step=' || step, '') || coalesce(' weight_update=' || weight_update, '') ||
		coalesce(' microbatch=' || microbatch, '') || coalesce(' replica=' || replica, '') || iif(phase IS NULL, '', coalesce(' stage=' || stage, ''))
		FROM health" | sort >rows
	sed -n 's/^\[HEALTH\] \(rule=.*\) value=[^ ]* threshold=[^ ]*$/\1/p' "$name.err" | sort >lines
	[ -z "$(comm -13 rows lines)" ] || fail "$name: lines without rows: $(comm -13 rows lines)"
	awk '{ count[$1]++ } END { for (rule in count) { print rule, count[rule] < 20 ? count[rule] : 20; if (count[rule] > 20) print rule, "more" } }' rows |
		sort >wanted
	awk '{ count[$1]++ } END { for (rule in count) print rule, count[rule] }' lines >told
	sed -n 's/^\[HEALTH\] \(rule=[a-z_]*\) more than 20 times: .*/\1 more/p' "$name.err" >>told
	sort told | cmp -s wanted - || fail "$name: lines: $(cat told) of rows: $(cat wanted)"
	[ "$(grep -c '^\[HEALTH\] rule=' "$name.err")" = $(($(wc -l <lines) + $(grep -c more told || true))) ] || fail "$name: a line of another form"
	[ ! -s rows ] || grep -qE "^Health: $(wc -l <rows) times? a rule was broken: " "$name.out" "$name.err" || fail "$name: not $(wc -l <rows) hits at the end"
	# The instant is made where the hit is: never before it, as exactly as ticks are told between two commits, and of the same clock.
	asks "$name" "WITH told AS (SELECT name, time_ns, epoch, step, weight_update, microbatch, replica, row_number() OVER
			(PARTITION BY name, epoch, step, weight_update, microbatch, replica ORDER BY time_ns) AS number
			FROM instants WHERE category = 'health' AND name <> 'first_nonfinite'),
		kept AS (SELECT rule, time_ns, epoch, step, weight_update, microbatch, replica, row_number() OVER
			(PARTITION BY rule, epoch, step, weight_update, microbatch, replica ORDER BY time_ns) AS number FROM health)
		SELECT (SELECT count(*) FROM told), count(*), sum(i.time_ns < h.time_ns - 10000000), sum(i.time_ns > h.time_ns + 600000000000) FROM kept h JOIN told i ON
			i.name = h.rule AND i.epoch IS h.epoch AND i.step IS h.step AND i.weight_update IS h.weight_update AND
			i.microbatch IS h.microbatch AND i.replica IS h.replica AND i.number = h.number" \
		"$(wc -l <rows)|$(wc -l <rows)|$([ -s rows ] && echo '0|0' || echo '|')"
}

# By its own rules the hits are the recorded ones. The time of a loss is when it was recorded.
again() { # NAME [RULES]
	local what=(view:health)
	[ $# -lt 2 ] || what=(health --reevaluate "$2")
	"$bin/ipu-report" "$1.db" "${what[@]}" --csv --limit 0 | awk -F, -v OFS=, '$6 == "" { $15 = "" } { print }' | sort
}
judged_again() {
	again "$1" >rows
	again "$1" recorded >lines
	cmp -s rows lines || fail "$1: judged again: $(diff rows lines)"
}

# quiet NAME: no rule was broken.
quiet() {
	! grep -q '^\[HEALTH\]' "$1.err" || fail "$1 is not quiet: $(cat "$1.err")"
	asks "$1" "SELECT (SELECT count(*) FROM health), (SELECT count(*) FROM first_nonfinite), (SELECT sum(enabled) FROM health_rules)" '0|0|12'
}

# ---- a learning rate that explodes ---------------------------------------------------------------
# diverges NAME RATE [--key value ...]: 6 updates of 12 micro-batches
diverges() {
	local name=$1 rate=$2
	shift 2
	[[ " $* " == *' --outfeed.capture '* ]] || set -- --outfeed.capture "$health" "$@"
	record "$name" train 72 --evaluate null --data.limit 4000 --gradient_accumulation.steps_per_replica 12 \
		--compile.optimizer '{"class_name": "SGD", "config": {"learning_rate": '"$rate"'}}' "$@"
}
where="key, layer, phase, rank, mode, epoch, execution, weight_update, step, microbatch, replica"
first="SELECT queue, $where, element, value FROM first_nonfinite"
columns='n, n_nan, n_pos_inf, n_neg_inf, n_zero, n_neg, n_pos, min, max, mean, std, l1, l2, abs_min_nonzero, abs_max'
bad="SELECT role, queue, kind, $where, $columns FROM nonfinite_trail WHERE role <> 'before' ORDER BY position DESC"

# Rates for which a variable, an activation of a watched layer and one of a queue overflow first, in part of their elements.
for rate in 1e3 1e38 1e30; do
	diverges captured "$rate" "${no_pipeline[@]}" --outfeed.capture "$full"
	captured="$(db captured "$first") $(db captured "$bad")"
	sweep none Grouped Interleaved Sequential
	[ $rate != 1e3 ] || swept=(none Grouped Interleaved Sequential)
	for schedule in "${swept[@]}"; do
		pipeline=(--pipeline.schedule "$schedule")
		[ $schedule != none ] || pipeline=("${no_pipeline[@]}")
		sweep 1 2 3
		[ $rate = 1e3 ] || swept=(2)
		[ $rate$schedule != 1e3Grouped ] || swept=(1 "${swept[@]/1/2}") # what is said of 1e3-Grouped-1 is looked at below
		for threads in "${swept[@]}"; do
			name=$rate-$schedule-$threads
			diverges "$name" "$rate" "${pipeline[@]}" --host.threads $threads
			[ "$(db "$name" "$first") $(db "$name" "$bad")" = "$captured" ] || fail "$name: $(db "$name" "$first") $(db "$name" "$bad")
instead of $captured"
		done
		"$scan" "$name.db" captured.db >seen 2>differs || fail "$name: $(cat differs)"
		echo "$name: $(cat seen)"
	done
	# Where a queue of another stage cannot send it, a layer's output is watched under the layer's name.
	diverges pipelined "$rate" --outfeed.capture "$full" --pipeline.stages '[0,0,1,1,2,2]' --ipu.auto_select_ipus 4
	for name in captured pipelined; do
		db $name "$first" | sed 's/^[^|]*|\(Dense_[0-9]*\)_acts|[^|]*/watch|\1|\1/' >$name.first
	done
	cmp -s captured.first pipelined.first || fail "three stages: $(cat pipelined.first)"
	"$scan" pipelined.db pipelined.db >seen 2>differs || fail "three stages: $(cat differs)"
done
# The bad row says something of the moments, too: one element alone is infinite.
asks 1e3-Grouped-1 "SELECT n_nan, n_pos_inf + n_neg_inf, mean IS NOT NULL FROM nonfinite_trail WHERE position = 0" '0|1|1'
# It was coming: exploding is seen before, in that tensor and in others.
asks 1e3-Grouped-1 "SELECT count(*) > 3, count(*) FILTER (WHERE h.key = f.key) FROM health h, first_nonfinite f
	WHERE rule = 'exploding' AND h.weight_update < f.weight_update" '1|1'
[ "$(grep -oE 'rule=(exploding|nonfinite)' 1e3-Grouped-1.err | head -1)" = rule=exploding ] || fail "nonfinite is first"
[ "$(grep -c '^\[HEALTH\] first_nonfinite key=Dense_128/kernel:0 .* element=[0-9]* value=-inf$' 1e3-Grouped-1.err)" = 1 ] ||
	fail "the line of the first bad number: $(cat 1e3-Grouped-1.err)"

# Slots are looked at before the variables that they move.
adam=(--compile.optimizer '{"class_name": "Adam", "config": {"learning_rate": 1e10}}')
diverges captured 1e3 "${no_pipeline[@]}" --outfeed.capture "$full" "${adam[@]}"
diverges slots 1e3 "${adam[@]}"
asks slots "SELECT key, weight_update, value FROM first_nonfinite" 'Adam/v/Dense_256/kernel:0|1|inf'
"$scan" slots.db captured.db >seen 2>differs || fail "Adam: $(cat differs)"

# Gradients of each micro-batch, replicas, fewer rows, losses of an update: the same judgement again.
diverges after 1e3 --outfeed.optimizer_mode AFTER_COMPUTE --outfeed.gradients '["none"]'
diverges captured 1e3 --outfeed.optimizer_mode AFTER_COMPUTE --outfeed.gradients '["none"]' --outfeed.capture "$full"
"$scan" after.db captured.db >seen 2>differs || fail "AFTER_COMPUTE: $(cat differs)"
diverges replicas 1e3 --ipu.auto_select_ipus 4 --gradient_accumulation.steps_per_replica 4
diverges captured 1e3 --ipu.auto_select_ipus 4 --gradient_accumulation.steps_per_replica 4 --outfeed.capture "$full"
"$scan" replicas.db captured.db >seen 2>differs || fail "replicas: $(cat differs)"
diverges seldom 1e3 --outfeed.capture '[{"tier": "stats", "every": 3}]'
diverges mean 1e3 --pipeline.accumulate_outfeed true --outfeed.capture "$stats"
echo '{"exploding": {"threshold": 1e12}}' >rules.json
diverges kept 1e3 --outfeed.capture '[{"tier": "histogram"}]' --health.rules rules.json
asks kept "SELECT threshold, (SELECT threshold FROM health_rules WHERE rule = 'vanishing') FROM health_rules WHERE rule = 'exploding'" \
	'1000000000000.0|1.0e-07'
asks kept "SELECT count(*) > 0, min(value) > 1e12 FROM health WHERE rule = 'exploding'" '1|1'
# Other thresholds give other hits: those of a run that had them, at that run's own times.
diverges default 1e3 --outfeed.capture '[{"tier": "histogram"}]'
timeless() {
	again "$@" | cut -d, -f1-14,16- | sort
}
timeless default rules.json >rows
timeless kept >lines
cmp -s rows lines || fail "1e12 afterwards: $(diff rows lines)"
timeless default >lines
! cmp -s rows lines || fail "1e6 and 1e12 are the same"
timeless kept default >rows
cmp -s rows lines || fail "the defaults afterwards: $(diff rows lines)"

# A hit calls for what is kept in memory.
diverges ring 1e3 --outfeed.capture '[{"tensors": "Dense_10/kernel:0", "kind": "weight", "tier": "last 2"}, {"tier": "health"}]'
asks ring "SELECT min(weight_update) <= (SELECT min(weight_update) FROM health) AND count(*) > 2, max(weight_update) FROM captures" '1|5'

# ---- the end of a run that is broken -------------------------------------------------------------
wanted=1 record stopped "$bin/ipu-train" "$run" --evaluate null --compile.optimizer.config.learning_rate 1e3 --health.stop nonfinite \
	--compile.steps_per_execution 100 --fit.steps_per_epoch 100 --data.limit 4000 --weights.save stopped.npz
[ ! -e stopped.npz ] || fail "weights of a run that was stopped"
grep -v '^\[HEALTH\]\|^POPLAR_ENGINE_OPTIONS' stopped.err >error || true
unlagged error
[ "$(grep -vc '^data: ' error)" = 1 ] || fail "not one line: $(cat error)"
grep -qE '^ipu-train: health.stop: rule nonfinite broken by Dense_[^ ]* in (step [0-9]+, )?weight update [0-9]+ of epoch 1$' error || fail "the error's line: $(cat error)"
asks stopped "SELECT count(DISTINCT epoch), count(*) BETWEEN 4 AND 200 FROM metrics WHERE name = 'loss' AND step IS NOT NULL" '1|1'
# The update that was broken is the last, or the one before it where stages work ahead.
asks stopped "SELECT (max(step) + 1) % 4, (max(step) + 1) / 4 - (SELECT weight_update FROM first_nonfinite) BETWEEN 1 AND 24 FROM metrics
	WHERE name = 'loss' AND step IS NOT NULL" '0|1'
"$bin/ipu-report" stopped.db summary >out || fail "ipu-report summary: $(cat out)"
code=0
train 12 --health.stop nonfinit >out 2>err || code=$?
[ $code -eq 2 ] || fail "an unknown rule: exit code $code"
grep -q 'nonfinit.*did you mean "nonfinite"' err || fail "an unknown rule: $(cat err)"
# One that never breaks ends nothing.
wanted=0 record heeded train 96 --evaluate null --data.limit 4000 --health.stop '["nonfinite", "exploding"]'
quiet heeded

# ---- faults --------------------------------------------------------------------------------------
cat >mlp.json <<'JSON'
{"model": {"class_name": "Sequential", "config": {"name": "m", "layers": [
	{"class_name": "Flatten", "config": {"name": "flatten"}},
	{"class_name": "Dense", "config": {"name": "first", "units": 64, "activation": "relu"}},
	{"class_name": "Dense", "config": {"name": "second", "units": 48, "activation": "relu"}},
	{"class_name": "Dense", "config": {"name": "third", "units": 10, "activation": "softmax"}}]}},
 "compile": {"loss": "sparse_categorical_crossentropy", "optimizer": {"class_name": "SGD", "config": {"learning_rate": 0.05}},
	"steps_per_execution": "epoch", "metrics": ["accuracy"]},
 "data": {"name": "mnist", "batch_size": 32, "limit": 3200}, "fit": {"epochs": 2, "steps_per_epoch": 60, "seed": 1},
 "ipu": {"auto_select_ipus": 1}}
JSON
second=--model.config.layers.2.config
mlp() { # NAME [--key value ...]
	local name=$1
	shift
	record "$name" "$bin/ipu-train" mlp.json "$@"
}
# finds NAME RULE LAYER: of all the rule's hits the first is that layer's
finds() {
	asks "$1" "SELECT layer FROM health WHERE rule = '$2' ORDER BY time_ns LIMIT 1" "$3"
}
constant() {
	echo '{"class_name": "Constant", "config": {"value": '"$1"'}}'
}
for tier in "$stats" "$weights"; do
	mlp sound --outfeed.capture "$tier"
	quiet sound
	mlp zeros --outfeed.capture "$tier" $second.kernel_initializer zeros
	finds zeros poor_initialization second
	asks zeros "SELECT key, weight_update FROM health WHERE rule = 'poor_initialization' ORDER BY time_ns LIMIT 1" 'second/kernel:0|0'
	mlp frozen --outfeed.capture "$tier" $second.trainable false
	asks frozen "SELECT rule, key, weight_update FROM health ORDER BY key" \
		$'unchanged_tensor|second/bias:0|3\nunchanged_tensor|second/kernel:0|3'
done
# With what is looked at by default alone (gradients, whether they are finite and how great), the zeros are found as well.
mlp zeros --health.watch gradients $second.kernel_initializer zeros
finds zeros poor_initialization third
asks zeros "SELECT count(DISTINCT layer) FROM health WHERE rule = 'poor_initialization'" 3
for tier in counts stats; do
	mlp dead --outfeed.capture '[{"tier": "'$tier'"}]' $second.bias_initializer "$(constant -100)"
	asks dead "SELECT key, value FROM health WHERE rule = 'dead_relu'" 'second|1.0'
	mlp saturated --outfeed.capture '[{"tier": "'$tier'"}]' $second.activation sigmoid $second.bias_initializer "$(constant 100)"
	asks saturated "SELECT key, value FROM health WHERE rule = 'saturated_activation'" 'second|1.0'
	mlp sigmoid --outfeed.capture '[{"tier": "'$tier'"}]' $second.activation sigmoid
	quiet sigmoid
	mlp tanh --outfeed.capture '[{"tier": "'$tier'"}]' $second.activation tanh
	quiet tanh
done

# Twelve sigmoids one after the other leave the first layers no gradient; and a set that is learnt by heart.
sigmoids=$(for i in $(seq 12); do
	printf '{"class_name": "Dense", "config": {"name": "deep_%s", "units": 32, "activation": "sigmoid"}}, ' "$i"
done)
sed "s/{\"class_name\": \"Dense\", \"config\": {\"name\": \"third\"/$sigmoids&/" mlp.json >deep.json
record deep "$bin/ipu-train" deep.json --outfeed.capture "$stats"
asks deep "SELECT count(*) > 0, sum(layer IN ('first', 'third', 'deep_12')) FROM health WHERE rule = 'vanishing' AND layer <> 'first' AND layer <> 'second'" '1|0'
mlp heart --data.limit 128 --fit.steps_per_epoch 4 --fit.epochs 60 --fit.validation true
asks heart "SELECT count(*) > 0, min(key), max(key) FROM health WHERE rule = 'overfit'" '1|val_loss|val_loss'

# ---- the tutorials -------------------------------------------------------------------------------
tutorial() { # NAME EXAMPLE [--key value ...]
	local name=$1 example=$2
	shift 2
	record "$name" "$bin/ipu-train" "$examples/$example" --evaluate null --outfeed.capture "$weights" "$@"
	quiet "$name"
	asks "$name" "SELECT count(DISTINCT kind), count(*) = (SELECT count(DISTINCT key) FROM tensor_stats WHERE kind = 'weight')
		FROM tensors WHERE kind = 'weight'" '1|1'
}
tutorial mnist keras-mnist.json --fit.epochs 1 --fit.steps_per_epoch 20 --data.limit 2000
tutorial pipelined keras-mnist.json --fit.epochs 1 --data.limit 2000 --use-ipu --pipelining
tutorial starter mnist-starter.json --fit.epochs 2 --fit.steps_per_epoch 200
tutorial tensors inspect-tensors.json --fit.epochs 2
tutorial alone inspect-tensors.json --fit.epochs 1 --no-pipelining

# As it is written the chapter's MLP has no softmax before a loss that wants one: its loss stands still near log 10.
record collapsed "$bin/ipu-train" "$examples/keras-chapter.json" ${IPUSCOPE_TEST_MNIST:+--data.path "$IPUSCOPE_TEST_MNIST"}
asks collapsed "SELECT group_concat(rule) FROM (SELECT DISTINCT rule FROM health ORDER BY 1)" all_zero,loss_not_decreasing
asks collapsed "SELECT count(DISTINCT key) FROM health WHERE rule = 'all_zero' AND layer = 'dense_2'" 2
asks collapsed "SELECT count(*), sum(abs(value - 2.3026) < 0.05) FROM metrics WHERE name = 'loss' AND mode = 'train' AND step IS NULL AND epoch = 2" '1|1'
asks collapsed "SELECT count(*) > 10 FROM metrics WHERE name = 'loss' AND step IS NOT NULL AND epoch = 2 AND abs(value - 2.302585) < 1e-4" 1

# ---- what is captured comes out ------------------------------------------------------------------
record tutorial train 500 --evaluate null --data.limit 16000 --outfeed.capture full
quiet tutorial
"$bin/ipu-report" tutorial.db export npz -o tutorial.npz >/dev/null
# Values are stored, so that the headers stand in the file as they are.
shapes=$(grep -aoE "'descr': '<f4', 'fortran_order': False, 'shape': \([0-9, ]*\)" tutorial.npz | sed 's/.*(/(/' | sort)
[ "$shapes" = "$(printf '%s\n' '(125, 128)' '(125, 256, 128)' '(500, 32, 10)' '(500, 32, 128)' | sort)" ] || fail "tutorial.npz has $shapes"
for key in Dense_128/bias:0_grad Dense_128/kernel:0_grad Dense_128_acts Dense_10_acts; do
	grep -qaF "$key.npy" tutorial.npz || fail "tutorial.npz has no $key"
done
for python in python3 /usr/bin/python3; do
	"$python" -c 'import numpy' 2>/dev/null || continue
	db tutorial "SELECT key, count(*), sum(n), sum(n * mean) / sum(n), min(min), max(max) FROM tensor_stats GROUP BY 1" | "$python" -c '
import sys, numpy
file = numpy.load("tutorial.npz")
for line in sys.stdin:
    key, rows, n, mean, least, most = line.rstrip().split("|")
    a = file[key]
    assert a.shape[0] == int(rows) and a.size == int(n), (key, a.shape)
    assert abs(a.mean(dtype=numpy.float64) - float(mean)) <= 1e-9 * abs(a).mean(dtype=numpy.float64), key
    assert a.min() == numpy.float32(least) and a.max() == numpy.float32(most), key
assert len(file.files) == 4, file.files' || fail "numpy reads other values than were looked at"
	break
done
rm tutorial.*

# ---- a budget ------------------------------------------------------------------------------------
measured() {
	stat -c %s "$1.db"
}
record unseen train 480 --evaluate null --data.limit 16000 --outfeed.capture off --health null
asks unseen "SELECT count(*) FROM tensors" 0
for budget in 300 3000; do
	record "budget$budget" train 480 --evaluate null --data.limit 16000 --outfeed.capture "$full" --outfeed.budget "$budget kB"
	quiet "budget$budget"
	more=$(($(measured "budget$budget") - $(measured unseen)))
	echo "a budget of $budget kB: $((more / 1000)) kB more"
	# Slack: 64 pages of tables that begin, and of what was on its way when the budget was full.
	[ $more -le $((budget * 1000 + 64 * 4096)) ] || fail "a budget of $budget kB: $more bytes more"
	asks "budget$budget" "SELECT sum(bytes) > 0, sum(bytes) <= $budget * 1000 FROM captures" '1|1'
	asks "budget$budget" "SELECT count(*) = count(DISTINCT queue || key), min(tier) FROM tensor_tiers WHERE time_ns IS NULL" '1|full'
	# A line for each lowering, which holds for all tensors of the tier: these have a row each.
	asks "budget$budget" "SELECT count(*) > 1, min(tensors), max(tensors) FROM (SELECT why, count(DISTINCT queue || key) AS tensors
		FROM tensor_tiers WHERE time_ns IS NOT NULL GROUP BY time_ns)" '1|15|15'
	db "budget$budget" "SELECT DISTINCT '15 tensors of tier ' || lag(tier, 15) OVER w || ' are from now on kept as ' || tier FROM tensor_tiers
		WINDOW w AS (ORDER BY time_ns) ORDER BY time_ns" | sed '/^$/d' >rows
	sed -n 's/^\[OUTFEED\] budget of [0-9.]* [kM]B: .* used, so \(15 tensors of tier .* kept as [a-z]*\) .*/\1/p' "budget$budget.err" >lines
	cmp -s rows lines || fail "budget: $(cat lines) instead of $(cat rows)"
	[ "$(grep -c '^\[OUTFEED\]' "budget$budget.err")" = "$(wc -l <lines)" ] || fail "budget: another line: $(cat "budget$budget.err")"
done
# Used up, it keeps no rule from being asked: lines, rows of health and instants go on, the rows that they came from do not.
incomplete=yes diverges used_up 1e3 --outfeed.capture "$full" --outfeed.budget '60 kB'
[ "$(grep -c '^\[OUTFEED\] budget of 60 kB: it is used up, so bad values have no more rows' used_up.err)" = 1 ] || fail "$(grep OUTFEED used_up.err)"
asks used_up "SELECT count(*) FROM instants WHERE category = 'outfeed' AND name = 'budget used up'" 1
timeless default | cut -d, -f1,3,10-13 >rows
timeless used_up | grep -E '^(exploding|nonfinite),' | cut -d, -f1,3,10-13 >lines
grep -E '^(exploding|nonfinite),' rows | cmp -s - lines || fail "a budget hides bad values: $(grep -E '^(exploding|nonfinite),' rows | diff - lines)"
again used_up recorded | cut -d, -f1,3,10-13 | sort >rows
again used_up | cut -d, -f1,3,10-13 | sort >lines
[ -z "$(comm -23 rows lines)" ] || fail "judged again: hits that were none: $(comm -23 rows lines)"
echo ok
