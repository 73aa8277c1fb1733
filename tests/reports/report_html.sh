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
# What is painted as a bubble is from an update's first work until its last, on each IPU, and no time between updates.
painted = re.findall(r'<rect class="bubble" data-s="(\d+)" data-d="(\d+)"', text)
bubbles = []
for clock in "device", "host":
    rows = db.execute("""SELECT min(start_ns), max(start_ns + dur_ns) FROM stage_timings WHERE mode = 'train' AND clock = ? AND phase <> 'U'
        AND weight_update BETWEEN ? AND ? GROUP BY weight_update ORDER BY 1""", (clock, first, last)).fetchall()
    begin = one("SELECT min(start_ns) FROM stage_timings WHERE mode = 'train' AND clock = ? AND weight_update BETWEEN ? AND ?", clock, first, last)
    bubbles += [(start - begin, end - start) for start, end in rows for ipu in range(2)]
assert sorted((int(s), int(d)) for s, d in painted) == sorted(bubbles), (painted, bubbles)
legend = re.search(r'<p class="legend">(.*?)</p>', text).group(1)
phases = [p for (p,) in db.execute("SELECT DISTINCT phase FROM stage_timings WHERE mode = 'train'")]
assert sorted(re.findall(r"</span> ([FBWRU]) ", legend)) == sorted(phases) and "bubble" in legend, legend
assert "`" not in page.text and "<code>--" in text
assert page.figures.count("gantt") == 2 and page.figures.count("heat") == one("SELECT count(DISTINCT ipu) FROM tile_memory")
# What one asks first comes first, facts come last, and no table is preformatted text.
order = re.findall(r'<section id="(\w+)"', text)
assert order == ["glance", "pipeline", "metrics", "memory", "liveness", "tensors", "insights", "stages", "operations",
                 "facts"], order
assert "<pre" not in text
peak, unit = re.search(r"memory of the process on the host, at most</th><td class=\"l\">([\d.]+) ([kMG])B<", text).groups()
resident = one("SELECT max(value) FROM counters WHERE name = 'resident_bytes'")
assert abs(float(peak) * 1024 ** " kMG".index(unit) / resident - 1) < 0.01, (peak, unit, resident)
text = text.replace("&#160;", " ")
cards = dict(re.findall(r'<div class="card[^"]*"><h3>([^<]*)</h3><b>([^<]*)</b>', text))
idle = one("SELECT avg(idle_fraction) FROM bubbles WHERE clock = 'device' AND mode = 'train'")
assert abs(float(cards["Bubble"].rstrip(" %")) - 100 * idle) < 0.006, (cards, idle)
fullest = one("SELECT max(used) FROM (SELECT sum(bytes) * 1.0 / max(capacity) AS used FROM tile_memory GROUP BY ipu, tile)")
assert abs(float(cards["Fullest tile"].rstrip(" %")) - 100 * fullest) < 0.006, (cards, fullest)
slowest = one("""SELECT stage FROM stage_timings WHERE clock = 'device' AND mode = 'train' AND phase IN ('F', 'B')
    GROUP BY stage ORDER BY sum(dur_ns) DESC""")
assert cards["Slowest stage"] == "stage %d" % slowest, (cards, slowest)
assert set(cards) >= {"Duration", "Loss, last epoch", "Evaluated", "Health", "Insights"}, cards
# The device's work and the parts of its bubble are all of it; the host's parts are weighted by the runs' times.
device = re.search(r'<div class="bar">(.*?)</div>', text).group(1)
assert abs(sum(map(float, re.findall(r"flex:([0-9.]+)", device))) - 1) < 1e-3, device
assert not re.search(r">-0[^.0-9]", text)
for (key,) in db.execute("SELECT DISTINCT key FROM tensor_stats WHERE mean IS NOT NULL"):
    assert key in page.text, key
PYTHON

# ---- a run without IPUs, and a trace ---------------------------------------------------------------
mkdir cpu
(cd cpu && POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' train 64 --ipu null --pipeline null --fit.steps_per_epoch 16 >out.txt) ||
	fail "training without IPUs: $(cat cpu/out.txt)"
"$bin/ipu-report" cpu/tf_report__* export html -o cpu.html >/dev/null || fail "a run without IPUs"
! grep -E '>\?</text>|[Bb]ubble<|id="(memory|liveness|operations)"|\(simulated\)' cpu.html || fail "of what the run has not"
grep -q '>CPU</text>' cpu.html || fail "the lane has no name"
cat >trace.json <<'JSON'
[{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"main"}},
{"ph":"X","name":"outer & <all>","pid":1,"tid":1,"ts":100,"dur":100},{"ph":"X","name":"inner","pid":1,"tid":1,"ts":110,"dur":30},
{"ph":"X","name":"inner","pid":1,"tid":1,"ts":150,"dur":10},{"ph":"X","name":"other","pid":1,"tid":2,"ts":300,"dur":50}]
JSON
"$bin/ipu-report" import trace.json -o trace.db >/dev/null && "$bin/ipu-report" trace.db export html -o trace.html >/dev/null || fail "a trace"
python3 - <<'PYTHON' || fail "the page of a trace: $(cat trace.html)"
import re
text = open("trace.html").read()
assert re.findall(r'<section id="(\w+)"', text) == ["glance", "timeline", "sums", "insights", "facts"]
assert "<h1>trace.json</h1>" in text and "<b>250 us</b>" in text
spans = re.findall(r'<g class="w" data-s="(\d+)" data-d="(\d+)"><rect class="(f\d)".*?<title>([^:]*): ', text)
assert [s[:2] + s[3:] for s in spans] == [("0", "100000", "outer &amp; &lt;all&gt;"), ("10000", "30000", "inner"),
    ("50000", "10000", "inner"), ("200000", "50000", "other")], spans
assert spans[1][2] == spans[2][2]
rows = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", text, re.S)]
assert ["host", "outer &amp; &lt;all&gt;", "1", "60 us"] in [row[:4] for row in rows], rows
assert ["host", "inner", "2", "40 us"] in [row[:4] for row in rows], rows
PYTHON

# A GPU's trace: a card for the device, names of any length, and no heading for the one clock there is.
long=$(printf 'kernel<%0400d>' 0)
cat >gpu.json <<JSON
{"traceEvents": [{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":0,"dur":5,"args":{"correlation":1}},
{"ph":"X","cat":"kernel","name":"$long","pid":0,"tid":7,"ts":10,"dur":10,"args":{"device":0,"stream":7,"correlation":1}},
{"ph":"X","cat":"kernel","name":"$long","pid":0,"tid":7,"ts":40,"dur":10,"args":{"device":0,"stream":7}}], "deviceProperties": [{"id": 0, "name": "A100"}]}
JSON
"$bin/ipu-report" import gpu.json -o gpu.db >/dev/null && "$bin/ipu-report" gpu.db export html -o gpu.html >/dev/null || fail "a GPU's trace"
grep -F '<h3>Idle: GPU 0</h3><b>50.00&#160;%</b>' gpu.html >/dev/null || fail "no card for the GPU: $(grep 'class="card' gpu.html)"
sed 's/&gt;/>/g; s/&lt;/</g' gpu.html | grep -F "<td class=\"l\">$long</td>" >/dev/null || fail "a name is cut"
! grep '<figcaption>Host' gpu.html || fail "the GPU's lanes are called the host's"

# ---- a run whose numbers end as NaN ----------------------------------------------------------------
mkdir sick
(cd sick && POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true"}' train 64 --compile.optimizer.config.learning_rate 1e6 >out.txt 2>&1) || true
"$bin/ipu-report" sick/tf_report__* export html -o sick.html >/dev/null || fail "a run with NaN"
grep 'train loss by step, log axis' sick.html >/dev/null || fail "the loss lies on zero until it explodes: $(grep 'loss by step' sick.html)"
grep -E 'NaN or infinite: [0-9]+ of [0-9]+ values, the first at step' sick.html >/dev/null && grep 'class="gaps" d="M' sick.html >/dev/null ||
	fail "NaN are not marked"
grep '>nan</td>' sick.html >/dev/null || fail "the table has no nan"

# ---- a killed run, and none ------------------------------------------------------------------------
cp "$report/profile.db" killed.db
sqlite3 killed.db "UPDATE meta_facts SET value = 'recording' WHERE key = 'state'"
"$bin/ipu-report" killed.db export html -o killed.html >/dev/null || fail "a run without an end"
grep -q 'killed' killed.html || fail "does not say that the run was killed"
code=0
"$bin/ipu-report" "$report" export html >out.txt 2>err.txt || code=$?
[ $code -eq 2 ] && grep -q 'run.html: is there already' err.txt || fail "replaced: $code $(cat err.txt)"
