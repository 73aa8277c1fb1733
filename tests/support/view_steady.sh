# Sourced by the scripts that compare screens with saved ones: a screen (standard input) without what no two
# runs agree on, which is who recorded where (and in how many lines that is told), sizes, and the order of tracks in the file.
steady()
{
	sed -E -e '/ duration .*\(host\)/d' -e '/ started .*\(local\)/d' -e '/^  (run|speed)  /d' -e '/^ +updates in [0-9.]+ [mu]?s$/d' \
		-e '/^ .*(own cost|host  |process_start|ticks_per_second|pid  |sqlite_version|database  )/d' \
		-e 's/^( rows 1 to [0-9]+ of )[0-9]+$/\1~/; s/( span  +)[0-9]+/\1~/; s/ +$//'
}
