#!/usr/bin/env bash
# Stateful layers: sequences that are cut go on where their first halves ended, on any schedule, and in a run that goes on from a
# backup. (train_masks has the same beside PyTorch.)
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
# numbers STEPS: eight sequences of 8 steps, whole or cut into batches of STEPS; their classes, for training and for prediction.
numbers() {
	awk -v steps="$1" 'BEGIN {
		for (part = 0; part < 2; part++) {
			name = part ? "test" : "train"
			printf "x_%s f4 %d,%d,2", name, 64 / steps, steps
			for (from = 0; from < 8; from += steps) for (i = 0; i < 8; i++) for (s = from; s < from + steps; s++)
				printf " %g %g", (7 * i + 3 * s) % 11 / 5 - 1, (5 * i + 4 * s) % 7 / 3 - 1
			printf "\ny_%s i4 %d,%d", name, 64 / steps, steps
			for (from = 0; from < 8; from += steps) for (i = 0; i < 8; i++) for (s = from; s < from + steps; s++) printf " %d", (2 * i + s) % 3
			print ""
		}
	}' | make_npz "cut-$1.npz"
}
for steps in 8 4 2; do numbers $steps; done

model() { # NAME STATEFUL
	cat >"$1.json" <<JSON
{"model": {"class_name": "Sequential", "config": {"name": "m", "layers": [
	{"class_name": "LSTM", "config": {"name": "lstm", "units": 5, "return_sequences": true, "stateful": $2}},
	{"class_name": "GRU", "config": {"name": "gru", "units": 6, "return_sequences": true, "stateful": $2}},
	{"class_name": "GRU", "config": {"name": "first", "units": 6, "return_sequences": true, "reset_after": false, "stateful": $2}},
	{"class_name": "SimpleRNN", "config": {"name": "simple", "units": 4, "return_sequences": true, "stateful": $2}},
	{"class_name": "Dense", "config": {"name": "out", "units": 3, "activation": "softmax"}}]}},
 "compile": {"optimizer": "Adam", "loss": "sparse_categorical_crossentropy", "steps_per_execution": 4},
 "data": {"name": "npz", "batch_size": 8, "shuffle": false, "path": "cut-2.npz"}, "fit": {"epochs": 3, "seed": 3}, "evaluate": null,
 "gradient_accumulation": {"steps_per_replica": 2}, "ipu": null}
JSON
}
model stateful true
model plain false

# What is predicted of halves and quarters is what is predicted of the whole.
predict() { # MODEL STEPS: the outputs in the order of the whole sequences
	"$bin/ipu-train" "$1.json" -q --data.path "cut-$2.npz" --fit null --gradient_accumulation null --predict '{"output": "out.npz", "steps_per_execution": 1}' >out 2>err ||
		fail "predict $1 $2: $(cat err)"
	python3 - "$2" <<'PYTHON'
import struct, sys, zipfile
steps = int(sys.argv[1])
with zipfile.ZipFile("out.npz") as file:
    bytes = file.read(file.namelist()[0])
start = 10 + struct.unpack("<H", bytes[8:10])[0]
values = struct.unpack("<%df" % (8 * 8 * 3), bytes[start:])
for item in range(8):
    print([values[((s // steps * 8 + item) * steps + s % steps) * 3 + k] for s in range(8) for k in range(3)])
PYTHON
}
whole=$(predict plain 8)
[ "$(wc -l <<<"$whole")" -eq 8 ] || fail "no predictions: $whole"
for steps in 4 2; do
	[ "$(predict stateful $steps)" = "$whole" ] || fail "cut into $steps steps the sequences are others"
	[ "$(predict plain $steps)" != "$whole" ] || fail "without a state the cut changes nothing"
done

digest() { # ARGUMENT...: of the weights at the end
	"$bin/ipu-train" "$@" >out 2>err || fail "$*: $(cat err)"
	tr '\r' '\n' <out | sed -n 's/^Weights: XXH3 \([0-9a-f]\{16\}\)$/\1/p'
}
cpu=$(digest stateful.json)
[ -n "$cpu" ] && [ "$cpu" != "$(digest plain.json)" ] || fail 'the state changes nothing'
[ "$(digest stateful.json --host.threads 1)" = "$cpu" ] || fail 'one thread: other weights'
for schedule in Grouped Interleaved 1f1b; do
	[ "$(digest stateful.json --ipu '{"auto_select_ipus": 2}' --pipeline '{"stages": [0, 0, 1, 1, 1], "schedule": "'$schedule'"}' \
		--gradient_accumulation.steps_per_replica 4)" = "$(digest stateful.json --gradient_accumulation.steps_per_replica 4)" ] || fail "$schedule: other weights"
done
[ "$(digest stateful.json --fit.epochs 6)" != "$(digest stateful.json --fit.epochs 6 --fit.validation true)" ] || fail 'a validation leaves no state'

# A run that goes on from a backup has the states of the one before.
backup() { # EPOCHS ARGUMENT...
	digest stateful.json --fit.epochs "$@" --callbacks '[{"class_name": "BackupAndRestore", "config": {"backup_dir": "backup", "delete_checkpoint": false}}]'
}
whole=$(digest stateful.json --fit.epochs 5)
backup 2 >/dev/null
[ "$(backup 5 --fit.resume backup --ipu '{"auto_select_ipus": 2}' --pipeline '{"stages": [0, 1, 1, 1, 1], "schedule": "Sequential"}')" = "$whole" ] || fail 'a run that goes on has other weights'

# What cannot be is refused in one line; a shuffle is warned of.
refused() { # PATTERN ARGUMENT...
	local pattern=$1
	shift
	! "$bin/ipu-train" stateful.json "$@" >out 2>err || fail "$*: is taken"
	[ "$(wc -l <err)" -eq 1 ] && grep -q "$pattern" err || fail "$*: $(cat err)"
}
refused 'stateful layer needs batches of one size' --data.drop_remainder false --gradient_accumulation null
refused 'stateful layer would go on from what is padded' --data.pad_remainder true
digest stateful.json --data.shuffle true >/dev/null
cat out err | grep 'data.shuffle: is on, but a stateful layer' >/dev/null || fail "no warning of the shuffle: $(cat out err)"
echo ok
