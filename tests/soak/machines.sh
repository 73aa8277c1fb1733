#!/usr/bin/env bash
# The same on every machine: in each of the surroundings below weights have the digests that are committed, or all tests
# pass. Compilers are tried with their warnings as errors.
# `script/soak machines` tries them all, `script/soak machines NAME` those whose name has NAME in it. A surrounding that
# cannot be had here is said and left out; the end says which were really tried.
# What is downloaded stays in build/machines: a Debian 13, and the libraries of 64-bit ARM.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
place=$root/build/machines
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$place"
unset POPLAR_ENGINE_OPTIONS IPUSCOPE_DATA
export LOCPATH=$place/locale IPUSCOPE_SOURCE_DIR=$root

# What is tried | how | in front of each command, or what else the way needs.
surroundings=(
	"OPENBLAS_CORETYPE unset | weights | env -u OPENBLAS_CORETYPE"
	"OPENBLAS_CORETYPE Haswell | weights | env OPENBLAS_CORETYPE=Haswell"
	"OPENBLAS_CORETYPE Zen | weights | env OPENBLAS_CORETYPE=Zen"
	"OPENBLAS_CORETYPE SkylakeX | weights | env OPENBLAS_CORETYPE=SkylakeX"
	"OPENBLAS_CORETYPE Sandybridge | weights | env OPENBLAS_CORETYPE=Sandybridge"
	"OPENBLAS_CORETYPE Nehalem | weights | env OPENBLAS_CORETYPE=Nehalem"
	"x86-64 without AVX (qemu, Nehalem) | weights_of_processor | Nehalem"
	"x86-64 without AVX-512 (qemu, Haswell) | weights_of_processor | Haswell"
	"64-bit ARM (qemu) | weights_of_arm |"
	"tests, OPENBLAS_CORETYPE unset | tests | env -u OPENBLAS_CORETYPE"
	"tests, OPENBLAS_CORETYPE Haswell | tests | env OPENBLAS_CORETYPE=Haswell"
	"tests, OPENBLAS_CORETYPE SkylakeX | tests | env OPENBLAS_CORETYPE=SkylakeX"
	"tests, LANG=C | tests | env -u LC_ALL LANG=C"
	"tests, LANG=de_DE.UTF-8 | tests | in_language de_DE"
	"tests, LANG=tr_TR.UTF-8 | tests | in_language tr_TR"
	"tests, one processor | tests | taskset -c 0"
	"tests, four busy loops beside | tests | beside_busy_loops"
	"tests, another user, a path with spaces, no ../shared | tests_of_stranger |"
	"Clang | tests_of_clang |"
	"Debian 13 | tests_of_debian | trixie"
)

# Why a surrounding cannot be tried.
missing() {
	echo "$*" >"$work/why"
	exit 77
}

needs() {
	command -v "$1" >/dev/null || missing "no $1 is installed"
}

# ---- in front of a command -----------------------------------------------------------------------

in_language() {
	local language=$1
	shift
	needs localedef
	mkdir -p "$LOCPATH"
	[ -d "$LOCPATH/$language.UTF-8" ] || localedef -i "$language" -f UTF-8 "$LOCPATH/$language.UTF-8" ||
		missing "$language is not among the system's locales"
	env -u LC_ALL LANG="$language.UTF-8" "$@"
}

beside_busy_loops() {
	local loops=() code=0
	for _ in 1 2 3 4; do
		(while :; do :; done) &
		loops+=($!)
	done
	"$@" || code=$?
	kill "${loops[@]}"
	return $code
}

# ---- weights -------------------------------------------------------------------------------------

# weights COMMAND...: of all tutorials, with each instruction set that this machine has, and on all schedules.
weights() {
	(cd "$root/build/release/tests" && IPUSCOPE_BIN_DIR=$root/build/release/bin "$@" bash "$root/tests/trainer/train_digest.sh")
}

# weights_emulated BUILD EMULATOR ARGUMENT... -- NAME...: of these tutorials, from BUILD's ipu-train in that emulator.
weights_emulated() {
	local build=$1 emulator=()
	shift
	needs "$1"
	while [ "$1" != -- ]; do
		emulator+=("$1")
		shift
	done
	shift
	mkdir -p "$work/bin"
	printf '#!/bin/sh\nexec %s "$@"\n' "${emulator[*]@Q} ${build@Q}/bin/ipu-train" >"$work/bin/ipu-train"
	chmod +x "$work/bin/ipu-train"
	(cd "$work" && IPUSCOPE_BIN_DIR=$work/bin bash "$root/tests/trainer/train_digest.sh" "$@")
}

# An emulated processor without FMA takes microseconds for each multiply-add: three tutorials.
weights_of_processor() {
	weights_emulated "$root/build/release" qemu-x86_64 -cpu "$1" -- inspect-tensors inspect-tensors-half keras-mnist
}

# Debian's own packages, unpacked: those of a foreign system need not be installed.
unpack_arm() {
	local apt=$place/apt packages=$place/packages system=$place/arm
	mkdir -p "$apt"/{lists/partial,parts} "$packages/partial"
	: >"$apt/status"
	echo "deb http://deb.debian.org/debian bookworm main" >"$apt/sources.list"
	local options=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::lists="$apt/lists"
		-o Dir::State::status="$apt/status" -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=-
		-o Dir::Etc::parts="$apt/parts" -o Dir::Cache="$apt" -o Dir::Cache::archives="$packages" -o Debug::NoLocking=true
		-o APT::Sandbox::User=root)
	apt-get "${options[@]}" update && apt-get "${options[@]}" install -y --no-install-recommends --download-only \
		libc6-dev libsqlite3-dev libcjson-dev libcbor-dev libopenblas-pthread-dev libncurses-dev zlib1g-dev \
		libxxhash-dev libgcc-12-dev || missing "Debian's packages for arm64 cannot be had"
	rm -rf "$system"
	mkdir -p "$system/usr/lib"
	ln -s usr/lib "$system/lib"
	for package in "$packages"/*.deb; do
		dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$system"
	done
	# As Debian's alternatives would have it.
	(cd "$system/usr/lib/aarch64-linux-gnu" && ln -s openblas-pthread/libopenblas.so{,.0} .)
}

weights_of_arm() {
	needs aarch64-linux-gnu-gcc
	needs aarch64-linux-gnu-g++
	needs qemu-aarch64
	needs apt-get
	if [ ! -e "$place/arm/usr/lib/aarch64-linux-gnu/libopenblas.so.0" ]; then
		unpack_arm
	fi
	cmake -S "$root" -B "$place/build-arm" -G Ninja -DCMAKE_BUILD_TYPE=Release -DIPUSCOPE_TESTS=OFF -DIPUSCOPE_BENCH=OFF \
		-DIPUSCOPE_WERROR=ON -DCMAKE_TOOLCHAIN_FILE="$root/cmake/aarch64.cmake" -DIPUSCOPE_SYSROOT="$place/arm" >/dev/null
	cmake --build "$place/build-arm"
	local tutorials
	tutorials=$(sed -n '/-[0-9] /!s/ .*//p' "$root/tests/golden/digests.txt")
	weights_emulated "$place/build-arm" qemu-aarch64 -L "$place/arm" -- $tutorials
}

# ---- tests ---------------------------------------------------------------------------------------

# run_tests BUILD COMMAND...: all but the rules of the house, which are about the sources.
run_tests() {
	local build=$1
	shift
	"$@" ctest --test-dir "$build" --no-tests=error --output-on-failure -j "$(($(nproc) + 1))" -LE 'slow|house'
}

tests() {
	run_tests "$root/build/release" "$@"
}

sources() {
	mkdir -p "$1"
	tar -C "$root" --exclude=./build --exclude=./.git -cf - . | tar -C "$1" --no-same-owner -xf -
}

tests_of_stranger() {
	local home="$place/a path with spaces" nobody=(setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME="$work/home")
	[ "$(id -u)" -eq 0 ] || missing "only root can be somebody else (all other lines were not root's, then)"
	needs setpriv
	sources "$home/ipuscope"
	mkdir -p "$work/home"
	chmod a+rx "$work"
	chown -R nobody:nogroup "$home" "$work/home"
	"${nobody[@]}" test -r "$home/ipuscope/README.md" || missing "$home cannot be read by others than root"
	cd "$home/ipuscope"
	"${nobody[@]}" cmake --preset release >/dev/null
	"${nobody[@]}" cmake --build build/release
	IPUSCOPE_TEST_MNIST='' IPUSCOPE_TEST_CIFAR10='' run_tests build/release "${nobody[@]}"
}

tests_of_clang() {
	needs clang
	needs clang++
	cmake -S "$root" -B "$place/build-clang" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=clang \
		-DCMAKE_CXX_COMPILER=clang++ -DIPUSCOPE_WERROR=ON >/dev/null
	cmake --build "$place/build-clang"
	run_tests "$place/build-clang"
}

# inside SYSTEM COMMAND...: in that folder's system, with devices and processes of its own to be seen.
inside() {
	# Open MPI reads the processors from /sys. Data and locales of this system are not in that one.
	unshare --mount bash -c 'system=$1 && shift && mount -t proc proc "$system/proc" && mount --rbind /dev "$system/dev" &&
		mount --rbind /sys "$system/sys" && unset TMPDIR LOCPATH "${!IPUSCOPE_TEST_@}" && exec chroot "$system" "$@"' inside "$@"
}

tests_of_debian() {
	local system=$place/$1
	[ "$(id -u)" -eq 0 ] || missing "a system of its own needs root"
	if [ ! -e "$system/etc/debian_version" ]; then
		needs debootstrap
		# A debootstrap that is older than the system takes the newest that it knows.
		local known=/usr/share/debootstrap/scripts/$1
		[ -e "$known" ] || known=/usr/share/debootstrap/scripts/sid
		debootstrap --variant=minbase --include=ca-certificates "$1" "$system" http://deb.debian.org/debian "$known" ||
			missing "$1 cannot be had from deb.debian.org"
	fi
	sources "$system/root/ipuscope"
	inside "$system" bash -euc 'cd /root/ipuscope
		script/bootstrap test
		gcc --version | head -1; sqlite3 --version; dpkg-query -W libopenblas0 libncurses-dev
		for compiler in gcc clang; do
			command -v $compiler >/dev/null || continue
			cmake -S . -B build/$compiler -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=$compiler -DIPUSCOPE_WERROR=ON >/dev/null
			cmake --build build/$compiler
			ctest --test-dir build/$compiler --no-tests=error --output-on-failure -j "$(($(nproc) + 1))" -LE "slow|house"
		done'
}

# ---- all of them ---------------------------------------------------------------------------------

wanted=${1:-}
lines=()
failed=0
for surrounding in "${surroundings[@]}"; do
	IFS='|' read -r name way before <<<"$surrounding"
	name=${name% }
	[[ $name == *"$wanted"* ]] || continue
	read -ra command <<<"$way $before"
	began=$SECONDS
	: >"$work/why"
	echo "== $name"
	# In a shell of its own, with its errors: `if` and `||` would switch `set -e` off in it.
	set +e
	(
		set -e
		"${command[@]}"
	)
	code=$?
	set -e
	case $code in
	0) result="the same, in $((SECONDS - began)) s" ;;
	77) result="not tried: $(cat "$work/why")" ;;
	*) result="FAILED, after $((SECONDS - began)) s" failed=1 ;;
	esac
	[ $code -eq 0 ] || echo "$name: $result"
	lines+=("$(printf '%-56s %s' "$name" "$result")")
done
[ ${#lines[@]} -gt 0 ] || {
	echo "no surrounding has \"$wanted\" in its name" >&2
	exit 2
}

echo "== on $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(uname -m), $(. /etc/os-release && echo "$PRETTY_NAME")"
printf '%s\n' "${lines[@]}"
exit $failed
