#!/usr/bin/env bash
# Where stages lie, what is computed again and what is kept elsewhere change the device's time and memory, and no number.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

count=0
common=(--gradient_accumulation.steps_per_replica 12 --evaluate '{"steps": 12, "steps_per_execution": 12}')
three=(--pipeline.stages '[0,0,1,1,2,2]' --ipu.auto_select_ipus 4)

# The weights, and what was printed of the evaluation.
reference() {
	train 24 "${common[@]}" --weights.save "$work/reference" "$@" | grep -o 'loss: .*' | tail -n 1 >"$work/reference.txt"
	[ -s "$work/reference" ] && [ -s "$work/reference.txt" ] || fail "no reference ($*)"
}
same() {
	train 24 "${common[@]}" --weights.save "$work/weights" "$@" | grep -o 'loss: .*' | tail -n 1 >"$work/weights.txt"
	cmp -s "$work/reference" "$work/weights" || fail "other weights than the reference's ($*)"
	cmp -s "$work/reference.txt" "$work/weights.txt" || fail "another loss than the reference's ($*)"
	count=$((count + 1))
}

# Several stages on one IPU, in any order, on any schedule that lets them.
reference --pipeline.schedule Grouped
for schedule in Grouped Sequential; do
	for threads in 1 3; do
		same --pipeline.schedule "$schedule" --pipeline.device_mapping '[0,0]' --ipu.auto_select_ipus 1 --host.threads "$threads"
		same "${three[@]}" --pipeline.schedule "$schedule" --pipeline.device_mapping '[0,1,0]' --ipu.auto_select_ipus 2 \
			--host.threads "$threads"
		same "${three[@]}" --pipeline.schedule "$schedule" --pipeline.device_mapping '[3,0,0]' --host.threads "$threads"
	done
done
same --pipeline.schedule Interleaved --pipeline.device_mapping '[1,0]'
same "${three[@]}" --pipeline.schedule Interleaved --pipeline.device_mapping '[2,0,1]'

for option in offload_weight_update_variables offload_activations offload_gradient_accumulation_buffers offload_weights; do
	same "--pipeline.$option" true
done
same --ipu.allow_recompute true
same --ipu.allow_recompute true --pipeline.recomputation_mode RecomputeAndBackpropagateInterleaved
same --ipu.io_tiles '{"num_io_tiles": 32, "place_ops_on_io_tiles": true}' --infeed.prefetch_depth 1 --outfeed.buffer_depth 1
same --ipu.matmuls '{"availableMemoryProportion": 0.1, "partialsType": "half"}' \
	--pipeline.weight_update_poplar_options '{"matmul": {"partialsType": "float"}}'
same --gradient_accumulation.dtype float32

# On replicas too, each of which ends with the same weights.
reference --ipu.auto_select_ipus 4
same --ipu.auto_select_ipus 4 --pipeline.replicated_optimizer_state_sharding true
same --ipu.auto_select_ipus 4 --pipeline.replicated_weight_sharding true --pipeline.offload_weights true
same --ipu.auto_select_ipus 2 --pipeline.device_mapping '[0,0]'
same --ipu.auto_select_ipus 2 "${three[@]:0:2}" --pipeline.device_mapping '[0,0,0]'

# The recording knows which IPU ran a stage.
(cd "$work" && POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' \
	train 24 --quiet "${three[@]}" --gradient_accumulation.steps_per_replica 12 --evaluate null \
	--pipeline.device_mapping '[1,0,1]' --ipu.auto_select_ipus 2)
database=$(echo "$work"/tf_report__*/profile.db)
for clock in host device; do
	pairs=$(sqlite3 "$database" "select group_concat(stage || '-' || ipu) from (select distinct stage, ipu from stage_timings where clock = '$clock' order by stage)")
	[ "$pairs" = "0-1,1-0,2-1" ] || fail "clock $clock: stages on IPUs are $pairs"
done

# A switch with a value is refused.
said=$("$bin/ipu-train" inspect-tensors --quiet=false 2>&1) && fail "--quiet=false: exit code 0"
[ "$said" = "ipu-train: --quiet takes no value" ] || fail "--quiet=false: $said"

# And it can fail: sums of half precision are others.
train 24 --quiet "${common[@]}" --weights.save "$work/weights" --gradient_accumulation.dtype float16
! cmp -s "$work/reference" "$work/weights" || fail "float16 sums gave the same weights"
echo "$count runs gave the same bytes"
