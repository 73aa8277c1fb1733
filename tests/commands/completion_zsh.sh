#!/usr/bin/env bash
# The completions as an interactive zsh uses them: found on $fpath, at the first Tab.
set -uo pipefail
if ! command -v zsh >/dev/null; then
	echo "skipped: zsh is not installed"
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/functions" "$work/here" "$work/here/runs"
touch "$work/here/runs/before.db"
for command in ipu-train ipu-run ipu-plan ipu-report ipu-view ipu-monitor; do
	"$IPUSCOPE_BIN_DIR/$command" --completion zsh >"$work/functions/_$command" || exit 1
done
# Names of examples are asked of the program.
export PATH=$IPUSCOPE_BIN_DIR:$PATH

# A line, and a word that is offered behind it.
cases=(
	'ipu-view --vi' --view
	'ipu-view --view ' liveness
	'ipu-view --view=ti' timeline
	'ipu-view --theme=' light
	'ipu-view runs/' before.db
	'ipu-view --config=runs/' before.db
	'ipu-view runs/before.db r' runs
	'ipu-report runs/before.db stage' stage_timings
	'ipu-report exp' export
	'ipu-report diff --ga' --gate
	'ipu-report runs/before.db diff --ga' --gate
	'ipu-report export runs/before.db sp' speedscope
	'ipu-report runs/before.db export sp' speedscope
	'ipu-train --fit.ep' --fit.epochs
	'ipu-train r' runs
	'ipu-train insp' inspect-tensors
	'ipu-train comp' compare
	'ipu-train compare --sv' --svg
	'ipu-train --quiet insp' inspect-tensors
	'ipu-plan mod' model
	'ipu-plan model r' runs
	'ipu-plan model insp' inspect-tensors
	'ipu-plan schedule --ch' --chunks
	'ipu-plan --sta' --stages
	'ipu-monitor --wa' --watch
)
lines=()
for ((i = 0; i < ${#cases[@]}; i += 2)); do
	lines+=("${cases[i]}")
done
cd "$work/here" && timeout 600 zsh -f "$IPUSCOPE_SOURCE_DIR/tests/support/zsh_offers.zsh" "$work/functions" "${lines[@]}" >"$work/offers" || exit 1

failed=0
for ((i = 0; i < ${#cases[@]}; i += 2)); do
	offered=$(awk -v at=$((i / 2)) 'n == at && !/^-- / { print } /^-- / { n++ }' "$work/offers")
	grep -qxF -e "${cases[i + 1]}" <<<"$offered" && continue
	echo "FAILED: zsh offers behind '${cases[i]}':" $offered >&2
	failed=1
done
exit $failed
