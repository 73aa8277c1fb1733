#!/usr/bin/env bash
# Address space that ends anywhere: the run is done, or one line and exit code 1; nothing waits for memory for ever, and no report is
# left without an execution, unless it was the report's writer that had no memory: then the line says that it is incomplete.
# As released: the address sanitizer takes terabytes.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
grep -q __asan_init "$bin/ipu-train" && { echo "skipped: built with the address sanitizer"; exit 77; }
short=(--fit.epochs 1 --fit.steps_per_epoch 8 --compile.steps_per_execution 8 --data.limit 512 --evaluate null --quiet --host.threads 2)
done_=0 ended=0 before=()

# limited KILOBYTES OPTIONS PRODUCTS
limited() {
	local code=0 what db
	rm -rf tf_report*
	(ulimit -v "$1" && POPLAR_ENGINE_OPTIONS=$2 timeout -k 1 100 "${before[@]}" "$bin/ipu-train" "$run" "${short[@]}" --host.products "$3" >out 2>err) || code=$?
	unlagged err
	what="$1 kB, options '$2', products $3: exit code $code: $(cat err)"
	if [ $code -eq 0 ]; then
		done_=$((done_ + 1))
		[ ! -s err ] || fail "$what"
		return
	fi
	ended=$((ended + 1))
	[ "$(wc -l <err)" -eq 1 ] || fail "$what"
	[ $code -eq 1 ] || grep -q 'host.products: cannot load OpenBLAS' err || fail "$what"
	for db in tf_report*/profile.db; do
		[ ! -e "$db" ] || [ "$(sqlite3 -readonly "$db" "SELECT count(*) > 0 FROM executions")" = 1 ] ||
			grep -q 'the report is incomplete: .*out of memory' err || fail "$what: $db is left"
	done
}

for limit in 60000 90000 110000 130000 160000 200000 300000 500000 900000; do
	for options in '' '{"autoReport.all":"true"}'; do
		for products in tiles openblas; do
			limited $limit "$options" $products
		done
	done
done
# Where whoever starts it ignores the ends of children, which is inherited.
if command -v perl >/dev/null; then
	before=(env PERL_BADLANG=0 perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV')
	for limit in 200000 300000 330000 360000; do
		limited $limit '' openblas
	done
fi
[ $done_ -gt 4 ] && [ $ended -gt 4 ] || fail "$done_ runs were done, $ended ended early"
echo "$done_ runs were done, $ended ended early"
