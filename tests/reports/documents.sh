#!/usr/bin/env bash
# What README.md, docs/reports.md, docs/schema.md and docs/from-nsys.md show of runs: the runs are made anew, what is shown is made anew, and
# all must be as it stands, but for what the host measured. UPDATE_GOLDEN=1 rewrites the documents instead. They mark it so:
#
#	<!-- SCREEN SIZE KEYS -->             before an indented block: the screen after KEYS (view_play.c), of the tutorial
#	<!-- PICTURE FILE COMMAND -->         what COMMAND prints is the picture FILE; its texts above the host's lanes are compared
#	<!-- LINES COMMAND -->                before an indented block: each is a line of what COMMAND prints there
#	$ COMMAND                             in a block, indented or fenced: what COMMAND prints follows
#	<!-- RESULT NAME: COLUMN ... -->      behind a query (report_schema_results.sh); the COLUMNs are not the host's
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1
. "$IPUSCOPE_SOURCE_DIR/tests/support/view_unmeasured.sh"

play=$(realpath "${IPUSCOPE_VIEW_PLAY:-./view_play}")
command -v sqlite3 >/dev/null || {
	echo "skipped: there is no sqlite3"
	exit 77
}
locale -a 2>/dev/null | grep -iE '^c\.utf-?8$' >/dev/null || {
	echo "skipped: there is no locale C.UTF-8"
	exit 77
}
export LC_ALL=C.UTF-8 XDG_STATE_HOME=$work/state PATH=$bin:$PATH POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}'

# folder NAME: an empty one to go on in, where commands find the examples.
folder() {
	mkdir "$work/$1"
	cd "$work/$1"
	ln -s "$IPUSCOPE_SOURCE_DIR/examples" examples
}
# trained NAME ARGUMENT...: the same, with the report of a tutorial.
trained() {
	folder "$1"
	shift
	ipu-train examples/inspect-tensors.json -q "$@" >said 2>&1 || fail "inspect-tensors $*: $(cat said)"
}

# prints COMMAND: what it prints and complains of.
prints() { { bash -c "$1" 2>&1 || true; } | sed 's/ *$//'; }

# texts PICTURE: the texts of an SVG by their rows, without the lanes that the host measured.
texts() {
	sed -nE 's/^<text x="([0-9]+)" y="([0-9]+)"[^>]*>(.*)<\/text>$/\2 \1 \3/p' "$1" |
		awk '$3 == "host" { exit } { print }'
}
# picture FILE COMMAND: FILE of the source tree is what COMMAND prints.
picture() {
	local file=$IPUSCOPE_SOURCE_DIR/$1
	(cd "$work/tutorial" && bash -c "$2") >"$work/picture.svg" || fail "$2 failed"
	if [ -n "${UPDATE_GOLDEN:-}" ]; then
		cp "$work/picture.svg" "$file"
	else
		diff -u <(texts "$file") <(texts "$work/picture.svg") || fail "$1 shows something else; UPDATE_GOLDEN=1 rewrites it"
	fi
}

# Make what a document (standard input) shows anew. @shown: the report of its screens.
replay() {
	local line made= indent size keys file told=
	while IFS= read -r line; do
		if [ -n "$made" ]; then # the rest of a block that has been made anew
			case $line in
			"$indent\$ "* | '```') ;;
			"$indent"* | '') continue ;;
			esac
			made=
			[ -z "$indent" ] || echo
		fi
		printf '%s\n' "$line"
		case $line in
		'<!-- SCREEN '*)
			read -r _ _ size keys _ <<<"$line"
			made=1 indent='    '
			echo
			"$play" "$size" "$keys" "$shown" | sed "s/^/$indent/; s/ *$//"
			;;
		'<!-- PICTURE '*)
			read -r _ _ file told <<<"${line% -->}"
			picture "$file" "$told"
			told=
			;;
		'$ '* | '    $ '*)
			made=1 indent=${line%%\$*}
			prints "${line#*\$ }" | sed "s/^\(.\)/$indent\1/"
			;;
		'<!-- LINES '*)
			told=${line#<!-- LINES }
			told=$(prints "${told% -->}" | sed 's/^ *//')
			;;
		'    '*)
			[ -z "$told" ] || grep -qxF -- "${line##*  }" <<<"$told" || fail "nothing prints \"${line##*  }\", but: $told"
			;;
		?*) told= ;;
		esac
	done
}

# compare DOCUMENT MASK: what was made of it is the same, as far as the command MASK lets through.
compare() {
	local document=$IPUSCOPE_SOURCE_DIR/$1
	if [ -n "${UPDATE_GOLDEN:-}" ]; then
		cp "$work/made" "$document"
	else
		diff -u <("$2" <"$document") <("$2" <"$work/made") || fail "$1 shows something else; UPDATE_GOLDEN=1 rewrites it"
	fi
}

trained tutorial
shown=$work/run
ln -s "$PWD"/tf_report__* "$shown"
folder readme
replay <"$IPUSCOPE_SOURCE_DIR/README.md" >"$work/made"
mask_screens() { sed 's/^    //' | unmeasured; }
compare README.md mask_screens

# Blocks that are the host's, heads, which are as wide as their columns, and times in rows that are not the device's.
mask_reports() {
	awk '
	/^\$ / { print; host = / (runs|spans|overhead)( |$)|clock = .host/; head = !host; next }
	/^```/ { host = head = 0 }
	host { next }
	head { head = !/^--/; next }
	/^host / { print "host"; next }
	!/^device / { gsub(/[0-9.,]+ [mun]?s/, "~") }
	{ gsub(/ +/, " "); print }'
}
trained reports --fit.steps_per_epoch 200
replay <"$IPUSCOPE_SOURCE_DIR/docs/reports.md" >"$work/made"
compare docs/reports.md mask_reports

# Of tables the columns that their marks name.
mask_results() {
	awk '
	/^<!-- RESULT / { print; split("", at); wanted = NF; for (i = 4; i < NF; i++) name[i] = $i; inside = 1; next }
	/^<!-- END/ { inside = 0 }
	inside && /^[┌├└]/ { next }
	inside && /^│/ {
		n = split($0, cell, " *│ *")
		if (!(0 in at)) { for (i = 1; i <= n; i++) at[cell[i]] = i; at[0] = 1; next }
		line = "row"
		for (i = 4; i < wanted; i++) line = line " " cell[at[name[i]]]
		print line
		next
	}
	{ print }'
}
trained schema --ipu.auto_select_ipus 4 --fit.epochs 2 --fit.steps_per_epoch 496 --compile.steps_per_execution 496 --outfeed.gradients '["Dense"]'
cp "$IPUSCOPE_SOURCE_DIR/docs/schema.md" "$work/made"
sh "$IPUSCOPE_SOURCE_DIR/tests/reports/report_schema_results.sh" tf_report__*/profile.db "$work/made"
compare docs/schema.md mask_results
# Of a recording that is the same everywhere.
folder nsys
sqlite3 report1.sqlite <"$IPUSCOPE_SOURCE_DIR/tests/golden/nsys_training.sql" || fail "the export of nsys"
ipu-report import report1.sqlite >said || fail "import: $(cat said)"
shown=$PWD/report1.db
replay <"$IPUSCOPE_SOURCE_DIR/docs/from-nsys.md" >"$work/made"
compare docs/from-nsys.md cat
echo "four documents show what runs show"
