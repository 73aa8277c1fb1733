#!/usr/bin/env bash
# The weights after training are the same bytes whatever the schedule, the workers and the threads.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

count=0
weights() {
	local name=$1
	shift
	train 48 --quiet --evaluate null --gradient_accumulation.steps_per_replica 12 --weights.save "$work/$name" "$@"
	cmp -s "$work/reference" "$work/$name" || fail "$name: other weights than the reference's ($*)"
	count=$((count + 1))
}

train 48 --quiet --evaluate null --gradient_accumulation.steps_per_replica 12 --weights.save "$work/reference" "${no_pipeline[@]}" --host.threads 1
[ -s "$work/reference" ] || fail "no weights were written"

for threads in 1 2 4; do
	weights "none-$threads" "${no_pipeline[@]}" --host.threads "$threads"
done
for schedule in Grouped Interleaved Sequential gpipe 1f1b zb-h1 zb-h2; do
	sweep 1 2 4
	for threads in "${swept[@]}"; do
		weights "$schedule-2-$threads" --pipeline.schedule "$schedule" --host.threads "$threads"
		weights "$schedule-3-$threads" --pipeline.schedule "$schedule" --host.threads "$threads" \
			--pipeline.stages '[0,0,1,1,2,2]' --ipu.auto_select_ipus 4
	done
done
weights cpu --pipeline null --ipu null
# Looking does not change anything.
weights outfed "${no_pipeline[@]}" --outfeed.optimizer_mode AFTER_COMPUTE --outfeed.gradients '["none"]'
weights unseen --outfeed.capture off
cd "$work"
recorded() {
	POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true","autoReport.directory":"report"}' weights "$@"
	rm -rf report
}
recorded recorded
tiers=(health counts stats histogram 'last 5' full)
for tier in "${tiers[@]}"; do
	sweep 1 2 3
	for threads in "${swept[@]}"; do
		watched=(--host.threads "$threads" --outfeed.capture '[{"tier": "'"$tier"'"}]')
		recorded "$tier-1-$threads" "${no_pipeline[@]}" "${watched[@]}" --outfeed.optimizer_mode AFTER_COMPUTE
		recorded "$tier-2-$threads" "${watched[@]}"
		recorded "$tier-3-$threads" "${watched[@]}" --pipeline.schedule Interleaved --pipeline.stages '[0,0,1,1,2,2]' \
			--ipu.auto_select_ipus 4 --outfeed.gradients '["none"]'
	done
done
recorded seldom --outfeed.capture '[{"tier": "stats", "every": 5}]'
recorded unsent --outfeed.capture off
recorded asked --health.stop nonfinite

# And it can fail: another seed gives other weights.
train 48 --quiet --evaluate null --gradient_accumulation.steps_per_replica 12 --weights.save "$work/seed" "${no_pipeline[@]}" --fit.seed 2
! cmp -s "$work/reference" "$work/seed" || fail "another seed gave the same weights"
echo "$count runs gave the same bytes"
