#!/usr/bin/env bash
# Every optimizer trains to the same bytes whatever the schedule, the stages and the threads, and no two to the same ones. The norms
# of clipping and of Lamb are those of whole variables, global_clipnorm's that of all stages.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

count=0
weights() {
	local name=$1 optimizer=$2
	shift 2
	train 24 --quiet --evaluate null --gradient_accumulation.steps_per_replica 12 --compile.optimizer "$optimizer" --weights.save "$work/$name" "$@"
}
same() {
	weights now "$@"
	cmp -s "$work/reference" "$work/now" || fail "other weights than the reference's: $*"
	count=$((count + 1))
}

: >"$work/digests"
for optimizer in SGD AdamW Nadam Adagrad Lion Lamb \
	'{"class_name": "Adam", "config": {"clipnorm": 0.001}}' '{"class_name": "SGD", "config": {"clipvalue": 0.001}}' \
	'{"class_name": "SGD", "config": {"global_clipnorm": 0.001, "weight_decay": 0.1}}' \
	'{"class_name": "Lamb", "config": {"weight_decay_rate": 0.1, "global_clipnorm": 0.001}}'; do
	weights reference "$optimizer" "${no_pipeline[@]}" --host.threads 1
	sha256sum <"$work/reference" >>"$work/digests"
	same "$optimizer" "${no_pipeline[@]}" --host.threads 3
	sweep 'Grouped 2 2' 'Sequential 3 2' 'zb-h1 3 1' 'Sequential mapped 2'
	for words in "${swept[@]}"; do
		read -r schedule stages threads <<<"$words"
		pipelined=(--pipeline.schedule "$schedule" --host.threads "$threads")
		[ "$stages" = 2 ] || pipelined+=(--pipeline.stages '[0,0,1,1,2,2]')
		[ "$stages" != 3 ] || pipelined+=(--ipu.auto_select_ipus 4)
		[ "$stages" != mapped ] || pipelined+=(--pipeline.device_mapping '[0,1,0]')
		same "$optimizer" "${pipelined[@]}"
	done
	same "$optimizer" --pipeline null --ipu null
	# Replicas sum their gradients in another order, but in one.
	weights reference "$optimizer" --pipeline null --ipu.auto_select_ipus 2 --host.threads 1
	same "$optimizer" --pipeline.schedule Grouped --host.threads 3 --ipu.auto_select_ipus 4
done
[ "$(sort -u "$work/digests" | wc -l)" -eq 10 ] || fail "two optimizers gave the same weights"
echo "$count runs gave the same bytes"
