/*
 * Turns: in a recording that is all that the program does, rings are drained half by half in the
 * order in which the program filled the halves. The same events then give the same rows, however
 * the threads happen to run.
 *
 * ips_recording.lock guards the turns.
 */
#include <time.h>

#include "profiler/prof_internal.h"

static bool set(struct ips_recording *recording, struct prof_turn turn)
{
	bool room;

	pthread_mutex_lock(&recording->lock);
	room = recording->turns_set - recording->turns_taken < PROF_TURNS;
	if (room)
		recording->turns[recording->turns_set++ % PROF_TURNS] = turn;
	pthread_mutex_unlock(&recording->lock);
	return room;
}

void prof__turn_set(struct prof_lane *lane)
{
	const struct timespec pause = {0, 100000};
	const struct prof_turn turn = {lane, lane->ring.head};

	if (turn.end == lane->handed)
		return;
	lane->handed = turn.end;
	while (!set(lane->recording, turn) && !prof__is_child(lane->recording)) {
		prof__wake(lane->recording);
		nanosleep(&pause, NULL);
	}
	prof__wake(lane->recording);
}

bool prof__turn_take(struct ips_recording *recording, struct prof_turn *out)
{
	bool any;

	pthread_mutex_lock(&recording->lock);
	any = recording->turns_taken != recording->turns_set;
	if (any)
		*out = recording->turns[recording->turns_taken++ % PROF_TURNS];
	pthread_mutex_unlock(&recording->lock);
	return any;
}
