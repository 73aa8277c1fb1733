#!/usr/bin/env bash
# What a run looks at of sequences: scores of attention, the model's input, and targets and losses of tokens, only where a rule names them; the same
# bytes on IPUs and on the CPU, and no byte of the weights is another for it.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
cd "$work"
gpt=(env POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' "$bin/ipu-train" "$IPUSCOPE_SOURCE_DIR/tests/golden/gpt_small.json" --callbacks null
	--data.path "$IPUSCOPE_SOURCE_DIR/tests/golden/gpt_text.txt" --fit.epochs 2 --fit.steps_per_epoch 8)
named='{"tensors":["*_scores","input","targets","loss_tokens"],"tier":"full"}'
db=tf_report__*/profile.db

# answers WANTED QUERY
answers() {
	local got
	got=$(sqlite3 -batch -bail $db "$2") || fail "$2"
	[ "$got" = "$1" ] || fail "$2: $got, not $1"
}

"${gpt[@]}" --outfeed.capture '[{"kind":"activation","tier":"full"}]' >out 2>&1 || fail "$(cat out)"
answers 0 "SELECT count(*) FROM tensors WHERE key IN ('input', 'targets', 'loss_tokens') OR key LIKE '%!_scores' ESCAPE '!'"
answers 'batch, tokens, features' "SELECT DISTINCT dims FROM tensors WHERE kind = 'activation'"
plain=$(grep '^Weights: ' out)
rm -r tf_report__*

"${gpt[@]}" --outfeed.capture "[{\"kind\":\"activation\",\"tier\":\"stats\"},$named]" >out 2>&1 || fail "$(cat out)"
[ "$(grep '^Weights: ' out)" = "$plain" ] || fail "other weights for looking: $(cat out)"
answers '(2, 2, 32, 32)|batch, heads, queries, keys|1' "SELECT shape, dims, stage FROM tensors WHERE key = 'attention_1_scores'"
answers '(2, 32)|batch, tokens|0 (2, 32)|batch, tokens|1 (2, 32)|batch, tokens|1' "SELECT group_concat(shape || '|' || dims || '|' || stage, ' ') FROM
	(SELECT * FROM tensors WHERE key IN ('input', 'targets', 'loss_tokens') ORDER BY key)"
answers 'tokens, features|heads, width, features|features, heads, width|heads, width' "SELECT group_concat(dims, '|') FROM (SELECT dims FROM tensors WHERE kind = 'gradient'
	AND (key LIKE 'embedding/%' OR key LIKE 'attention!_0/attention!_output/k%' ESCAPE '!' OR key LIKE 'attention!_0/query/%' ESCAPE '!') ORDER BY key = 'attention_0/query/bias:0_grad',
	key = 'attention_0/query/kernel:0_grad', key LIKE 'attention%')"
# A query's scores add up to 1, and half of them and the diagonal are of keys that it may see; the mean of a step's losses is its loss.
answers '16|0' "SELECT count(*), sum(abs(mean * 32 - 1) > 1e-5 OR n_zero <> 4 * 32 * 31 / 2 OR n_neg > 0 OR max > 1) FROM tensor_stats WHERE key = 'attention_0_scores'"
answers '16|0' "SELECT count(*), sum(abs(t.mean - m.value) > 1e-5) FROM tensor_stats t JOIN metrics m USING (mode, step) WHERE t.key = 'loss_tokens' AND m.name = 'loss'"
answers "input|64|y" "SELECT json_extract(value, '$.key'), json_array_length(value, '$.names'), json_extract(value, '$.names[#-1]') FROM meta WHERE key = 'tokens'"
"$bin/ipu-report" tf_report__* export npz -o pipelined.npz >/dev/null
rm -r tf_report__*

"${gpt[@]}" --outfeed.capture "[{\"kind\":\"activation\",\"tier\":\"stats\"},$named]" --ipu null --pipeline null --host.threads 1 >out 2>&1 || fail "$(cat out)"
"$bin/ipu-report" tf_report__* export npz -o cpu.npz >/dev/null
cmp pipelined.npz cpu.npz || fail 'IPUs and CPU look at other values'
rm -r tf_report__*

# Only where they are due.
"${gpt[@]}" --outfeed.capture '[{"tensors":"*_scores","tier":"stats","every":5},{"tensors":"loss_tokens","tier":"stats","every":4}]' >out 2>&1 || fail "$(cat out)"
answers '0,5,10,15|0,4,8,12' "SELECT (SELECT group_concat(step) FROM (SELECT step FROM tensor_stats WHERE key = 'attention_0_scores' ORDER BY step)) || '|' ||
	(SELECT group_concat(step) FROM (SELECT step FROM tensor_stats WHERE key = 'loss_tokens' ORDER BY step))"
echo ok
