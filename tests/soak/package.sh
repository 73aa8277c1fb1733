#!/usr/bin/env bash
# The packages of Debian: made with the preset `package`, judged by lintian, installed in a fresh Debian with what they
# depend on and nothing else, used there as a stranger uses them, built against, and removed without a trace.
#
# Usage: package.sh [SUITE]: the Debian to install them in, bookworm by default; the packages are made on the Debian at
# hand, and run there and on later ones. As root, with network; takes what is missing of debootstrap and lintian from apt.
set -euo pipefail

suite=${1:-bookworm}
source=${IPUSCOPE_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
[ "$(id -u)" -eq 0 ] || { echo "skipped: only root can make a chroot"; exit 77; }
"$source/script/bootstrap" package
for tool in debootstrap lintian; do
	command -v $tool >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $tool >/dev/null
done
work=$(mktemp -d)
root=$work/debian
at_end() {
	umount "$root/proc" "$root/dev/shm" 2>/dev/null || true
	rm -rf --one-file-system "$work"
}
trap at_end EXIT

echo "== packages"
cd "$source"
rm -f build/package/*.deb
cmake --workflow --preset package >"$work/log" 2>&1 || { tail -n 50 "$work/log"; exit 1; }
packages=$(cd build/package && ls ./*.deb | sed 's/_.*//; s,^\./,,' | LC_ALL=C sort | tr '\n' ' ')
expected="ipuscope ipuscope-mpich ipuscope-openmpi libipuscope-dev libipuscope-outfeed0 libipuscope-report0 libipuscope-trainer0 libipuscope0 python3-ipuscope"
[ "$packages" = "$expected " ] ||
	{ echo "made: $packages"; exit 1; }
lintian --fail-on error build/package/*.deb

echo "== a fresh Debian ($suite)"
debootstrap --variant=minbase "$suite" "$root" "${IPUSCOPE_DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$work/log" || { tail "$work/log"; exit 1; }
mount -t proc proc "$root/proc"
# Ranks share memory there.
mount -t tmpfs tmpfs "$root/dev/shm"
mkdir "$root/packages"
cp build/package/*.deb "$root/packages"
inside() {
	chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}
# All files but apt's and dpkg's own notes, the linker's cache, those of adduser, which packages of MPI's call, what the
# test brings, and what its user keeps below the temporary folder, as a user without XDG_RUNTIME_DIR does.
files() {
	(cd "$root" && find . -xdev -path ./proc -prune -o -path ./packages -prune -o -path ./var/lib/dpkg -prune -o \
		-path ./var/lib/apt -prune -o -path ./var/cache -prune -o -path ./var/log -prune -o -path ./user -prune -o \
		-path ./etc/gshadow- -o -path ./run/adduser -o -path ./tmp/ipuscope-65534 -prune -o -print) | LC_ALL=C sort
}
inside apt-get update -qq
install=(apt-get install -y -qq --no-install-recommends)
files >"$work/before"
inside dpkg-query -W -f '${Package}\n' | LC_ALL=C sort >"$work/packages_before"

echo "== the tools"
inside sh -c "${install[*]} /packages/ipuscope_*.deb" >"$work/log" 2>&1 || { tail "$work/log"; exit 1; }
if inside sh -c 'ldd /usr/bin/ipu-*' | grep 'not found'; then exit 1; fi
mkdir -m 777 "$root/user"
cat >"$root/user/use" <<'EOF'
set -eu
cd /user
export HOME=/user
ipu-train --list | grep '^inspect-tensors ' >/dev/null
POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' ipu-train inspect-tensors >trained
cat trained
grep '^data: .*: /usr/share/ipuscope/script/get-mnist fetches that' trained >/dev/null
sh /usr/share/ipuscope/script/get-mnist --help >/dev/null
ipu-report tf_report__*
ipu-report tf_report__* stages
ipu-view tf_report__* --view timeline --text
ipu-plan model keras-mnist --use-ipu
EOF
inside setpriv --reuid 65534 --regid 65534 --clear-groups sh /user/use >"$work/used" 2>&1 || { cat "$work/used"; exit 1; }
grep -E 'accuracy|bubble|idle' "$work/used" | head -n 5

echo "== several processes"
inside sh -c "${install[*]} openmpi-bin mpich /packages/libipuscope0_*.deb /packages/ipuscope-*.deb" >"$work/log" 2>&1 || { tail "$work/log"; exit 1; }
if inside sh -c 'ldd /usr/lib/*/ipuscope/ranks-*.so /usr/lib/*/libipuscope-mpi-*.so' | grep 'not found'; then exit 1; fi
cat >"$root/user/share" <<'EOF'
set -eu
cd /user
export HOME=/user
weights() {
	"$@" ipu-train keras-mnist --use-ipu --ipu.auto_select_ipus 2 --host.threads 1 --fit.epochs 1 --fit.steps_per_epoch 4 \
		--compile.steps_per_execution 4 --data.batch_size 8 --evaluate null | grep '^Weights: '
}
weights env >one
weights mpirun.openmpi --oversubscribe -n 2 >openmpi
weights mpiexec.mpich -n 2 >mpich
cmp one openmpi
cmp one mpich
EOF
inside setpriv --reuid 65534 --regid 65534 --clear-groups sh /user/share >"$work/shared" 2>&1 || { cat "$work/shared"; exit 1; }

echo "== Python"
inside sh -c "${install[*]} /packages/libipuscope*0_*.deb /packages/python3-ipuscope_*.deb" >"$work/log" 2>&1 || { tail "$work/log"; exit 1; }
cat >"$root/user/record.py" <<'EOF'
import ipuscope
ipuscope.record("python.db")
with ipuscope.span("load"):
    ipuscope.loss(0.5)
EOF
inside setpriv --reuid 65534 --regid 65534 --clear-groups sh -c 'cd /user && HOME=/user python3 record.py && ipu-report python.db spans | grep load >/dev/null'

echo "== programs of one's own"
inside sh -c "${install[*]} gcc libc6-dev pkg-config cmake make /packages/libipuscope*.deb" >"$work/log" 2>&1 || { tail "$work/log"; exit 1; }
cat >"$root/user/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.25)
project(own LANGUAGES C)
find_package(ipuscope 0.9 REQUIRED)
foreach(pair IN ITEMS foreign:profiler inspect_own:outfeed walk_report:report watch_training:trainer)
	string(REPLACE ":" ";" pair ${pair})
	list(GET pair 0 program)
	list(GET pair 1 library)
	add_executable(${program} /usr/share/ipuscope/examples/${program}.c)
	target_link_libraries(${program} PRIVATE ipuscope::${library} m)
endforeach()
EOF
cat >"$root/user/build" <<'EOF'
set -eu
cd /user
export HOME=/user
cmake -S . -B by_cmake >/dev/null
cmake --build by_cmake >/dev/null
mkdir by_pkg_config
for pair in foreign:ipuscope inspect_own:ipuscope-outfeed walk_report:ipuscope-report watch_training:ipuscope-trainer; do
	name=${pair%%:*} library=${pair#*:}
	cc -std=c11 -Wall -Werror $(pkg-config --cflags $library) /usr/share/ipuscope/examples/$name.c -o by_pkg_config/$name \
		$(pkg-config --libs $library) -lm
done
for folder in by_cmake by_pkg_config; do
	$folder/foreign $folder/foreign.db
	ipu-report $folder/foreign.db >/dev/null
	$folder/inspect_own $folder/own.db
	$folder/walk_report tf_report__* >/dev/null
	$folder/watch_training /usr/share/ipuscope/examples/mnist-starter.json 9 --fit.steps_per_epoch 100 --data.limit 3200
done
EOF
inside setpriv --reuid 65534 --regid 65534 --clear-groups sh /user/build >"$work/built" 2>&1 || { cat "$work/built"; exit 1; }

echo "== removed"
inside dpkg-query -W -f '${Package}\n' | LC_ALL=C sort | comm -13 "$work/packages_before" - | xargs chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
	DEBIAN_FRONTEND=noninteractive apt-get purge -y -qq >"$work/log" 2>&1 || { tail "$work/log"; exit 1; }
files >"$work/after"
diff "$work/before" "$work/after" || { echo "purging leaves traces"; exit 1; }
inside dpkg --audit
echo "the packages install, work, and go without a trace"
