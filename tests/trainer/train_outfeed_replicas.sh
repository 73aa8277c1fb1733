#!/usr/bin/env bash
# Two replicas look at a global batch as one replica does that takes it as two micro-batches: row by row, and merged; and, merged, as
# one replica does that takes it whole.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
updates=24
# One replica takes batches 2u and 2u + 1 of update u one after the other; of two, replica r takes batch 2u + r. Both apply the
# mean: it is the reduction of one's micro-batches, and between replicas there is nothing else. Batches come in the order of the set.
common=("${no_pipeline[@]}" --data.shuffle false --evaluate null --compile.steps_per_execution epoch
	--outfeed.gradients '["none"]' --outfeed.capture '[{"tier": "stats"}]' --compile.optimizer '{"class_name": "SGD", "config": {"momentum": 0.9}}')
one=(--gradient_accumulation.steps_per_replica 2)
two=(--gradient_accumulation null --ipu.auto_select_ipus 2)

record() { # NAME [--key value ...]
	local name=$1
	shift
	POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true","autoReport.directory":"'"$name"'"}' \
		train $((2 * updates)) --quiet "${common[@]}" --weights.save "$name.npz" "$@" || fail "$name: exit code $?"
	mv "$name"/*/profile.db "$name.db"
}
asks() { # WHAT SQL ANSWER; two.db is main, one.db is `one`
	local answer
	answer=$(sqlite3 -readonly two.db "ATTACH 'one.db' AS one; $2")
	[ "$answer" = "$3" ] || fail "$1: $answer, not $3"
}

record one "${one[@]}" --gradient_accumulation.reduction mean --outfeed.optimizer_mode AFTER_COMPUTE
record two "${two[@]}" --outfeed.optimizer_mode AFTER_COMPUTE
cmp -s one.npz two.npz || fail "other weights"

# Row by row: what replica r has of step u is what one replica has of step 2u + r. The same bytes, so all columns are the same.
columns='n, n_nan, n_pos_inf, n_neg_inf, n_zero, n_neg, n_pos, min, max, mean, std, l1, l2, abs_min_nonzero, abs_max'
rows="SELECT queue, key, phase, weight_update, %s AS batch, $columns FROM %s.tensor_stats WHERE kind IN ('activation', 'gradient')"
# shellcheck disable=SC2059
mine=$(printf "$rows" 'replica' main) whole=$(printf "$rows" 'microbatch' one)
asks "rows" "SELECT count(*), count(DISTINCT key), count(DISTINCT batch) FROM ($mine)" "$((2 * updates * 9))|9|2"
asks "rows that differ" "SELECT count(*) FROM ($mine EXCEPT $whole)" 0
asks "rows that differ the other way" "SELECT count(*) FROM ($whole EXCEPT $mine)" 0

# Variables and slots: each replica has its own, which are the same.
state="SELECT key, weight_update, $columns, update_ratio, n_changed FROM %s.tensor_stats WHERE kind IN ('weight', 'optimizer_state')"
# shellcheck disable=SC2059
mine=$(printf "$state" main) whole=$(printf "$state" one)
asks "variables" "SELECT count(*) FROM ($mine)" $((2 * updates * 12))
asks "variables that differ" "SELECT count(*) FROM (SELECT * FROM ($mine) EXCEPT SELECT * FROM ($whole))" 0

# Merged over replicas, and over micro-batches: counts exactly, moments as they are put together.
merged="SELECT key, weight_update, sum(n) AS n, sum(n_zero) AS n_zero, sum(n_neg) AS n_neg, sum(n_pos) AS n_pos, min(min) AS min, max(max) AS max,
	sum(n * mean) / sum(n) AS mean, sum(n * (std * std + mean * mean)) / sum(n) AS squares, sum(l1) AS l1 FROM %s.tensor_stats
	WHERE kind = 'gradient' GROUP BY 1, 2"
# shellcheck disable=SC2059
mine=$(printf "$merged" main) whole=$(printf "$merged" one)
asks "merged rows" "SELECT count(*), sum(a.n = b.n AND a.n_zero = b.n_zero AND a.n_neg = b.n_neg AND a.n_pos = b.n_pos AND a.min = b.min AND a.max = b.max),
	max(abs(a.mean - b.mean)) < 1e-15, max(abs(a.squares - b.squares)) < 1e-15, max(abs(a.l1 - b.l1)) < 1e-9
	FROM ($mine) a JOIN ($whole) b USING (key, weight_update)" "$((updates * 6))|$((updates * 6))|1|1|1"

# Taken whole, it is the same numbers in one tensor. After the first update the sums of gradients are rounded in another order, so that
# weights part: counts of zeros and signs are held to in the first step, moments to what of that is left.
record one --gradient_accumulation null --data.batch_size 64 --fit.steps_per_epoch $updates --outfeed.optimizer_mode AFTER_COMPUTE
# shellcheck disable=SC2059
acts=$(printf "${merged/gradient/activation}" main) batch=$(printf "${merged/gradient/activation}" one)
asks "whole batches" "SELECT count(*), sum(a.n = b.n), sum(abs(a.mean - b.mean) * a.n <= 1e-4 * a.l1), sum(abs(a.squares - b.squares) <= 1e-4 * a.squares),
	sum(abs(a.l1 - b.l1) <= 1e-4 * a.l1), sum(abs(a.max - b.max) <= 1e-4 * a.max)
	FROM ($acts) a JOIN ($batch) b USING (key, weight_update)" "$(printf "$((updates * 3))%.0s|" 1 2 3 4 5)$((updates * 3))"
asks "the first whole batch" "SELECT count(*), sum(a.n_zero = b.n_zero AND a.n_neg = b.n_neg AND a.n_pos = b.n_pos AND a.min = b.min AND a.max = b.max),
	max(abs(a.mean - b.mean) * a.n / a.l1) < 1e-12, max(abs(a.squares - b.squares) / a.squares) < 1e-12, max(abs(a.l1 - b.l1) / a.l1) < 1e-12
	FROM ($acts) a JOIN ($batch) b USING (key, weight_update) WHERE weight_update = 0" '3|3|1|1|1'
# A gradient is a mean over its batch: that of the whole is the mean of the replicas', element by element.
asks "gradients of whole batches" "SELECT count(*), sum(a.n = 2 * b.n), max(abs(a.mean - b.mean) / (a.l1 / a.n)) < 1e-4
	FROM ($mine) a JOIN ($whole) b USING (key, weight_update)" "$((updates * 6))|$((updates * 6))|1"

# Accumulated: a replica sends its own gradient, before the replicas' mean is taken. One replica's micro-batches are added up, which is
# twice that mean; the learning rate is halved, so that both go the same way. Of what is linear (the mean of the elements) the
# merged row is half of one's, but for the rounding of elements; the deviation of a sum is none of its parts'.
record two "${two[@]}"
record one "${one[@]}" --compile.optimizer '{"class_name": "SGD", "config": {"momentum": 0.9, "learning_rate": 0.005}}'
cmp -s one.npz two.npz || fail "accumulated: other weights"
asks "accumulated" "SELECT count(*), min(a.n = 2 * b.n), max(abs(2 * a.mean - b.mean) / (a.l1 / a.n)) < 1e-7
	FROM ($mine) a JOIN ($whole) b USING (key, weight_update)" "$((updates * 6))|1|1"
asks "rows of each replica" "SELECT min(replica), max(replica), count(*), count(step) FROM tensor_stats WHERE kind = 'gradient'" "0|1|$((2 * updates * 6))|0"

# The norm of all gradients has the workers finish their gradients before anything else of the update.
record two "${two[@]}" --compile.optimizer '{"class_name": "SGD", "config": {"global_clipnorm": 1.0}}'
asks "rows of each replica, with a norm of all gradients" "SELECT replica, count(*), count(DISTINCT weight_update), min(phase), max(phase) FROM tensor_stats
	WHERE kind = 'gradient' GROUP BY replica" "0|$((updates * 6))|$updates|U|U
1|$((updates * 6))|$updates|U|U"
echo ok
