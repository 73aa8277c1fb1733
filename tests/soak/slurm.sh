#!/usr/bin/env bash
# Slurm's srun trains to the bytes of one process, with Open MPI (pmix) and MPICH (pmi2). Its daemons (munged, slurmctld, slurmd) are those of
# Debian's packages, unpacked into a folder of their own and run from there on one node: nothing is installed, and neither systemd nor
# control groups are needed. Skipped without the superuser, whom slurmd wants, and where the packages cannot be had.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
find_launchers
skip() {
	echo "skipped: $*"
	exit 77
}
[ "$(id -u)" = 0 ] || skip "slurmd needs the superuser"
apt-get download slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libmunge2 >said 2>&1 || skip "no packages of Slurm: $(tail -n 1 said)"
for package in *.deb; do dpkg -x "$package" root; done
libraries=$(dirname "$(find "$work/root" -name slurm-wlm -type d | head -n 1)")
# What Slurm starts has its own libraries' path, too: ipu-train gets the one from before.
of_slurm() { LD_LIBRARY_PATH=$libraries:$libraries/slurm-wlm "$@"; }

host=$(hostname -s)
export SLURM_CONF=$work/slurm.conf
cat >slurm.conf <<CONF
ClusterName=scratch
SlurmctldHost=$host(127.0.0.1)
NodeName=$host NodeAddr=127.0.0.1 CPUs=4
PartitionName=all Nodes=$host Default=YES
SlurmctldPort=16817
SlurmdPort=16818
SlurmdParameters=config_overrides
SlurmUser=root
AuthInfo=socket=$work/munge.socket
PluginDir=$libraries/slurm-wlm
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
CONF
mkdir state spool
chmod 755 "$work"
head -c 1024 /dev/urandom >munge.key
chmod 600 munge.key
daemons_down() {
	local daemon process
	for daemon in slurmd slurmctld munged; do
		[ -s "$work/$daemon.pid" ] || continue
		process=$(cat "$work/$daemon.pid")
		kill "$process" 2>/dev/null || true
		while kill -0 "$process" 2>/dev/null; do sleep 0.1; done
	done
}
trap 'daemons_down; rm -rf "$work"' EXIT
of_slurm root/usr/sbin/munged --force --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munged.pid" \
	--log-file="$work/munged.log" --seed-file="$work/munge.seed" >said 2>&1 || fail "munged: $(cat said)"
of_slurm root/usr/sbin/slurmctld-wlm
of_slurm root/usr/sbin/slurmd-wlm -d "$work/root/usr/sbin/slurmstepd-wlm"
ready() { of_slurm root/usr/bin/sinfo --noheader --format %T 2>/dev/null | grep -x idle >/dev/null; }
until_ ready

training=("$bin/ipu-train" "$run" --fit.epochs 1 --fit.steps_per_epoch 64 --compile.steps_per_execution 64 --evaluate null
	--pipeline null --ipu.auto_select_ipus 4 --host.threads 1)
"${training[@]}" | grep -o 'XXH3 [0-9a-f]*' >one || fail "one process"
for launcher in "${launchers[@]}"; do
	case $launcher in openmpi) mpi=pmix ;; mpich) mpi=pmi2 ;; esac
	for count in 2 4; do
		of_slurm timeout 300 root/usr/bin/srun --mpi="$mpi" -n "$count" env -u LD_LIBRARY_PATH "${training[@]}" --distribution.instances mpi >out 2>&1 ||
			fail "srun --mpi=$mpi, $count ranks: $(tail -n 5 out)"
		grep -o 'XXH3 [0-9a-f]*' out | cmp - one || fail "srun --mpi=$mpi, $count ranks: other weights"
	done
done
if of_slurm root/usr/bin/srun -n 2 env -u LD_LIBRARY_PATH "${training[@]}" --distribution.instances mpi >out 2>&1; then
	fail "processes that do not know of each other trained"
fi
grep -q 'no launcher has started the run' out || fail "srun without --mpi: $(tail -n 5 out)"
echo "srun: ${launchers[*]}: $(cat one)"
