#!/usr/bin/env bash
# Shared layers and nested models: a model called twice is one set of weights, as PyTorch trains it; the same bytes over threads,
# schedules and splits; saved once; planned; what cannot be is refused.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
cd "$work"
golden=$IPUSCOPE_SOURCE_DIR/tests/golden
run=run.json
cp "$golden/siamese.json" $run

awk 'BEGIN {
	for (part = 0; part < 2; part++) {
		name = part ? "test" : "train"; left = right = y = ""
		for (i = 0; i < 32; i++) {
			for (s = 0; s < 6; s++) { left = left " " (7 * i + 5 * s + part) % 12; right = right " " (i * i + 3 * s) % 12 }
			y = y " " (i + i % 4) % 3
		}
		print "x_" name " i4 32,6" left; print "x_" name "_left i4 32,6" left; print "x_" name "_right i4 32,6" right; print "y_" name " i4 32" y
	}
}' | make_npz pairs.npz
train() { "$bin/ipu-train" "$run" --data.path pairs.npz "$@" >out 2>err || fail "$*: $(cat err)"; }

# Beside PyTorch: the loss of each update, and of the test set behind it.
train -q
if [ -n "${UPDATE_GOLDEN:-}" ]; then
	mv log.csv kept.csv
	train -q --fit.epochs 1 --compile.optimizer.config.learning_rate 1e-30 --callbacks null --fit.validation false --evaluate null \
		--model.config.layers.2.config.layers.4.config.momentum 1 --weights.save first.npz
	/usr/bin/python3 "$IPUSCOPE_SOURCE_DIR/script/make-siamese-golden.py" first.npz pairs.npz >"$golden/siamese_losses.txt"
	mv kept.csv log.csv
fi
grep -v '^#' "$golden/siamese_losses.txt" | awk -F '[ ,]' '
	NR == FNR { loss[$1] = $2; test[$1] = $3; next }
	FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
	function off(x, y) { return x < y ? y - x : x - y }
	{ if (!($1 in loss) || off($column["loss"], loss[$1]) >= 1e-5 || off($column["val_loss"], test[$1]) >= 1e-4) wrong = wrong "\n" $0 " in PyTorch: " loss[$1] " " test[$1]
	  last = $column["loss"]; n++ }
	END { print wrong; exit wrong != "" || n != 20 || last > loss[0] - 0.3 }
' - log.csv || fail 'PyTorch has other losses'

# weights NAME ARGUMENT...: of 4 updates of 8 micro-batches, kept as NAME; out has what is printed.
weights() {
	local name=$1
	shift
	train --fit.epochs 4 --callbacks null --fit.validation false --evaluate null --compile.steps_per_execution 8 --data.batch_size 4 \
		--gradient_accumulation '{"steps_per_replica": 8}' --weights.save "$name" "$@"
}
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }
two=(--ipu '{"auto_select_ipus": 2}')

# Each weight once, in the file and in the count; the second call of the model reads what the first one of score does.
weights cpu.npz
python3 -m zipfile -l cpu.npz | awk 'NR > 1 { print $1 }' | sort | tr '\n' ' ' >names
[ "$(wc -w <names)" -eq 14 ] && ! grep -q '_1/' names || fail "the file has $(cat names)"
grep -q '^Total params: 403$' out && grep -q '^encoder (Functional) *(None, 6) *360 *left\[0\]\[0\]' out || fail "the summary: $(cat out)"
grep -q ' score\[1\]\[0\]' out || fail "the second call is missing: $(cat out)"
weights one.npz --host.threads 1
same cpu.npz one.npz
weights ipu.npz --ipu '{}'
same cpu.npz ipu.npz
# Layers: left, right, 5 of each call of encoder, score, score_1, both, out.
for stages in '[0,0,0,0,0,0,0,0,0,0,0,0,1,1,1,1]' '[0,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]' '"auto"'; do
	for schedule in Grouped 1f1b zb-h1; do
		weights pipe.npz "${two[@]}" --pipeline '{"stages": '"$stages"', "schedule": "'$schedule'"}'
		same cpu.npz pipe.npz
	done
done

# Dropout in a model called twice draws for each call; replicas share the weights, too.
dropout=(--model.config.layers.2.config.layers.4 '{"class_name": "Dropout", "name": "norm", "config": {"name": "norm", "rate": 0.5}, "inbound_nodes": [[["mix", 1, 0, {}]]]}')
weights drop.npz "${dropout[@]}"
! cmp -s cpu.npz drop.npz || fail 'Dropout changes nothing'
weights pipe.npz "${dropout[@]}" "${two[@]}" --pipeline '{"stages": "auto", "schedule": "1f1b"}'
same drop.npz pipe.npz
weights half.npz --compile.dtype_policy mixed_float16
weights pipe.npz --compile.dtype_policy mixed_float16 "${two[@]}" --pipeline '{"stages": "auto"}' --host.threads 1
same half.npz pipe.npz

# Saved and loaded as Keras has it: the layers of a nested model find theirs. kept MODEL INPUTS WEIGHTS
kept() {
	local file save model from=("$run" --model "$1" --data.inputs "$2" --data.path pairs.npz --fit null --callbacks null)
	for file in m.keras m.h5 m.weights.h5; do
		save=save_model
		[ $file != m.weights.h5 ] || save=save
		"$bin/ipu-train" "${from[@]}" --weights.load "$3" --weights.$save $file --predict.output first.npz >out 2>&1 || {
			grep -q libhdf5 out || fail "$file: $(cat out)"
			continue
		}
		model=()
		[ $file = m.weights.h5 ] || model=(--model $file)
		"$bin/ipu-train" "${from[@]}" "${model[@]}" --weights.load $file --predict.output second.npz >out 2>&1 || fail "$file: $(cat out)"
		same first.npz second.npz
	done
}
python3 -c 'import json, sys; json.dump(json.load(open(sys.argv[1]))["model"], open(sys.argv[2], "w"))' $run siamese.json
kept siamese.json '["left", "right"]' cpu.npz

# A layer called eight times, as Keras 2 and as Keras 3 write it; a model called twice in one called twice in one called twice.
python3 - <<'PYTHON' || fail 'no models'
import json

pick = lambda text: json.loads(text.replace("'", '"'))
x = pick("{'class_name': 'InputLayer', 'name': 'x', 'config': {'name': 'x', 'batch_input_shape': [null, 6]}, 'inbound_nodes': []}")


def dense(name, units, activation, calls):
    return {"class_name": "Dense", "name": name, "config": {"name": name, "units": units, "activation": activation}, "inbound_nodes": calls}


def call(name, number):
    return [[name, number, 0, {}]]


def call3(name, number):
    return {"args": [{"class_name": "__keras_tensor__", "config": {"shape": [None, 6], "dtype": "float32", "keras_history": [name, number, 0]}}], "kwargs": {}}


def functional(name, layers, output):
    return {"class_name": "Functional", "name": name, "config": {"name": name, "layers": [x] + layers, "input_layers": [["x", 0, 0]], "output_layers": [output]}}


def write(name, layers, last):
    with open(name, "w") as file:
        json.dump(functional("m", layers + [dense("out", 3, "softmax", [call(*last)])], ["out", 0, 0]), file)


for name, form in ("eight.json", call), ("three.json", call3):
    write(name, [dense("d", 6, "tanh", [form("x", 0)] + [form("d", k) for k in range(7)])], ("d", 7))

# The layer d listed in three models, one of which (a) is listed in two; and, in Keras 3, in two models of a Sequential.
d = lambda calls: dense("d", 6, "tanh", calls) | {"shared_object_id": 7}
a = functional("a", [d([call("x", 0), call("d", 0)])], ["d", 1, 0]) | {"shared_object_id": 8}
c = functional("c", [a | {"inbound_nodes": [call("x", 0)]}, d([call("a", 1)])], ["d", 0, 0])
b = {"class_name": "Sequential", "name": "b", "config": {"name": "b", "layers": [d([])]}}
del b["config"]["layers"][0]["inbound_nodes"]
inner = [a | {"inbound_nodes": [call("x", 0)]}, b | {"inbound_nodes": [call("a", 1)]}, c | {"inbound_nodes": [call("b", 1)]}]
write("spread.json", [*inner, d([call("c", 1), call("d", 0)])], ("d", 1))
half = d([call("x", 0)] + [call("d", k) for k in range(3)]) | {"shared_object_id": 140234567890128, "module": "keras.layers"}
halves = [functional(name, [half], ["d", 3, 0]) for name in "mn"] + [dense("out", 3, "softmax", [])]
del halves[2]["inbound_nodes"]
with open("spread3.json", "w") as file:
    json.dump({"class_name": "Sequential", "config": {"name": "s", "layers": halves}}, file)

layer, last = dense("d", 6, "tanh", [call("x", 0)]), ("d", 0)
for name in "abc":
    layer, last = functional(name, [layer], [*last, 0]) | {"inbound_nodes": [call("x", 0), call(name, 1)]}, (name, 2)
write("nested.json", [layer], last)
PYTHON
for name in eight three nested spread3 spread; do
	weights $name.npz --model $name.json --data.inputs null
	same eight.npz $name.npz
done
# Keras counts a layer of several models with each of them, and once in all.
for row in 'a (Functional)' 'b (Sequential)' 'c (Functional)' 'd (Dense)'; do
	grep -q "^$row .* 42 " out || fail "the summary: $(cat out)"
done
grep -q '^Total params: 63$' out || fail "the summary: $(cat out)"
for schedule in Grouped 1f1b; do
	weights pipe.npz --model spread.json --data.inputs null "${two[@]}" --pipeline '{"stages": "auto", "schedule": "'$schedule'"}' --host.threads 1
	same eight.npz pipe.npz
done
kept spread.json null eight.npz
# The names of the calls do not matter, their number does.
sed 's/, \[\["d", 6, 0, {}\]\]//; s/"d", 7, 0/"d", 6, 0/' eight.json >seven.json
weights seven.npz --model seven.json --data.inputs null
! cmp -s eight.npz seven.npz || fail 'a call less changes nothing'

# The device computes each call, and has the weights once.
POPLAR_ENGINE_OPTIONS='{"autoReport.all": "true"}' weights report.npz --ipu '{}' --outfeed '{"activations": ["mix"], "gradients": ["mix"], "capture": "stats"}'
ask() { sqlite3 -batch -bail tf_report__*/profile.db "$1"; }
[ "$(ask "SELECT group_concat(layer || ' ' || params, ', ') FROM (SELECT * FROM layers WHERE layer GLOB 'mix*' ORDER BY position)")" = 'mix 42, mix_1 0, mix_2 0, mix_3 0' ] ||
	fail 'layers of mix'
[ "$(ask "SELECT count(DISTINCT flops) || ' ' || min(flops > 0) FROM layers WHERE layer GLOB 'mix*'")" = '1 1' ] || fail 'FLOPs of mix'
[ "$(ask "SELECT count(*) FROM operations WHERE operation GLOB 'mix*/MatMul' AND cycles > 0")" = 4 ] || fail 'products of mix'
[ "$(ask "SELECT count(*) FROM operations WHERE operation GLOB 'mix*/kernel_call_grad/Add'")" = 3 ] || fail 'sums of gradients of mix'
[ "$(ask "SELECT group_concat(variable || ' ' || bytes) FROM variables WHERE kind = 'weight' AND variable GLOB 'mix*/kernel'")" = 'mix/kernel 144' ] || fail 'weights of mix'
[ "$(ask "SELECT count(DISTINCT variable) = count(*) FROM variables")" = 1 ] || fail 'two variables of one name'
"$bin/ipu-plan" model "$run" --data.path pairs.npz --ipu '{}' --callbacks null >out 2>&1 || fail "ipu-plan: $(cat out)"

# refuse TEXT ARGUMENT...
refuse() {
	local text=$1 code=0
	shift
	"$bin/ipu-train" "$run" --data.path pairs.npz --callbacks null "$@" >out 2>err || code=$?
	[ $code -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] && grep -qF -- "$text" err || fail "$*: expected \"$text\", got $code: $(cat err)"
}
refuse 'layer "table" is in stage 0, and "table_1", another call of it, in stage 1: calls share their weights' "${two[@]}" \
	--pipeline '{"stages": [0,0,0,0,0,0,0,1,1,1,1,1,1,1,1,1]}'
