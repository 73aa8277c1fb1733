#!/usr/bin/env bash
# Databases of other profilers, which the test makes, against a straightforward reader: every span with its name, start
# and duration, launches, copies, what may not be taken over; and damaged or hostile ones.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
cd "$work"
command -v python3 >/dev/null || {
	echo "skipped: python3 is the other reader, and is absent"
	exit 77
}
timeout 1200 python3 "$IPUSCOPE_SOURCE_DIR/tests/reports/report_accelerators.py" "$bin/ipu-report" ""
