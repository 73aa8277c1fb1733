#!/usr/bin/env bash
# Inputs without an end: a device is refused or read up to a limit, with one line; a command that waits for the writer
# of a FIFO can be interrupted.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
mkfifo fifo
POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' "$bin/ipu-train" "$run" --fit.epochs 1 --fit.steps_per_epoch 4 --compile.steps_per_execution 4 \
	--data.limit 128 --evaluate null --quiet 2>/dev/null || fail "the recording"
mv tf_report__* report

# endless COMMAND...: with INPUT for the input.
endless() {
	local pid code=0
	timeout -s KILL 300 "${@//INPUT//dev/zero}" >out 2>err </dev/null || code=$?
	{ [ $code -eq 2 ] || [ $code -eq 1 ]; } && [ "$(wc -l <err)" -eq 1 ] || fail "$* of /dev/zero: exit code $code: $(cat err)"
	# A command in the background of a shell without job control ignores SIGINT.
	env --default-signal=INT "${@//INPUT/$work/fifo}" >out 2>err </dev/null &
	pid=$!
	gone() {
		# Not the shell that is about to become the command: it would end this test.
		case $(readlink "/proc/$pid/exe") in */ipu-*) kill -INT $pid 2>/dev/null || return 0 ;; esac
		! kill -0 $pid 2>/dev/null
	}
	until_ gone
	wait $pid && fail "$* of a FIFO: exit code 0" || true
}

endless "$bin/ipu-train" INPUT
endless "$bin/ipu-train" "$run" --weights.load INPUT
for name in csv npz text; do
	endless "$bin/ipu-train" "$run" --data.name $name --data.path INPUT
done
endless "$bin/ipu-train" "$run" --model INPUT
endless "$bin/ipu-view" INPUT --text
endless "$bin/ipu-view" report --view summary --text --config INPUT
endless "$bin/ipu-report" INPUT
endless "$bin/ipu-report" import INPUT -o out.db
endless "$bin/ipu-report" diff report INPUT
endless "$bin/ipu-report" merge report INPUT -o out.db
endless "$bin/ipu-report" report health --reevaluate INPUT
endless "$bin/ipu-plan" model INPUT

# The second signal ends a command at once, whatever it does: an import may wait for its pipe. This shell keeps the pipe open.
mkfifo pipe
exec 9<>pipe
printf '[%60000s' ' ' >&9
env --default-signal=INT "$bin/ipu-report" import - -o out.db <pipe >out 2>err 9<&- &
pid=$!
twice() {
	case $(readlink "/proc/$pid/exe") in */ipu-*) bash -c "kill -INT $pid" 2>/dev/null || return 0 ;; esac
	! kill -0 $pid 2>/dev/null
}
until_ twice
wait $pid && fail "an interrupted import: exit code 0" || true
[ ! -e out.db ] || fail "an interrupted import leaves a database"
