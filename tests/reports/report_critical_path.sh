#!/usr/bin/env bash
# The critical path of a trace whose path is worked out by hand, and of random ones, against a search that relaxes all
# edges until nothing changes. With IPUSCOPE_TEST_TRACES also that of recordings of PyTorch and Nsight Systems, and the
# figures that the tests of Holistic Trace Analysis publish.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
cd "$work"
command -v python3 >/dev/null || {
	echo "skipped: python3 is the other reader, and is absent"
	exit 77
}
timeout 1200 python3 "$IPUSCOPE_SOURCE_DIR/tests/reports/report_critical_path.py" "$bin/ipu-report" "${IPUSCOPE_TEST_TRACES:-}"
