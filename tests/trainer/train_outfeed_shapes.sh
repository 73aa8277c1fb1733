#!/usr/bin/env bash
# The tensor inspection tutorial, flag by flag: every key and shape that is printed, in their order, and the rows of tensor_epochs.
# `tests/trainer/train_outfeed_shapes.sh STEPS`: with so many steps an epoch, a multiple of 40 (the tutorial's own are 2000).
root=$(cd "$(dirname "$0")/../.." && pwd)
export IPUSCOPE_SOURCE_DIR=${IPUSCOPE_SOURCE_DIR:-$root} IPUSCOPE_BIN_DIR=${IPUSCOPE_BIN_DIR:-$root/build/release/bin}
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
E=${1:-40} # steps of an epoch
G=$((E / 4)) # weight updates, where 4 are accumulated
single='Single layer activations callback|activations_outfeed_queue'
multi='Multi-layer activations callback|multi_activations_outfeed_queue'
gradients='Gradients callback|optimizer_outfeed_queue'
count=0

db() {
	sqlite3 -readonly tf_report__*/profile.db "$1"
}

run() {
	rm -rf tf_report__*
	"$bin/ipu-train" "$run" --steps-per-epoch "$E" --epochs 1 --evaluate null --data.limit 2000 "$@" >out.txt 2>err.txt ||
		fail "$*: $(cat err.txt)"
}

# printed EPOCHS: callbacks and keys as the screen has them, "CALLBACK" and "  KEY SHAPE" a line; every table is that of its epoch, with a
# row for each key.
printed() {
	awk -v epochs="$1" '
		/ callback/ { if (rows != keys) exit 1; print; keys = rows = 0; tables++ }
		/^key: / { line = $0; sub(/^key: /, "", line); sub(/ shape: /, " ", line); print "  " line; keys++ }
		/^Epoch [0-9]+ - Summary Stats$/ { epoch = $2 }
		/^No data enqueued$/ { print "  nothing"; getline; print "  " $0 }
		/^[0-9]+ +[^ ]+(\/|_acts)/ { if ($1 != rows || NF != 8 || $7 != "False" || $8 != "False") exit 1; rows++ }
		END { if (rows != keys || epoch != epochs && epoch != "" || tables == 0) exit 1 }' out.txt
}

# check EXPECTED: what one epoch has, a line for each key, "CALLBACK|QUEUE|KEY|SHAPE".
check() {
	local expected=$1 epochs=${2:-1} what=$3
	printed "$epochs" >printed.txt || fail "$what: the tables: $(cat out.txt)"
	for ((epoch = 1; epoch <= epochs; epoch++)); do
		printf '%s\n' "$expected" | awk -F'|' '$1 != last { print $1; last = $1 } { print "  " $3 " " $4 }'
	done >wanted.txt
	cmp -s printed.txt wanted.txt || fail "$what: printed
$(cat printed.txt)
not
$(cat wanted.txt)"
	for ((epoch = 1; epoch <= epochs; epoch++)); do
		printf '%s\n' "$expected" | sed "s/^/$epoch|/"
	done >wanted.txt
	db 'SELECT epoch, callback, queue, key, shape FROM tensor_epochs ORDER BY rowid' >rows.txt
	cmp -s rows.txt wanted.txt || fail "$what: rows
$(cat rows.txt)
not
$(cat wanted.txt)"
	count=$((count + 1))
}

# sends EXPECTED ARGUMENT...
sends() {
	local expected=$1
	shift
	run "$@"
	check "$expected" 1 "$*"
}

for model in Sequential Model; do
	type=(--model-type "$model")
	acts="$multi|Dense_128_acts|($E, 32, 128)
$multi|Dense_10_acts|($E, 32, 10)"
	sends "$gradients|Dense_128/bias:0_grad|($G, 128)
$gradients|Dense_128/kernel:0_grad|($G, 256, 128)
$acts" "${type[@]}"
	sends "$gradients|Dense_128/bias:0_grad|($E, 128)
$gradients|Dense_128/kernel:0_grad|($E, 256, 128)
$acts" "${type[@]}" --outfeed-pre-accumulated-gradients

	# Filters are parts of keys; the order is the optimizer's, the last variable first.
	all="$gradients|Dense_10/bias:0_grad|($G, 10)
$gradients|Dense_10/kernel:0_grad|($G, 128, 10)
$gradients|Dense_128/bias:0_grad|($G, 128)
$gradients|Dense_128/kernel:0_grad|($G, 256, 128)"
	sends "$all
$acts" "${type[@]}" --gradients-filters Dense_128 Dense_10
	sends "$all
$acts" "${type[@]}" --gradients-filters Dense_1
	sends "$all
$gradients|Dense_256/bias:0_grad|($G, 256)
$gradients|Dense_256/kernel:0_grad|($G, 784, 256)
$multi|Dense_10_acts|($E, 32, 10)" "${type[@]}" --gradients-filters none --activations-filters Dense_10
	# A final layer that is refused sends what came before it.
	sends "$gradients|Dense_10/bias:0_grad|($G, 10)
$multi|Dense_128_acts|($E, 32, 128)" "${type[@]}" --gradients-filters 10/bias --activations-filters 128_ac
	sends "$gradients|Dense_128/bias:0_grad|($G, 128)
$gradients|Dense_128/kernel:0_grad|($G, 256, 128)
$acts" "${type[@]}" --activations-filters NONE

	# One IPU: the gradients of a step are those of its update, unless they are accumulated.
	alone="$single|Dense_128_acts|($E, 32, 128)"
	sends "$gradients|Dense_128/bias:0_grad|($E, 128)
$gradients|Dense_128/kernel:0_grad|($E, 784, 128)
$alone" "${type[@]}" --no-pipelining
	sends "$gradients|Dense_128/bias:0_grad|($E, 128)
$gradients|Dense_128/kernel:0_grad|($E, 784, 128)
$alone" "${type[@]}" --no-pipelining --outfeed-pre-accumulated-gradients
	sends "$gradients|Dense_128/bias:0_grad|($G, 128)
$gradients|Dense_128/kernel:0_grad|($G, 784, 128)
$alone" "${type[@]}" --no-pipelining --use-gradient-accumulation
	sends "$gradients|Dense_128/bias:0_grad|($E, 128)
$gradients|Dense_128/kernel:0_grad|($E, 784, 128)
$alone" "${type[@]}" --no-pipelining --use-gradient-accumulation --outfeed-pre-accumulated-gradients
	sends "$gradients|Dense_10/bias:0_grad|($E, 10)
$gradients|Dense_10/kernel:0_grad|($E, 128, 10)
$gradients|Dense_128/bias:0_grad|($E, 128)
$gradients|Dense_128/kernel:0_grad|($E, 784, 128)
$alone" "${type[@]}" --no-pipelining --gradients-filters none --activations-filters nothing

	# Replicas share the steps out and have a dimension; the last of each queue has no count.
	sends "$gradients|Dense_128/bias:0_grad|($((G / 2)), 2, 128)
$gradients|Dense_128/kernel:0_grad|($((G / 2)), 2, 256, 128)
$multi|Dense_128_acts|($((E / 2)), 2, 32, 128)
$multi|Dense_10_acts|($((E / 2)), 2, 32, 10)" "${type[@]}" --ipu.auto_select_ipus 4
	sends "$gradients|Dense_128/bias:0_grad|(2, 128)
$gradients|Dense_128/kernel:0_grad|(2, 256, 128)
$multi|Dense_128_acts|(2, 32, 128)
$multi|Dense_10_acts|(2, 32, 10)" "${type[@]}" --ipu.auto_select_ipus 4 --outfeed.queue_mode LAST
	sends "$gradients|Dense_128/bias:0_grad|(128,)
$gradients|Dense_128/kernel:0_grad|(784, 128)
$single|Dense_128_acts|(32, 128)" "${type[@]}" --no-pipelining --outfeed.queue_mode LAST
	# An epoch of several executions is still an epoch.
	sends "$gradients|Dense_128/bias:0_grad|($G, 128)
$gradients|Dense_128/kernel:0_grad|($G, 256, 128)
$acts" "${type[@]}" --compile.steps_per_execution $((E / 5)) --fit.asynchronous_callbacks true
done

# Epochs: each has its own, and the seed's sample is its third.
run --epochs 3
check "$gradients|Dense_128/bias:0_grad|($G, 128)
$gradients|Dense_128/kernel:0_grad|($G, 256, 128)
$acts" 3 '--epochs 3'

# --- the seed's callbacks are swapped: the single layer's is attached where nothing feeds it
attached() {
	local list=
	while [ $# -gt 0 ]; do
		list+="${list:+, }{\"class_name\": \"OutfeedCallback\", \"config\": {\"queue\": \"$1\", \"name\": \"$2\"}}"
		shift 2
	done
	echo "[$list]"
}
run --callbacks "$(attached optimizer_outfeed_queue 'Gradients callback' activations_outfeed_queue 'Single layer activations callback')"
printed 1 >printed.txt || fail "the seed's callbacks: $(cat out.txt)"
cat >wanted.txt <<TEXT
Gradients callback
  Dense_128/bias:0_grad ($G, 128)
  Dense_128/kernel:0_grad ($G, 256, 128)
Single layer activations callback
  nothing
  (queue "activations_outfeed_queue" is not attached: did you mean "multi_activations_outfeed_queue"?)
TEXT
cmp -s printed.txt wanted.txt || fail "the seed's callbacks: $(cat printed.txt)"
[ "$(db 'SELECT count(*) FROM tensor_epochs')" -eq 2 ] || fail 'rows of a callback that is not attached'
[ "$(db "SELECT count(*) FROM tensor_stats WHERE queue = 'multi_activations_outfeed_queue'")" -eq $((2 * E)) ] ||
	fail 'a queue without a callback is recorded all the same'

# says TEXT ARGUMENT...: why nothing was enqueued.
says() {
	local text=$1
	shift
	run "$@"
	grep -A1 '^No data enqueued$' out.txt | grep -xF -- "$text" >/dev/null || fail "$*: expected \"$text\": $(cat out.txt)"
}
last=(--model.config.layers.5.config.final_outfeed false)
says '(the filters of queue "multi_activations_outfeed_queue" let none of its 2 keys pass)' --activations-filters dense
says '(the filters of queue "optimizer_outfeed_queue" let none of its 6 keys pass)' --outfeed.gradients '[]'
says '(no layer of queue "multi_activations_outfeed_queue" has final_outfeed, so nothing is sent)' "${last[@]}"
says '(the final outfeed of queue "multi_activations_outfeed_queue" comes before all that its filters let pass, so nothing is sent)' "${last[@]}" \
	--model.config.layers.3.config.final_outfeed true --activations-filters Dense_10_
says '(queue "optimizer_outfeed_queue" is not attached: outfeed.gradients is null)' --outfeed.gradients null \
	--callbacks "$(attached optimizer_outfeed_queue 'Gradients callback')"
says '(queue "optimizer_outfeed_queue" is not attached: outfeed.capture is "off")' --outfeed.capture off \
	--callbacks "$(attached optimizer_outfeed_queue 'Gradients callback')"

# --- one queue for each stage, unless a layer names another; what cannot share one says why
stages() {
	run --pipeline.stages '[0,0,0,0,1,1]' --outfeed.activations null "$@"
}
stages --model.config.layers.3.config.final_outfeed true
printed 1 | grep -A1 Multi >printed.txt
cat >wanted.txt <<TEXT
Multi-layer activations callback (multi_activations_outfeed_queue_stage_0)
  Dense_128_acts ($E, 32, 128)
Multi-layer activations callback (multi_activations_outfeed_queue_stage_1)
  Dense_10_acts ($E, 32, 10)
TEXT
cmp -s printed.txt wanted.txt || fail "a queue for each stage: $(cat out.txt)"
stages --model.config.layers.3.config '{"name": "Dense_128_acts", "queue": "mine"}'
grep -qx 'Multi-layer activations callback (mine)' out.txt || fail "a queue's own name: $(cat out.txt)"

# refuse TEXT ARGUMENT...
refuse() {
	local text=$1 code=0
	shift
	rm -rf tf_report__*
	"$bin/ipu-train" "$run" --steps-per-epoch "$E" --evaluate null --data.limit 2000 --quiet "$@" >out.txt 2>err.txt || code=$?
	[ $code -eq 2 ] || fail "$*: exit code $code: $(cat err.txt)"
	grep -qF -- "$text" err.txt || fail "$*: expected \"$text\": $(cat err.txt)"
	[ -z "$(find . -name 'tf_report__*')" ] || fail "$*: a report was left"
	code=0
	"$bin/ipu-plan" model "$run" --steps-per-epoch "$E" --evaluate null --data.limit 2000 "$@" >out.txt 2>err.txt || code=$?
	[ $code -eq 2 ] && grep -qF -- "$text" err.txt || fail "ipu-plan model $*: exit code $code, expected \"$text\": $(cat err.txt)"
}
shared=(--model.config.layers.3.config '{"name": "Dense_128_acts", "queue": "q"}' --model.config.layers.5.config '{"name": "Dense_10_acts", "queue": "q"}')
refuse 'layer "Dense_10_acts" of stage 1: outfeed queue "q" is that of stage 0 ("Dense_128_acts")' --pipeline.stages '[0,0,0,0,1,1]' "${shared[@]}"
refuse 'cannot be a second final outfeed' "${shared[@]}"
refuse 'is used by an Outfeed and by a MaybeOutfeed' "${shared[@]}" --model.config.layers.3.class_name Outfeed
refuse 'enqueued in one place, but both "Dense_128_acts" and "Dense_10_acts" use it' "${shared[@]}" --model.config.layers.3.class_name Outfeed \
	--model.config.layers.5.class_name Outfeed
refuse 'is the optimizer'"'"'s queue' --model.config.layers.3.config '{"name": "Dense_128_acts", "queue": "optimizer_outfeed_queue"}'
refuse 'unknown layer "Dense_1" (did you mean "Dense_10"?)' --outfeed.layers '["Dense_256", "Dense_1"]'
refuse 'outfeed.layers[1]: has the layer "Dense_256" twice' --outfeed.layers '["Dense_256", "Dense_256"]'
refuse 'inspect-tensors.json: outfeed queue "multi_activations_outfeed_queue": both layer "Dense_128_acts" and layer "Dense_10" have the key "Dense_128_acts"' \
	--outfeed.layers '{"Dense_10": "Dense_128_acts"}'
refuse 'both layer "Dense_128" and layer "Dense_128_acts" have the key "Dense_128_acts"' --outfeed.layers Dense_128
# Final in two stages, which automatic ones may put into one: what is run decides.
run --pipeline.stages '[0,0,0,0,1,1]' --model.config.layers.3.config '{"name": "Dense_128_acts"}'
"$bin/ipu-plan" model "$run" --pipeline.stages '[0,0,0,0,1,1]' --model.config.layers.3.config '{"name": "Dense_128_acts"}' >out.txt ||
	fail "a final outfeed in each stage is refused by ipu-plan"
run --model.config.layers.3.class_name Outfeed --model.config.layers.3.config '{"name": "a"}' --model.config.layers.5.class_name Outfeed \
	--model.config.layers.5.config '{"name": "b"}'
grep -qx 'Single layer activations callback (activations_outfeed_queue_a)' out.txt || fail "queues of two Outfeeds: $(cat out.txt)"

# --- outfeed.layers: the rows of the layers, without them
sequential='{ "class_name": "Flatten", "config": { "name": "flatten" } },
	{ "class_name": "Dense", "config": { "name": "Dense_256", "units": 256, "activation": "relu" } },
	{ "class_name": "Dense", "config": { "name": "Dense_128", "units": 128, "activation": "relu" } },
	{ "class_name": "Dense", "config": { "name": "Dense_10", "units": 10, "activation": "softmax" } }'
functional='{ "class_name": "InputLayer", "config": { "batch_input_shape": [32, 28, 28, 1], "name": "in" }, "name": "in", "inbound_nodes": [] }'
before=in
while read -r name; do
	layer=$(printf '%s\n' "$sequential" | grep "\"$name\"" | sed 's/^\s*{//; s/ *},*$//')
	functional+=", { $layer, \"name\": \"$name\", \"inbound_nodes\": [[[\"$before\", 0, 0, {}]]] }"
	before=$name
done <<<'flatten
Dense_256
Dense_128
Dense_10'
stats='SELECT queue, key, kind, stage, phase, epoch, step, replica, n, n_zero, min, max, mean, std, l1, l2 FROM tensor_stats ORDER BY queue, key, step, replica;
	SELECT epoch, callback, queue, key, shape, mean, std, min, max, nans, infs FROM tensor_epochs ORDER BY rowid;
	SELECT queue, key, kind, stage, shape, dtype FROM tensors ORDER BY queue, key'
same=0
for model in Sequential Model; do
	if [ "$model" = Sequential ]; then
		plain=(--model "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [$sequential]}}")
	else
		plain=(--model "{\"class_name\": \"Functional\", \"config\": {\"name\": \"m\", \"layers\": [$functional], \"input_layers\": [[\"in\", 0, 0]], \"output_layers\": [[\"Dense_10\", 0, 0]]}}")
	fi
	for ipus in 1 2 4; do
		with=(--ipu.auto_select_ipus $ipus) without=(--ipu.auto_select_ipus $ipus --pipeline.stages '[0,0,1,1]')
		[ $ipus -gt 1 ] || with+=(--pipeline null --gradient_accumulation null) without=("${with[@]}")
		run --model-type "$model" "${with[@]}" --weights.save with.npz
		db "$stats" >with.txt
		run "${plain[@]}" "${without[@]}" --outfeed.layers '["Dense_10", "Dense_128"]' --weights.save without.npz
		db "$stats" >without.txt
		[ -s with.txt ] && cmp -s with.txt without.txt || fail "$model on $ipus IPUs: outfeed.layers gives other rows: $(diff with.txt without.txt | head)"
		cmp -s with.npz without.npz || fail "$model on $ipus IPUs: looking changed the weights"
		same=$((same + $(wc -l <with.txt)))
	done
done
run "${plain[@]}" --pipeline.stages '[0,0,1,1]' --outfeed.layers '{"Dense_256": null, "Dense_128": "my_acts"}' --gradients-filters none
[ "$(printed 1 | grep -c _grad)" -eq 6 ] || fail "gradients: $(cat out.txt)"
printed 1 | grep "  Dense_256_acts ($E, 32, 256)" >/dev/null && printed 1 | grep "  my_acts ($E, 32, 128)" >/dev/null || fail "keys of outfeed.layers: $(cat out.txt)"
echo "$count tables as the tutorial's; $same rows of outfeed.layers are those of the layers"
