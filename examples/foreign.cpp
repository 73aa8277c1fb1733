/* A program of somebody else in C++: recordings, spans and keys end with their scope. */
#include <ipuscope/profiler.hpp>
#include <iostream>

int main(int argc, char **argv)
try {
	ipuscope::recording run(argc > 1 ? argv[1] : "foreign.db");

	for (int batch = 0; batch < 100; batch++) {
		ips_keys now = IPS_KEYS_NULL;
		now.step = batch;
		const ipuscope::keys keys(run, now);
		ipuscope::span load(run, "load batch", "data");
		load.arg("batch", batch);
		IPUSCOPE_SPAN(run, "data", "parse");
	}
	run.close();
	return 0;
} catch (const ipuscope::error &failed) {
	std::cerr << "foreign: " << failed.what() << "\n";
	return 1;
}
