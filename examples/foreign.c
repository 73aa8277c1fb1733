/* A program of somebody else that records itself: only the public header, only the library. */
#include <ipuscope/profiler.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct ips_recording *recording;
	struct ips_track *track;
	char why[256];
	IPS_SITE(load, "data", "load batch");
	IPS_SITE(parse, "data", "parse");

	if (ips_recording_open(&recording, argc > 1 ? argv[1] : "foreign.db", NULL, why,
			       sizeof(why)) != 0)
		return fprintf(stderr, "foreign: %s\n", why), 1;
	track = ips_track_open(recording, "worker 0", NULL);
	for (int batch = 0; batch < 100; batch++) {
		IPS_SCOPE(track, &load);
		ips_span_arg_int(track, "batch", batch);
		IPS_SCOPE(track, &parse);
	}
	if (ips_recording_close(recording, why, sizeof(why)) != 0)
		return fprintf(stderr, "foreign: %s\n", why), 1;
	return 0;
}
