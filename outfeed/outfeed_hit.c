/*
 * What people are told: a rule broken makes a row of `health`, a line, an instant on the timeline.
 *
 * Threading: the recorder's lock keeps lines, instants and the caller's hits to one at a time, on
 * whatever thread.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "outfeed/outfeed_internal.h"

/* ---- lines ----------------------------------------------------------------------------------- */

void outfeed__line_add(struct outfeed_line *line, const char *format, ...)
{
	const size_t left = sizeof(line->text) - line->length;
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(line->text + line->length, left, format, args);
	va_end(args);
	if (length > 0)
		line->length += (size_t)length < left ? (size_t)length : left - 1;
}

/* Every part is NAME=VALUE, for grep; what is not known is left out. */
void outfeed__line_where(struct outfeed_line *line, const char *key, const char *layer,
			 const struct ips_keys *keys)
{
	const struct {
		const char *name;
		int64_t value;
	} parts[] = {
		{"epoch", keys->epoch},
		{"step", keys->step},
		{"weight_update", keys->weight_update},
		{"microbatch", keys->microbatch},
		{"replica", keys->replica},
		{"stage", keys->stage},
	};

	if (key)
		outfeed__line_add(line, " key=%.128s", key);
	if (layer)
		outfeed__line_add(line, " layer=%.128s", layer);
	if (keys->phase != 0)
		outfeed__line_add(line, " phase=%c", keys->phase);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (parts[i].value != IPS_NULL)
			outfeed__line_add(line, " %s=%" PRId64, parts[i].name, parts[i].value);
}

void outfeed__tell(struct outfeed *outfeed, struct ips_site *site, const struct ips_keys *keys,
		   const struct outfeed_line *line)
{
	ips_track_set_keys(outfeed->track, keys);
	ips_instant(outfeed->track, site);
	if (outfeed->params.say && line->length > 0)
		outfeed->params.say(outfeed->params.user, line->text);
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* A recording that has failed says so with the next row of a tensor. */
static void append_hit(struct outfeed *outfeed, const struct outfeed_hit *hit)
{
	const bool of_tensor = hit->tensor_id != IPS_NULL;
	const struct ips_health row = {.keys = hit->keys,
				       .rule = outfeed_health_describe(hit->rule)->name,
				       .tensor_id = hit->tensor_id,
				       .layer = of_tensor ? NULL : hit->layer,
				       .key = of_tensor ? NULL : hit->key,
				       .time_ns = hit->time_ns,
				       .value = hit->value,
				       .threshold = hit->threshold};

	ips_append_health(outfeed->params.recording, &row);
}

/* A network of many layers breaks a rule in all of them: the first lines say it. */
static void limit_line(struct outfeed *outfeed, enum outfeed_health_id rule,
		       struct outfeed_line *line)
{
	const int64_t told = ++outfeed->told[rule];

	if (told <= OUTFEED_LINES)
		return;
	line->length = 0;
	line->text[0] = '\0';
	if (told == OUTFEED_LINES + 1)
		outfeed__line_add(line, "[HEALTH] rule=%s more than %d times: further ones %s",
				  outfeed_health_describe(rule)->name, OUTFEED_LINES,
				  outfeed->params.recording
					  ? "are in the view health of the report alone"
					  : "are not told");
}

void outfeed__hit(void *user, const struct outfeed_hit *hit)
{
	struct outfeed *outfeed = user;
	struct outfeed_line line = {.length = 0};

	outfeed__line_add(&line, "[HEALTH] rule=%s", outfeed_health_describe(hit->rule)->name);
	outfeed__line_where(&line, hit->key, hit->layer, &hit->keys);
	/* A NaN's sign says nothing. */
	outfeed__line_add(&line, " value=%g threshold=%g",
			  isnan(hit->value) ? (double)NAN : hit->value, hit->threshold);

	pthread_mutex_lock(&outfeed->lock);
	append_hit(outfeed, hit);
	limit_line(outfeed, hit->rule, &line);
	outfeed__tell(outfeed, outfeed->sites[hit->rule], &hit->keys, &line);
	if (outfeed->params.hit)
		outfeed->params.hit(outfeed->params.user, hit);
	pthread_mutex_unlock(&outfeed->lock);
	outfeed_flush(outfeed);
}

enum status outfeed__append_rules(struct outfeed *outfeed, struct err *err)
{
	struct ips_recording *recording = outfeed->params.recording;
	int status = 0;

	for (int id = 0; id < OUTFEED_HEALTH_RULES && recording && status == 0; id++) {
		const struct outfeed_health_about *about =
			outfeed_health_describe((enum outfeed_health_id)id);
		const struct outfeed_health_rule *rule = &outfeed->params.rules->rule[id];
		char parameters[OUTFEED_HEALTH_TEXT];
		const struct ips_health_rule row = {
			.rule = about->name,
			.threshold = rule->threshold,
			.patience = rule->patience,
			.enabled = rule->enabled,
			.why = about->why,
			.parameters = about->parameter[0] ? parameters : NULL,
		};

		outfeed_health_parameters(parameters, outfeed->params.rules,
					  (enum outfeed_health_id)id);
		outfeed->sites[id] = ips_site_intern("health", about->name, NULL);
		status = !outfeed->sites[id] ? (int)ST_NOMEM
					     : ips_append_health_rule(recording, &row);
	}
	return outfeed__failed(outfeed, status, err);
}
