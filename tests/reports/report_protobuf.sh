#!/bin/bash
# `ipu-report import` of protobuf traces that the test makes: every event is told, with the name, start and duration that a
# straightforward reader has; damaged files are read up to the break or refused in a line.
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
python3 -c 'import sqlite3' 2>/dev/null || { echo "skipped: no sqlite3 in Python"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
IPUSCOPE_TEST_TRACES="" PYTHONDONTWRITEBYTECODE=1 python3 "$IPUSCOPE_SOURCE_DIR/tests/reports/report_protobuf.py"
