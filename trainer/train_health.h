/*
 * What the health rules are told of a training besides its tensors, and what a broken rule does to
 * it.
 *
 * Threads: hits come from any worker, one at a time; all else is the main thread's.
 */
#ifndef TRAIN_HEALTH_H
#define TRAIN_HEALTH_H

#include "trainer/train_phase.h"

/* For outfeed_params: a line of a rule broken, and the hit itself. @user: the session. */
void train_health_print(void *user, const char *line);
void train_health_hit(void *user, const struct outfeed_hit *hit);

/* The line at a run's end: how often which rules were broken, and where to look (@report NULL:
 * nowhere). The caller's (mem_free()); NULL: none was, or memory is short. */
char *train_health_text(const int64_t broken[OUTFEED_HEALTH_RULES], const char *report);

/* The run file's rules, and which of them end the run. Before train_outfeed_new(). */
enum status train_health_read(struct train_session *session, struct err *err);

/* What the rules want to be counted of the targets. After train_outfeed_new(). */
enum status train_health_new(struct train_session *session, struct err *err);

/*
 * The losses of the present execution that all replicas have done and that the rules have not seen.
 */
void train_health_losses(struct train_phase *phase);

/* An epoch has ended, and its classes have been counted; @val_loss NULL: it was not validated.
 * Returns train_health_check(). */
enum status train_health_epoch(struct train_session *session, int64_t epoch, double loss,
			       const double *val_loss, struct err *err);

/* Write or read what the rules know of session->replica[@index] and its targets; with the first one
 * also what they know of losses. Where the backup has nothing, or what other rules knew, they begin
 * anew. */
void train_health_keep(struct train_session *session, int index, struct snapshot *snapshot);

/* ST_FAILED, with the rule and where it was broken, when a rule of health.stop was, on whichever
 * rank: all ranks end. */
enum status train_health_check(struct train_session *session, struct err *err);

#endif /* TRAIN_HEALTH_H */
