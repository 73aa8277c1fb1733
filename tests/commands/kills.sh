#!/usr/bin/env bash
# kill -9 at random moments, spread over the whole of each command: what was there before is as it was, nothing half-written has a
# final name, and the command, run again, comes to the bytes of one that was never killed and takes away what the killed ones left.
# `kills.sh [KILLS [SEED [KIND ...]]]`: so many kills of each kind: import, merge, export, train, resume (default 4). Each is killed with its
# process group. A recorder is killed by tests/profiler/test_prof_kill.c, trainings with every kind of state by tests/soak/backups.sh.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

kills=${1:-4}
RANDOM=${2:-1}
makers=$PWD
cd "$work"
mkdir sources out

# ---- the commands: what they read is in sources/, what they write in out/ ----------------------------
cat >run.json <<JSON
{
	"model": "$IPUSCOPE_SOURCE_DIR/tests/golden/small.json",
	"compile": { "optimizer": "Adam", "loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"], "steps_per_execution": 8 },
	"data": { "name": "mnist", "batch_size": 8, "limit": 512, "shuffle": true },
	"fit": { "epochs": 6, "validation": true },
	"gradient_accumulation": { "steps_per_replica": 4 },
	"ipu": { "auto_select_ipus": 2 },
	"pipeline": { "stages": { "dense": 1 } }
}
JSON
mv run.json sources
# What they know is part of a backup.
callbacks() { # FREQUENCY
	printf '[%s, %s, %s, %s]' \
		'{"class_name": "ReduceLROnPlateau", "config": {"patience": 1, "min_delta": 0.2, "factor": 0.5}}' \
		'{"class_name": "EarlyStopping", "config": {"monitor": "loss", "patience": 5, "restore_best_weights": true}}' \
		'{"class_name": "CSVLogger", "config": {"filename": "out/log.csv"}}' \
		"{\"class_name\": \"BackupAndRestore\", \"config\": {\"backup_dir\": \"backups\", \"save_freq\": $1}}"
}
frequencies=(8 '"epoch"' 24)
# On any schedule, in turn.
forms=('--ipu null --pipeline null --host.threads 1' '--pipeline.schedule Grouped --host.threads 2 --data.prefetch 3' '--pipeline.schedule Interleaved --host.threads 1'
	'--pipeline.schedule Sequential --host.threads 2' '--pipeline.schedule zb-h1 --host.threads 1' '--pipeline null --ipu.auto_select_ipus 1 --host.threads 3')
formats=(chrome html npz speedscope folded)
# command KIND NUMBER: sets $command, $target and $reference, what the target is to be.
command() {
	local form
	reference=whole/$1
	case $1 in
	import) target=out/x.db command=("$bin/ipu-report" import sources/trace.json -o $target) ;;
	merge) target=out/x.db command=("$bin/ipu-report" merge sources/a.db sources/killed.db -o $target) ;;
	export)
		form=${formats[whole % ${#formats[@]}]} # another one only when nothing of the one before is left
		target=out/x reference=whole/$form command=("$bin/ipu-report" sources/a.db export "$form" -o $target)
		[ "$form" != npz ] || command[1]=sources/captures.db
		;;
	train) target=out/x.npz command=("$bin/ipu-train" sources/run.json --weights.save $target) ;;
	resume)
		read -ra form <<<"${forms[$2 % ${#forms[@]}]}"
		target=out/x.npz command=("$bin/ipu-train" sources/run.json "${form[@]}" --callbacks "$(callbacks "${frequencies[$2 % 3]}")" --weights.save $target)
		;;
	esac
	[[ $1 == @(train|resume) ]] || [ ! -e $target ] || command+=(--force)
}

# ---- checks ------------------------------------------------------------------------------------------
digest() { [ -e "$1" ] && sha256sum <"$1" || echo none; }
# same: whether the target is what the command writes that is not killed. Of a database: its rows, but for the times of their writing.
rows() { sqlite3 -readonly "$1" .dump | grep -vE '^INSERT INTO (overhead|meta)' | sha256sum; }
same() {
	cmp -s $target $reference && return 0
	[[ $target == *.db ]] && [ "$(sqlite3 -readonly $target 'PRAGMA integrity_check' 2>&1)" = ok ] && "$bin/ipu-report" $target summary >said 2>&1 &&
		[ "$(sqlite3 -readonly $target "SELECT value FROM meta WHERE key = 'state'")" = complete ] && [ "$(rows $target)" = "$(rows $reference)" ]
}
# The files of a report that a killed training left.
check_reports() {
	local report file
	for report in reports/*/; do
		[ -e "$report" ] || continue
		for file in "$report"*.json; do
			[ ! -e "$file" ] || [ "$(sqlite3 :memory: "SELECT json_valid(readfile('$file'))")" = 1 ] || fail "$kind: $file is no JSON"
		done
		[ -e "${report}profile.db" ] || continue
		"$bin/ipu-report" "$report" repair >said 2>&1 && "$bin/ipu-report" "$report" summary >said 2>&1 &&
			[ "$(sqlite3 -readonly "${report}profile.db" 'PRAGMA integrity_check')" = ok ] || fail "$kind, $report: $(cat said)"
		reports=$((reports + 1))
	done
	rm -rf reports
}
# check_end: a command that was not killed.
check_end() {
	same || fail "$kind, command $number: another $target than without kills: $(cat said)"
	[ "$kind" != resume ] || { cmp -s out/log.csv whole/resume-log.csv && [ -z "$(ls -A backups)" ] && rm out/log.csv; } ||
		fail "$kind, command $number: another log.csv, or a backup is left: $(ls -A backups)"
	[ "$(ls -A out)" = "${target##*/}" ] || fail "$kind, command $number: left: $(ls -A out)"
	whole=$((whole + 1))
	# The next one replaces it, or something older, or begins with nothing.
	case $((RANDOM % 3)) in
	0) rm $target ;;
	1) cp sources/older "$target" ;;
	esac
}

# ---- what they read, and what they come to -------------------------------------------------------------
now_ms() { echo $(($(date +%s%N) / 1000000)); }
mkdir whole
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true", "autoReport.directory": "reports"}'
"$makers/trace_make" sources/own.db large 6000
"$makers/trace_make" sources/killed.db killed
"$makers/capture_make" sources/captures.db replicas
"$bin/ipu-report" sources/own.db export chrome -o sources/trace.json >/dev/null
"$bin/ipu-train" sources/run.json --fit.epochs 1 -q >out.txt || fail "$(cat out.txt)"
cp reports/*/profile.db sources/a.db
cp sources/own.db sources/older
rm -r reports
run() { "${command[@]}" >said 2>&1; }

total=0 reports=0
kinds=("${@:3}")
[ ${#kinds[@]} -gt 0 ] || kinds=(import merge export train resume)
for kind in "${kinds[@]}"; do
	[ "$kind" != resume ] || unset POPLAR_ENGINE_OPTIONS
	rm -rf out backups && mkdir out
	took=0
	for whole in 0 1 2 3 4; do
		command "$kind" $whole
		begun=$(now_ms)
		run || fail "$kind: $(cat said)"
		took=$((took + $(now_ms) - begun))
		[ ! -e out/log.csv ] || mv out/log.csv whole/resume-log.csv
		[ -e $reference ] && rm $target || mv $target $reference
		rm -rf reports
	done
	took=$((took / 5))
	rm -rf before && cp -r sources before
	killed=0 number=0 whole=0 left=0 quarters=(0 0 0 0) kept=0 complete=0 absent=0
	while [ $killed -lt "$kills" ]; do
		number=$((number + 1))
		command "$kind" $number
		before=$(digest $target)
		# The moments are in each tenth of the command in turn, far apart; a command that takes less time than before is killed in an early one.
		moment=$((took * (number * 7 % 10 * 100 + RANDOM % 100) / 1000))
		set -m
		"${command[@]}" >said 2>&1 &
		pid=$!
		set +m
		begun=$(now_ms)
		sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
		kill -9 -- -$pid 2>/dev/null || true
		at=$(($(now_ms) - begun))
		code=0
		wait $pid 2>/dev/null || code=$?
		diff -rq -x '*-shm' before sources || fail "$kind, command $number: what it reads was changed"
		check_reports
		if [ $code -ne 137 ]; then
			[ $code -eq 0 ] || fail "$kind, command $number: $(cat said)"
			check_end
			continue
		fi
		killed=$((killed + 1))
		at=$((4 * at / took))
		quarters[at > 3 ? 3 : at]=$((quarters[at > 3 ? 3 : at] + 1))
		left=$((left + $(ls -A out | grep -cvxF -e "${target##*/}" -e log.csv || true)))
		if [ "$(digest $target)" = none ]; then
			[ "$before" = none ] || fail "$kind, command $number: $target is gone"
			absent=$((absent + 1))
		elif [ "$(digest $target)" = "$before" ]; then
			kept=$((kept + 1))
		else
			same || fail "$kind, command $number: $target is not whole: $(cat said)"
			complete=$((complete + 1))
		fi
		# Every other one goes on with what is left; what several have left goes at once.
		[ $((RANDOM % 2)) = 0 ] || continue
		command "$kind" $number
		run || fail "$kind, command $number, again: $(cat said)"
		check_reports
		check_end
	done
	echo "$kind: $killed kills in the quarters of $took ms: ${quarters[*]}; target absent $absent, as before $kept, complete $complete; $left files left;" \
		"$whole whole commands: the same bytes, nothing left"
	total=$((total + killed))
done
echo "$total kills; $reports reports finished and read"
