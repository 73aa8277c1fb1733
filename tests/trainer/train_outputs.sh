#!/usr/bin/env bash
# A model of several outputs: beside PyTorch, loss by loss; the same weights on any split; losses, weights and metrics by position and
# by name; what is recorded, predicted, saved and refused.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
cd "$work"

awk 'BEGIN {
	srand(7)
	for (part = 0; part < 2; part++) {
		n = 32; x = kind = place = counts = own = ""
		for (i = 0; i < n; i++) {
			for (j = 0; j < 6; j++) { v[j] = int(rand() * 17) / 8 - 1; x = x " " v[j] }
			kind = kind " " (v[0] > 0.25 ? 0 : v[1] > 0 ? 1 : 2)
			place = place " " v[2] * v[3] " " v[4] - v[0]
			counts = counts " " i % 4 / 2; own = own " " i % 3
		}
		name = part ? "test" : "train"
		print "x_" name " f4 " n ",6" x; print "y_" name "_kind i8 " n kind; print "y_" name "_place f4 " n ",2" place
		print "sample_weight_" name " f4 " n counts > "/dev/stderr"
		print "sample_weight_" name "_place f4 " n own > "/dev/stderr"
	}
}' 2>counts >arrays
make_npz plain.npz <arrays
cat arrays counts | make_npz all.npz
golden=$IPUSCOPE_SOURCE_DIR/tests/golden
cp "$golden/outputs.json" run.json

# run ARGUMENT...: out has what it prints.
run() { "$bin/ipu-train" run.json --data.path plain.npz "$@" >out 2>&1 || fail "$*: $(cat out)"; }

# Beside PyTorch: the loss of each update, CSVLogger's epochs of one step.
run -q --data.path all.npz
[ "$(head -n 1 log.csv)" = 'epoch,loss,kind_loss,place_loss,kind_accuracy,place_mean_absolute_error' ] || fail "names: $(head -n 1 log.csv)"
if [ -n "${UPDATE_GOLDEN:-}" ]; then
	cp log.csv kept.csv
	run -q --data.path all.npz --fit.epochs 1 --compile.optimizer.config.learning_rate 1e-30 --callbacks null --weights.save first.npz
	/usr/bin/python3 "$IPUSCOPE_SOURCE_DIR/script/make-outputs-golden.py" first.npz all.npz >"$golden/outputs_losses.txt"
	mv kept.csv log.csv
fi
grep -v '^#' "$golden/outputs_losses.txt" | awk -F '[ ,]' '
	NR == FNR { twin[$1] = $2; twin[$1 "k"] = $3; twin[$1 "p"] = $4; next }
	function off(a, b) { a -= b; return a < 0 ? -a : a }
	FNR > 1 { if (!($1 in twin) || off($2, twin[$1]) >= 1e-5 || off($3, twin[$1 "k"]) >= 1e-5 || off($4, twin[$1 "p"]) >= 1e-5)
		wrong = wrong "\n" $0 " PyTorch: " twin[$1] " " twin[$1 "k"] " " twin[$1 "p"]; last = $2; n++ }
	END { print wrong; exit wrong != "" || n != 20 || last > twin[0] - 0.2 }
' - log.csv || fail 'PyTorch has other losses'

# One digest, whatever the split, schedule, threads and place: the class is an output of stage 0.
digest() {
	run --data.batch_size 4 --fit.epochs 2 --compile.steps_per_execution 8 --gradient_accumulation '{"steps_per_replica": 4}' --callbacks null "$@"
	tr '\r' '\n' <out | sed -n 's/^Weights: XXH3 \([0-9a-f]\{16\}\)$/\1/p'
}
wanted=$(digest)
[ -n "$wanted" ] || fail 'no digest'
same() {
	local found
	found=$(digest "$@")
	[ "$found" = "$wanted" ] || fail "$*: the weights $found, not $wanted"
}
same --host.threads 1 --ipu '{}'
for schedule in gpipe 1f1b Grouped; do
	same --ipu '{"auto_select_ipus": 2}' --pipeline '{"stages": [0, 0, 1, 1, 1], "schedule": "'$schedule'"}'
done
same --ipu '{"auto_select_ipus": 2}' --pipeline '{"stages": {"second": 1}}'
same --ipu '{"auto_select_ipus": 2}' --pipeline '{"stages": "auto"}'
# By position, in any order of targets, weights as they are by themselves.
same --compile.loss '["sparse_categorical_crossentropy", "mse"]' --compile.loss_weights '[1, 0.75]' --data.outputs '["place", "kind"]'
# Weights of all outputs are those of each.
grep -v _place counts | cat arrays - | make_npz one.npz
sed 's/_train /_train_kind /; s/_test /_test_kind /; p; s/_kind /_place /' <(grep -v _place counts) | cat arrays - | make_npz two.npz
wanted=$(digest --data.path one.npz)
same --data.path two.npz
# Weights of classes, by name or position, are those of each item (a class's weight times the item's); vectors are the numbers' classes.
awk '{ $1 = $1 } $1 ~ /^y_.*_kind$/ { sub(/^y_/, "sample_weight_", $1); $2 = "f4"; for (i = 4; i <= NF; i++) $i = $i == 0 ? 0.5 : $i == 1 ? 2 : 1; print
	sub(/_kind$/, "_place", $1); for (i = 4; i <= NF; i++) $i = 1; print }' arrays >classes
cat arrays classes | make_npz classes.npz
wanted=$(digest --data.path classes.npz)
[ "$wanted" != "$(digest)" ] || fail 'weights of classes change nothing'
by_class='{"kind": {"0": 0.5, "1": 2, "2": 1}}'
same --fit.class_weight "$by_class"
same --fit.class_weight '[{"0": 0.5, "1": 2, "2": 1}, null]' --data.outputs '["place", "kind"]' --host.threads 1
sed -n '/^sample_weight_[a-z]* /p' counts | awk '
	NR == FNR { for (i = 4; i <= NF; i++) { weight[$1, i] = $i } next }
	{ part = $1; sub(/_kind$|_place$/, "", part); for (i = 4; i <= NF; i++) $i *= weight[part, i]; print }' - classes | cat arrays - | make_npz products.npz
losses() { tr -s '\r\n ' ' ' <out | grep -oE '[a-z_]*loss: [0-9.]+' | grep "$@"; }
wanted=$(digest --data.path products.npz --fit.validation true)
trained=$(losses -v val_) validated=$(losses val_)
same --data.path one.npz --fit.class_weight "$by_class" --fit.validation true
[ "$(losses -v val_)" = "$trained" ] || fail "the losses are $(losses -v val_), not $trained"
# A validation has the weights of items, but not of classes.
[ "$(losses val_)" != "$validated" ] || fail "class weights count in a validation: $validated"
# Class numbers become the vectors that an archive may have as well.
awk '$1 ~ /^y_.*_kind$/ { $2 = "f4"; $3 = $3 ",3"; for (i = 4; i <= NF; i++) $i = ($i == 0) " " ($i == 1) " " ($i == 2) } { print }' arrays | make_npz vectors.npz
categorical=(--compile.loss '{"kind": "categorical_crossentropy", "place": "mse"}' --fit.class_weight "$by_class" --fit.validation true)
wanted=$(digest --data.path vectors.npz "${categorical[@]}")
same --data.one_hot true "${categorical[@]}"
same --data.one_hot kind "${categorical[@]}" --data.outputs '["place", "kind"]' --ipu '{"auto_select_ipus": 2}' --pipeline '{"stages": {"second": 1}, "schedule": "1f1b"}'
# Two replicas are the same on two machines of threads.
two=(--ipu '{"auto_select_ipus": 2}')
wanted=$(digest "${two[@]}")
same "${two[@]}" --host.threads 1

# A mask reaches the loss of its own output alone: padded to more steps, with other classes there, tags and intents train to the same.
# sentences STEPS CLASS: words of 1 to 6 steps, a tag for each and an intent; CLASS stands at padding.
sentences() {
	awk -v steps="$1" -v class="$2" 'BEGIN {
		for (i = 0; i < 32; i++) for (s = 0; s < steps; s++) {
			word = s <= i % 6 ? (7 * i + 3 * s) % 9 + 1 : 0
			x = x " " word; tags = tags " " (word ? word % 3 : class); if (s == 0) intents = intents " " word % 2
		}
		print "x_train i4 32," steps x; print "y_train_tags i4 32," steps tags; print "y_train_intent i4 32" intents
	}' | make_npz "sentences-$1.npz"
}
# call CLASS NAME CONFIG [INPUT]
call() {
	local from=
	[ $# -eq 3 ] || from="[[\"$4\", 0, 0, {}]]"
	echo "{\"class_name\": \"$1\", \"name\": \"$2\", \"config\": {\"name\": \"$2\"$3}, \"inbound_nodes\": [$from]}"
}
tagged() {
	local name=$1 steps=$2
	sentences "$steps" $((steps % 3))
	cat >"$name.json" <<JSON
{"model": {"class_name": "Functional", "config": {"name": "m", "layers": [$(call InputLayer x ", \"batch_input_shape\": [null, $steps]"),
	$(call Embedding words ', "input_dim": 10, "output_dim": 6, "mask_zero": true' x), $(call GRU cells ', "units": 5, "return_sequences": true' words),
	$(call Dense tags ', "units": 3, "activation": "softmax"' cells), $(call LSTM last ', "units": 4' cells), $(call Dense intent ', "units": 2, "activation": "softmax"' last)],
	"input_layers": [["x", 0, 0]], "output_layers": [["tags", 0, 0], ["intent", 0, 0]]}},
 "compile": {"optimizer": "Adam", "loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"], "steps_per_execution": 4},
 "data": {"name": "npz", "path": "sentences-$steps.npz", "batch_size": 8, "outputs": ["tags", "intent"]}, "fit": {"epochs": 3, "seed": 3}, "ipu": null,
 "callbacks": [{"class_name": "CSVLogger", "config": {"filename": "$name.csv"}}]}
JSON
}
tagged short 6
tagged long 9
# tags NAME ARGUMENT...: the figures of each epoch, and the digest.
tags() {
	local name=$1
	shift
	"$bin/ipu-train" "$name.json" --gradient_accumulation '{"steps_per_replica": 2}' "$@" >out 2>&1 || fail "$name $*: $(cat out)"
	cat "$name.csv"
	tr '\r' '\n' <out | grep '^Weights: XXH3'
}
wanted=$(tags short)
[ "$(wc -l <<<"$wanted")" -eq 5 ] || fail "not three epochs and a digest: $wanted"
[ "$(tags long)" = "$wanted" ] || fail "padding counts: $(tags long), not $wanted"
# Layers: words, words/mask, cells, tags, last, intent.
for stages in '[0, 0, 0, 0, 1, 1]' '[0, 0, 1, 1, 1, 1]'; do
	found=$(tags long --ipu '{"auto_select_ipus": 2}' --pipeline "{\"stages\": $stages, \"schedule\": \"1f1b\"}")
	[ "$found" = "$wanted" ] || fail "padding counts on $stages: $found, not $wanted"
done
sed -i 's/"mask_zero": true/"mask_zero": false/' short.json long.json
[ "$(tags short)" != "$(tags long)" ] || fail 'padding counts nowhere, without a mask either'

# Several outputs of a nested model: the same network, of which PyTorch has told the losses. One of them that nothing reads changes nothing.
python3 - <<'PYTHON'
import copy, json
run = json.load(open("run.json"))
config = run["model"]["config"]
x, first, kind, second, both, place = config["layers"]
body = {"name": "body", "layers": [x, first, kind, second], "input_layers": [["x", 0, 0]], "output_layers": [["second", 0, 0], ["kind", 0, 0]]}
outer = copy.deepcopy(x)
outer["name"] = outer["config"]["name"] = "input"
both["inbound_nodes"] = [[["body", 1, 0, {}], ["body", 1, 1, {}]]]
config["layers"] = [outer, {"class_name": "Functional", "name": "body", "config": body, "inbound_nodes": [[["input", 0, 0, {}]]]}, both, place]
config["input_layers"], config["output_layers"] = [["input", 0, 0]], [["body", 1, 1], ["place", 0, 0]]
run["compile"].update(loss={"body": "sparse_categorical_crossentropy", "place": "mse"}, metrics={"body": ["accuracy"], "place": "mean_absolute_error"})
run["data"]["outputs"] = ["body", "place"]
json.dump(run, open("nested.json", "w"))
body["layers"].append({"class_name": "Dense", "name": "unread", "config": {"name": "unread", "units": 4}, "inbound_nodes": [[["first", 0, 0, {}]]]})
body["output_layers"].append(["unread", 0, 0])
json.dump(run, open("unread.json", "w"))
config["layers"] = config["layers"][:2]
config["output_layers"] = [["body", 1, 1]]
run["compile"].update(loss="sparse_categorical_crossentropy", metrics=["accuracy"], loss_weights=None)
del run["data"]["outputs"]
json.dump(run, open("alone.json", "w"))
PYTHON
sed 's/_kind/_body/' arrays counts | make_npz nested.npz
run -q --data.path all.npz
sed 's/kind/body/g' log.csv >wanted.csv
for name in nested unread; do
	"$bin/ipu-train" $name.json -q --data.path nested.npz || fail "$name: several outputs of a nested model"
	cmp log.csv wanted.csv || fail "$name: other losses: $(diff log.csv wanted.csv)"
done
"$bin/ipu-train" unread.json -q --data.path nested.npz --gradient_accumulation '{"steps_per_replica": 1}' --ipu '{"auto_select_ipus": 2}' --pipeline '{"stages": {"place": 1}, "schedule": "1f1b"}' || fail 'unread on two stages'
cmp log.csv wanted.csv || fail "unread on two stages: other losses"
sed 's/_kind//' arrays | make_npz alone.npz
"$bin/ipu-train" alone.json -q --data.path alone.npz --weights.save alone-w.npz || fail 'one output of a nested model of several'
cut -d , -f 2 log.csv >alone.txt
run -q --compile.loss.place null --compile.loss_weights null --compile.metrics '[["accuracy"], null]' --data.outputs kind
cut -d , -f 2 log.csv | cmp - alone.txt || fail 'one output of a nested model of several: other losses'

# Each output's loss ignores a class of its own, which may be none of the classes: whatever its number, the same weights and figures.
# ignoring NAME TAGS PARTS: what stands at every third step's tag, and at every fourth step's part.
ignoring() {
	awk -v tags="$2" -v parts="$3" 'BEGIN {
		for (i = 0; i < 32 * 6; i++) { x = x " " i % 9; t = t " " (i % 3 ? i % 9 % 4 : tags); p = p " " (i % 4 ? i % 9 % 2 : parts) }
		print "x_train i4 32,6" x; print "y_train_tags i4 32,6" t; print "y_train_parts i4 32,6" p
		print "x_test i4 32,6" x; print "y_test_tags i4 32,6" t; print "y_test_parts i4 32,6" p
	}' | make_npz "$1.npz"
	cat >"$1.json" <<JSON
{"model": {"class_name": "Functional", "config": {"name": "m", "layers": [$(call InputLayer x ', "batch_input_shape": [null, 6]'),
	$(call Embedding words ', "input_dim": 10, "output_dim": 6' x), $(call Dense tags ', "units": 4, "activation": "softmax"' words),
	$(call Dense parts ', "units": 2, "activation": "softmax"' words)],
	"input_layers": [["x", 0, 0]], "output_layers": [["tags", 0, 0], ["parts", 0, 0]]}},
 "compile": {"optimizer": "Adam", "loss": {"tags": {"class_name": "SparseCategoricalCrossentropy", "config": {"ignore_class": $2}},
	"parts": {"class_name": "SparseCategoricalCrossentropy", "config": {"ignore_class": $3}}}, "metrics": ["accuracy"], "steps_per_execution": 4},
 "data": {"name": "npz", "path": "$1.npz", "batch_size": 8, "outputs": ["tags", "parts"]}, "fit": {"epochs": 3, "seed": 3, "validation": true}, "ipu": null,
 "callbacks": [{"class_name": "CSVLogger", "config": {"filename": "$1.csv"}}]}
JSON
}
ignoring one -1 255
ignoring other 77 -5
wanted=$(tags one)
grep -q nan <<<"$wanted" && fail "a class that is ignored counts: $wanted"
[ "$(tags other)" = "$wanted" ] || fail "other numbers are ignored: $(tags other), not $wanted"
list='[{"class_name": "SparseCategoricalCrossentropy", "config": {"ignore_class": -1}}, {"class_name": "SparseCategoricalCrossentropy", "config": {"ignore_class": 255}}]'
[ "$(tags one --compile.loss "$list" --data.outputs '["parts", "tags"]')" = "$wanted" ] || fail 'ignored by position: other figures'
# unignored TEXT ARGUMENT...
unignored() {
	local text=$1 code=0
	shift
	"$bin/ipu-train" one.json "$@" >out 2>err || code=$?
	[ $code -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] && grep -qF -- "$text" err || fail "$*: expected \"$text\", got $code: $(cat err)"
}
none='rows of the class -1, which compile.loss ignores, have no sparse_categorical_crossentropy, since the output "tags" has no such class: ignore it here too'
unignored "evaluate.loss: output \"tags\": $none" --evaluate '{"loss": "sparse_categorical_crossentropy"}'
unignored "compile.metrics.tags: $none" --compile.metrics '{"tags": "sparse_categorical_crossentropy"}'
unignored "compile.metrics.tags[1]: $none" --compile.metrics '{"tags": ["accuracy", "perplexity"]}'
unignored "(layer \"parts\") does not fit the loss sparse_categorical_crossentropy: with 6 class numbers below 256" --compile.loss '[null, "sparse_categorical_crossentropy"]' --compile.metrics null

unignored 'fit.class_weight: the output "tags" has 6 positions an item, and class weights are of one class an item' --fit.class_weight '{"tags": {"0": 1}}'

# An output without a loss gets no gradient, and needs no targets.
run --compile.loss.place null --compile.loss_weights null --compile.metrics '[["accuracy"], null]' --data.outputs kind
[ "$(head -n 1 log.csv)" = 'epoch,loss,kind_loss,kind_accuracy' ] || fail "names without a place: $(head -n 1 log.csv)"
awk -F , 'NR > 1 && $2 != $3 { exit 1 }' log.csv || fail 'the loss is not its one part'
# One loss and one list of metrics are of all outputs; the names are for EarlyStopping too.
run --compile.loss mse --compile.metrics '["mae"]' --fit.validation true \
	--callbacks '[{"class_name": "EarlyStopping", "config": {"monitor": "val_place_mae", "patience": 1, "min_delta": 10}}]'
grep -q 'val_place_mae: ' out || fail "no figures of the validation: $(tail -5 out)"
[ "$(grep -c '^Epoch' <(tr '\r' '\n' <out))" -eq 2 ] || fail "EarlyStopping does not see val_place_mae: $(grep Epoch out)"

# What is recorded.
POPLAR_ENGINE_OPTIONS='{"autoReport.all": "true", "autoReport.directory": "report"}' "$bin/ipu-train" run.json --data.path plain.npz --ipu '{}' \
	--evaluate '{}' --predict.output first.npz --weights.save w.npz >out 2>&1 || fail "$(cat out)"
db=$(find . -name profile.db)
names=$(sqlite3 -readonly "$db" "SELECT group_concat(DISTINCT name) FROM metrics WHERE mode = 'evaluate' AND step IS NULL")
[ "$names" = loss,kind_loss,place_loss,kind_accuracy,place_mean_absolute_error ] || fail "metrics recorded: $names"
[ "$(sqlite3 -readonly "$db" "SELECT value FROM meta WHERE key = 'loss'")" = 'kind: sparse_categorical_crossentropy, place: mean_squared_error' ] || fail 'the losses are not in meta'
[ "$(sqlite3 -readonly "$db" "SELECT count(*) FROM operations WHERE operation IN ('loss/kind/sparse_categorical_crossentropy', 'loss/place/mean_squared_error', 'loss/AddN')")" = 3 ] ||
	fail "the losses are no operations"
"$bin/ipu-report" "$(dirname "$db")" metrics | grep kind_accuracy >/dev/null || fail 'ipu-report metrics lacks an output'

# Predictions are one array of each output, from a saved model too.
python3 - first.npz <<'PYTHON' || fail 'the predictions have other arrays'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as file:
    heads = {name: file.read(name)[:128] for name in file.namelist()}
assert set(heads) == {"kind.npy", "place.npy"} and b"(32, 3)" in heads["kind.npy"] and b"(32, 2)" in heads["place.npy"], heads
PYTHON
"$bin/ipu-train" run.json --data.path plain.npz --fit null --weights.load w.npz --weights.save_model m.keras --predict.output second.npz >out 2>&1 || fail "$(cat out)"
cmp -s first.npz second.npz || fail 'the same weights predict otherwise'
"$bin/ipu-train" run.json --data.path plain.npz --fit null --model m.keras --weights.load m.keras --predict.output third.npz >out 2>&1 || {
	grep -q 'needs libhdf5' out || fail "m.keras: $(cat out)"
	cp first.npz third.npz
}
cmp -s first.npz third.npz || fail 'm.keras predicts otherwise'
"$bin/ipu-plan" model run.json --ipu '{}' --fit.steps_per_epoch 4 >out 2>&1 || fail "ipu-plan without data: $(cat out)"

# A layer that is called twice is two outputs.
python3 - <<'PYTHON'
import json
run = json.load(open("run.json"))
config = run["model"]["config"]
config["layers"] = config["layers"][:2] + [{"class_name": "Dense", "name": "place", "config": {"name": "place", "units": 2}, "inbound_nodes": [[["x", 0, 0, {}]], [["double", 0, 0, {}]]]},
    {"class_name": "Dense", "name": "double", "config": {"name": "double", "units": 6}, "inbound_nodes": [[["first", 0, 0, {}]]]}]
config["output_layers"] = [["place", 0, 0], ["place", 1, 0]]
run["compile"] = {"optimizer": "SGD", "loss": {"place": "mse", "place_1": "mae"}}
run["data"]["outputs"] = ["place", "place_1"]
json.dump(run, open("twice.json", "w"))
PYTHON
sed -n '/_place /{p; s/_place /_place_1 /p}; /^x_/p' arrays | make_npz twice.npz
"$bin/ipu-train" twice.json --data.path twice.npz >out 2>&1 || fail "twice: $(cat out)"
[ "$(head -n 1 log.csv)" = epoch,loss,place_loss,place_1_loss ] || fail "names of one layer: $(head -n 1 log.csv)"

# refuse TEXT ARGUMENT...
refuse() {
	local text=$1 code=0
	shift
	"$bin/ipu-train" run.json --data.path plain.npz "$@" >out 2>err || code=$?
	[ $code -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] && grep -qF -- "$text" err || fail "$*: expected \"$text\", got $code: $(cat err)"
}
refuse "data.outputs: is missing: it names the outputs that have targets (y_train_NAME) of the model's 2: \"kind\", \"place\"" --data.outputs null
# What is wrong with the ends themselves, before data or data.outputs are looked at.
ends() { refuse "model.config.output_layers$1" --model.config.output_layers "$2" --data.path nowhere.npz --data.outputs null; }
ends ': names "kind" twice' '[["kind", 0, 0], ["kind", 0, 0]]'
ends '[1][2]: "place" has one output here: only number 0 is supported' '[["kind", 0, 0], ["place", 0, 1]]'
ends '[1][0]: unknown layer "plaice" (did you mean "place"?)' '[["kind", 0, 0], ["plaice", 0, 0]]'
ends ': 17 of them are not supported: there must be at most 16' "[$(printf '["kind", 0, 0], %.0s' {1..16})[\"place\", 0, 0]]"
refuse 'data.outputs: unknown output "plaice" (did you mean "place"?)' --data.outputs '["kind", "plaice"]'
refuse 'data.outputs: names "kind" twice' --data.outputs '["kind", "place", "kind"]'
refuse 'data.outputs: the output "place" has a loss but no targets: name it too, and have y_train_place (the model'"'"'s outputs are "kind", "place")' --data.outputs kind
refuse 'the output "place" has a metric but no targets' --data.outputs kind --compile.loss.place null
refuse 'compile.loss: unknown output "class" (one of: kind, place)' --compile.loss '{"class": "mse"}'
refuse 'compile.loss_weights: has 3 entries, but the model has 2 outputs: "kind", "place"' --compile.loss_weights '[1, 2, 3]'
refuse 'compile.metrics: unknown output "kin"' --compile.metrics '{"kin": "accuracy"}'
refuse 'compile.metrics.place[0]: the name "place_loss" is taken' --compile.metrics '{"place": [{"class_name": "MeanSquaredError", "config": {"name": "loss"}}]}'
refuse 'compile.loss: no output has a loss' --compile.loss '[null, null]'
refuse 'fit.class_weight: is of one output, and the model has 2: give such an object by output, {"kind": {"0": 1.0, "1": 2.5}}' --fit.class_weight '{"0": 1, "1": 1, "2": 2}'
refuse 'fit.class_weight: has 1 entry, but the model has 2 outputs' --fit.class_weight '[{"0": 1}]'
refuse 'fit.class_weight: unknown output "kin"' --fit.class_weight '{"kin": {"0": 1}}'
refuse 'fit.class_weight.kind: must have the classes from 0 to 1' --fit.class_weight '{"kind": {"0": 1, "2": 1}}'
refuse 'plain.npz (npz): fit.class_weight: it has no weight for item' --fit.class_weight '{"kind": {"0": 1}}'
refuse 'fit.class_weight.place: the output "place" has no targets: data.outputs does not name it' --fit.class_weight '{"place": {"0": 1}}' \
	--compile.loss.place null --compile.metrics null --data.outputs kind
refuse 'data.one_hot: unknown output "place" (one of: kind)' --data.one_hot place --compile.loss.place null --compile.metrics null --data.outputs kind
refuse 'data.one_hot: the targets of "place" are values, not class numbers' --data.one_hot place
refuse 'data.one_hot: must be true, false or names' --data.one_hot '[]'
grep _place counts | cat arrays - | make_npz half.npz
refuse 'half.npz: there is no array "sample_weight_train_kind": give one of each output that data.outputs names, or sample_weight_train for those without' --data.path half.npz
refuse 'compile.loss.kind: output "kind": the loss sparse_categorical_crossentropy needs class numbers' --data.one_hot true
refuse 'compile.loss: output "place": the loss sparse_categorical_crossentropy needs class numbers' --compile.loss sparse_categorical_crossentropy --compile.metrics null
refuse 'data.outputs: names arrays of data.name npz, and this is mnist' --data.name mnist --data.path null
echo ok
