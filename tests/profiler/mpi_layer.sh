#!/usr/bin/env bash
# libipuscope-mpi, preloaded and linked: what a small program calls of MPI is in one report for each rank, beside its own spans, and
# `ipu-report merge` and the report `communication` make of it what the program has done. With each implementation that is installed.
set -euo pipefail
bin=$IPUSCOPE_BIN_DIR source=$IPUSCOPE_SOURCE_DIR
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() {
	echo "FAILED: $*" >&2
	exit 1
}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none

# asked DATABASE SQL EXPECTED: the rows as words.
asked() {
	local said
	said=$(sqlite3 -separator : "$1" "$2" | tr '\n' ' ')
	[ "$said" = "$3 " ] || fail "$how, $implementation: $2: $said"
}

# checked: what the program has done is what the reports of its four ranks have.
checked() {
	for rank in 0 1 2 3; do
		[ "$(sqlite3 "report/rank$rank.db" "SELECT group_concat(value) FROM meta WHERE key IN ('mpi_ranks', 'rank', 'state') ORDER BY key")" \
			= "4,$rank,complete" ] || fail "$how, $implementation: meta of rank $rank"
	done
	"$bin/ipu-report" merge report/rank*.db -o all.db >/dev/null
	asked all.db "SELECT rank, name, count(*) FROM spans WHERE category = 'mpi' AND rank < 2 AND name NOT GLOB '*_create*' AND name NOT GLOB '*dup*' GROUP BY 1, 2" \
		"0:MPI_Allgatherv:1 0:MPI_Allreduce:5 0:MPI_Barrier:20 0:MPI_Bcast:5 0:MPI_Comm_split:1 0:MPI_Ibarrier:5 0:MPI_Intercomm_merge:1 0:MPI_Recv:3 0:MPI_Scatterv:1 0:MPI_Wait:6 1:MPI_Allgatherv:1 1:MPI_Allreduce:5 1:MPI_Barrier:20 1:MPI_Bcast:5 1:MPI_Comm_split:1 1:MPI_Ibarrier:5 1:MPI_Intercomm_merge:1 1:MPI_Scatterv:1 1:MPI_Send:1 1:MPI_Wait:6"
	asked all.db "SELECT s.name, a.name, a.value, count(*) FROM spans s JOIN span_args a USING (span_id)
		WHERE s.name IN ('MPI_Allgatherv', 'MPI_Allreduce', 'MPI_Scatterv', 'MPI_Send') AND a.name <> 'peer' OR s.name = 'MPI_Send' GROUP BY 1, 2, 3" \
		"MPI_Allgatherv:bytes:40:4 MPI_Allgatherv:ranks:1:1 MPI_Allgatherv:ranks:3:3 MPI_Allreduce:bytes:4000:20 MPI_Allreduce:ranks:4:20 MPI_Allreduce:size:4000:20 MPI_Scatterv:bytes:0:3 MPI_Scatterv:bytes:120:1 MPI_Scatterv:ranks:1:1 MPI_Scatterv:ranks:3:3 MPI_Send:bytes:1000:3 MPI_Send:peer:0:3 MPI_Send:ranks:4:3"
	asked all.db "SELECT rank, count(*) FROM spans WHERE name = 'own work' GROUP BY 1" "0:5 1:5 2:5 3:5"
	# The ranks have one clock here: what the layer has measured does not say otherwise. An offset that is beyond its bound moves a rank.
	for rank in 0 1 2 3; do
		asked "report/rank$rank.db" "SELECT count(*), min(o.value * o.value <= b.value * b.value) FROM meta o JOIN meta b
			ON b.key = replace(o.key, 'offset', 'bound') WHERE o.key GLOB 'clock_offset*'" 2:1
	done
	before=$(sqlite3 all.db "SELECT sum(value * CASE key WHEN 'merge.1.shift_ns' THEN 1 ELSE -1 END) FROM meta WHERE key GLOB 'merge.[01].shift_ns'")
	# Of the two measurements the one with the smaller bound counts.
	sqlite3 report/rank1.db "UPDATE meta_facts SET value = 5000000000 WHERE key = 'clock_offset_end_ns'; UPDATE meta_facts SET value = 7 WHERE key = 'clock_bound_end_ns'"
	"$bin/ipu-report" merge report/rank*.db -o moved.db >/dev/null
	after=$(sqlite3 moved.db "SELECT sum(value * CASE key WHEN 'merge.1.shift_ns' THEN 1 ELSE -1 END) FROM meta WHERE key GLOB 'merge.[01].shift_ns'")
	[ $((before - after)) = 5000000000 ] || fail "$how, $implementation: a clock 5 s ahead moved rank 1 from $before to $after"
	rm moved.db
	# Two halves of the ranks, each with a communicator that both its ranks call alike.
	asked all.db "SELECT group_concat(rank) FROM (SELECT DISTINCT value, rank FROM spans s JOIN span_args a USING (span_id)
		WHERE a.name = 'communicator' AND s.name = 'MPI_Barrier' ORDER BY rank) GROUP BY value ORDER BY 1" "0,1,2,3 0,1,2,3 0,1,2,3 0,1,2,3 0,1,2,3 0,1,2,3 0,1,2,3 0,2 1,3"
	# Copies of a communicator have names of their own, also of one that is not made yet when the call returns.
	asked all.db "SELECT DISTINCT value FROM spans s JOIN span_args a USING (span_id) WHERE a.name = 'communicator' AND value GLOB 'world*' ORDER BY 1" "world.1 world.1.1 world.2"
	# Eight threads one after the other use one lane.
	asked all.db "SELECT rank, count(DISTINCT track) FROM spans WHERE category = 'mpi' GROUP BY 1" "0:2 1:2 2:2 3:2"
	# Of each operation one rank is the last to come; what does not end with its operation has no bandwidth.
	"$bin/ipu-report" all.db communication --by bucket --sort name --csv --columns name,calls,last_calls | tr -d '\r' |
		grep -E 'Allreduce|arrier' >said
	[ "$(sort -u said | tr '\n' ' ')" = "MPI_Allreduce,20,5 MPI_Barrier,10,5 MPI_Barrier,32,0 MPI_Barrier,4,1 MPI_Ibarrier,10,0 " ] || fail "$how, $implementation: $(cat said)"
	"$bin/ipu-report" all.db communication --by bucket --where "ranks = 4" --sort name --csv --columns name,algbw_gb_s,busbw_gb_s | tr -d '\r' |
		LC_ALL=C awk -F, 'NR > 1 && $2 > 0 { printf "%s %.6f ", $1, $3 / $2 }' >said
	[ "$(cat said)" = "MPI_Allreduce 1.500000 MPI_Bcast 1.000000 " ] || fail "$how, $implementation: bandwidths: $(cat said)"
	rm -rf report all.db
}

tried=()
for implementation in openmpi mpich; do
	layer=$(ls "$bin"/../lib*/libipuscope-mpi-$implementation.so "$bin"/../lib/*/libipuscope-mpi-$implementation.so 2>/dev/null | head -n 1 || true)
	library=$(ls "$bin"/../profiler/libipuscope.so "$bin"/../lib*/libipuscope.so 2>/dev/null | head -n 1 || true)
	[ -e "$layer" ] && [ -e "$library" ] && command -v mpicc.$implementation mpiexec.$implementation >/dev/null || continue
	case $implementation in
	openmpi) launch=(mpiexec.openmpi --oversubscribe --bind-to none -n 4) ;;
	mpich) launch=(mpiexec.mpich -n 4) ;;
	esac
	compile=(mpicc.$implementation -std=c11 -D_GNU_SOURCE "-I$source/profiler" "$source/tests/profiler/mpi_program.c")
	found=("$library" "-Wl,-rpath,$(cd "${library%/*}" && pwd)")
	"${compile[@]}" -o program "${found[@]}"
	# The library of a sanitizer, with which ours may be built, has to come before those of a program that is built without.
	runtime=$(ldd "$layer" | awk '/lib[at]san/ { print $3 }')
	run=("${launch[@]}" env "LD_PRELOAD=$runtime")
	# LD_PRELOAD ends a name at a space or colon; LD_LIBRARY_PATH at a colon alone.
	preloaded=("${launch[@]}" env "LD_LIBRARY_PATH=$(cd "${layer%/*}" && pwd)" "LD_PRELOAD=$runtime ${layer##*/}")
	how=alone
	"${run[@]}" ./program || fail "$how, $implementation: exit code $?"
	[ -z "$(ls -d mpi_report* 2>/dev/null)" ] || fail "a program without the layer has left a report"
	how=preloaded
	IPUSCOPE_MPI_REPORT=report "${preloaded[@]}" ./program || fail "$how, $implementation: exit code $?"
	checked
	how=linked
	"${compile[@]}" -o program -Wl,--no-as-needed "$layer" "-Wl,-rpath,$(cd "${layer%/*}" && pwd)" "${found[@]}"
	day=$(date +%F)
	LD_BIND_NOW=1 "${run[@]}" ./program || fail "$how, $implementation: exit code $?"
	compgen -G "mpi_report__${day}__*" >/dev/null || compgen -G "mpi_report__$(date +%F)__*" >/dev/null ||
		fail "$how, $implementation: a report of $day is called" mpi_report__*
	mv mpi_report__* report
	checked
	# From Fortran: mpif.h, `use mpi` and `use mpi_f08`, whose handles have types; MPI_IN_PLACE is an address of Fortran's own.
	for module in mpif.h mpi mpi_f08; do
		how="Fortran, $module"
		# Debian 13 installs the wrapper without the compiler that it calls.
		mpif90.$implementation --version >/dev/null 2>&1 || continue
		case $module in
		mpif.h) edits=(-e "s/! INCLUDE/include 'mpif.h'/") ;;
		*) edits=(-e "s/! MODULE/use $module/") ;;
		esac
		case $module in
		mpi_f08) edits+=(-e 's/HANDLE(\([A-Za-z]*\))/type(MPI_\1)/; s/STATE ::/type(MPI_Status) ::/') ;;
		*) edits+=(-e 's/HANDLE([A-Za-z]*)/integer/; s/STATE ::/integer, dimension(MPI_STATUS_SIZE) ::/') ;;
		esac
		sed "${edits[@]}" "$source/tests/profiler/mpi_program.f90" >program.f90
		mpif90.$implementation -fallow-argument-mismatch -w -o program_f program.f90 || fail "$how, $implementation: does not compile"
		IPUSCOPE_MPI_REPORT=report "${preloaded[@]}" ./program_f || fail "$how, $implementation: exit code $?"
		"$bin/ipu-report" merge report/rank*.db -o all.db >/dev/null
		asked all.db "SELECT name, count(*) FROM spans WHERE category = 'mpi' GROUP BY 1" \
			"MPI_Allreduce:24 MPI_Alltoallv:4 MPI_Barrier:4 MPI_Bcast:20 MPI_Comm_dup:4 MPI_Comm_split:4 MPI_Ibarrier:4 MPI_Irecv:3 MPI_Send:3 MPI_Wait:7"
		asked all.db "SELECT DISTINCT s.name, a.name, a.value FROM spans s JOIN span_args a USING (span_id)
			WHERE s.name IN ('MPI_Allreduce', 'MPI_Alltoallv', 'MPI_Send') AND a.name <> 'ranks' ORDER BY 1, 2" \
			"MPI_Allreduce:bytes:4000 MPI_Allreduce:size:4000 MPI_Alltoallv:bytes:2400 MPI_Alltoallv:size:3200 MPI_Send:bytes:1000 MPI_Send:peer:0"
		asked all.db "SELECT group_concat(rank) FROM (SELECT DISTINCT value, rank FROM spans s JOIN span_args a USING (span_id)
			WHERE a.name = 'communicator' ORDER BY rank) GROUP BY value ORDER BY 1" "0,2 0,2 1,3 1,3"
		rm -rf report all.db
	done
	tried+=("$implementation")
done
[ ${#tried[@]} -gt 0 ] || {
	echo "skipped: no mpicc and mpiexec of Open MPI or MPICH"
	exit 77
}
echo "libipuscope-mpi: ${tried[*]}"
