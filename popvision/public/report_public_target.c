/*
 * Target and graph of the public report, from the run's facts.
 *
 * Threading and ownership: as ipuscope/report.h says.
 */
#include <math.h>

#include "common/str.h"
#include "popvision/public/report_public_internal.h"

/* ---- target ---------------------------------------------------------------------------------- */

/* IPS_NULL if a factor is IPS_NULL, or on overflow. */
static int64_t product(int64_t a, int64_t b)
{
	int64_t value;

	return a == IPS_NULL || b == IPS_NULL || __builtin_mul_overflow(a, b, &value) ? IPS_NULL
										      : value;
}

static int64_t fact_count(struct ips_report *report, const char *key)
{
	const char *text = ips_report_fact(report, key);
	long long value;

	return text && str_to_int(text, &value) && value > 0 ? value : IPS_NULL;
}

static void fill_machine(struct ips_report *report, struct ips_report_target *target)
{
	const char *clock = ips_report_fact(report, "clock_hz");

	target->type = IPS_REPORT_TARGET_IPU_MODEL;
	target->type_name = "IPU_MODEL";
	target->architecture = ips_report_fact(report, "architecture");
	target->tiles_per_ipu = fact_count(report, "tiles_per_ipu");
	target->bytes_per_tile = fact_count(report, "bytes_per_tile");
	if (clock && !str_to_double(clock, &target->clock_frequency))
		target->clock_frequency = (double)NAN;
}

static void fill_replicas(struct ips_report_target *target)
{
	const int64_t count = target->num_replicas;

	target->ipus_per_replica = IPS_NULL;
	if (count != IPS_NULL && target->num_ipus != IPS_NULL && target->num_ipus % count == 0)
		target->ipus_per_replica = target->num_ipus / count;
	target->tiles_per_replica = product(target->ipus_per_replica, target->tiles_per_ipu);
	target->memory_per_replica = product(target->ipus_per_replica, target->bytes_per_ipu);
}

const struct ips_report_target *ips_report_target(struct ips_report *report)
{
	struct ips_report_target *target;

	if (!report)
		return NULL;
	target = &report->target;
	if (report->target_known)
		return target;
	*target = (struct ips_report_target){.type = IPS_REPORT_TARGET_UNKNOWN,
					     .type_name = "UNKNOWN",
					     .name = ips_report_fact(report, "target"),
					     .num_ipus = fact_count(report, "ipus"),
					     .tiles_per_ipu = IPS_NULL,
					     .bytes_per_tile = IPS_NULL,
					     .clock_frequency = (double)NAN,
					     .num_replicas = fact_count(report, "replicas")};
	if (target->name)
		fill_machine(report, target);
	target->num_tiles = product(target->num_ipus, target->tiles_per_ipu);
	target->bytes_per_ipu = product(target->tiles_per_ipu, target->bytes_per_tile);
	target->total_memory = product(target->num_ipus, target->bytes_per_ipu);
	fill_replicas(target);
	report->target_known = true;
	return target;
}

/* ---- graph ----------------------------------------------------------------------------------- */

static int64_t known_count(struct ips_report *report, enum report_public__list_id id)
{
	const int64_t count = report_public__count(report, id);

	return count < 0 ? IPS_NULL : count;
}

/* Sum over the compute sets; IPS_NULL if none records its vertices. */
static int64_t count_vertices(struct ips_report *report)
{
	int64_t sum = IPS_NULL;

	for (int64_t i = 0; i < report_public__count(report, PUBLIC_COMPUTE_SETS); i++) {
		const struct ips_report_compute_set *set =
			report_public__item(report, PUBLIC_COMPUTE_SETS, i);

		if (set->num_vertices == IPS_NULL)
			continue;
		if (__builtin_add_overflow(sum == IPS_NULL ? 0 : sum, set->num_vertices, &sum))
			return IPS_NULL;
	}
	return sum;
}

const struct ips_report_graph *ips_report_graph(struct ips_report *report)
{
	if (!report)
		return NULL;
	if (!report->graph_known)
		report->graph = (struct ips_report_graph){
			.num_compute_sets = known_count(report, PUBLIC_COMPUTE_SETS),
			.num_vertices = count_vertices(report),
			.num_variables = known_count(report, PUBLIC_VARIABLES),
			.num_edges = IPS_NULL,
			.num_programs = known_count(report, PUBLIC_PROGRAMS),
			.num_operations = known_count(report, PUBLIC_OPERATIONS),
			.num_layers = known_count(report, PUBLIC_LAYERS),
		};
	report->graph_known = true;
	return &report->graph;
}
