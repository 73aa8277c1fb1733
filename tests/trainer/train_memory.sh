#!/usr/bin/env bash
# A run that does not fit into the tiles' memory: recorded and not started, or refused; and what a run that fits
# records of its memory adds up.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"

# Four tiles are too few for the first Dense layer, its accumulators and its code.
large=(--ipu.tiles_per_ipu 4 --fit.steps_per_epoch 8 --compile.steps_per_execution 8 --data.limit 512)
code=0
POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' "$bin/ipu-train" "$run" "${large[@]}" >out 2>err || code=$?
[ $code -eq 1 ] || fail "out of memory: exit code $code, not 1: $(cat err)"
unlagged err
[ "$(wc -l <err)" -eq 1 ] || fail "out of memory: not one line: $(cat err)"
for part in 'profile.db has the memory of a run that is not started' 'is out of memory on' 'largest there: ' 'takes at least '; do
	grep -qF "$part" err || fail "out of memory: \"$part\" is missing: $(cat err)"
done
db=$(ls tf_report*/profile.db)
ask() { sqlite3 -readonly "$db" "$1"; }
[ "$(ask "SELECT value FROM meta WHERE key = 'state'")" = complete ] || fail "the report is not complete"
[ "$(ask "SELECT count(*) FROM executions")" = 0 ] || fail "it was executed"
[ "$(ask "SELECT count(*) > 0 FROM tile_memory WHERE region = 'overflowed'")" = 1 ] || fail "nothing overflows"
[ "$(ask "SELECT count(*) > 0 FROM variables")" = 1 ] || fail "no variables"

# Without a report, or where it is not allowed, nothing is written.
rm -rf tf_report*
for options in '' '{"autoReport.all":"true","debug.allowOutOfMemory":"false"}'; do
	code=0
	POPLAR_ENGINE_OPTIONS=$options "$bin/ipu-train" "$run" "${large[@]}" >out 2>err || code=$?
	[ $code -eq 1 ] || fail "options '$options': exit code $code, not 1: $(cat err)"
	grep -q '^ipu-train: IPU [0-9]* is out of memory on' err || fail "options '$options': $(cat err)"
	[ -z "$(ls -d tf_report* 2>/dev/null)" ] || fail "options '$options': a report is left"
done

# What fits: a tile's always-live variables are its memory but for what takes turns; a step's live bytes are those of
# the variables that span it; after the last step only what always lives.
POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' "$bin/ipu-train" "$run" --fit.epochs 1 --fit.steps_per_epoch 8 \
	--compile.steps_per_execution 8 --data.limit 512 >out 2>err || fail "training: $(cat err)"
db=$(ls tf_report*/profile.db)
[ "$(ask "SELECT count(*) FROM
		(SELECT ipu, tile, sum(bytes) AS bytes FROM tile_memory WHERE category <> 'notAlwaysLiveVariables' GROUP BY 1, 2) m
	LEFT JOIN
		(SELECT t.ipu, t.tile, sum(t.bytes) AS bytes FROM variable_tiles t JOIN variables v USING (variable_id)
		WHERE v.always_live GROUP BY 1, 2) v USING (ipu, tile)
	WHERE m.bytes IS NOT v.bytes")" = 0 ] || fail "a tile's memory is not the sum of what is mapped there"
[ "$(ask "SELECT count(*) FROM variables v
	WHERE v.bytes <> (SELECT sum(bytes) FROM variable_tiles t WHERE t.variable_id = v.variable_id)")" = 0 ] ||
	fail "a variable's bytes are not those on its tiles"
[ "$(ask "SELECT count(*) FROM liveness l WHERE not_always_live_bytes <>
	(SELECT coalesce(sum(bytes), 0) FROM variables v WHERE v.ipu = l.ipu AND NOT v.always_live
		AND l.program_step BETWEEN v.first_program_step AND v.last_program_step)")" = 0 ] ||
	fail "live bytes of a step"
[ "$(ask "SELECT sum(not_always_live_bytes) FROM liveness
	WHERE (ipu, program_step) IN (SELECT ipu, max(program_step) FROM liveness GROUP BY ipu)")" = 0 ] ||
	fail "something is live at the end"
[ "$(ask "SELECT count(*) FROM liveness l LEFT JOIN programs p USING (program_id)
	WHERE l.program_id IS NOT NULL AND p.type IS NULL")" = 0 ] || fail "a step's program is unknown"
echo "ok"
