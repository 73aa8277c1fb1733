/* The same from C++: a span for a scope. */
#include <ipuscope/profiler.h>
#include <cstdio>

int main(int argc, char **argv)
{
	ips_recording *recording;
	char why[256];
	IPS_SITE(load, "data", "load batch");
	IPS_SITE(parse, "data", "parse");

	if (ips_recording_open(&recording, argc > 1 ? argv[1] : "foreign.db", nullptr, why,
			       sizeof(why)) != 0)
		return std::fprintf(stderr, "foreign: %s\n", why), 1;
	ips_track *track = ips_track_open(recording, "worker 0", nullptr);
	for (int batch = 0; batch < 100; batch++) {
		ipuscope::span outer(track, &load);
		ips_span_arg_int(track, "batch", batch);
		ipuscope::span inner(track, &parse);
	}
	if (ips_recording_close(recording, why, sizeof(why)) != 0)
		return std::fprintf(stderr, "foreign: %s\n", why), 1;
	return 0;
}
