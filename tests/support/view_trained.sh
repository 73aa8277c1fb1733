# Sourced by the tests that compare screens of their own trainings with SQL.
play=${IPUSCOPE_VIEW_PLAY:-$PWD/view_play}
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
command -v sqlite3 >/dev/null || {
	echo "skipped: sqlite3 is absent"
	exit 77
}
cd "$work"
export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' LC_ALL=C.UTF-8 XDG_CONFIG_HOME=$work XDG_STATE_HOME=$work
