#!/usr/bin/env bash
# After its 3 epochs the tutorial's model is above 0.85 accuracy on MNIST.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

if [ -z "${IPUSCOPE_TEST_MNIST:-}" ]; then
	echo "skipped: IPUSCOPE_TEST_MNIST names no folder with the real MNIST set"
	exit 77
fi
"$bin/ipu-train" "$run" --data.path "$IPUSCOPE_TEST_MNIST" >"$work/out.txt"
accuracy=$(sed -n 's/^loss: .* - accuracy: //p' "$work/out.txt")
echo "test accuracy $accuracy"
awk -v a="$accuracy" 'BEGIN { exit !(a > 0.85) }' || fail "accuracy $accuracy: $(cat "$work/out.txt")"
