#!/usr/bin/env bash
# Ranks on hosts that are really apart train to the bytes of one process and leave one report: network namespaces, with a network of some
# bandwidth (tbf) and delay (netem, or tun_delay where the kernel has none) between them, names of their own, and a file system of
# their own where they record. A host that the network loses ends the run.
# Without arguments one of the networks, with --all each of them, which prints a table: see docs/distributed.md. Skipped where namespaces
# may not be made, and without Open MPI.
delayer=$PWD/tun_delay
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
find_launchers
[[ " ${launchers[*]} " = *' openmpi '* ]] || { echo "skipped: Open MPI is not installed"; exit 77; }
prefix=ips$$
delaying=
hosts_down() {
	local space process
	[ -z "$delaying" ] || { kill "$delaying" && wait "$delaying" || true; }
	delaying=
	for space in $(ip netns list | sed -n "s/^\($prefix-[a-z0-9]*\).*/\1/p"); do
		for process in $(ip netns pids "$space"); do kill -KILL "$process" 2>/dev/null || true; done
		ip netns del "$space"
	done
}
# What a host needs: namespaces, a bridge, limits of bandwidth, a name and a file system of its own.
may_be_made() {
	type ip tc unshare >/dev/null && ip netns add $prefix-switch && ip -n $prefix-switch link add name switch type bridge &&
		ip -n $prefix-switch link add name trial type veth peer name other &&
		tc -n $prefix-switch qdisc add dev other root tbf rate 1gbit burst 1mb latency 50ms &&
		ip netns exec $prefix-switch unshare --uts --mount bash -c "hostname trial && mount -t tmpfs none '$work'"
}
if ! may_be_made >why 2>&1; then
	hosts_down 2>/dev/null || true
	echo "skipped: no hosts apart may be made here: $(cat why)"
	exit 77
fi
trap 'hosts_down; rm -rf "$work"' EXIT
has_netem=
! tc -n $prefix-switch qdisc add dev trial root netem delay 1ms 2>/dev/null || has_netem=yes
hosts_down

# hosts_up COUNT RATE DELAY_US [BURST]: namespaces, each with the device `wire`. What is delayed has netem or a forwarder in the place of a
# switch. TCP's congestion control is cubic, Linux's own default, or reno, which every kernel has: bbr, which a machine may have set
# instead, overruns the short queue of a port to which several hosts send, and a twentieth of its segments are sent twice.
hosts_up() {
	local i spaces=() burst=${4:-1mb}
	limit() { tc -n "$1" qdisc add dev "$2" root tbf rate "$3" burst "$burst" latency 50ms; }
	ip netns add $prefix-switch
	ip -n $prefix-switch link add name switch type bridge
	ip -n $prefix-switch link set switch up
	for ((i = 1; i <= $1; i++)); do
		spaces+=("$prefix-$i")
		ip netns add "$prefix-$i"
		ip -n "$prefix-$i" link set lo up
	done
	if [ "$3" -gt 0 ] && [ -z "$has_netem" ]; then
		rm -f delaying
		"$delayer" "$3" "${spaces[@]}" >delaying &
		delaying=$!
		until_ test -s delaying
	fi
	for ((i = 1; i <= $1; i++)); do
		if [ -z "$delaying" ]; then
			ip -n $prefix-switch link add name "port$i" type veth peer name wire netns "$prefix-$i"
			ip -n $prefix-switch link set "port$i" master switch up
			[ "$3" -gt 0 ] && tc -n $prefix-switch qdisc add dev "port$i" root netem delay "$3us" limit 100000 || limit $prefix-switch "port$i" "$2"
		fi
		ip -n "$prefix-$i" addr add "10.77.0.$i/24" dev wire
		ip -n "$prefix-$i" link set wire up
		ip -n "$prefix-$i" route change 10.77.0.0/24 dev wire src "10.77.0.$i" congctl cubic 2>/dev/null ||
			ip -n "$prefix-$i" route change 10.77.0.0/24 dev wire src "10.77.0.$i" congctl reno
		limit "$prefix-$i" wire "$2"
	done
}

cat_in() { ip netns exec "$1" cat "$2"; }

# What launchers run in the place of ssh: HOST COMMAND... The options of a report are rank 0's.
mkdir reports
cat >agent <<AGENT
#!/usr/bin/env bash
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\${1##*.}
shift
unset POPLAR_ENGINE_OPTIONS
exec ip netns exec $prefix-\$host unshare --uts --mount bash -c 'hostname "host\$1" && mount -t tmpfs none "\$2" && shift 2 && exec bash -c "\$*"' host "\$host" "$work/reports" "\$@"
AGENT
chmod +x agent

# apart COUNT ARGUMENT...: a rank on each host, started from the first.
apart() {
	local count=$1 list=10.77.0.1 i
	shift
	for ((i = 2; i <= count; i++)); do list+=,10.77.0.$i; done
	timeout -k 5 900 ip netns exec $prefix-1 unshare --uts bash -c 'hostname host1 && exec "$@"' host mpirun.openmpi --mca plm_rsh_agent "$work/agent" \
		--mca plm_rsh_no_tree_spawn 1 --mca btl tcp,self --mca btl_tcp_if_include wire --mca oob_tcp_if_include wire --bind-to none --host "$list" \
		-n "$count" -wdir "$work/reports" "$bin/ipu-train" "$work/apart.json" "$@"
}

cat >apart.json <<'JSON'
{"model": {"class_name": "Sequential", "config": {"name": "apart", "layers": [
	{"class_name": "Flatten", "config": {"batch_input_shape": [null, 28, 28]}},
	{"class_name": "Dense", "config": {"units": 512, "activation": "relu"}},
	{"class_name": "Dense", "config": {"units": 512, "activation": "relu"}},
	{"class_name": "Dense", "config": {"units": 10, "activation": "softmax"}}]}},
 "compile": {"optimizer": "sgd", "loss": "sparse_categorical_crossentropy", "steps_per_execution": 8},
 "data": {"name": "mnist", "batch_size": 32}, "distribution": {"replicas": 4}, "host": {"threads": 1},
 "gradient_accumulation": {"steps_per_replica": 2}, "fit": {"epochs": 2, "steps_per_epoch": 16}, "evaluate": null}
JSON
# For the table as many updates as make a mean.
long=()
[ -z "$sweeps_all" ] || long=(--fit.steps_per_epoch 320)
weights() { grep -o 'XXH3 [0-9a-f]*' "$1"; }
"$bin/ipu-train" apart.json "${long[@]}" >alone || fail "one process: exit code $?"

export POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'
one() { # COUNT RATE DELAY_US
	local all
	hosts_up "$1" "$2" "$3"
	apart "$1" "${long[@]}" >out 2>&1 || fail "$*: $(cat out)"
	[ "$(weights out)" = "$(weights alone)" ] || fail "$*: other weights: $(cat out)"
	all=$(echo reports/tf_report__*/ranks.db)
	# The exchange went through the network.
	[ "$(cat_in $prefix-1 /sys/class/net/wire/statistics/tx_bytes)" -gt "$(sqlite3 "$all" "SELECT sum(a.value) FROM spans s JOIN span_args a USING (span_id)
		WHERE category = 'mpi' AND s.rank = 0 AND a.name = 'bytes'")" ] || fail "$*: the network carried less than the ranks exchanged"
	[ "$(sqlite3 "$all" "SELECT count(DISTINCT rank) FROM executions")" = "$1" ] || fail "$*: not all ranks in the report: $(cat out)"
	# The ranks have one clock: what they measure over the network says nothing else.
	[ "$(sqlite3 "$all" "SELECT min(o.value * o.value <= b.value * b.value) FROM meta o JOIN meta b ON b.key = replace(o.key, 'offset', 'bound')
		WHERE o.key GLOB '*.clock_offset_ns'")" = 1 ] || fail "$*: clocks: $(sqlite3 "$all" "SELECT * FROM meta WHERE key GLOB '*clock_*'")"
	[ -z "$sweeps_all" ] || sqlite3 -separator ' ' "$all" "SELECT printf('%5d %8s %8.1f %10.2f %10.2f %10.2f %9.3f', $1, '$2', $3 / 1000.0,
		(SELECT 1e-6 * sum(dur_ns) / sum(updates) FROM executions WHERE rank = 0 AND epoch = 2),
		1e-6 * sum(dur_ns) / updates / $1, 1e-6 * sum(hidden) / updates / $1,
		(SELECT value / 1e6 FROM meta WHERE key = 'merge.1.clock_bound_ns'))
		FROM (SELECT dur_ns, (SELECT value FROM span_args a WHERE a.span_id = s.span_id AND a.name = 'hidden_ns') AS hidden,
			(SELECT 1.0 * sum(updates) FROM executions WHERE rank = 0 AND epoch = 2) AS updates FROM spans s WHERE category = 'mpi' AND epoch = 2)"
	rm -rf reports/tf_report__*
	hosts_down
}

# A host that is cut off is missed by the others, and its rank misses them: both end. The launcher may wait for its own part on that host
# until the kernel gives the connection up, so it is killed with the hosts.
lost() {
	local started
	executed() { [ "$(sqlite3 -readonly reports/tf_report__*/profile.db "SELECT count(*) > 2 FROM executions" 2>/dev/null)" = 1 ]; }
	ranks_ended() {
		local process
		for process in $(ip netns pids $prefix-1) $(ip netns pids $prefix-2); do
			[ "$(cat "/proc/$process/comm" 2>/dev/null)" != ipu-train ] || grep '^State:.*Z' "/proc/$process/status" >/dev/null 2>&1 || return 1
		done
	}
	hosts_up 2 1gbit 0
	apart 2 --fit.epochs 100000 --distribution.timeout_s 2 >out 2>&1 &
	started=$!
	until_ executed
	! ranks_ended || fail "the ranks are not in the namespaces"
	ip -n $prefix-2 link set wire down
	until_ ranks_ended
	hosts_down
	! wait $started 2>/dev/null || fail "a host was lost: exit code 0"
	grep -E 'rank [01] has sent no sign of life for 2 s \(distribution.timeout_s\): rank [01] ends the run on all ranks' out >/dev/null || fail "a host was lost: $(cat out)"
	"$bin/ipu-report" reports/tf_report__*/profile.db repair >out || fail "a host was lost: $(cat out)"
	rm -rf reports/tf_report__*
}

sweep "2 1gbit 0" "2 10gbit 0" "4 1gbit 0" "4 10gbit 0" "2 1gbit 100" "2 1gbit 5000" "4 1gbit 5000"
[ -z "$sweeps_all" ] || echo "hosts     rate delay/ms  update/ms  waited/ms  hidden/ms  clock/ms"
for network in "${swept[@]}"; do
	read -ra words <<<"$network"
	one "${words[@]}"
done
lost

# MPICH, too: ranks that do not end together would wait for each other for ever.
if [[ " ${launchers[*]} " = *' mpich '* ]]; then
	hosts_up 2 1gbit 0
	UCX_TLS=tcp,self timeout -k 5 300 ip netns exec $prefix-1 unshare --uts bash -c 'hostname host1 && exec "$@"' host mpiexec.mpich -launcher ssh \
		-launcher-exec "$work/agent" -iface wire -hosts 10.77.0.1,10.77.0.2 -n 2 -wdir "$work/reports" "$bin/ipu-train" "$work/apart.json" "${long[@]}" >out 2>&1 ||
		fail "MPICH: $(cat out)"
	hosts_down
	[ "$(weights out)" = "$(weights alone)" ] || fail "MPICH: other weights: $(cat out)"
	rm -rf reports/tf_report__*
fi

# What-if from one process and from two ranks, by what the network is said to carry and by what the two ranks have found it to, beside runs:
# milliseconds an update. A replica on each host; the network takes longer than all ranks on these processors. A link saves up
# nothing while it is idle, so bursts are short. The latency is that of a loaded link, with what stands in its queue: half of the round trip that TCP
# has measured between the two hosts.
round_trips() { # FILE, until it is ended
	while sleep 0.5; do ip netns exec $prefix-1 ss -tinH dst 10.77.0.0/24; done >"$1"
}
latency() { # FILE: in us, of the connections that have carried more than the start of a job
	grep -o ' rtt:[0-9.]*\| bytes_sent:[0-9]*' "$1" | LC_ALL=C awk -F: '$1 == " rtt" { trip = $2 } $1 == " bytes_sent" && $2 > 1e6 { sum += trip; n++ }
		END { if (!n) exit 1; printf "%.0f", sum / n / 2 * 1000 }'
}
foretell() { # RATE COUNT...
	local rate=$1 count truth from network sampler delay
	rm -rf two
	for count in "${@:2}"; do
		hosts_up "$count" "$rate" 0 128kb
		[ -d two ] || { round_trips trips & sampler=$!; }
		apart "$count" --distribution.replicas "$count" --fit.steps_per_epoch $((16 * count)) >out 2>&1 || fail "foretell $*: $(cat out)"
		[ -d two ] || { kill $sampler && wait $sampler || true; }
		hosts_down
		[ -d two ] || delay=$(latency trips) || fail "foretell $*: no round trip: $(cat trips)"
		[ -d two ] || cp -r reports/tf_report__* two
		truth=$(sqlite3 reports/tf_report__*/ranks.db "SELECT sum(dur_ns) / sum(updates) FROM executions WHERE mode = 'train'")
		rm -rf reports/tf_report__*
		while read -r from network; do
			"$bin/ipu-report" what-if "$from" --instances "$count" --network "$network" --csv --columns weight_update_ns | tr -d '\r' |
				awk -v count="$count" -v truth="$truth" -v from="$from" -v network="$network" 'END {
					printf "%5d %10.2f  %-16s %-18s %9.2f %+6.1f %%\n", count, truth / 1e6, from, network, $1 / 1e6, 100 * ($1 / truth - 1) }'
		done <<-END
			one/profile.db $rate,${delay}us
			two/ranks.db $rate,${delay}us
			two/ranks.db recorded,${delay}us
		END
	done
}
if [ -n "$sweeps_all" ]; then
	mkdir one
	(cd one && "$bin/ipu-train" ../apart.json --distribution.replicas 1 --fit.steps_per_epoch 16 >out && mv tf_report__*/profile.db .)
	echo "hosts  update/ms  from             --network            told/ms   error"
	foretell 20Mbit 2 4 8
fi
echo "hosts apart: $(mpirun.openmpi --version | head -n 1)"
