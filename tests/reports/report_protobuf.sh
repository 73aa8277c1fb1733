#!/bin/bash
# `ipu-report import` of protobuf traces: every event of made and of real files is told, with the name, start and duration
# that a straightforward reader has; damaged files are read up to the break or refused in a line. IPUSCOPE_TEST_TRACES names
# a folder with real ones in xplane/ and pftrace/.
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
python3 -c 'import sqlite3' 2>/dev/null || { echo "skipped: no sqlite3 in Python"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
PYTHONDONTWRITEBYTECODE=1 python3 "$IPUSCOPE_SOURCE_DIR/tests/reports/report_protobuf.py"
