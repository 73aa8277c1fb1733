#!/usr/bin/env bash
# What is printed of sequences beside sums over the same numbers that awk and SQLite make: heads of attention, losses of tokens, rows of an Embedding.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
cd "$work"
POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' "$bin/ipu-train" "$IPUSCOPE_SOURCE_DIR/tests/golden/gpt_small.json" --callbacks null \
	--data.path "$IPUSCOPE_SOURCE_DIR/tests/golden/gpt_text.txt" --fit.epochs 2 --fit.steps_per_epoch 8 --outfeed.capture '[
	{"tensors":["*_scores","input","targets","loss_tokens"],"tier":"full"},{"tensors":"embedding/*","kind":"weight","tier":"full"}]' >out 2>&1 ||
	fail "$(cat out)"
report=$(echo tf_report__*)
show() { "$bin/ipu-report" "$report" "$@" || fail "$*"; }
plain() { tr -d '\r'; }
sql() { sqlite3 -batch -bail "$report/profile.db" "$1"; }
# close A B: not further apart than their digits are exact.
close() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(d * d < 1e-10 * (1 + a * a)) }' || fail "$3: $1, not $2"; }

# Each head's entropy, distance and greatest score, of each sample and layer, from the map's numbers.
for layer in attention_0 attention_1; do
	for sample in 0 1; do
		show attention $layer --sample $sample --csv | plain >heads
		[ "$(wc -l <heads)" = 3 ] || fail "heads: $(cat heads)"
		for head in 0 1; do
			show attention ${layer}_scores --sample $sample --head $head --by score --json >map.json
			sqlite3 -batch -csv :memory: "SELECT json_extract(value, '$.query'), json_extract(value, '$.key'), json_extract(value, '$.score')
				FROM json_each(readfile('map.json'), '$.rows')" | plain >map
			[ "$(wc -l <map)" = 1024 ] || fail "$(wc -l <map) scores"
			read -r entropy distance greatest < <(awk -F, '{ p = $3; if (p > 0) e -= p * log(p); d += p * ($1 > $2 ? $1 - $2 : $2 - $1); if (p > most[$1]) most[$1] = p }
				END { for (q in most) g += most[q]; printf "%.12g %.12g %.12g\n", e / 32, d / 32, g / 32 }' map)
			IFS=, read -r _ got_entropy got_distance got_greatest < <(sed -n $((head + 2))p heads)
			close "$got_entropy" "$entropy" "$layer head $head: entropy"
			close "$got_distance" "$distance" "$layer head $head: distance"
			close "$got_greatest" "$greatest" "$layer head $head: greatest"
		done
	done
done
# The map: a line for each query with its token, that looks at nothing behind itself.
show attention --step 3 --width 80 >map
grep -q '^attention_1_scores, step 3: (2, 2, 32, 32): batch, heads, queries, keys$' map || fail "$(cat map)"
[ "$(sed -n 5,36p map | cut -c9- | awk '{ sub(/ +$/, ""); if (length($0) > NR + 2) bad++ } END { print NR - bad }')" = 32 ] || fail "$(cat map)"
text=$(show token-losses --step 3 --json | plain >tokens.json; sqlite3 :memory: "SELECT group_concat(json_extract(value, '$.token'), '') FROM json_each(readfile('tokens.json'), '$.rows')")
grep -qF -- "$(echo "$text" | sed 's/.*\\n//')" "$IPUSCOPE_SOURCE_DIR/tests/golden/gpt_text.txt" || fail "no such text: $text"
# A query's token is the target of the one before it.
[ "$(sed -n 6,36p map | cut -c1-8 | sed 's/^ *//' | tr -d '\n ')" = "$(printf %s "${text%?}" | tr -d ' ')" ] || fail "$text is not what $(cat map) has"

# The losses of both samples are the loss of the step, and those by position that of the run.
for step in 0 7 15; do
	mean=$(for sample in 0 1; do show token-losses --step $step --sample $sample --by token --json >"$sample.json"; done
		sqlite3 :memory: "SELECT avg(json_extract(value, '$.loss')) FROM (SELECT value FROM json_each(readfile('0.json'), '$.rows') UNION ALL
			SELECT value FROM json_each(readfile('1.json'), '$.rows'))")
	close "$mean" "$(sql "SELECT value FROM metrics WHERE name = 'loss' AND step = $step AND mode = 'train'")" "loss of step $step"
done
close "$(show token-losses --by position --csv | plain | awk -F, 'NR > 1 { s += $2; n += $3 == 32 } END { printf "%.12g", n == 32 ? s / n : -1 }')" \
	"$(sql "SELECT avg(value) FROM metrics WHERE name = 'loss' AND step IS NOT NULL AND mode = 'train'")" 'loss by position'
CLICOLOR_FORCE=1 show token-losses --color always | grep $'\033\\[97;48;5;196m' >/dev/null || fail 'the greatest loss is not the brightest'
show token-losses | grep $'\033' >/dev/null && fail 'colour that nobody asked for'

# The rows' squares add up to that of the kernel; without weight decay and momentum tokens that never came stay as they were.
close "$(show embeddings --csv | plain | awk -F, 'NR > 1 { s += $(NF - 2) ^ 2 } END { printf "%.12g", sqrt(s) }')" \
	"$(sql "SELECT l2 FROM tensor_stats WHERE key = 'embedding/embeddings:0' ORDER BY weight_update DESC LIMIT 1")" 'norms'
show embeddings --limit 3 | grep '^0 of 64 rows have not changed' >/dev/null || fail "AdamW's decay moves all: $(show embeddings --limit 3)"
mv "$report" decay
POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' "$bin/ipu-train" "$IPUSCOPE_SOURCE_DIR/tests/golden/gpt_small.json" --callbacks null --compile.optimizer SGD \
	--data.path "$IPUSCOPE_SOURCE_DIR/tests/golden/gpt_text.txt" --fit.epochs 2 --fit.steps_per_epoch 4 --outfeed.capture '[{"tensors":["input","embedding/*"],"tier":"full"}]' \
	>out 2>&1 || fail "$(cat out)"
report=$(echo tf_report__*)
show export npz -o kept.npz >/dev/null
show embeddings --json >rows.json
# Of the second update's tokens: those have moved since the first was kept, and no others.
sqlite3 :memory: "SELECT json_extract(value, '$.row') FROM json_each(readfile('rows.json'), '$.rows') WHERE json_extract(value, '$.which') IS NULL" >moved
sql "SELECT hex(data) FROM captures WHERE key = 'input' AND step >= 4 ORDER BY step" | tr -d '\n' | fold -w8 | while read -r word; do
	printf "\\x${word:0:2}\\x${word:2:2}\\x${word:4:2}\\x${word:6:2}"; done | od -An -v -tf4 -w4 | awk '{ print $1 + 0 }' | sort -nu >came
[ "$(wc -l <moved)" -gt 5 ] && cmp moved came || fail "rows that moved: $(tr '\n' ' ' <moved), tokens that came: $(tr '\n' ' ' <came)"

refused() {
	local want=$1
	shift
	"$bin/ipu-report" "$report" "$@" >out 2>&1 && fail "$*"
	grep -qF -- "$want" out || fail "$*: $(cat out)"
}
refused 'no values of "loss_tokens" were kept' token-losses
refused 'no such values were kept' attention
refused 'scores are (batch, heads, queries, keys)' attention embedding/embeddings:0
refused 'no values of "input" were kept at step 99' embeddings input --step 99
report=decay
refused '--head 2: attention_1_scores has 2, from 0' attention --head 2
refused '--sample 2: loss_tokens has 2, from 0' token-losses --sample 2

# A recording made before tensors had names of dimensions, moments arguments, and steps of accelerators a critical path, is
# read, merged and compared.
cp decay/profile.db older.db
sqlite3 older.db "DROP VIEW tensors; ALTER TABLE tensor_rows DROP COLUMN dims;
	CREATE VIEW tensors AS SELECT queue, key, kind, layer, stage, shape, dtype, activity FROM tensor_rows;
	DROP VIEW critical_path; DROP TABLE critical_rows; DROP VIEW instant_args; DROP TABLE instant_arg_rows;
	DROP VIEW ranges; DROP TABLE range_rows; DROP VIEW kernels; DROP VIEW launches; DROP TABLE kernel_rows"
names=$("$bin/ipu-report" older.db list --csv | sed '1d; s/,.*//; /^list$/d; /^repair$/d')
[ "$(wc -l <<<"$names")" -gt 60 ] || fail "an older recording: no list of reports"
for name in $names 'tensors --columns key,dims'; do
	"$bin/ipu-report" older.db $name >out 2>&1 || true
	! grep -q "no such [tc]" out || fail "an older recording: $name: $(cat out)"
done
"$bin/ipu-report" older.db export chrome -o older.json >out || fail "an older recording: export"
for pair in 'older.db older.db' 'older.db decay' 'decay older.db'; do
	"$bin/ipu-report" diff $pair >out || fail "an older recording: diff $pair"
done
"$bin/ipu-report" merge older.db older.db --ranks order -o merged.db >out || fail "an older recording: merge"
[ "$(sqlite3 merged.db 'SELECT count(*) > 0 AND count(dims) = 0 FROM tensors')" = 1 ] || fail "an older recording: its tensors are lost"
for screen in accelerators timeline summary sql; do
	"$bin/ipu-view" older.db --view $screen >out 2>&1 || fail "an older recording: the screen $screen: $(cat out)"
done
echo ok
