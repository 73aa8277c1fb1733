/*
 * trace_make FILE KIND [SPANS] [IPUS]: write a recording with a timeline, for scripts.
 *
 * awkward: names, values and times that are hard on writers of JSON. large: SPANS spans, in
 * threes that nest, with keys, on a host and a device track for each of IPUS. open: spans that
 * nobody ended. empty: nothing.
 */
#include <ipuscope/profiler.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IPUS_MOST 64

IPS_SITE(OUTER, "stage", "outer");
IPS_SITE(INNER, "layer", "inner");
IPS_SITE(LEAF, "operation", "leaf");
IPS_SITE(QUOTED, "say \"so\"", "back\\slash \"quotes\"\n\ttab \x01 \x7f");
IPS_SITE(BROKEN, "utf-8", "good \xc3\xa9, bad \xff\xc3, cut \xe2\x82");
IPS_SITE(LOSS, "counter", "loss");
IPS_SITE(MARK, "mark", "epoch </script>");
IPS_SITE(ARROW, "flow", "arrow \"x\"");

static struct ips_track *track(struct ips_recording *recording, const char *name, int ipu,
			       enum ips_clock clock)
{
	const struct ips_track_params params = {
		.name = name, .ipu = ipu < 0 ? IPS_NULL : ipu, .clock = clock};

	return ips_track_open(recording, name, &params);
}

static void write_awkward(struct ips_recording *recording)
{
	struct ips_track *host = track(recording, "host \"0\"\n", -1, IPS_HOST);
	struct ips_track *other = track(recording, "other", 3, IPS_HOST);
	struct ips_track *device = track(recording, "device", 3, IPS_DEVICE);
	struct ips_keys keys = IPS_KEYS_NULL;
	const double values[] = {1.5, NAN, INFINITY, -INFINITY, 1e300, 5e-324, -0.0, 0.1};

	keys.mode = IPS_TRAIN;
	keys.epoch = 1;
	keys.phase = 'F';
	ips_track_set_keys(host, &keys);
	ips_span_begin(host, &QUOTED);
	ips_span_arg_text(host, "text", "a \"b\" \\ \x02 \xff");
	ips_span_arg_int(host, "great", INT64_MAX);
	ips_span_arg_real(host, "inf", INFINITY);
	ips_span_arg_int(host, "step", 7);
	ips_span_arg_real(host, "quoted \"name\"", 0.25);
	ips_flow_out(host, &ARROW, 1);
	ips_span_begin(host, &BROKEN);
	ips_span_end(host);
	ips_span_end(host);
	ips_span_begin(other, &OUTER);
	ips_flow_in(other, &ARROW, 1);
	ips_span_end(other);
	ips_instant(host, &MARK);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		ips_counter(host, &LOSS, values[i]);
		ips_counter(other, &LOSS, values[i]);
	}
	/* All in one place, and far away. */
	ips_span_at(device, &OUTER, 0, 1000);
	ips_span_at(device, &INNER, 0, 1000);
	ips_span_at(device, &LEAF, 0, 0);
	ips_span_at(device, &LEAF, 999, 1);
	ips_span_at(device, &LEAF, 1000, 0);
	ips_span_at(device, &OUTER, 8000000000000001, 999999999);
}

/* A host and a device lane for each IPU; threes: outer(inner(leaf)). */
static void write_large(struct ips_recording *recording, long spans, int ipus)
{
	struct ips_track *tracks[2 * IPUS_MOST];
	struct ips_keys keys = IPS_KEYS_NULL;

	for (int i = 0; i < 2 * ipus; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%s/IPU %d", i < ipus ? "host" : "device", i % ipus);
		tracks[i] = track(recording, name, i % ipus, i < ipus ? IPS_HOST : IPS_DEVICE);
	}
	keys.mode = IPS_TRAIN;
	keys.epoch = 1;
	keys.phase = 'F';
	for (long i = 0; i < spans / 3; i++) {
		struct ips_track *lane = tracks[i % (2 * ipus)];
		const int64_t at = i / (2 * ipus) * 1000;

		keys.execution = i / 100000;
		keys.weight_update = i / 1000;
		keys.step = i / (2 * ipus);
		keys.microbatch = i / (2 * ipus) % 16;
		keys.ipu = i % ipus;
		keys.stage = i % ipus;
		if (i / (2 * ipus) % 16 == 0)
			ips_track_set_keys(lane, &keys);
		ips_span_at(lane, &OUTER, at, 900);
		ips_span_at(lane, &INNER, at + 1, 800);
		ips_span_at(lane, &LEAF, at + 1, 333);
		/* Rings are short: none is to overflow. */
		if (i % 8192 == 0)
			ips_recording_flush(recording);
	}
}

static void write_open(struct ips_recording *recording)
{
	struct ips_track *lane = track(recording, "lane", -1, IPS_HOST);

	ips_span_begin(lane, &OUTER);
	ips_span_begin(lane, &INNER);
	ips_span_begin(lane, &LEAF);
	ips_span_end(lane);
}

int main(int argc, char **argv)
{
	struct ips_recording *recording;
	char message[256] = "";
	const char *kind = argc < 3 ? "" : argv[2];

	if (argc < 3) {
		fputs("usage: trace_make FILE KIND [SPANS] [IPUS]\n", stderr);
		return 2;
	}
	if (ips_recording_open(&recording, argv[1], NULL, message, sizeof(message)) != 0) {
		fprintf(stderr, "%s\n", message);
		return 1;
	}
	if (strcmp(kind, "awkward") == 0)
		write_awkward(recording);
	else if (strcmp(kind, "large") == 0)
		write_large(recording, argc > 3 ? atol(argv[3]) : 1000000,
			    argc > 4 && atoi(argv[4]) <= IPUS_MOST ? atoi(argv[4]) : 2);
	else if (strcmp(kind, "open") == 0 || strcmp(kind, "killed") == 0)
		write_open(recording);
	if (strcmp(kind, "killed") == 0) {
		ips_recording_flush(recording);
		_exit(0);
	}
	if (ips_recording_close(recording, message, sizeof(message)) != 0) {
		fprintf(stderr, "%s\n", message);
		return 1;
	}
	return 0;
}
