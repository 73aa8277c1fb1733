#!/usr/bin/env bash
# Recordings of other profilers against a straightforward reader of each format: every span with its name, start and
# duration, every event told, launches, copies, what may not be taken over, and damaged or hostile databases.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
cd "$work"
command -v python3 >/dev/null || {
	echo "skipped: python3 is the other reader, and is absent"
	exit 77
}
samples=$IPUSCOPE_SOURCE_DIR/../shared/data/traces
timeout 1200 python3 "$IPUSCOPE_SOURCE_DIR/tests/reports/report_accelerators.py" "$bin/ipu-report" "$samples"
