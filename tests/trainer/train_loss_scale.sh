#!/usr/bin/env bash
# A scaled loss: powers of two change no byte in float32, and save gradients that are accumulated in float16; a dynamic scale
# leaves out an update whose gradients overflow, on every schedule the same ones.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

# weights OPTIMIZER ARGUMENT...: the digest of the weights, after it what is said of the scale.
weights() {
	local optimizer=$1
	shift
	train 240 --evaluate null --gradient_accumulation.steps_per_replica 12 --compile.optimizer "$optimizer" "$@" >"$work/out" 2>"$work/err" ||
		fail "$optimizer $*: $(cat "$work/err")"
	awk '/^Weights: XXH3/ { print $3 } /^Loss scale/ { print }' "$work/out"
}
factor() { echo "{\"class_name\": \"$1\", \"config\": {\"loss_scale_factor\": $2}}"; }
dynamic() { echo "{\"class_name\": \"LossScaleOptimizer\", \"config\": {\"inner_optimizer\": \"$1\", \"initial_scale\": $2, \"dynamic_growth_steps\": $3}}"; }
same() { [ "$1" = "$2" ] || fail "$3: $1, not $2"; }

plain=$(weights Adam)
same "$(weights "$(factor Adam 1024)")" "$plain" "a fixed scale"
# 20 updates, doubled after each five of them.
same "$(weights "$(dynamic Adam 1024 5)")" "$plain
Loss scale: 16384; updates skipped for gradients that are not finite: 0" "a dynamic scale"

# What is accumulated in float16 ends at 65,504.
half=(--gradient_accumulation.dtype float16)
great=1073741824
skipped=$(weights "$(dynamic Adam $great 1000)" "${half[@]}" "${no_pipeline[@]}" --host.threads 1)
count=${skipped##*: }
[ "$count" -gt 0 ] && [ "$count" -lt 20 ] || fail "updates skipped: $skipped"
[[ $skipped != "$plain"* ]] || fail "updates were skipped, and the weights are those of all of them"
same "$(weights "$(dynamic Adam $great 1000)" "${half[@]}" --host.threads 2)" "$skipped" "two stages"
same "$(weights "$(dynamic Adam $great 1000)" "${half[@]}" --pipeline.schedule zb-h1 --pipeline.stages '[0,0,1,1,2,2]' --ipu.auto_select_ipus 4)" "$skipped" "zb-h1"
cd "$work"
same "$(POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' weights "$(dynamic Adam $great 1000)" "${half[@]}")" "$skipped" "recorded"
[ "$(sqlite3 -readonly tf_report__*/profile.db "SELECT value FROM meta WHERE key = 'updates_skipped'")" = "$count" ] ||
	fail "the report's number of skipped updates"

# Below 2^-25 a gradient is 0 in float16; the scale lifts it.
sgd=$(factor SGD 1)
low=$(weights "$sgd" "${half[@]}")
high=$(weights "$(factor SGD 65536)" "${half[@]}")
[ "$low" != "$high" ] || fail "a scale of 65536 saves no gradient that float16 loses"
