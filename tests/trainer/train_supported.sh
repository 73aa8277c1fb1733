#!/usr/bin/env bash
# `ipu-train --list` names the examples, then every row of the tables under its heading, and docs/supported.md shows just that.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
page=$IPUSCOPE_SOURCE_DIR/docs/supported.md
"$bin/ipu-train" --list >list
diff "$IPUSCOPE_SOURCE_DIR/tests/golden/examples.txt" <(sed '/^$/,$d' list) || fail 'the examples do not come first'
[ "$(awk 'length > 80' list | wc -l)" -eq 0 ] || fail "wider than 80 columns: $(awk 'length > 80' list)"

# A reader of what is only listed may leave, as head does: that is no error to report.
mkfifo left
for words in '--list' 'inspect-tensors --help' 'inspect-tensors --print-run'; do
	# shellcheck disable=SC2086
	(read -r _ <left && exec "$bin/ipu-train" $words 2>said) | { exec <&- && echo >left; } || true
	[ ! -s said ] || fail "$words, whose reader left: $(cat said)"
done

# under HEADING: the names below it, one a line.
under() {
	awk -v heading="$1" '/^$/ { on = 0 } on; index($0, heading) == 1 { on = 1 }' list | tr ',' '\n' | sed 's/^ *//; s/ .*//' | grep . | sort
}
# The tables' rows, as their sources have them.
sed -nE 's/^\tX\([a-z0-9_]+, "([A-Za-z0-9]+)",.*/\1/p' "$IPUSCOPE_SOURCE_DIR/model/layers/layer_map.h" | sort >layers
[ "$(wc -l <layers)" -gt 30 ] || fail "the table of layers is not read: $(cat layers)"
[ -z "$(under Layers: | comm -13 - layers)" ] || fail "layers that are not listed: $(under Layers: | comm -13 - layers)"
# rows FILE HEADING: the classes in the table of FILE stand below HEADING.
rows() {
	sed -nE 's/.*(\.class_name = |^\t\[[A-Z0-9_]+\] = (\{|OPTIMIZER\())"([A-Z][A-Za-z0-9]*)",.*/\3/p' "$IPUSCOPE_SOURCE_DIR/$1" | sort >rows
	[ -s rows ] && [ -z "$(under "$2" | comm -13 - rows)" ] || fail "$2 not listed: $(under "$2" | comm -13 - rows)"
}
rows model/learn/loss.c Losses:
rows model/learn/optimizer.c Optimizers:
rows model/learn/schedule.c Learning-rate
rows model/learn/metric.c Metrics:
for file in "$IPUSCOPE_SOURCE_DIR"/trainer/callbacks/callback_*.c; do
	class=$(sed -nE 's/^\t\.class_name = "([A-Za-z]+)".*/\1/p' "$file")
	[ -z "$class" ] || under Callbacks: | grep -xF "$class" >/dev/null || fail "the callback $class is not listed"
done
under Applications | grep -xF ResNet50 >/dev/null || fail "no applications: $(cat list)"

{ sed '/^\$ ipu-train --list$/q' "$page" && sed 's/ *$//' list && echo '```'; } >made
if [ -n "${UPDATE_GOLDEN:-}" ]; then
	cp made "$page"
else
	diff -u "$page" made || fail 'docs/supported.md shows something else; UPDATE_GOLDEN=1 rewrites it'
fi
