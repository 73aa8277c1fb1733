#!/usr/bin/env bash
# `ipu-report REPORT export html`: one whole page that needs nothing else, whose pictures hold what SQL says.
. "$IPUSCOPE_SOURCE_DIR/tests/support/train_support.sh" || exit 1

cd "$work"
command -v python3 >/dev/null || {
	echo "skipped: python3 reads the page, and is absent"
	exit 77
}
POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' train 64 >out.txt
report=$(ls -d tf_report__*)
"$bin/ipu-report" "$report" export html >out.txt
grep -q '^run.html: a page of ' out.txt || fail "said: $(cat out.txt)"
"$bin/ipu-report" "$report" export html -o - | cmp - run.html || fail "not the same on the standard output"

python3 - "$report/profile.db" <<'PYTHON' || fail "the page is not what SQL says"
import re, sqlite3, sys
from html.parser import HTMLParser

class Page(HTMLParser):
    void = {"meta", "br", "hr"}
    def __init__(self):
        super().__init__()
        self.open, self.figures, self.tables, self.text = [], [], [], ""
        self.tiles, self.works = 0, []
    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        for name, value in attributes.items():
            assert not re.search(r"nan|inf", value or "") or name in ("class", "id", "content"), (tag, name, value)
            assert name not in ("src",) and not (name == "href" and not value.startswith("#")), (tag, name, value)
        if tag not in self.void:
            self.open.append(tag)
        kind = attributes.get("class", "")
        if tag == "rect" and re.fullmatch(r"h\d+", kind):
            self.tiles += 1
        if tag == "g" and kind == "w":
            self.works.append((int(attributes["data-s"]), int(attributes["data-d"])))
        if tag == "figure":
            self.figures.append(kind)
    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()
    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-5:])
        self.open.pop()
    def handle_data(self, data):
        self.text += data

page = Page()
text = open("run.html", encoding="utf-8").read()
page.feed(text)
page.close()
assert not page.open, page.open
assert "http" not in re.sub(r"http://www\.w3\.org/2000/svg", "", text)
db = sqlite3.connect(sys.argv[1])
one = lambda sql, *a: db.execute(sql, a).fetchone()[0]
assert page.tiles == one("SELECT count(*) FROM (SELECT DISTINCT ipu, tile FROM tile_memory)"), page.tiles
first, last = map(int, re.search(r"Device \(simulated\), weight updates (\d+) to (\d+)", text).groups())
wanted = []
for clock in "device", "host":
    rows = db.execute("""SELECT start_ns, dur_ns FROM stage_timings WHERE mode = 'train' AND clock = ?
        AND weight_update BETWEEN ? AND ? ORDER BY start_ns""", (clock, first, last)).fetchall()
    wanted += [(start - rows[0][0], dur) for start, dur in rows]
assert sorted(page.works) == sorted(wanted), (len(page.works), len(wanted))
assert page.figures.count("gantt") == 2 and page.figures.count("heat") == one("SELECT count(DISTINCT ipu) FROM tile_memory")
for (key,) in db.execute("SELECT DISTINCT key FROM tensor_stats WHERE mean IS NOT NULL"):
    assert key in page.text, key
PYTHON

# ---- a killed run, and none ------------------------------------------------------------------------
cp "$report/profile.db" killed.db
sqlite3 killed.db "UPDATE meta_facts SET value = 'recording' WHERE key = 'state'"
"$bin/ipu-report" killed.db export html -o killed.html >/dev/null || fail "a run without an end"
grep -q 'killed' killed.html || fail "does not say that the run was killed"
code=0
"$bin/ipu-report" "$report" export html >out.txt 2>err.txt || code=$?
[ $code -eq 2 ] && grep -q 'run.html: is there already' err.txt || fail "replaced: $code $(cat err.txt)"
