/*
 * The critical path of recordings whose longest way can be seen by eye: times are a few
 * nanoseconds, and a way's length is the sum of its rows.
 */
#include "support/prof_testing.h"

/* A thread within a span `work` of 1,000 ns, and two streams. */
struct machine {
	struct ips_recording *recording;
	struct ips_track *thread, *streams[2], *waits[2]; /* of a stream's waits */
};

static void begin(struct machine *m, const struct prof_place *place)
{
	IPS_SITE(work, "nvtx", "work");

	m->recording = prof_start(place, NULL);
	m->thread = ips_track_open(m->recording, "thread", NULL);
	m->streams[0] = ips_track_open(m->recording, "GPU 0 stream 7", NULL);
	m->streams[1] = ips_track_open(m->recording, "GPU 0 stream 8", NULL);
	m->waits[0] = ips_track_open(m->recording, "GPU 0 stream 7 (sync)", NULL);
	m->waits[1] = ips_track_open(m->recording, "GPU 0 stream 8 (sync)", NULL);
	ips_span_at(m->thread, &work, 0, 1000);
}

static void call(struct machine *m, struct ips_site *site, int64_t start, int64_t end, int64_t key)
{
	ips_span_at(m->thread, site, start, end - start);
	ips_span_row(m->thread, IPS_TABLE_call, &(struct ips_call){key});
}

static void kernel(struct machine *m, int stream, struct ips_site *site, int64_t start, int64_t end,
		   int64_t key)
{
	const struct ips_kernel row = {.device = "GPU 0", .kind = "compute", .launch_key = key};

	ips_span_at(m->streams[stream], site, start, end - start);
	ips_span_row(m->streams[stream], IPS_TABLE_kernel, &row);
}

IPS_SITE(launch, "cuda_runtime", "cudaLaunchKernel");
IPS_SITE(wait_all, "cuda_runtime", "cudaDeviceSynchronize");
IPS_SITE(wait_stream, "cuda_runtime", "cudaStreamSynchronize");
IPS_SITE(wait_event, "cuda_runtime", "cudaEventSynchronize");
IPS_SITE(record_event, "cuda_runtime", "cudaEventRecord");
IPS_SITE(stream_wait, "cuda_runtime", "cudaStreamWaitEvent");
IPS_SITE(quick, "kernel", "quick");
IPS_SITE(slow, "kernel", "slow");
IPS_SITE(stream_record, "sync", "Stream Sync");
IPS_SITE(event_record, "sync", "Event Sync");
IPS_SITE(wait_record, "sync", "Stream Wait Event");

static void assert_path(const struct prof_place *place, const char *expected)
{
	assert_answer(place->path,
		      "SELECT start_ns, kind, name, dur_ns FROM critical_path ORDER BY position",
		      expected);
}

static void test_a_thread_that_waits_for_a_kernel(void **state)
{
	struct prof_place *place = *state;
	struct machine m;

	begin(&m, place);
	call(&m, &launch, 100, 120, 1);
	kernel(&m, 0, &quick, 200, 500, 1);
	call(&m, &wait_all, 300, 520, 2);
	prof_stop(m.recording);
	assert_path(place,
		    "0|host|work|100\n100|launch|cudaLaunchKernel|100\n200|compute|quick|300\n"
		    "500|sync|cudaDeviceSynchronize|0\n520|host|work|480\n");
}

/* What is in the queue of a busy stream waits for the kernel before it. */
static void test_a_kernel_behind_another(void **state)
{
	struct prof_place *place = *state;
	struct machine m;

	begin(&m, place);
	call(&m, &launch, 100, 120, 1);
	call(&m, &launch, 150, 170, 2);
	kernel(&m, 0, &slow, 200, 500, 1);
	kernel(&m, 0, &quick, 530, 600, 2);
	call(&m, &wait_all, 300, 620, 3);
	prof_stop(m.recording);
	assert_path(place,
		    "0|host|work|100\n100|launch|cudaLaunchKernel|100\n200|compute|slow|300\n"
		    "500|kernel_delay|slow|30\n530|compute|quick|70\n"
		    "600|sync|cudaDeviceSynchronize|0\n620|host|work|380\n");
}

/* Two streams have work, of which the slow one's ends later. An event is recorded at @recorded. */
static void two_streams(struct machine *m, int64_t recorded)
{
	if (recorded < 100)
		call(m, &record_event, recorded, recorded + 5, 3);
	call(m, &launch, 100, 110, 1);
	call(m, &launch, 200, 210, 2);
	if (recorded >= 100)
		call(m, &record_event, recorded, recorded + 5, 3);
	kernel(m, 1, &slow, 150, 390, 1);
	kernel(m, 0, &quick, 220, 300, 2);
}

static void test_waiting_for_one_stream_is_not_waiting_for_all(void **state)
{
	struct prof_place *place = *state;
	struct machine m;

	begin(&m, place);
	two_streams(&m, 215);
	call(&m, &wait_stream, 250, 400, 4);
	ips_span_at(m.waits[0], &stream_record, 255, 140);
	call(&m, &wait_all, 900, 950, 5);
	prof_stop(m.recording);
	assert_path(place, "0|host|work|100\n100|host|cudaLaunchKernel|10\n110|host|work|90\n"
			   "200|launch|cudaLaunchKernel|20\n220|compute|quick|80\n"
			   "300|sync|cudaStreamSynchronize|0\n400|host|work|500\n"
			   "900|host|cudaDeviceSynchronize|0\n950|host|work|50\n");
}

/* A record of waiting, on a track of @waits, for what was launched on @stream before the event. */
static void wait_for_event(struct ips_track *waits, struct ips_site *site, int64_t start,
			   int64_t end, int64_t stream)
{
	ips_span_at(waits, site, start, end - start);
	ips_span_arg_int(waits, "wait_on_cuda_event_record_corr_id", 3);
	ips_span_arg_int(waits, "wait_on_stream", stream);
}

static void test_waiting_for_an_event_is_waiting_for_the_kernel_before_it(void **state)
{
	struct prof_place *place = *state;
	struct machine m;

	begin(&m, place);
	two_streams(&m, 215);
	call(&m, &wait_event, 250, 400, 4);
	wait_for_event(m.waits[0], &event_record, 255, 395, 7);
	prof_stop(m.recording);
	assert_path(place, "0|host|work|100\n100|host|cudaLaunchKernel|10\n110|host|work|90\n"
			   "200|launch|cudaLaunchKernel|20\n220|compute|quick|80\n"
			   "300|sync|cudaEventSynchronize|0\n400|host|work|600\n");
}

/* Which kernel it was is not known: the call may wait for any stream. */
static void test_an_event_before_all_kernels_of_its_stream(void **state)
{
	struct prof_place *place = *state;
	struct machine m;

	begin(&m, place);
	two_streams(&m, 50);
	call(&m, &wait_event, 250, 400, 4);
	wait_for_event(m.waits[0], &event_record, 255, 395, 8);
	prof_stop(m.recording);
	assert_path(place, "0|host|work|50\n50|host|cudaEventRecord|5\n55|host|work|45\n"
			   "100|launch|cudaLaunchKernel|50\n150|compute|slow|240\n"
			   "390|sync|cudaEventSynchronize|0\n400|host|work|600\n");
}

/* The stream is not recorded: again the call may wait for any. */
static void test_an_event_of_a_stream_that_is_nowhere(void **state)
{
	struct prof_place *place = *state;
	struct machine m;

	begin(&m, place);
	two_streams(&m, 215);
	call(&m, &wait_event, 250, 400, 4);
	wait_for_event(m.waits[0], &event_record, 255, 395, 9);
	/* Three more lanes make eight, for which there is room at first: none is behind the last. */
	for (int i = 0; i < 3; i++)
		ips_track_open(m.recording, "GPU 1 (sync)", NULL);
	prof_stop(m.recording);
	assert_path(place, "0|host|work|100\n100|launch|cudaLaunchKernel|50\n"
			   "150|compute|slow|240\n390|sync|cudaEventSynchronize|0\n"
			   "400|host|work|600\n");
}

static void test_a_stream_that_waits_for_an_event(void **state)
{
	struct prof_place *place = *state;
	struct machine m;

	begin(&m, place);
	call(&m, &launch, 200, 210, 2);
	call(&m, &record_event, 215, 220, 3);
	kernel(&m, 0, &quick, 220, 300, 2);
	call(&m, &stream_wait, 225, 230, 4);
	wait_for_event(m.waits[1], &wait_record, 226, 229, 7);
	call(&m, &launch, 240, 245, 5);
	kernel(&m, 1, &slow, 310, 400, 5);
	call(&m, &wait_all, 250, 410, 6);
	prof_stop(m.recording);
	assert_path(place, "0|host|work|200\n200|launch|cudaLaunchKernel|20\n220|compute|quick|80\n"
			   "300|sync|slow|0\n310|compute|slow|90\n"
			   "400|sync|cudaDeviceSynchronize|0\n410|host|work|590\n");
}

/* The second step is as the first, a microsecond later: what the first one ended with is nothing to
 * it. Each step has a path of its own. */
static void test_steps_have_paths_of_their_own(void **state)
{
	struct prof_place *place = *state;
	struct machine m;
	IPS_SITE(step, "nvtx", "step");
	IPS_SITE(work, "nvtx", "work");

	m.recording = prof_start(place, NULL);
	m.thread = ips_track_open(m.recording, "thread", NULL);
	m.streams[0] = ips_track_open(m.recording, "GPU 0 stream 7", NULL);
	for (int64_t i = 0, at = 0; i < 2; i++, at += 1000) {
		struct ips_keys keys = IPS_KEYS_NULL;

		keys.step = i;
		ips_track_set_keys(m.thread, &keys);
		ips_span_at(m.thread, &step, at, 900);
		ips_span_row(m.thread, IPS_TABLE_range, &(struct ips_range){"step", NULL});
		ips_span_at(m.thread, &work, at, 900);
		call(&m, &launch, at + 100, at + 120, 2 * i + 1);
		kernel(&m, 0, &quick, at + 200, at + 500, 2 * i + 1);
		call(&m, &wait_all, at + 300, at + 520, 2 * i + 2);
	}
	prof_stop(m.recording);
	assert_answer(place->path,
		      "SELECT step, start_ns, kind, name, dur_ns FROM critical_path "
		      "ORDER BY step, position",
		      "0|0|host|work|100\n0|100|launch|cudaLaunchKernel|100\n"
		      "0|200|compute|quick|300\n0|500|sync|cudaDeviceSynchronize|0\n"
		      "0|520|host|work|380\n"
		      "1|1000|host|work|100\n1|1100|launch|cudaLaunchKernel|100\n"
		      "1|1200|compute|quick|300\n1|1500|sync|cudaDeviceSynchronize|0\n"
		      "1|1520|host|work|380\n");
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, prof_place_setup, prof_place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_thread_that_waits_for_a_kernel),
		CASE(test_a_kernel_behind_another),
		CASE(test_waiting_for_one_stream_is_not_waiting_for_all),
		CASE(test_waiting_for_an_event_is_waiting_for_the_kernel_before_it),
		CASE(test_an_event_before_all_kernels_of_its_stream),
		CASE(test_an_event_of_a_stream_that_is_nowhere),
		CASE(test_a_stream_that_waits_for_an_event),
		CASE(test_steps_have_paths_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
