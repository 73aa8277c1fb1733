#!/usr/bin/env bash
# The character GPT learns a real text: the King James Bible of Debian's bible-kjv; without it a text of this tree. The same bytes on four IPUs and
# on the CPU, and what it writes too.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
cd "$work"
gpt=$IPUSCOPE_SOURCE_DIR/examples/gpt.json

if command -v bible >/dev/null; then
	bible Gen1:1-Exod40:38 </dev/null >text.txt
else
	echo 'without the program bible (package bible-kjv): the documents of this tree instead'
	cat "$IPUSCOPE_SOURCE_DIR"/docs/*.md >text.txt
fi
[ "$(wc -c <text.txt)" -gt 200000 ] || fail "the text has $(wc -c <text.txt) bytes"

few=(--data.path text.txt --fit.epochs 2 --fit.steps_per_epoch 80 --evaluate '{"steps":32,"steps_per_execution":32}')
"$bin/ipu-train" "$gpt" "${few[@]}" --weights.save four.npz --generate 'In the beginning' --generate.length 40 --generate.temperature 0.8 >out 2>&1 ||
	fail "$(cat out)"
"$bin/ipu-train" "$gpt" "${few[@]}" -q --ipu null --pipeline null --host.threads 1 --weights.save cpu.npz --generate 'In the beginning' --generate.length 40 \
	--generate.temperature 0.8 >text
cmp four.npz cpu.npz || fail 'four IPUs and the CPU learn otherwise'
# What follows may be any byte, which is no character of the locale's.
LC_ALL=C grep -a '^In the beginning.' out | cmp - <(LC_ALL=C grep -a '^In the beginning.' text) || fail "$(grep -a '^In the beginning' out text)"
# 20 weight updates of 2,048 bytes: the second ten have a lower loss on any text, and of the Bible more is known then than how frequent single bytes are.
tr '\r' '\n' <out | grep -a '^80/80 ' | awk '{ loss[++n] = $0; sub(/.* loss: /, "", loss[n]); sub(/ .*/, "", loss[n]) }
	END { exit !(n == 2 && loss[2] < loss[1] - 0.5) }' || fail "nothing learnt: $(cat out)"
single=$(od -An -v -tu1 -w1 text.txt | sort -n | uniq -c | awk '{ n += $1; s += $1 * log($1) } END { print (log(n) - s / n) / log(2) }')
if command -v bible >/dev/null; then
	awk -v single="$single" '/^Bits per token of the test set: / { bits = $NF } END { exit !(bits > 1 && bits < single - 0.2) }' out ||
		fail "$single bits of single bytes, learnt: $(tail -5 out)"
fi
# A text that goes on from its first letter goes on from its first two, too.
goes() {
	"$bin/ipu-train" --generate "$1" "$gpt" --data.path text.txt -q --ipu null --pipeline null --weights.load cpu.npz --fit null --evaluate null \
		--generate.length "$2" || fail "no text behind $1"
}
goes I 12 >first
goes "$(head -c 2 first)" 11 >second
cmp first second || fail "behind one letter: $(cat first), behind two: $(cat second)"
echo ok
