#!/usr/bin/env bash
# A viewer attached while training ends never spoils the file: it is complete, whole, and no longer in WAL mode.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

command -v tmux >/dev/null || {
	echo "skipped: tmux is not installed"
	exit 77
}
cd "$work"
export LC_ALL=C.UTF-8 TERM=xterm-256color
socket=ipuscope-watched-$$
trap 'tmux -L $socket kill-server 2>/dev/null; rm -rf "$work"' EXIT

POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' "$bin/ipu-train" "$run" --fit.epochs 4 --evaluate null >out 2>err &
pid=$!
until [ -s "$(ls tf_report__*/app.json 2>/dev/null)" ]; do
	sleep 0.05
	kill -0 $pid 2>/dev/null || fail "training ended early: $(cat err)"
done
report=$(ls -d tf_report__*)
tmux -L $socket new-session -d -x 100 -y 30 "'$bin/ipu-view' $report"
tmux -L $socket new-window -d "'$bin/ipu-view' $report"
sleep 0.5
tmux -L $socket send-keys -t :0 2
code=0
wait $pid || code=$?
[ $code -eq 0 ] || fail "exit code $code: $(cat err)"
[ "$(sqlite3 -readonly "$report/profile.db" "SELECT value FROM meta WHERE key = 'state'")" = complete ] || fail "not complete"
[ "$(sqlite3 -readonly "$report/profile.db" 'PRAGMA integrity_check')" = ok ] || fail "integrity"
[ "$(sqlite3 -readonly "$report/profile.db" "SELECT count(*) FROM metrics WHERE name = 'loss' AND step IS NOT NULL")" = 2000 ] || fail "rows are missing"
complete() { tmux -L $socket capture-pane -p -t :0 | grep complete >/dev/null; }
until_ complete
