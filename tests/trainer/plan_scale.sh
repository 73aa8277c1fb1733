#!/usr/bin/env bash
# ipu-plan scale: a row for each number of IPUs, each what ipu-plan model says of it; the host's input; boundaries; errors.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

plan=$bin/ipu-plan
cd "$work"

# column FILE KEY: of a CSV.
column() { awk -F, -v key="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == key) c = i; next } { print $c }' "$1" | paste -sd' '; }
key() { sed -n "s/^ *\"$2\": \([^,]*\),*$/\1/p" "$1"; }
is() { [ "$2" = "$3" ] || fail "$1: $2, not $3"; }

small=(keras-mnist --use-ipu --compile.steps_per_execution 1)
"$plan" scale "${small[@]}" --ipus 1,2,4,...,1024 --csv >scale.csv
"$plan" scale "${small[@]}" --json >scale.json
is "numbers of IPUs" "$(column scale.csv ipus)" "1 2 4 8 16 32 64 128 256 512 1024"
is "the default's" "$(key scale.json ipus | paste -sd' ')" "$(column scale.csv ipus)"
is machines "$(column scale.csv machines)" "1 1 1 2 4 8 16 32 64 128 256"
is hosts "$(column scale.csv hosts)" "1 1 1 1 1 2 4 8 16 32 64"
is domains "$(column scale.csv link_domains)" "1 1 1 1 1 1 1 2 4 8 16"
is "efficiency of the first" "$(column scale.csv efficiency | cut -d' ' -f1)" 1
column scale.csv all_reduce_us | tr ' ' '\n' | sort -C -n || fail "sums over more replicas take less: $(column scale.csv all_reduce_us)"
# Nothing but the sums and the host link, which a machine's IPUs share, changes with the replicas.
awk -F, 'NR > 3 { rest = $7 - $11; if (NR > 4 && (rest - before) ^ 2 > 1e-4) exit 1; before = rest }' scale.csv ||
	fail "a step without its sums changes with the replicas"

# A row is what ipu-plan model says of such a run.
"$plan" model "${small[@]}" --ipu.auto_select_ipus 8 --json >model.json
"$plan" scale "${small[@]}" --ipus 8 --json >one.json
for name in device_step_us all_reduce_us step_us memory_bytes_per_tile device_busy_fraction; do
	is "$name of 8" "$(key one.json $name)" "$(key model.json $name)"
done

# The host: the slower side sets the pace, and one host prepares for the 16 IPUs of a Pod16.
is "no input" "$(key model.json host_input_us) $(key model.json waits)" "null null"
"$plan" model "${small[@]}" --ipu.auto_select_ipus 1 --host.input_us 9000 --json >slow.json
is "a slow host" "$(key slow.json step_us) $(key slow.json waits)" '9000 "device"'
"$plan" model "${small[@]}" --ipu.auto_select_ipus 1 --host.input_us 9 --json >fast.json
is "a fast host" "$(key fast.json waits)" '"host"'
"$plan" scale "${small[@]}" --ipus 4,16,64 --host.input_us 10 --csv >input.csv
is "input of a host" "$(column input.csv host_input_us)" "40 160 160"
"$plan" model "${small[@]}" --ipu.auto_select_ipus 1 --measure-input --data.limit 800 --json >measured.json
awk -v us="$(key measured.json host_input_us)" 'BEGIN { exit !(us > 0) }' || fail "a batch takes $(key measured.json host_input_us) us"

# A pipeline's replicas take its stages' IPUs, and "auto" makes no more stages of more IPUs.
"$plan" scale inspect-tensors --pipeline.stages auto --ipus 2,4,...,8 --csv >auto.csv
is "replicas of a pipeline" "$(column auto.csv replicas)" "1 2 4"
"$plan" scale "${small[@]}" --ipus 3,16,128,4096 >table.txt
[ "$(grep -c '^  -- ' table.txt)" -eq 3 ] || fail "boundaries: $(cat table.txt)"

# What TensorFlow's default, a program for each sum, leaves no room for is said with the remedy; buffers need none.
buffer=maximum_cross_replica_sum_buffer_size
"$plan" scale cifar10-resnet50 --ipus 256 >each.txt
grep -q 'too much$' each.txt && grep -q -e "--ipu.optimizations.$buffer 52428800" each.txt || fail "sums one by one: $(cat each.txt)"
"$plan" scale cifar10-resnet50 --ipus 256 --ipu.optimizations.$buffer 52428800 >merged.txt
! grep -qE "too much|$buffer" merged.txt || fail "merged sums: $(cat merged.txt)"

# refused ARGUMENT... TEXT
refused() {
	local text=${*: -1} status=0
	"$plan" scale "${@:1:$#-1}" >out.txt 2>err.txt || status=$?
	[ $status -eq 2 ] && [ ! -s out.txt ] && grep -qF -- "$text" err.txt || fail "$*: $status, $(cat err.txt)"
}
refused "${small[@]}" --ipus 4,2 '--ipus: 2 is not more than 4'
refused "${small[@]}" --ipus 4,... 'a number must stand after "..."'
refused "${small[@]}" --ipus 4,...,8 'two numbers must stand before "..."'
refused "${small[@]}" --ipus 8192 'is not a number from 1 to 4096'
refused "${small[@]}" --json --csv 'give one of them'
refused keras-mnist --ipus 1 'ipu: is null'
refused inspect-tensors --ipus 1 'needs 2'
