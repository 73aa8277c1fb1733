/*
 * The rows of a comparison: adding one, and judging what it says of the two runs.
 *
 * Threading: none. Ownership: the rows belong to the comparison.
 */
#include <math.h>
#include <string.h>

#include "common/mem.h"
#include "reports/diff/report_diff.h"
#include "reports/table/report_render.h"

struct report_diff_row *report__diff_add(struct report_diff *diff, struct err *err)
{
	if (err_stuck(err))
		return NULL;
	if (mem_grow(&diff->rows, &diff->capacity, diff->count + 1, sizeof(*diff->rows))) {
		err_nomem(err);
		return NULL;
	}
	diff->rows[diff->count] = (struct report_diff_row){0};
	return &diff->rows[diff->count++];
}

/* ---- judging --------------------------------------------------------------------------------- */

double report_diff_amount(const struct report_diff_row *row)
{
	if (!row->source.known || !row->target.known || row->source.text || row->target.text)
		return NAN;
	return report_amount_shown(row->target.number - row->source.number, row->quantity);
}

double report_diff_fraction(const struct report_diff_row *row)
{
	const double amount = report_diff_amount(row);
	const double larger = fmax(fabs(row->source.number), fabs(row->target.number));

	return amount == 0 ? 0 : amount / larger;
}

bool report_diff_same(const struct report_diff_row *row)
{
	const struct report_diff_value *a = &row->source, *b = &row->target;

	if (row->in_source != row->in_target || a->known != b->known)
		return false;
	if (!a->known)
		return true;
	if (a->text || b->text)
		return a->text && b->text && !strcmp(a->text, b->text);
	return a->number == b->number || report_diff_amount(row) == 0 ||
	       (isnan(a->number) && isnan(b->number));
}

const char *report_verdict(double source, double target, enum report_quantity quantity,
			   enum report_diff_better better)
{
	const bool time = quantity == REPORT_NS || quantity == REPORT_CYCLES;
	const bool lower = target < source;

	if (source == target || (isnan(source) && isnan(target)))
		return "equal";
	if (report_amount_shown(target - source, quantity) == 0)
		return "same";
	if (better == REPORT_DIFF_NEITHER || isnan(source))
		return "changed";
	if (isfinite(source) && !isfinite(target))
		return time ? "slower" : "worse";
	if (lower == (better == REPORT_DIFF_LOWER))
		return time ? "faster" : "better";
	return time ? "slower" : "worse";
}

const char *report_diff_verdict(const struct report_diff_row *row)
{
	const struct report_diff_value *a = &row->source, *b = &row->target;

	if (row->in_source != row->in_target || a->known != b->known)
		return (row->in_source == row->in_target ? a->known : row->in_source)
			       ? REPORT_ONLY_SOURCE
			       : REPORT_ONLY_TARGET;
	if (a->text || b->text)
		return report_diff_same(row) ? "same" : "differs";
	return a->known ? report_verdict(a->number, b->number, row->quantity, row->better)
			: "equal";
}

bool report_diff_regressed(const struct report_diff_row *row, double gate)
{
	const double fraction = report_diff_fraction(row);

	if (row->better == REPORT_DIFF_NEITHER || row->further)
		return false;
	/* A number that became non-finite is worse than any number. */
	if (row->source.known && isfinite(row->source.number) && row->target.known &&
	    !isfinite(row->target.number))
		return true;
	return row->better == REPORT_DIFF_LOWER ? fraction > gate : -fraction > gate;
}
