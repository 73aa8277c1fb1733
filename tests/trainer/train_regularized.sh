#!/usr/bin/env bash
# Penalties are part of the losses that are shown, and of the gradients: the same bytes whatever the schedule, with
# optimizers that keep state too.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

first=0.5
last=0.25
regularized=(--model.config.layers.1.config.kernel_regularizer "{\"class_name\": \"L2\", \"config\": {\"l2\": $first}}"
	--model.config.layers.4.config.kernel_regularizer "{\"class_name\": \"L2\", \"config\": {\"l2\": $last}}")
still=(--compile.optimizer '{"class_name": "SGD", "config": {"learning_rate": 0}}')

# The last line: "loss: 1.2345 - accuracy: 0.1000"
loss() {
	train 24 --evaluate '{"steps": 24}' --gradient_accumulation.steps_per_replica 12 --outfeed.capture off "$@" |
		sed -n 's/^loss: \([0-9.]*\) - .*/\1/p'
}

# What the regularisers add, of the weights themselves: 784 x 256 of them at first, 128 x 10 (and a bias) at last.
train 24 --quiet --evaluate null --gradient_accumulation.steps_per_replica 12 "${still[@]}" --weights.save "$work/still"
# The sum of the squares of the COUNT values of array INDEX.
squares() {
	local at length
	at=$(LC_ALL=C grep -obUaP '\x93NUMPY' "$work/still" | cut -d: -f1 | sed -n "$(($1 + 1))p")
	length=$(od -An -tu2 -j$((at + 8)) -N2 "$work/still")
	od -An -v -tf4 -w4 -j$((at + 10 + length)) -N$((4 * $2)) "$work/still" | awk '{ s += $1 * $1 } END { printf "%.9g", s }'
}
penalty=$(awk -v a="$(squares 0 200704)" -v b="$(squares 4 1280)" -v first=$first -v last=$last \
	'BEGIN { printf "%.6f", first * a + last * b }')
plain=$(loss "${still[@]}")
for way in "" "--pipeline null --ipu.auto_select_ipus 1" "--pipeline null --ipu null"; do
	# shellcheck disable=SC2086
	more=$(loss "${still[@]}" "${regularized[@]}" $way)
	awk -v p="$penalty" -v a="$plain" -v b="$more" 'BEGIN { d = b - a - p; exit !(p > 50 && d * d < 1e-6 * p * p) }' ||
		fail "loss $more with, $plain without regularisers, whose penalty is $penalty ($way)"
done

# Every digit of the losses: penalties are added layer by layer, wherever the stages are cut.
all=()
for layer in 1 2 4; do
	for what in kernel bias; do
		all+=("--model.config.layers.$layer.config.${what}_regularizer" "{\"class_name\": \"L1L2\", \"config\": {\"l1\": 0.001, \"l2\": 0.37$layer}}")
	done
	all+=("--model.config.layers.$layer.config.bias_initializer" RandomNormal)
done
losses() {
	rm -rf "$work/report"
	POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true","autoReport.directory":"'"$work"'/report"}' train 24 --quiet --evaluate null \
		--gradient_accumulation.steps_per_replica 12 --outfeed.capture off --health null "${all[@]}" "$@"
	sqlite3 -readonly "$work"/report/*/profile.db "SELECT printf('%!.17g', value) FROM metrics WHERE name = 'loss' ORDER BY step IS NULL, step, epoch"
}
if command -v sqlite3 >/dev/null; then
	losses "${no_pipeline[@]}" >"$work/losses"
	[ -s "$work/losses" ] || fail "no losses are recorded"
	for stages in '[0,0,1,1,1,1]' '[0,0,0,0,1,1]' '[0,0,1,1,2,2]'; do
		losses --pipeline.stages "$stages" --ipu.auto_select_ipus "$([[ $stages == *2* ]] && echo 4 || echo 2)" |
			cmp -s - "$work/losses" || fail "other losses with the stages $stages"
	done
fi

for optimizer in SGD '{"class_name": "SGD", "config": {"momentum": 0.9}}' RMSprop Adam; do
	weights() {
		local name=$1
		shift
		train 24 --quiet --evaluate null --gradient_accumulation.steps_per_replica 12 \
			--compile.optimizer "$optimizer" --weights.save "$work/$name" "$@"
	}
	weights reference "${regularized[@]}" "${no_pipeline[@]}" --host.threads 1
	weights unregularized "${no_pipeline[@]}" --host.threads 1
	! cmp -s "$work/reference" "$work/unregularized" || fail "$optimizer: regularisers change nothing"
	weights pipelined "${regularized[@]}" --pipeline.stages '[0,0,1,1,2,2]' --ipu.auto_select_ipus 4
	cmp -s "$work/reference" "$work/pipelined" || fail "$optimizer: other weights in a pipeline"
	weights cpu "${regularized[@]}" --pipeline null --ipu null --host.threads 2
	cmp -s "$work/reference" "$work/cpu" || fail "$optimizer: other weights on the CPU"
done
echo "a penalty of $penalty is part of the loss"
