#!/usr/bin/env bash
# What the programs write does not depend on the locale but for its character set: numbers have a point where the locale
# has a comma (de_DE), and letters are found in either case where I is not i's capital (tr_TR).
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

play=$(realpath "${IPUSCOPE_VIEW_PLAY:-./view_play}")
cd "$work"
mkdir locales
for name in de_DE tr_TR; do
	localedef -i $name -f UTF-8 "$work/locales/$name.UTF-8" >said 2>&1 || {
		echo "skipped: localedef cannot make the locale $name: $(tail -1 said)"
		exit 77
	}
done

# A run and what is said of it, in the locale $1.
in_locale() {
	mkdir "$1" && cd "$1"
	export LOCPATH=$work/locales LC_ALL=$1
	POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' train 16 --quiet --outfeed.capture histogram --weights.save weights.npz \
		--compile.optimizer.config.learning_rate 0.25 >training
	mv tf_report__* "$work/run.$1"
	"$bin/ipu-plan" schedule --all --stages 4 --microbatches 8 --forward 1.5 --backward 2.25 >schedule
	"$bin/ipu-plan" matmul 64 64 64 --json >matmul.json
	[ "$1" = C.UTF-8 ] || mv "$work/run.$1" "$work/other.$1"
	report=$work/run.C.UTF-8
	for format in "" --csv --json; do
		"$bin/ipu-report" "$report" stages $format --where "total_ns > ns('1.5 us')" >"stages$format"
		"$bin/ipu-report" "$report" insights $format >"insights$format"
	done
	"$bin/ipu-report" "$report" export chrome -o trace.json >said
	"$bin/ipu-report" "$report" export html -o page.html >said
	for screen in summary tensors timeline; do
		"$bin/ipu-view" "$report" --view $screen --text --width 120 >$screen.txt
		"$bin/ipu-view" "$report" --view $screen --csv >$screen.csv
	done
	# A search, and filters, in the other case of I and i.
	"$play" 100x30 '8/BIAS<Enter>' "$report" >search
	"$play" 100x30 '6\BIASADD<Enter>' "$report" >filter
	"$play" 100x30 '2fSTREAM_COPIES<Enter>' "$report" >insight
	unset LC_ALL LOCPATH
	cd "$work"
}
for name in C.UTF-8 de_DE.UTF-8 tr_TR.UTF-8; do
	in_locale $name
	diff -r C.UTF-8 $name >differs || fail "in $name: $(head -c 2000 differs)"
done
grep -q 'bias' C.UTF-8/search && grep -q 'BiasAdd' C.UTF-8/filter && grep -q 'stream_copies' C.UTF-8/insight || fail "nothing was looked for"
[ "$(LC_ALL=tr_TR.UTF-8 LOCPATH=$work/locales awk 'BEGIN { printf "%.1f", 1.5 }')$(LC_ALL=tr_TR.UTF-8 LOCPATH=$work/locales printf %.1f 1,5)" != 1.51.5 ] ||
	fail "tr_TR has no comma: nothing was tested"
echo "the same in every locale"
