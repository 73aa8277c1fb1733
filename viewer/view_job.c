/*
 * Jobs to calls of the screen's functions.
 *
 * Threading: see view_screen.h. Ownership: the job owns its table until the session takes it.
 */
#include "viewer/view_job.h"

#include "common/clock.h"

static void view_job_load(struct view_job *job)
{
	job->context->more = false;
	job->err.status = job->ops->load(job->state, job->context, job->news, &job->err);
	/* A screen may do without what it could not read; who stopped it has not seen that. */
	if (job->err.status == ST_OK && view_cancelled(job->context))
		err_set(&job->err, ST_INTERRUPTED, "stopped");
}

static void view_job_request(struct view_job *job)
{
	if (job->due)
		view_job_load(job);
	if (job->err.status != ST_OK)
		return;
	job->answer = job->ops->request(job->state, job->context, job->request);
}

static void view_job_search(struct view_job *job)
{
	job->found = job->ops->search(job->state, job->context, job->text, job->forward);
}

static void view_job_filter(struct view_job *job)
{
	job->ops->filter(job->state, job->text);
}

static void view_job_key(struct view_job *job)
{
	job->answer = job->ops->type(job->state, job->context, job->key);
}

static void view_job_click(struct view_job *job)
{
	job->answer = job->ops->click(job->state, job->context, job->x, job->y);
}

static void view_job_go(struct view_job *job)
{
	if (!job->fresh) {
		view_job_load(job);
		job->fresh = job->err.status == ST_OK;
	}
	if (job->err.status == ST_OK)
		job->err.status = job->ops->go(job->state, job->context, &job->place, &job->err);
}

/* Whether a layer has hits in either report. */
static enum status view_job_hits(struct view_job *job)
{
	struct view_place *place = &job->place, its;
	enum status status;

	if (!job->context->target || !job->context->target->db || place->layer_hits != 0)
		return ST_OK;
	view_place_clear(&its);
	view_place_text(its.layer, place->layer);
	status = view_place_complete(&its, job->context->target->db, &job->err);
	place->layer_hits = its.layer_hits;
	return status;
}

static void view_job_join(struct view_job *job)
{
	struct view_place *place = &job->place;
	const bool target = place->target_only == 1 && job->context->target;
	struct prof_db *db = target ? job->context->target->db : job->context->source->db;

	if (db)
		job->err.status = view_place_complete(place, db, &job->err);
	if (job->err.status == ST_OK)
		job->err.status = view_job_hits(job);
	/* In the source these are numbers of something else; names are the same. */
	if (target)
		place->program_id = place->program_step = place->variable_id = IPS_NULL;
}

static void view_job_write(struct view_job *job)
{
	job->err.status = job->ops->table(job->state, job->context, &job->table, &job->err);
}

void view_job_run(void *user)
{
	static void (*const runs[])(struct view_job *) = {
		[VIEW_LOAD_JOB] = view_job_load,     [VIEW_REQUEST_JOB] = view_job_request,
		[VIEW_SEARCH_JOB] = view_job_search, [VIEW_FILTER_JOB] = view_job_filter,
		[VIEW_KEY_JOB] = view_job_key,       [VIEW_CLICK_JOB] = view_job_click,
		[VIEW_GO_JOB] = view_job_go,         [VIEW_JOIN_JOB] = view_job_join,
		[VIEW_WRITE_JOB] = view_job_write};
	struct view_job *job = user;
	const uint64_t start = clock_ns();

	job->err.status = ST_OK;
	runs[job->kind](job);
	job->took_ns = clock_ns() - start;
}
