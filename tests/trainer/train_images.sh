#!/usr/bin/env bash
# Images by class: learnt, the same bytes on stages, threads and without the libraries' vector instructions.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
cd "$work"
corpus=$IPUSCOPE_SOURCE_DIR/tests/fuzz/corpus/fuzz_image

mkdir -p set/{train,test}/{plain,shaded}
for ((i = 0; i < 8; i++)); do
	cp "$corpus/rgb.png" set/train/plain/$i.png
	cp "$corpus/colour.jpg" set/train/shaded/$i.jpg
done
cp "$corpus/rgb.png" set/test/plain/0.png
cp "$corpus/progressive.jpg" set/test/shaded/0.jpeg
cat >images.json <<'JSON'
{
	"model": { "class_name": "Sequential", "config": { "name": "m", "layers": [
		{ "class_name": "Conv2D", "config": { "name": "c", "filters": 4, "kernel_size": 3, "activation": "relu", "batch_input_shape": [null, 8, 8, 3] } },
		{ "class_name": "Flatten", "config": { "name": "f" } },
		{ "class_name": "Dense", "config": { "name": "d", "units": 2, "activation": "softmax" } } ] } },
	"compile": { "optimizer": { "class_name": "Adam", "config": { "learning_rate": 0.03 } }, "loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"], "steps_per_execution": 4 },
	"data": { "name": "images", "path": "set", "resize": [8, 8], "batch_size": 4 },
	"fit": { "epochs": 10, "steps_per_epoch": 4 }, "evaluate": { "steps": 1, "steps_per_execution": 1 },
	"ipu": { "auto_select_ipus": 2 }, "pipeline": { "stages": [0, 1, 1], "schedule": "Grouped" }, "gradient_accumulation": { "steps_per_replica": 4 }
}
JSON
"$bin/ipu-train" images.json --evaluate null --weights.save two.npz >out 2>&1 || {
	if grep -q 'needs libpng and libjpeg' out; then echo 'skipped: a build without libpng and libjpeg'; exit 77; fi
	fail "images: $(cat out)"
}
grep -q 'accuracy: 1.0000' out || fail "images are not learnt: $(tail -3 out)"
JSIMD_FORCENONE=1 "$bin/ipu-train" images.json -q --evaluate null --ipu null --pipeline null --host.threads 1 --weights.save cpu.npz
cmp two.npz cpu.npz || fail 'other weights on the CPU and without vector instructions'
"$bin/ipu-train" images.json -q --data.color_mode grayscale >out 2>&1 && fail 'one channel on a network of three'
grep -qF '(None, 8, 8, 1), which comes in' out || fail "grey images: $(cat out)"
# What may not be kept is decoded as it is needed: the same weights, on any number of threads; the report shows it.
for threads in 1 3; do
	"$bin/ipu-train" images.json -q --evaluate null --data.cache_bytes 1 --host.threads $threads --data.prefetch $((threads - 1)) --weights.save needed.npz
	cmp two.npz needed.npz || fail "$threads threads: other weights from images that are decoded as they are needed"
done
POPLAR_ENGINE_OPTIONS='{"autoReport.outputExecutionProfile":"true","autoReport.directory":"report"}' \
	"$bin/ipu-train" images.json -q --data.cache_bytes 1 --data.batch_size 1 --fit.epochs 2 --evaluate '{"steps": 2, "steps_per_execution": 2}' || fail 'a report'
ask() { sqlite3 -batch -bail report/tf_report__*/profile.db "$1"; }
ask "SELECT count(*), min(dur_ns) > 0 FROM spans WHERE track = 'host/data' AND category = 'data' AND name = 'decode'" >out
[ "$(cat out)" = '8|1' ] || fail "two epochs of four batches, a span each: $(cat out)"
ask "SELECT count(*) FROM spans WHERE track = 'host/data (evaluate)' AND name = 'decode'" >out
[ "$(cat out)" = 2 ] || fail "two batches of the evaluation: $(cat out)"
# Waiting is told on the worker that waits, inside its work.
ask "SELECT s.track, p.phase FROM spans s LEFT JOIN spans p ON p.span_id = s.parent_id AND p.track = s.track
	WHERE s.name = 'wait for data' AND (p.phase IS NOT 'F' OR s.ipu <> 0)" >out
[ ! -s out ] || fail "waiting outside of a forward work: $(cat out)"

# Without classes and without what was trained on: the same predictions as of the files by class.
mkdir -p by/{plain,shaded} unsorted
cp "$corpus/rgb.png" by/plain/1.png && cp "$corpus/progressive.jpg" by/shaded/2.jpg
cp by/*/* unsorted
for folder in by unsorted; do
	"$bin/ipu-train" images.json -q --fit null --evaluate null --ipu null --pipeline null --data.batch_size 1 --predict '{}' --data.path $folder \
		--weights.load two.npz --predict.output $folder.npz || fail "$folder: is not predicted"
done
cmp by.npz unsorted.npz || fail 'images without classes are predicted otherwise'
# A backup is of these images and no others, were they of the same size.
backup='[{"class_name": "BackupAndRestore", "config": {"backup_dir": "backup", "delete_checkpoint": false}}]'
for cache in 1000000 1; do
	rm -rf backup
	"$bin/ipu-train" images.json -q --evaluate null --callbacks "$backup" --fit.epochs 1 && "$bin/ipu-train" images.json -q --evaluate null --callbacks "$backup" --fit.epochs 2 --data.cache_bytes $cache >out 2>&1 ||
		fail "a backup of images: $(cat out)"
	cp set/train/shaded/3.jpg kept.jpg
	printf '!' | dd of=set/train/shaded/3.jpg bs=1 seek=15 conv=notrunc status=none
	"$bin/ipu-train" images.json -q --evaluate null --callbacks "$backup" --fit.epochs 3 --data.cache_bytes $cache >out 2>&1 && fail 'a backup of other images goes on'
	grep -q 'data.digest is' out || fail "another image: $(cat out)"
	mv kept.jpg set/train/shaded/3.jpg
done
head -c 60 "$corpus/rgb.png" >set/train/plain/5.png
for when in '' '--data.cache_bytes 1 --evaluate null'; do
	"$bin/ipu-train" images.json -q $when >out 2>&1 && fail 'a cut file'
	[ "$(wc -l <out)" -eq 1 ] && grep -q 'set/train/plain/5.png: is a damaged PNG' out || fail "a cut file $when: $(cat out)"
done
echo ok
