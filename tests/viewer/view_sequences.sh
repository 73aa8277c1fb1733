#!/bin/bash
# Sequences on the screen Tensors: maps of attention with tokens at their sides, a text by its losses, norms of an Embedding's rows. The numbers are
# those that ipu-report prints, which report_sequence.sh compares with sums; in a terminal at 80x24 and 200x50, with colours and without, and on paper.
set -u
source=${IPUSCOPE_SOURCE_DIR:?}
play=$(realpath "${IPUSCOPE_VIEW_PLAY:-./view_play}")
. "$source/tests/support/view_terminal.sh"
cd "$work"
POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' "$bin/ipu-train" "$source/tests/golden/gpt_small.json" --callbacks null --compile.optimizer SGD \
	--data.path "$source/tests/golden/gpt_text.txt" --fit.epochs 1 --fit.steps_per_epoch 8 --outfeed.capture '[
	{"tensors":["*_scores","input","targets","loss_tokens"],"tier":"full"},{"tensors":"embedding/*","kind":"weight","tier":"full"}]' >out 2>&1 || { cat out; exit 1; }
mv tf_report__*/profile.db run.db

# shows SIZE KEYS: what keys lead to, without colours.
shows() { "$play" "$1" "8/$2" run.db; }
# same WHAT GOT WANTED
same() { [ "$2" = "$3" ] || { fail "$1: $2, not $3"; }; }
report() { "$bin/ipu-report" run.db "$@" --csv | tr -d '\r'; }
json() { "$bin/ipu-report" run.db "$@" --json >asked.json && sqlite3 :memory: "$query"; }

# Each head of both samples: j goes on through heads, l through samples.
for sample in 0 1; do
	for head in 0 1; do
		moved=vv$([ $head = 0 ] || echo j)$([ $sample = 0 ] || echo l)
		same "sample $sample, head $head" "$(shows 80x24 "attention_1_sc<Enter><Enter>$moved" | grep -a '^ sample ')" \
			"$(report attention attention_1 --sample $sample | awk -F, -v s=$sample -v h=$head '$1 == h && NR > 1 {
				printf " sample %d, head %d: entropy %.3g, distance %.3g, greatest %.3g", s, h, $2, $3, $4 }')"
	done
done
# Tokens above the map and beside it are those of the sample, all of them where there is room.
query="SELECT replace(group_concat(json_extract(value, '\$.key_token'), ''), ' ', '') FROM json_each(readfile('asked.json'), '\$.rows')
	WHERE json_extract(value, '\$.query') = 0"
tokens=$(json attention attention_1 --sample 1 --by score)
shows 200x50 'attention_1_sc<Enter><Enter>vvl' >map
same 'tokens above the map' "$(sed -n 5p map | tr -d ' ')" "$tokens"
same 'tokens beside it' "$(sed -n '6,47p' map | cut -c1-6 | tr -d ' \n')" "$tokens"
same 'dimensions' "$(sed -n 3p map)" ' step 7: float32 (2, 2, 32, 32)  [1, 0, :, :]  batch, heads, queries, keys'
shows 80x24 'attention_1_sc<Enter><Enter>vvb' | grep -a '^ *\[0\]  *\[1\]' >/dev/null || fail 'b shows no numbers'

# A causal map: the first row has one key, with shades by row each has its greatest in the darkest.
darkest() { shows 200x50 "attention_1_sc<Enter><Enter>vv$1" | sed -n '6,47p' | grep -ac █; }
same 'rows with the darkest shade' "$(darkest t) $(darkest tt)" "$(shows 200x50 'attention_1_sc<Enter><Enter>vv' | sed -n '6,47p' | grep -ac '[░▒▓█]') $(darkest '')"
[ "$(darkest '')" -lt "$(darkest t)" ] || fail 'shades by row are those of one scale'
# Of two runs there are numbers, and the foot says how they become a picture.
two=$("$play" 80x24 '8/loss_tok<Enter><Enter>vv' run.db run.db)
[[ $two == *Source*Target*Diff*'b picture'* ]] || fail "two runs: $two"

# The text: each token with its loss where there are no colours.
query="SELECT group_concat(trim(json_extract(value, '\$.token') || printf(' %.3g', json_extract(value, '\$.loss'))), ' ')
	FROM json_each(readfile('asked.json'), '\$.rows')"
shows 200x50 'loss_tok<Enter><Enter>vvj' >text
same 'losses' "$(sed -n '5,7p' text | tr -s ' \n' ' ' | sed 's/^ //; s/ $//')" "$(json token-losses --sample 1 | tr -s ' ')"
grep -a '^ mean loss by position, of 2 samples: from 0 to ' text >/dev/null || fail "$(cat text)"
# In little room the text comes first: the curve stands whole below all of it, above the two lines at the foot, or not at all.
with='' without=''
for ((height = 12; height <= 30; height++)); do
	shows 80x$height 'loss_tok<Enter><Enter>vv' >text
	row=$(grep -an '^ mean loss by position' text | cut -d: -f1)
	if [ -n "$row" ]; then
		with+=" $height"
		[ $((height - row)) -ge 6 ] && ! grep -a '^ sample .*, tokens ' text >/dev/null || fail "80x$height: a part of the curve or of the text: $(cat text)"
	else
		without+=" $height"
		[ -z "$with" ] || fail "80x$height: no curve, which is there in less room:$with"
	fi
done
[ -n "$with" ] && [ -n "$without" ] || fail "the curve is there at the heights$with, and not at$without"
# Norms: the first of both lists, and how many never changed.
shows 80x24 'embedding/emb<Enter><Enter>vv' >norms
query="SELECT group_concat(line, ' ') FROM (SELECT json_extract(value, '\$.row') || ' ' || json_extract(value, '\$.token') || printf(' %.4g', json_extract(value, '\$.norm')) AS line
	FROM json_each(readfile('asked.json'), '\$.rows') ORDER BY json_extract(value, '\$.norm') ORDER_ LIMIT 1)"
largest=$(query=${query/ORDER_/DESC} && json embeddings) smallest=$(query=${query/ORDER_/} && json embeddings)
sed -n 5p norms | tr -s ' ' | grep -aF -- " $largest $smallest" >/dev/null || fail "the largest is $largest, the smallest $smallest: $(cat norms)"
same 'rows that never changed' "$(grep -ao '[0-9]* never changed' norms)" "$(report embeddings | grep -c unchanged) never changed"

# On paper --tensor prints these pages, with the numbers of ipu-report.
paper() { "$bin/ipu-view" run.db --tensor "$@" 2>&1; }
same 'a map on paper' "$(paper attention_1_scores --sample 1 --head 1 --text | grep -a '^ sample ')" \
	"$(shows 80x24 'attention_1_sc<Enter><Enter>vvjl' | grep -a '^ sample ')"
same 'its tokens' "$(paper attention_1_scores --sample 1 --text | sed -n 4p | tr -d ' ')" "$tokens"
same 'its rows' "$(paper attention_1_scores --sample 1 --head 1 --csv | tr -d '\r' | sed 's|"1, 1"|1 1|' | cut -d, -f4-)" \
	"$(report attention attention_1 --sample 1 --head 1 --by score | cut -d, -f1,3,5 | sed 's/query,key,score/row,column,value/')"
query="SELECT group_concat(trim(json_extract(value, '\$.token') || printf(' %.3g', json_extract(value, '\$.loss'))), ' ')
	FROM json_each(readfile('asked.json'), '\$.rows')"
same 'losses on paper' "$(paper loss_tokens --sample 1 --step 6 --text --width 200 | sed -n '4,5p' | tr -s ' \n' ' ' | sed 's/^ //; s/ $//')" \
	"$(json token-losses --sample 1 --step 6 | tr -s ' ')"
same 'losses as rows' "$(paper loss_tokens --sample 1 --csv | tr -d '\r')" "$(report token-losses --sample 1)"
same 'norms as rows' "$(paper embedding/embeddings:0 --csv | tr -d '\r' | sort)" "$(report embeddings | sed 's/,[^,]*$//' | sort)"
same 'norms on paper' "$(paper embedding/embeddings:0 --text | grep -aEc '^ +[0-9]+ .* [0-9.]+ +[0-9]+ ')" 64
same 'numbers that are no page' "$(paper targets --csv | wc -l)" 65
paper loss_tokens --svg | grep -aF '<svg' >/dev/null || fail 'no picture on paper'
paper loss_tokens --page curve --text | grep -aF '[curve]' >/dev/null || fail 'no curve on paper'
"$bin/ipu-view" run.db run.db --tensor loss_tokens --text | grep -a 'Source.*Target.*Diff' >/dev/null || fail 'no two runs on paper'
# What is not there is one line, and nothing is printed.
while read -r wanted line; do
	got=$("$bin/ipu-view" run.db $line 2>&1 >printed)
	[ $? = 2 ] && [[ $got == *"$wanted"* ]] && [ ! -s printed ] && [ "$(wc -l <<<"$got")" = 1 ] || fail "$line: $got"
done <<'END'
--tensor --tensor nope --text
--sample --tensor loss_tokens --sample 2
--head --tensor loss_tokens --head 1
--step --tensor loss_tokens --step 99
--page --tensor loss_tokens --page curve --sample 1
curve --tensor loss_tokens --page curve --csv
--tensor --sample 1
tensors --tensor loss_tokens --view memory
END

# In a terminal of 256 colours the text stands as it is, and a picture of it has it too.
query="SELECT group_concat(json_extract(value, '\$.token'), '') FROM json_each(readfile('asked.json'), '\$.rows')"
text=$(json token-losses --sample 0)
for size in 80x24 200x50; do
	start ${size%x*} ${size#*x}
	type_ 'export TERM=xterm-256color'
	keys Enter
	view
	see 'Pipeline bubble' || continue
	type_ '8/loss_tok'
	keys Enter Enter
	type_ vv
	see " $text" || continue
	see 'mean loss by position'
	"${tmux_[@]}" capture-pane -e -p -t v | grep -aF -- "$(printf '\033[')" >/dev/null || fail 'no colours'
	for end in svg txt; do
		type_ W
		"${tmux_[@]}" send-keys -t v C-u
		type_ "$work/$size.$end"
		keys Enter
		appears "$work/$size.$end"
	done
	grep -aF -- '<svg' $size.svg >/dev/null || fail "$size.svg is no picture"
	grep -aF -- 'mean loss by position' $size.svg >/dev/null || fail "$size.svg lacks the curve"
	grep -aF -- 'mean loss by position' $size.txt >/dev/null || fail "$size.txt lacks the curve"
	type_ b
	see 'b picture'
	type_ bb
	see 'b numbers'
	type_ q
	sane 0 "$size"
done
[ $failures = 0 ] && echo ok
exit $((failures > 0))
