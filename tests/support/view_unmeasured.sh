# Sourced by the scripts that compare documents with screens (standard input): what the host measured becomes ~: its lanes, its stages and bubbles, what is counted or scaled with it.
unmeasured() {
	awk '
	/^ .* ──/ { headed = 1 }
	/^    (ramp-|imbalance |communication )/ && !headed { if (!above++) print "  ~"; next }
	/^ [A-Z][^─]*: host( time)? ─/ { print; print "  ~"; hidden = 1; next }
	/^([ST] )?host / { print substr($0, 1, index($0, "host") + 3) "          ~"; hidden = 2; next }
	hidden == 1 && /^( *$| [a-z])/ { hidden = 0 }
	hidden == 2 && /^(──|T device| [a-z])/ { hidden = 0 }
	hidden { next }
	/^[ ▶][a-z]+ +host / { next }
	/^  (run|speed|step)   +/ { print "  " $1 " ~"; next }
	/^ rows [0-9]+ to / { print " rows ~"; next }
	/^ hits   / { print " hits          ~"; next }
	/ hits over time / { sub(/over time.*/, "over time     ~") }
	/; [0-9]+ problems, / { sub(/; [0-9]+ problems, .*/, "; ~"); sub(/\([0-9]+ in all\)/, "(~ in all)") }
	{ print }' | sed -E 's/, at [0-9.]+ [mun]?s$/, at ~/; s/ *$//'
}
