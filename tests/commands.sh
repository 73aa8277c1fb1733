#!/usr/bin/env bash
# What every command answers: help, version, a man page without warnings, completions that a shell can read,
# and a wrong option as one line with exit code 2.
set -uo pipefail

failed=0
wrong() {
	echo "FAILED: $*" >&2
	failed=1
}

for command in ipu-train ipu-plan ipu-report ipu-view ipu-monitor; do
	program=$IPUSCOPE_BIN_DIR/$command
	"$program" --help </dev/null | grep "^Usage: $command" >/dev/null || wrong "$command --help"
	[ "$("$program" --help </dev/null | awk 'length > 80' | wc -l)" -eq 0 ] || wrong "$command --help is wider than 80 columns"
	"$program" --version </dev/null | grep -E "^$command [0-9]+\.[0-9]+\.[0-9]+$" >/dev/null || wrong "$command --version"
	for shell in bash zsh; do
		"$program" --completion $shell </dev/null | grep "$command" >/dev/null || wrong "$command --completion $shell"
	done
	"$program" --completion bash </dev/null | bash -n || wrong "$command: bash cannot read its completion"
	if command -v groff >/dev/null; then
		[ -z "$("$program" --man </dev/null | groff -ww -man -Tutf8 2>&1 >/dev/null)" ] || wrong "$command --man: groff complains"
	fi
	error=$("$program" --no-such-option nowhere 2>&1 >/dev/null </dev/null)
	code=$?
	[ $code -eq 2 ] || wrong "$command --no-such-option: exit code $code"
	[ "$(wc -l <<<"$error")" -eq 1 ] || wrong "$command --no-such-option: not one line: $error"
done
"$IPUSCOPE_BIN_DIR/ipu-train" --completion bash | grep -- '--fit.epochs' >/dev/null || wrong "ipu-train completes no keys"
exit $failed
