#!/usr/bin/env bash
# Batches made ahead are the same as those made on the spot; images are resized; the rest of a pass is kept where asked for.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

few=(--quiet --data.limit 400 --evaluate.steps_per_execution 2 --evaluate.steps 4)
four=(--pipeline null --gradient_accumulation null --fit.steps_per_epoch 12 --compile.steps_per_execution 4)

# same NAME ARGUMENT...: every depth gives the weights of none.
same() {
	local name=$1 depth
	shift
	train 48 "${few[@]}" --data.prefetch 0 --weights.save "$work/$name" "$@"
	[ -s "$work/$name" ] || fail "$name: no weights were written"
	for depth in 1 4 null; do
		train 48 "${few[@]}" --data.prefetch "$depth" --weights.save "$work/ahead" "$@"
		cmp -s "$work/$name" "$work/ahead" || fail "$name: prefetch $depth gives other weights"
	done
}

same plain "${no_pipeline[@]}"
same pipeline
same interleaved --pipeline.schedule Interleaved
# A prefetch of 1 is less than the batches between the first stage and the last, which share an IPU.
same dealt --pipeline.schedule 1f1b-interleaved --pipeline.stages '[0,1,2,2,3,3]'
same replicas --pipeline null --ipu.auto_select_ipus 3 --gradient_accumulation.steps_per_replica 4 --compile.steps_per_execution 16
same resized "${no_pipeline[@]}" --data.resize '[14,20]'
! cmp -s "$work/plain" "$work/resized" || fail 'resizing changed nothing'

# 100 images: 3 batches of 32, and a fourth of 4 where the rest is kept.
cpu=(--pipeline null --gradient_accumulation null --ipu null --quiet --fit.epochs 2 --data.limit 100)
whole=(--fit.steps_per_epoch null --compile.steps_per_execution 1 --evaluate.steps_per_execution 1)
"$bin/ipu-train" "$run" "${cpu[@]}" "${whole[@]}" --weights.save "$work/dropped"
"$bin/ipu-train" "$run" "${cpu[@]}" "${whole[@]}" --data.drop_remainder false --weights.save "$work/kept"
! cmp -s "$work/dropped" "$work/kept" || fail 'the rest of a pass changed nothing'
"$bin/ipu-train" "$run" "${cpu[@]}" "${whole[@]}" --data.drop_remainder false --data.prefetch 3 --weights.save "$work/ahead"
cmp -s "$work/kept" "$work/ahead" || fail 'a short batch made ahead is another'
# Evaluation sees all 100: the accuracy is a multiple of a hundredth.
"$bin/ipu-train" "$run" "${cpu[@]:0:6}" --fit.epochs 1 --data.limit 100 --data.drop_remainder false "${whole[@]}" >"$work/out.txt"
grep -q 'accuracy: 0\.[0-9][0-9]00$' "$work/out.txt" || fail "an accuracy of 100 images: $(tail -1 "$work/out.txt")"
if "$bin/ipu-train" "$run" --quiet --data.drop_remainder false 2>"$work/err.txt"; then
	fail 'short batches on an IPU were taken'
fi
grep -q 'data.drop_remainder: is false, but every batch on an IPU is a whole one' "$work/err.txt" || fail "$(cat "$work/err.txt")"

# Vectors instead of class numbers.
train 12 "${few[@]}" "${four[@]}" "${no_pipeline[@]}" --data.one_hot true --compile.loss categorical_crossentropy --weights.save "$work/vectors"
[ -s "$work/vectors" ] || fail 'no weights from vectors'

# --- a table: its columns by name, the last of its rows to validate with
cd "$work"
{
	echo 'id,"petal, length",width,kind'
	for ((i = 0; i < 40; i++)); do echo "x$i,$((i % 2 * 30 + i % 7)),$((i % 3)).5,$([ $((i % 2)) = 0 ] && echo setosa || echo '"other one"')"; done
} >flowers.csv
cat >table.json <<'JSON'
{
	"model": { "class_name": "Sequential", "config": { "name": "m", "layers": [
		{ "class_name": "Dense", "config": { "name": "d", "units": 2, "activation": "softmax" } } ] } },
	"compile": { "optimizer": { "class_name": "SGD", "config": { "learning_rate": 1.0 } }, "loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"] },
	"data": { "name": "csv", "path": "flowers.csv", "columns": ["petal, length", "width"], "scale": "standard", "batch_size": 4, "validation_split": 0.2 },
	"fit": { "epochs": 10 }, "evaluate": {}, "ipu": null
}
JSON
"$bin/ipu-train" table.json >out || fail "a table: $(cat out)"
grep -q 'accuracy: 1.0000$' out || fail "a table is not learnt: $(cat out)"
"$bin/ipu-train" table.json --data.columns null >out 2>&1 && fail "words as inputs"
grep -q 'line 2: column "id": "x0" is no number' out || fail "no place: $(cat out)"

# --- items without targets are predicted as those with them are; to train or to evaluate them is refused
awk 'BEGIN {
	srand(5)
	for (part = 0; part < 2; part++) {
		n = part ? 12 : 40; p = part ? "test" : "train"; x = y = ""
		for (i = 0; i < n; i++) { v = rand(); x = x " " v " " 1 - v; y = y " " (v > 0.5) }
		print "x_" p, "f4", n ",2" x; print "y_" p, "i4", n y
	}
}' >arrays
make_npz all.npz <arrays
grep -v y_test arrays | make_npz unlabelled.npz
grep x_test arrays | make_npz x.npz
sed -e 's/flowers.csv/all.npz/; s/"csv"/"npz"/; s/"columns".*"batch_size": 4, "validation_split": 0.2/"batch_size": 4/; s/"evaluate": {}/"predict": { "output": "all.out.npz" }/' table.json >rows.json
"$bin/ipu-train" rows.json --weights.save rows.weights.npz --quiet
"$bin/ipu-train" rows.json --data.path unlabelled.npz --weights.save unlabelled.weights.npz --predict.output unlabelled.out.npz --quiet
cmp -s rows.weights.npz unlabelled.weights.npz || fail 'targets that are predicted alone change the weights'
"$bin/ipu-train" rows.json --fit null --data.path x.npz --weights.load rows.weights.npz --predict.output x.out.npz --quiet
"$bin/ipu-train" rows.json --fit null --data.path x.npz --weights.load rows.weights.npz --predict.output ipu.out.npz --quiet --ipu '{}' \
	--predict.steps_per_execution 3
for out in unlabelled x ipu; do
	cmp -s all.out.npz $out.out.npz || fail "$out.npz is predicted otherwise"
done
# A folder of the .npy files is the same.
for folder in unlabelled x; do
	python3 -m zipfile -e $folder.npz $folder
done
"$bin/ipu-train" rows.json --data.path unlabelled --weights.save folder.weights.npz --predict.output folder.out.npz --quiet
cmp -s rows.weights.npz folder.weights.npz || fail 'a folder gives other weights'
"$bin/ipu-train" rows.json --fit null --data.path x --weights.load rows.weights.npz --predict.output x.out.npz --quiet
cmp -s all.out.npz folder.out.npz && cmp -s all.out.npz x.out.npz || fail 'a folder is predicted otherwise'
for refused in '"x_train" --data.path x.npz' '"y_test" --data.path unlabelled.npz --evaluate {}' '"y_test" --data.path unlabelled.npz --fit.validation true'; do
	"$bin/ipu-train" rows.json ${refused#* } >out 2>&1 && fail "taken: $refused"
	grep -qF "there is no array ${refused%% *}" out || fail "$refused: $(cat out)"
done
# --- the same as tables: a column weighs the items, what is predicted alone has no target, in a folder or as a file
mkdir table
awk '{ n = $3 + 0; p = $1; sub(/.*_/, "", p) }
	/^x_/ { for (i = 0; i < n; i++) x[p, i] = $(2 * i + 4) "," $(2 * i + 5) }
	/^y_/ { file = "table/" p ".csv"; print (p == "train" ? "w,a,b,y" : "a,b") >file
		for (i = 0; i < n; i++) print (p == "train" ? 1 + i % 3 "," : "") x[p, i] (p == "train" ? "," $(i + 4) : "") >file }' arrays
{ cat arrays; echo "sample_weight_train f4 40 $(for ((i = 0; i < 40; i++)); do echo -n "$((1 + i % 3)) "; done)"; } | make_npz weighted.npz
sed 's/"npz"/"csv", "target": "y", "weight": "w"/; s/all.npz/table/' rows.json >columns.json
"$bin/ipu-train" rows.json --data.path weighted.npz --weights.save weighted.weights.npz --predict.output weighted.out.npz --quiet
"$bin/ipu-train" columns.json --weights.save table.weights.npz --predict.output table.out.npz --quiet || fail 'a table with weights'
cmp -s weighted.weights.npz table.weights.npz || fail 'a column of weights gives other weights than sample_weight_train'
cmp -s rows.weights.npz table.weights.npz && fail 'weights of items weigh nothing'
cmp -s weighted.out.npz table.out.npz || fail 'test.csv without a target is predicted otherwise'
"$bin/ipu-train" columns.json --fit null --data.path table/test.csv --weights.load table.weights.npz --predict.output file.out.npz --quiet || fail 'a table to predict'
cmp -s table.out.npz file.out.npz || fail 'a file without a target is predicted otherwise'
"$bin/ipu-train" columns.json --evaluate '{}' >out 2>&1 && fail 'a table without a target is evaluated'
grep -qF 'table/test.csv: data.target: there is no column "y" in its first line' out || fail "no target to evaluate: $(cat out)"
echo 'ok'
