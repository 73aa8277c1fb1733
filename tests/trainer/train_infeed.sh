#!/usr/bin/env bash
# infeed.dtype: the host sends that type, and the trained numbers are those of what was sent: bytes of pictures as they are
# stored change nothing, float16 and bytes of resized pictures do.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

run=$IPUSCOPE_SOURCE_DIR/examples/keras-mnist.json
cd "$work"

model='{"class_name": "Sequential", "config": {"layers": [{"class_name": "Flatten", "config": {}},
	{"class_name": "Dense", "config": {"units": 10, "activation": "softmax"}}]}}'

# weights NAME [--key value ...]: two steps of 32 digits.
weights() {
	local name=$1
	shift
	train 2 --use-ipu --ipu.auto_select_ipus 1 --data.batch_size 32 --data.limit 64 --evaluate null --quiet \
		--weights.save "$name.npz" "$@"
}
same() { cmp -s "$1.npz" "$2.npz" || fail "$2: other weights than $1's"; }
other() { ! cmp -s "$1.npz" "$2.npz" || fail "$2: the weights of $1"; }

for dtype in float32 float16 uint8; do
	weights "$dtype" --infeed.dtype "$dtype"
	weights "half-$dtype" --infeed.dtype "$dtype" --compile.dtype_policy mixed_float16
	weights "large-$dtype" --infeed.dtype "$dtype" --data.resize '[30, 30]' --model "$model"
done
weights cpu --infeed.dtype uint8 --ipu null
same float32 uint8
same float32 cpu
other float32 float16
same half-float32 half-uint8
other half-float32 half-float16
# Between two pixels there are no bytes.
other large-float32 large-uint8
other large-float32 large-float16

# Numbers of rows are whole: float16 has no odd ones beyond 2,048.
for i in {1..64}; do echo "$((i * 67 + 1)),$((i % 2))"; done | sed '1i row,label' >train.csv
cp train.csv test.csv
rows='{"class_name": "Sequential", "config": {"layers": [{"class_name": "Flatten", "config": {}},
	{"class_name": "Embedding", "config": {"input_dim": 4400, "output_dim": 3}}, {"class_name": "Flatten", "config": {}},
	{"class_name": "Dense", "config": {"units": 2, "activation": "softmax"}}]}}'
for dtype in float32 float16; do
	for policy in float32 mixed_float16; do
		weights "rows-$policy-$dtype" --infeed.dtype "$dtype" --compile.dtype_policy $policy --data.name csv --data.path . \
			--data.target label --model "$rows"
	done
done
same rows-float32-float32 rows-float32-float16
same rows-mixed_float16-float32 rows-mixed_float16-float16

# What is sent, per micro-batch: pictures and 10 numbers a label.
for each in float32:4 float16:2 uint8:1; do
	mkdir "${each%:*}"
	(cd "${each%:*}" && POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' weights ../recorded \
		--infeed.dtype "${each%:*}")
	database=$(echo "${each%:*}"/tf_report__*/profile.db)
	bytes=$(sqlite3 -readonly "$database" "SELECT DISTINCT bytes_in FROM device_steps WHERE mode = 'train' AND type = 'StreamCopyMid'
		AND name LIKE '%Infeed'")
	[ "$bytes" = $((32 * 28 * 28 * ${each#*:} + 32 * 10 * 4)) ] || fail "${each%:*}: $bytes bytes were sent"
	casts=$(sqlite3 -readonly "$database" "SELECT count(*) FROM operations WHERE operation LIKE '%/Cast'")
	[ "$casts" = $((${each#*:} != 4)) ] || fail "${each%:*}: $casts casts of pictures"
done
