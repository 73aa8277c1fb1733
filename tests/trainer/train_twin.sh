#!/usr/bin/env bash
# A small GPT on the first chapters of Genesis and its twin in PyTorch: the same weights before, the same batches, the same losses after
# each of 50 weight updates. With UPDATE_GOLDEN=1 and Debian's python3-torch PyTorch trains anew.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
cd "$work"
golden=$IPUSCOPE_SOURCE_DIR/tests/golden
gpt=("$golden/gpt_small.json" -q --data.path "$golden/gpt_text.txt")

"$bin/ipu-train" "${gpt[@]}" --weights.save two.npz || fail 'two IPUs'
mv log.csv two.csv
"$bin/ipu-train" "${gpt[@]}" --ipu null --pipeline null --host.threads 1 --weights.save cpu.npz || fail 'the CPU'
cmp two.npz cpu.npz || fail 'two IPUs and the CPU learn otherwise'
cmp two.csv log.csv || fail 'two IPUs and the CPU have other losses'
if [ -n "${UPDATE_GOLDEN:-}" ]; then
	"$bin/ipu-train" "${gpt[@]}" --fit null --callbacks null --weights.save first.npz || fail 'the first weights'
	/usr/bin/python3 "$IPUSCOPE_SOURCE_DIR/script/make-gpt-golden.py" "${gpt[0]}" first.npz "$golden/gpt_text.txt" >"$golden/gpt_losses.txt"
fi
grep -v '^#' "$golden/gpt_losses.txt" | awk -F '[ ,]' '
	NR == FNR { twin[$1] = $2; next }
	FNR > 1 { off = $2 - twin[$1]; off = off < 0 ? -off : off; most = off > most ? off : most; if (!($1 in twin) || off >= 1e-5) wrong = wrong "\n" $0 " PyTorch: " twin[$1]; last = $2; n++ }
	END { printf "largest difference of %d losses: %g%s\n", n, most, wrong; exit wrong != "" || n != 50 || last > twin[0] - 1 }
' - log.csv || fail 'PyTorch has other losses'
echo ok
