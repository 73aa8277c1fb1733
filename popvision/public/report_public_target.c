/*
 * Target and graph of the public report, from the run's facts; liveness and runs: queries on lists.
 *
 * Threading and ownership: as ipuscope/report.h says.
 */
#include <math.h>

#include "common/sorted.h"
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

const struct ips_report_target *ips_report_target(struct ips_report *report)
{
	struct ips_report_target *target;
	int64_t count;

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
	if (target->name) {
		const char *clock = ips_report_fact(report, "clock_hz");

		target->type = IPS_REPORT_TARGET_IPU_MODEL;
		target->type_name = "IPU_MODEL";
		target->architecture = ips_report_fact(report, "architecture");
		target->tiles_per_ipu = fact_count(report, "tiles_per_ipu");
		target->bytes_per_tile = fact_count(report, "bytes_per_tile");
		if (clock && !str_to_double(clock, &target->clock_frequency))
			target->clock_frequency = (double)NAN;
	}
	target->num_tiles = product(target->num_ipus, target->tiles_per_ipu);
	target->bytes_per_ipu = product(target->tiles_per_ipu, target->bytes_per_tile);
	target->total_memory = product(target->num_ipus, target->bytes_per_ipu);
	count = target->num_replicas;
	target->ipus_per_replica = IPS_NULL;
	if (count != IPS_NULL && target->num_ipus != IPS_NULL && target->num_ipus % count == 0)
		target->ipus_per_replica = target->num_ipus / count;
	target->tiles_per_replica = product(target->ipus_per_replica, target->tiles_per_ipu);
	target->memory_per_replica = product(target->ipus_per_replica, target->bytes_per_ipu);
	report->target_known = true;
	return target;
}

/* ---- graph ----------------------------------------------------------------------------------- */

static int64_t known_count(struct ips_report *report, enum report_public__list_id id)
{
	const int64_t count = report_public__count(report, id);

	return count < 0 ? IPS_NULL : count;
}

/* Sum of the numbers at @offset of a list's items; IPS_NULL if none is known, or on overflow. */
static int64_t sum_known(struct ips_report *report, enum report_public__list_id id, size_t offset)
{
	const int64_t count = report_public__count(report, id);
	int64_t sum = IPS_NULL;

	for (int64_t i = 0; i < count; i++) {
		const int64_t number = sorted_number(report_public__item(report, id, i), offset);

		if (number == IPS_NULL)
			continue;
		if (__builtin_add_overflow(sum == IPS_NULL ? 0 : sum, number, &sum))
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
			.num_vertices =
				sum_known(report, PUBLIC_COMPUTE_SETS,
					  offsetof(struct ips_report_compute_set, num_vertices)),
			.num_variables = known_count(report, PUBLIC_VARIABLES),
			.num_edges = IPS_NULL,
			.num_programs = known_count(report, PUBLIC_PROGRAMS),
			.num_operations = known_count(report, PUBLIC_OPERATIONS),
			.num_layers = known_count(report, PUBLIC_LAYERS),
		};
	report->graph_known = true;
	return &report->graph;
}

/* ---- liveness -------------------------------------------------------------------------------- */

static const struct ips_report_liveness *step_at(struct ips_report *report, int64_t index)
{
	return report_public__item(report, PUBLIC_LIVENESS, index);
}

/* Index of the first step of an IPU from @ipu on; the list is sorted by IPU. */
static int64_t first_step_of(struct ips_report *report, int64_t ipu)
{
	int64_t low;

	SORTED_FIRST(low, 0, report_public__count(report, PUBLIC_LIVENESS),
		     step_at(report, low)->ipu < ipu);
	return low;
}

int64_t ips_report_liveness_count(struct ips_report *report, int64_t ipu)
{
	if (report_public__count(report, PUBLIC_LIVENESS) < 0)
		return -1;
	return ipu < 0 || ipu == INT64_MAX
		       ? 0
		       : first_step_of(report, ipu + 1) - first_step_of(report, ipu);
}

const struct ips_report_liveness *ips_report_liveness(struct ips_report *report, int64_t ipu,
						      int64_t index)
{
	if (index < 0 || index >= ips_report_liveness_count(report, ipu))
		return NULL;
	return step_at(report, first_step_of(report, ipu) + index);
}

/* Unknown bytes count as 0. */
static double live_bytes(const struct ips_report_liveness *step)
{
	double bytes = 0;

	if (step->always_live_bytes != IPS_NULL)
		bytes += (double)step->always_live_bytes;
	if (step->not_always_live_bytes != IPS_NULL)
		bytes += (double)step->not_always_live_bytes;
	return bytes;
}

const struct ips_report_liveness *ips_report_liveness_peak(struct ips_report *report, int64_t ipu)
{
	const struct ips_report_liveness *peak = NULL;
	const int64_t count = report_public__count(report, PUBLIC_LIVENESS);

	for (int64_t i = 0; i < count; i++) {
		const struct ips_report_liveness *step = step_at(report, i);

		if ((ipu == IPS_NULL || step->ipu == ipu) &&
		    (!peak || live_bytes(step) > live_bytes(peak)))
			peak = step;
	}
	return peak;
}

/* Add the bytes of @row, if its variable is live at @program_step, to *@always or *@others. */
static void add_live(struct ips_report *report, const struct ips_report_lowered_variable *row,
		     int64_t program_step, int64_t *always, int64_t *others, struct err *err)
{
	const struct ips_report_variable *variable =
		report_public__item(report, PUBLIC_VARIABLES, row->variable);
	int64_t *to;

	if (!variable || row->bytes == IPS_NULL ||
	    !ips_report_variable_alive(variable, program_step))
		return;
	to = variable->always_live == 1 ? always : others;
	if (__builtin_add_overflow(*to, row->bytes, to))
		err_set(err, ST_FORMAT,
			"%s: tile %lld: the bytes of its variables are no numbers that can be "
			"added",
			prof_db_path(report->db), (long long)row->tile);
}

int ips_report_liveness_tile(struct ips_report *report, int64_t ipu, int64_t program_step,
			     int64_t tile, int64_t *always_live, int64_t *not_always_live,
			     char *message, size_t size)
{
	struct ips_report_lowered_variables *cursor;
	int64_t always = 0, others = 0;
	struct err err = {ST_OK, ""};
	const int opened = ips_report_lowered_variables_open(report, &cursor, IPS_NULL, ipu, tile,
							     message, size);
	const struct ips_report_lowered_variable *row;

	if (opened != 0)
		return opened;
	while (!err_stuck(&err) && (row = ips_report_lowered_variables_next(cursor)))
		add_live(report, row, program_step, &always, &others, &err);
	if (!err_stuck(&err))
		err = ((const struct report_public__cursor *)(const void *)cursor)->err;
	ips_report_lowered_variables_close(cursor);
	if (err_stuck(&err) || report_public__count(report, PUBLIC_VARIABLES) <= 0)
		always = others = IPS_NULL;
	if (always_live)
		*always_live = always;
	if (not_always_live)
		*not_always_live = others;
	return report_public__status(report, &err, message, size);
}

/* ---- runs ------------------------------------------------------------------------------------ */

int64_t ips_report_total_cycles(struct ips_report *report)
{
	return sum_known(report, PUBLIC_RUNS, offsetof(struct ips_report_run, cycles));
}
