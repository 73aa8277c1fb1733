/*
 * Bubbles of made works, as the trainer measures them.
 *
 * Threading: one thread. Ownership: nothing is kept.
 */
#include "support/view_fixture_bubble.h"

void view_fixture_bubble(struct ips_bubble *row, const struct ipu_interval *works, int count)
{
	const bool device = row->clock == IPS_DEVICE;
	const int stages = (int)row->stages;
	struct ipu_bubble bubble;

	(device ? ipu_bubble_measure_lockstep : ipu_bubble_measure)(works, count, stages, stages,
								    &bubble, NULL);
	row->makespan_ns = bubble.makespan_ns;
	row->busy_ns = bubble.busy_ns;
	row->idle_fraction = bubble.idle_fraction;
	row->bubble_rate = bubble.bubble_rate;
	row->bubble_over_ideal = bubble.bubble_over_ideal;
	row->ramp_up_ns = bubble.ramp_up_ns;
	row->ramp_down_ns = bubble.ramp_down_ns;
	row->imbalance_ns = bubble.imbalance_ns;
	row->communication_ns = bubble.communication_ns;
}
