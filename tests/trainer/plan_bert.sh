#!/usr/bin/env bash
# BERT's run files: they are what their script makes, ipu-plan says without data whether they fit and what holds them up, its advice about smaller batches is true,
# and the small one learns the masked bytes of a text, with the same bytes on two IPUs and on the CPU.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
cd "$work"
examples=$IPUSCOPE_SOURCE_DIR/examples
command -v python3 >/dev/null || {
	echo 'skipped: no python3'
	exit 77
}

mkdir made long
python3 "$IPUSCOPE_SOURCE_DIR/script/make-bert-examples.py" made
for file in made/*.json; do
	cmp "$file" "$examples/${file#made/}" || fail "$file is not what script/make-bert-examples.py makes"
done
python3 "$IPUSCOPE_SOURCE_DIR/script/make-bert-examples.py" long --length 512 --predicted 76

# plan RUN ARGUMENT...: into the file plan.
plan() { "$bin/ipu-plan" model "$@" --json >plan || fail "$*: no plan"; }
key() { sed -n "s/^  \"$1\": \([^,]*\),*$/\1/p" plan; }
# is VALUES KEY...: of the plan.
is() {
	local values=$1 found=()
	shift
	for name in "$@"; do found+=("$(key "$name")"); done
	[ "${found[*]}" = "$values" ] || fail "$*: ${found[*]} and not $values"
}
# needs ARGUMENT...: bytes of the fullest tile.
needs() {
	plan "$@"
	key memory_bytes_per_tile
}

# --- Base and Large, on 16 and 8 IPUs
plan "$examples/bert.json"
is '16 4 5 16 65280 true' ipus replicas stages batch_size effective_batch_size memory_fits
plan "$examples/bert-large.json"
is '16 2 9 8 65664 true' ipus replicas stages batch_size effective_batch_size memory_fits
plan "$examples/bert-large.json" --one-replica
is '8 1 9 4 32832 true' ipus replicas stages batch_size effective_batch_size memory_fits
plan "$examples/bert-large.json" --four-ipus
is '16 4 5 8 65280 false' ipus replicas stages batch_size effective_batch_size memory_fits
plan long/bert-large.json --one-replica
is '8 1 9 1 8208 true' ipus replicas stages batch_size effective_batch_size memory_fits
plan long/bert.json
is '16 4 5 4 16320' ipus replicas stages batch_size effective_batch_size
# Four blocks a stage hold the pipeline up, not the embeddings or the head.
"$bin/ipu-plan" model "$examples/bert.json" >out
grep -q 'pipeline.stages: .*; the slowest, [123], takes' out || fail "$(cat out)"

# --- what a smaller batch needs is what it then takes; another cut of a product may take a little more
"$bin/ipu-plan" model "$examples/bert.json" --data.batch_size 32 >out || fail "$(cat out)"
half=$(sed -n 's/.* half the batch \([0-9,]*\).*/\1/p' out)
quarter=$(sed -n 's/.* a quarter of the batch \([0-9,]*\).*/\1/p' out)
awk -v said="${half//,/}" -v is="$(needs "$examples/bert.json")" 'BEGIN { exit !(is > 0 && said >= is * 0.99 && said < is * 1.1) }' ||
	fail "half the batch needs $(key memory_bytes_per_tile) and not $half"
awk -v said="${quarter//,/}" -v is="$(needs "$examples/bert.json" --data.batch_size 8)" 'BEGIN { exit !(is > 0 && said >= is * 0.99 && said < is * 1.1) }' ||
	fail "a quarter of the batch needs $(key memory_bytes_per_tile) and not $quarter"

# --- data are made up for ipu-plan alone, and as many as there are steps
"$bin/ipu-plan" model "$examples/bert-small.json" --fit '{}' >out 2>&1 && fail 'nobody knows how many items there are'
grep -q 'data.path: is missing, so .*: fit.steps_per_epoch says how many batches' out || fail "$(cat out)"
"$bin/ipu-plan" model "$examples/bert-small.json" --evaluate null --fit.validation true >out 2>&1 && fail 'validated on nothing'
grep -q 'data.path: is missing, so .*: evaluate.steps says how many batches' out || fail "$(cat out)"
"$bin/ipu-train" "$examples/bert-small.json" >out 2>&1 && fail 'trained on nothing'
grep -q 'data set "npz": which file? Give it with --data.path FILE.npz' out || fail "$(cat out)"

# --- the small one learns; its plan without data is that with data
text=$IPUSCOPE_SOURCE_DIR/tests/golden/gpt_text.txt
python3 "$IPUSCOPE_SOURCE_DIR/script/mask-text.py" "$text" masked.npz
small=("$examples/bert-small.json" --fit.steps_per_epoch 120 --fit.epochs 3)
plan "${small[@]}"
grep -v report_bytes plan >bare
plan "${small[@]}" --data.path masked.npz
grep -v report_bytes plan | cmp bare - || fail 'data change the plan'
small+=(--data.path masked.npz)
"$bin/ipu-train" "${small[@]}" --weights.save two.npz >out 2>&1 || fail "$(cat out)"
"$bin/ipu-train" "${small[@]}" -q --cpu --host.threads 1 --weights.save cpu.npz || fail 'the CPU'
cmp two.npz cpu.npz || fail 'two IPUs and the CPU learn otherwise'
tr '\r' '\n' <out | grep -a '^120/120 ' | awk '{ loss[++n] = $0; sub(/.* loss: /, "", loss[n]); sub(/ .*/, "", loss[n]) }
	END { exit !(n == 3 && loss[3] < loss[1] - 0.5) }' || fail "nothing learnt: $(tail -9 out)"
echo ok
