/*
 * Passes a training's losses and classes to the health rules, which see its tensors by themselves,
 * and implements what a broken rule does to the training.
 *
 * Threads: hits come from any worker, one at a time; the main thread calls all other functions.
 */
#ifndef TRAIN_HEALTH_H
#define TRAIN_HEALTH_H

#include "trainer/train_phase.h"

/* Callbacks of outfeed_params: the line of a broken rule, and the hit itself. @user: the
 * session. */
void train_health_print(void *user, const char *line);
void train_health_hit(void *user, const struct outfeed_hit *hit);

/* Return the line at a run's end: how often each rule was broken, and where to find more (@report
 * NULL: nowhere). Free with mem_free(). NULL: no rule was broken, or out of memory. */
char *train_health_text(const int64_t broken[OUTFEED_HEALTH_RULES], const char *report);

/* Read the run file's rules, and which of them end the run. Call before train_outfeed_new(). */
enum status train_health_read(struct train_session *session, struct err *err);

/* Allocate the counts of targets that the rules need. Call after train_outfeed_new(). */
enum status train_health_new(struct train_session *session, struct err *err);

/* Evaluate the rules for the losses of the current execution that all replicas have computed since
 * the last call. */
void train_health_losses(struct train_phase *phase);

/* Evaluate the rules at the end of an epoch, with its counts of classes; @val_loss NULL: it was not
 * validated. Returns train_health_check(). */
enum status train_health_epoch(struct train_session *session, int64_t epoch, double loss,
			       const double *val_loss, struct err *err);

/* Write or read the rules' state for session->replica[@index] and its targets, with the first one
 * also that for losses. If the backup has none, or that of other rules, the state starts empty. */
void train_health_keep(struct train_session *session, int index, struct snapshot *snapshot);

/* Return ST_FAILED, with the rule and where it was broken, if a rule of health.stop was broken
 * on any rank: all ranks end. */
enum status train_health_check(struct train_session *session, struct err *err);

#endif /* TRAIN_HEALTH_H */
