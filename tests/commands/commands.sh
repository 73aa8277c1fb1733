#!/usr/bin/env bash
# What every command answers: help, version, a man page without warnings, completions that a shell can read,
# and a wrong option as one line with exit code 2.
set -uo pipefail

failed=0
wrong() {
	echo "FAILED: $*" >&2
	failed=1
}

# A program, its name as it calls itself, and the words that come before the options.
check() {
	program=$1 name=$2
	shift 2
	"$program" "$@" --help </dev/null | grep "^Usage: $name" >/dev/null || wrong "$name --help"
	[ "$("$program" "$@" --help </dev/null | awk 'length > 80' | wc -l)" -eq 0 ] || wrong "$name --help is wider than 80 columns"
	"$program" "$@" --version </dev/null | grep -E "^$name [0-9]+\.[0-9]+\.[0-9]+$" >/dev/null || wrong "$name --version"
	for shell in bash zsh; do
		"$program" "$@" --completion $shell </dev/null | grep "$name" >/dev/null || wrong "$name --completion $shell"
	done
	"$program" "$@" --completion bash </dev/null | bash -n || wrong "$name: bash cannot read its completion"
	if command -v zsh >/dev/null; then
		"$program" "$@" --completion zsh </dev/null | zsh -n || wrong "$name: zsh cannot read its completion"
	fi
	if command -v groff >/dev/null; then
		[ -z "$("$program" "$@" --man </dev/null | groff -ww -man -Tutf8 2>&1 >/dev/null)" ] || wrong "$name --man: groff complains"
	fi
	# The page is found by its file's name, which has no blank.
	"$program" "$@" --man </dev/null | LC_ALL=C grep -i "^\.TH ${name// /-} 1 " >/dev/null || wrong "$name --man is no page of section 1"
	"$program" "$@" --man </dev/null | tr -d '\\' | grep "^${name// /-} - " >/dev/null || wrong "$name --man has no NAME that whatis finds"
	error=$("$program" "$@" --no-such-option nowhere 2>&1 >/dev/null </dev/null)
	code=$?
	[ $code -eq 2 ] || wrong "$name --no-such-option: exit code $code"
	[ "$(wc -l <<<"$error")" -eq 1 ] || wrong "$name --no-such-option: not one line: $error"
}

for command in ipu-train ipu-run ipu-plan ipu-report ipu-view ipu-monitor; do
	check "$IPUSCOPE_BIN_DIR/$command" $command
done
check "$IPUSCOPE_BIN_DIR/ipu-train" "ipu-train compare" compare
report=$IPUSCOPE_BIN_DIR/ipu-report
verbs=$("$report" list --csv | awk -F, '$2 == "verb" { print $1 }')
[ -n "$verbs" ] || wrong "ipu-report list names no verbs"
for verb in $verbs; do
	check "$report" "ipu-report $verb" "$verb"
done

# What bash offers behind the words given.
offers() {
	bash -c 'source /dev/stdin; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ipu_report; echo ${COMPREPLY[@]}' \
		- "$@" < <("$report" --completion bash)
}
case $(offers ipu-report run.db s) in
*stages*stage_timings*) ;;
*) wrong "ipu-report REPORT s: $(offers ipu-report run.db s)" ;;
esac
for verb in $verbs; do
	case $(offers ipu-report run.db "${verb:0:3}") in
	*"$verb"*) ;;
	*) wrong "ipu-report REPORT ${verb:0:3}: $(offers ipu-report run.db "${verb:0:3}")" ;;
	esac
	case $(offers ipu-report "$verb" --h)$(offers ipu-report run.db "$verb" --h) in
	*--help*--help*) ;;
	*) wrong "ipu-report $verb --h completes no options" ;;
	esac
done
[ "$(offers ipu-report run.db export sp)" = speedscope ] || wrong "ipu-report REPORT export sp: $(offers ipu-report run.db export sp)"
[ "$(offers ipu-report export run.db sp)" = speedscope ] || wrong "ipu-report export REPORT sp: $(offers ipu-report export run.db sp)"
"$IPUSCOPE_BIN_DIR/ipu-train" --completion bash | grep -- '--fit.epochs' >/dev/null || wrong "ipu-train completes no keys"
exit $failed
