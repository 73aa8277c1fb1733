#!/usr/bin/env bash
# The installed tree, moved to a folder that no build has heard of: programs find examples by their names and name the
# scripts where they lie; documents' links lead somewhere; completions offer the names.
# Usage: installed.sh BUILD_DIR
set -uo pipefail
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

failed=0
wrong() {
	echo "FAILED: $*" >&2
	failed=1
}

DESTDIR=$work/staged cmake --install "$build" --prefix /opt/one >/dev/null || exit 1
[ "$(ls -A "$work/staged")" = opt ] || wrong "installed outside of the prefix: $(ls -A "$work/staged")"
tree="$work/an other place"
mv "$work/staged/opt/one" "$tree"
shared=$tree/share/ipuscope
train=$tree/bin/ipu-train plan=$tree/bin/ipu-plan
# The run files' own folder is a stranger's; there are no real data sets.
mkdir "$work/here" "$work/home"
cd "$work/here" || exit 1
export HOME=$work/home XDG_CACHE_HOME=${XDG_CACHE_HOME:-$HOME/.cache}
unset IPUSCOPE_DATA XDG_DATA_HOME

# --- names
"$train" --list >all || wrong "--list: exit code $?"
sed '/^$/,$d' all >list # what a run file may name follows: train_supported
if [ -n "${UPDATE_GOLDEN:-}" ]; then
	cp list "$IPUSCOPE_SOURCE_DIR/tests/golden/examples.txt"
fi
diff "$IPUSCOPE_SOURCE_DIR/tests/golden/examples.txt" list || wrong "--list is not golden/examples.txt"
(cd "$IPUSCOPE_SOURCE_DIR/examples" && ls -- *.json | sed 's/\.json$//' | LC_ALL=C sort) >names
diff names <(cut -d ' ' -f 1 list) || wrong "--list does not name what examples/ has"
while read -r name; do
	"$train" "$name" --print-run >by_name || wrong "ipu-train $name: exit code $?"
	"$train" "$IPUSCOPE_SOURCE_DIR/examples/$name.json" --print-run | cmp - by_name || wrong "$name is another run file"
done <names
"$train" inspect-tensors.json --fit.epochs 7 --print-run | grep '"epochs":	7' >/dev/null || wrong "inspect-tensors.json is no name"
"$plan" model inspect-tensors | grep -F "$shared/examples/inspect-tensors.json: sequential on 2 IPUs" >/dev/null || wrong "ipu-plan model inspect-tensors"

# --- the working directory's file comes first
run_of() {
	"$train" "$1" --print-run | sed -n 's/^	"description":	"\(.*\)",$/\1/p'
}
sed 's/"description": ".*"/"description": "beside"/' "$shared/examples/mnist-starter.json" >mnist-starter.json
[ "$(run_of mnist-starter)" = beside ] || wrong "mnist-starter.json beside it: $(run_of mnist-starter)"
sed 's/"beside"/"itself"/' mnist-starter.json >mnist-starter
[ "$(run_of mnist-starter)" = itself ] || wrong "a file mnist-starter: $(run_of mnist-starter)"
[ "$(run_of "$shared/examples/mnist-starter.json")" = "A simple model on MNIST" ] || wrong "a path is not taken as it is"
rm mnist-starter mnist-starter.json
mkdir mnist-starter
[ "$(run_of mnist-starter)" = "A simple model on MNIST" ] || wrong "a folder mnist-starter hides the example"

# --- no such name
refuse() {
	local expected=$1 error code
	shift
	error=$("$@" 2>&1 >/dev/null)
	code=$?
	[ $code -eq 2 ] || wrong "$*: exit code $code"
	[ "$error" = "$expected" ] || wrong "$*: $error"
}
refuse 'ipu-train: inspect-tensor: there is no such file, and no example of that name; did you mean "inspect-tensors"? (`ipu-train --list` lists them)' \
	"$train" inspect-tensor
refuse 'ipu-plan model: nothing-like-it.json: there is no such file, and no example of that name (`ipu-train --list` lists them)' \
	"$plan" model nothing-like-it.json
refuse 'ipu-train: ./inspect-tensors: cannot open: No such file or directory' "$train" ./inspect-tensors

# --- it trains, and says where the real data come from
"$train" mnist-starter --fit.steps_per_epoch 2 --compile.steps_per_execution 2 --data.limit 64 >trained 2>&1 || wrong "ipu-train mnist-starter: $(cat trained)"
grep -q "^data: synthetic digits .*: $shared/script/get-mnist fetches that" trained || wrong "get-mnist's place is not named: $(head -1 trained)"
for script in get-mnist get-cifar10; do
	"$shared/script/$script" --help | grep "^usage: $script" >/dev/null || wrong "$script --help"
done

# --- completion
offers() {
	PATH=$tree/bin:$PATH bash -c 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _'"${1//-/_}"'; echo ${COMPREPLY[@]}' \
		"$tree/share/bash-completion/completions/$1" "$@"
}
[ "$(offers ipu-train keras-m)" = "keras-mnist keras-mnist-demo" ] || wrong "bash offers behind ipu-train keras-m: $(offers ipu-train keras-m)"
[ "$(offers ipu-plan model insp)" = inspect-tensors ] || wrong "bash offers behind ipu-plan model insp: $(offers ipu-plan model insp)"
[ "$(offers ipu-train na)" = names ] || wrong "bash offers no files behind ipu-train na: $(offers ipu-train na)"

# --- documents
while IFS=: read -r document link; do
	link=${link#](}
	case $link in
	http*) ;;
	*) [ -e "$(dirname "$document")/$link" ] || wrong "$document leads to $link, which is not installed" ;;
	esac
done < <(grep -roE '\]\([^)#]+' --include='*.md' "$shared")
[ -s "$shared/docs/run-file.md" ] || wrong "docs/run-file.md is not installed"

# --- without the examples a word is a path
rm -r "$shared"
refuse 'ipu-train: no examples are installed beside this program (share/ipuscope/examples)' "$train" --list
refuse 'ipu-train: inspect-tensors: cannot open: No such file or directory' "$train" inspect-tensors
exit $failed
