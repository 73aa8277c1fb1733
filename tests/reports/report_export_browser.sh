#!/usr/bin/env bash
# A browser loads what `ipu-report export chrome` and `export speedscope` write, with as many calls as SQL counts:
# speedscope, from npm, in a headless Chromium. Skipped where one of them cannot be had.
# `report_export_browser.sh FOLDER [SPANS]`: FOLDER keeps speedscope; with SPANS a recording of so many, too.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
npm_folder=$1
spans=${2:-0}
version=1.25.0
make=$PWD/trace_make

skip() {
	echo "skipped: $*"
	exit 77
}

for program in python3 npm chromedriver; do
	command -v $program >/dev/null || skip "no $program"
done
page=$npm_folder/node_modules/speedscope/dist/release
if [ ! -e "$page/index.html" ]; then
	mkdir -p "$npm_folder"
	timeout 600 npm install --prefix "$npm_folder" --no-audit --no-fund --ignore-scripts speedscope@$version >"$work/npm" 2>&1 ||
		skip "npm gives no speedscope: $(tail -1 "$work/npm")"
fi
cd "$work"

# What is exported, and the calls of some length that it must have.
loads() {
	local file=$1 wanted=$2 code=0
	timeout 600 python3 "$IPUSCOPE_SOURCE_DIR/tests/reports/export_browser.py" "$page" "$file" >loaded || code=$?
	[ $code -ne 77 ] || skip "$(cat loaded)"
	[ $code -eq 0 ] || fail "$file: $(cat loaded)"
	grep -q "^$wanted calls on .* lanes, 0 events lost$" loaded || fail "$file: $(cat loaded), not $wanted calls"
	echo "$file: $(cat loaded)"
}

POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' "$bin/ipu-train" "$run" --fit.epochs 1 --fit.steps_per_epoch 20 \
	--compile.steps_per_execution 20 >out 2>err || fail "training: $(cat out err)"
mv tf_report__* run
"$bin/ipu-report" run export chrome -o run.json >said
"$bin/ipu-report" run export speedscope -o run.speedscope.json >said
in_spans=$(sqlite3 run/profile.db "SELECT count(*) FROM spans WHERE dur_ns > 0")
in_steps=$(sqlite3 run/profile.db "SELECT count(*) FROM device_steps WHERE dur_ns > 0")
loads run.json $((in_spans + in_steps))
loads run.speedscope.json "$in_spans"

# speedscope takes long where one lane has very many events of Chrome's: there are 64.
if [ "$spans" -gt 0 ]; then
	"$make" large.db large "$spans" 32
	"$bin/ipu-report" large.db export chrome -o large.json >said
	"$bin/ipu-report" large.db export speedscope -o large.speedscope.json >said
	wanted=$(sqlite3 large.db "SELECT count(*) FROM spans")
	loads large.json "$wanted"
	loads large.speedscope.json "$wanted"
fi
