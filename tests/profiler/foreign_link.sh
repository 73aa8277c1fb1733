#!/bin/sh
# A foreign program links the installed library: through pkg-config in C and C++, and through
# find_package. Usage: foreign_link.sh BUILD_DIR
set -eu
build=$1
source=${IPUSCOPE_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for tool in pkg-config sqlite3 cmake cc c++; do
	command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done

cmake --install "$build" --prefix "$work/prefix" >/dev/null
pc=$(find "$work/prefix" -name ipuscope.pc)
export PKG_CONFIG_PATH="${pc%/*}"
lib=$(dirname "$(find "$work/prefix" -name libipuscope.so)")
export LD_LIBRARY_PATH="$lib"

if nm -D "$lib/libipuscope.so" | grep '__[at]san_init' >/dev/null; then echo "skipped: built with sanitizers"; exit 77; fi

# Only what the headers declare is seen.
for library in ipuscope ipuscope-outfeed ipuscope-report ipuscope-trainer; do
	foreign=$(nm -D --defined-only "$lib/lib$library.so" | awk '$2 ~ /[A-Z]/ {print $3}' | grep -v '^ips_' || true)
	[ -z "$foreign" ] || { echo "lib$library exports besides ips_*: $foreign" >&2; exit 1; }
	soname=$(objdump -p "$lib/lib$library.so" | awk '$1 == "SONAME" {print $2}')
	nm -D --defined-only "$lib/lib$library.so" | awk -v soname="$soname" '$2 ~ /[A-Z]/ {print soname, $3}' | LC_ALL=C sort
done >"$work/symbols"
# A function that is gone wants a new soname: the rule is in cmake/install.cmake. UPDATE_GOLDEN=1 takes new ones up.
if [ -n "${UPDATE_GOLDEN:-}" ]; then cp "$work/symbols" "$source/tests/golden/public_symbols.txt"; fi
diff "$source/tests/golden/public_symbols.txt" "$work/symbols" || { echo "the libraries' functions are others"; exit 1; }

# Tensors go to the recording of the program: the library for them has no recorder of its own.
copies=$(nm "$lib/libipuscope-outfeed.so" | awk '$2 ~ /[TtWDdBb]/ && $3 ~ /^ips_/ && $3 !~ /^ips_(outfeed|captures)_/ {print $3}')
[ -z "$copies" ] || { echo "libipuscope-outfeed has copies of $copies"; exit 1; }
for name in ips_append ips_tensor_add ips_instant ips_recording_now_ns; do
	nm -D --undefined-only "$lib/libipuscope-outfeed.so" | grep -w $name >/dev/null || { echo "libipuscope-outfeed does not call $name of libipuscope"; exit 1; }
done
ldd "$lib/libipuscope-outfeed.so" | grep "libipuscope.so.0 => $lib/" >/dev/null || { ldd "$lib/libipuscope-outfeed.so"; exit 1; }

check() {
	rows=$(sqlite3 "$1" "SELECT count(*), count(DISTINCT parent_id), max(depth), min(dur_ns) >= 0 FROM spans;
		SELECT count(*), sum(value) FROM span_args WHERE name = 'batch';
		SELECT value FROM meta WHERE key = 'state'; PRAGMA integrity_check" | tr '\n' ' ')
	[ "$rows" = "200|100|1|1 100|4950 complete ok " ] || { echo "$1: $rows"; exit 1; }
}

strict="-Wall -Wextra -Wpedantic -Werror"
cc -std=c11 $strict $(pkg-config --cflags ipuscope) "$source/examples/foreign.c" -o "$work/c" $(pkg-config --libs ipuscope)
"$work/c" "$work/c.db"
check "$work/c.db"

c++ -std=c++11 $strict $(pkg-config --cflags ipuscope) "$source/examples/foreign.cpp" -o "$work/cpp" $(pkg-config --libs ipuscope)
"$work/cpp" "$work/cpp.db"
check "$work/cpp.db"

mkdir "$work/find"
cat >"$work/find/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(foreign LANGUAGES C)
find_package(ipuscope REQUIRED)
add_executable(foreign ${SOURCE}/examples/foreign.c)
target_link_libraries(foreign PRIVATE ipuscope::profiler)
CMAKE
cmake -G Ninja -S "$work/find" -B "$work/find/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DSOURCE="$source" >/dev/null
cmake --build "$work/find/build" >/dev/null
"$work/find/build/foreign" "$work/find.db"
check "$work/find.db"

# A hand-written trainer whose tensors are looked at; the same program in C++.
cc -std=c11 $strict $(pkg-config --cflags ipuscope-outfeed) "$source/examples/inspect_own.c" -o "$work/own" \
	$(pkg-config --libs ipuscope-outfeed) -lm
IPUSCOPE_BIN_DIR=$build/bin bash "$source/tests/outfeed/inspect_own.sh" "$work/own"
c++ -std=c++11 $strict $(pkg-config --cflags ipuscope-outfeed) -x c++ "$source/examples/inspect_own.c" -x none -o "$work/own_cpp" \
	$(pkg-config --libs ipuscope-outfeed)
IPUSCOPE_BIN_DIR=$build/bin bash "$source/tests/outfeed/inspect_own.sh" "$work/own_cpp"
cat >"$work/find/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(own LANGUAGES C)
find_package(ipuscope REQUIRED)
add_executable(own ${SOURCE}/examples/inspect_own.c)
target_link_libraries(own PRIVATE ipuscope::outfeed m)
CMAKE
cmake -G Ninja -S "$work/find" -B "$work/find/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DSOURCE="$source" >/dev/null
cmake --build "$work/find/build" >/dev/null
"$work/find/build/own" "$work/own.db" | grep -x 'rules broken: 0' >/dev/null

# A walk over a report, in C and C++: the library for it reads, and has no recorder.
copies=$(nm "$lib/libipuscope-report.so" | awk '$2 ~ /[TtWDdBb]/ && $3 ~ /^ips_/ && $3 !~ /^ips_report_/ {print $3}')
[ -z "$copies" ] || { echo "libipuscope-report has copies of $copies"; exit 1; }
cc -std=c11 $strict $(pkg-config --cflags ipuscope-report) "$source/examples/walk_report.c" -o "$work/walk" \
	$(pkg-config --libs ipuscope-report)
IPUSCOPE_BIN_DIR=$build/bin bash "$source/tests/reports/walk_report.sh" "$work/walk"
c++ -std=c++11 $strict $(pkg-config --cflags ipuscope-report) -x c++ "$source/examples/walk_report.c" -x none -o "$work/walk_cpp" \
	$(pkg-config --libs ipuscope-report)
IPUSCOPE_BIN_DIR=$build/bin bash "$source/tests/reports/walk_report.sh" "$work/walk_cpp"
cat >"$work/find/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(walk LANGUAGES C)
find_package(ipuscope REQUIRED)
add_executable(walk ${SOURCE}/examples/walk_report.c)
target_link_libraries(walk PRIVATE ipuscope::report)
CMAKE
cmake -G Ninja -S "$work/find" -B "$work/find/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DSOURCE="$source" >/dev/null
cmake --build "$work/find/build" >/dev/null
"$work/find/build/walk" "$work/own.db" | grep -x 'Target: none' >/dev/null

# Training with callbacks: one batch_end per Engine::run, or one per step where they are asynchronous.
cc -std=c11 $strict $(pkg-config --cflags ipuscope-trainer) "$source/examples/watch_training.c" -o "$work/callback" \
	$(pkg-config --libs ipuscope-trainer) -lm
few="--fit.steps_per_epoch 40 --compile.steps_per_execution 20 --evaluate null --data.limit 2000"
# shellcheck disable=SC2086
"$work/callback" "$source/examples/inspect-tensors.json" 0 $few >"$work/rest"
grep -q '^3 epochs, .* 6 batches seen' "$work/rest" || { cat "$work/rest"; exit 1; }
# shellcheck disable=SC2086
"$work/callback" "$source/examples/inspect-tensors.json" 9 $few --fit.asynchronous_callbacks true >"$work/running"
grep -q '^1 epochs, .* 40 batches seen' "$work/running" || { cat "$work/running"; exit 1; }
# Of an epoch 40 activations of two layers, and 10 accumulated gradients of two variables.
grep -q '^300 values were sent, ' "$work/rest" || { cat "$work/rest"; exit 1; }
grep -q '^100 values were sent, ' "$work/running" || { cat "$work/running"; exit 1; }
[ "$(sed -n 1p "$work/rest")" = "$(sed -n 1p "$work/running")" ] || { cat "$work/rest" "$work/running"; exit 1; }
if "$work/callback" "$source/examples/inspect-tensors.json" 0 --fit.epoch 2 2>"$work/err"; then exit 1; fi
grep -q 'did you mean' "$work/err" || { cat "$work/err"; exit 1; }
cat >"$work/find/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(callback LANGUAGES C)
find_package(ipuscope REQUIRED)
add_executable(callback ${SOURCE}/examples/watch_training.c)
target_link_libraries(callback PRIVATE ipuscope::trainer m)
CMAKE
cmake -G Ninja -S "$work/find" -B "$work/find/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DSOURCE="$source" >/dev/null
cmake --build "$work/find/build" >/dev/null

# It exists already: one line, exit code 1, and the file as it was.
if "$work/c" "$work/c.db" 2>"$work/err"; then echo "an existing file was overwritten"; exit 1; fi
grep -q 'exists already' "$work/err"
check "$work/c.db"
echo "foreign programs link and record"
