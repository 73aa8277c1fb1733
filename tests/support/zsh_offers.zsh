# zsh -f zsh_offers.zsh FOLDER LINE...: what an interactive zsh with the completions in FOLDER offers where Tab is
# pressed after LINE: the words, one a line, then "-- " and the line as it has become; for each LINE.
zmodload zsh/zpty
out=$(mktemp)
trap 'rm -f $out' EXIT

# Read what it draws, until $1 lines of the file begin with "-- " (at most a minute).
wait_for() {
	repeat 6000; do
		zpty -r -t probe ignored
		[ "$(grep -c '^-- ' $out)" -ge $1 ] && return
		sleep 0.01
	done
	print -u2 "zsh does not answer: $2"
	exit 1
}

zpty -b probe zsh -f -i
zpty -w probe "PS1= out=$out fpath=($1 \$fpath)"
zpty -w probe 'autoload -Uz compinit && compinit -u -D'
# What is offered is noted; calls that only ask what would be go through.
zpty -w probe 'compadd() {
	if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)* ]]; then
		typeset -a __words
		builtin compadd -A __words "$@"
		print -rl -- $__words >>$out
	fi
	builtin compadd "$@"
}'
zpty -w probe 'said() { print -r -- "-- $BUFFER" >>$out; BUFFER= }; zle -N said'
zpty -w probe 'bindkey "^X" said; bindkey "^I" complete-word; print -- "-- ready" >>$out'
wait_for 1 ready
shift
for ((i = 1; i <= $#; i++)); do
	zpty -w -n probe "${@[i]}"$'\t'$'\x18'
	wait_for $((i + 1)) "${@[i]}"
done
grep -v '^$' $out | tail -n +2
