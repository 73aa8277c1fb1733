#!/usr/bin/env bash
# Recordings that others made, of each format, against a straightforward reader: every event told, every span with its
# name, start and duration. IPUSCOPE_TEST_TRACES names a folder that has them in kineto/, nsys/, rpd/, xplane/ and pftrace/.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
cd "$work"
[ -n "${IPUSCOPE_TEST_TRACES:-}" ] || {
	echo "skipped: IPUSCOPE_TEST_TRACES names no folder of recordings"
	exit 77
}
command -v python3 >/dev/null || {
	echo "skipped: python3 is the other reader, and is absent"
	exit 77
}
export PYTHONDONTWRITEBYTECODE=1
python3 "$IPUSCOPE_SOURCE_DIR/tests/reports/report_accelerators.py" "$bin/ipu-report" "$IPUSCOPE_TEST_TRACES"
python3 "$IPUSCOPE_SOURCE_DIR/tests/reports/report_protobuf.py"
