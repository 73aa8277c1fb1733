/*
 * Named reports on outfed tensors: what they are and were last, their epochs, and rules broken.
 *
 * Threading: constant data only. Ownership: literals.
 */
#include "reports/named/report_named.h"

/* max() alone: the columns beside it are of the row that it is of. */
static const char tensors_sql[] =
	"SELECT t.queue, t.key, t.kind, t.layer, t.stage, t.shape, t.dtype, t.activity,\n"
	"       r.tier, r.every, coalesce(s.rows, 0) AS rows, s.last_ns, s.epoch, s.step,\n"
	"       s.weight_update, s.n, s.mean, s.std, s.min, s.max, s.l2, s.abs_max, s.bad,\n"
	"       coalesce(s.bad_rows, 0) AS bad_rows\n"
	"FROM tensors t\n"
	"LEFT JOIN (SELECT queue, key, tier, every, max(coalesce(time_ns, -1))\n"
	"           FROM tensor_tiers GROUP BY queue, key) r\n"
	"  ON r.queue = t.queue AND r.key = t.key\n"
	"LEFT JOIN (SELECT queue, key, count(*) AS rows, max(time_ns) AS last_ns, epoch,\n"
	"                  step, weight_update, n, mean, std, min, max, l2, abs_max, bad,\n"
	"                  sum(bad > 0) AS bad_rows\n"
	"           FROM (SELECT *, coalesce(n_nan, 0) + coalesce(n_pos_inf, 0)\n"
	"                          + coalesce(n_neg_inf, 0) AS bad\n"
	"                 FROM tensor_stats)\n"
	"           GROUP BY queue, key) s\n"
	"  ON s.queue = t.queue AND s.key = t.key";

const struct report_named report_named_tensors = {
	REPORT_NAMED("tensors", "outfed tensors, how much of each is kept, and its last statistics "
				"(reads every tensor_stats)"),
	{{NULL, tensors_sql, "key,tier,rows,mean,std,abs_max,bad_rows", "queue,key"}},
	"No tensors: nothing was outfed or watched (outfeed.capture and the outfeed layers choose "
	"what is).",
};

const struct report_named report_named_tensor_epochs = {
	REPORT_NAMED("tensor-epochs", "the outfeed callback's table of each epoch"),
	{{NULL, "SELECT * FROM tensor_epochs", "epoch,key,mean,std,min,max,nans,infs", NULL}},
	"No tensors of an epoch: no outfeed callback was attached, or no epoch came to its end.",
};

static const char health_sql[] =
	"SELECT h.*, (SELECT why FROM health_rules r WHERE r.rule = h.rule LIMIT 1) AS why\n"
	"FROM health h";

const struct report_named report_named_health = {
	REPORT_NAMED("health", "rules broken, in order of time"),
	{{NULL, health_sql, "rule,key,layer,stage,epoch,step,value,threshold", NULL}},
	"No rule was broken. `health_rules` names those in force; without any, health was not "
	"watched.",
};
