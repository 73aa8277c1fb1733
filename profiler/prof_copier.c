/*
 * The log copier. See prof_disk.h. The writer alone knows `busy`: it sets it before it posts
 * `wake`, and clears it when it has taken `done`.
 */
#include "profiler/prof_disk.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "common/mem.h"
#include "common/pool.h"
#include "profiler/prof_sql.h"

#define START_PAGES 1024 /* 16 MiB: start copying */
#define MANY_PAGES  8192 /* 128 MiB: wait until the log can restart */
#define MORE_PAGES  2048 /* 32 MiB: how much it grows before the next attempt if a reader stays */
#define READER_MS   50   /* no reader of ours holds the log longer */

struct prof_copier {
	sqlite3 *db;
	pthread_t thread;
	sem_t wake, done;
	bool busy;
	int stop;    /* atomic */
	int pages;   /* in the log after the last commit */
	int restart; /* at so many, the writer waits */
};

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0)
		continue;
}

/* Copy what no reader holds back; on a failure the writer gets the same error. */
static void copy(sqlite3 *db)
{
	sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

static void *copier_main(void *user)
{
	struct prof_copier *copier = user;

	for (;;) {
		wait_for(&copier->wake);
		if (__atomic_load_n(&copier->stop, __ATOMIC_ACQUIRE) != 0)
			return NULL;
		copy(copier->db);
		sem_post(&copier->done);
	}
}

struct prof_copier *prof_copier_new(const char *path)
{
	struct prof_copier *copier = mem_calloc(1, sizeof(*copier));

	if (!copier)
		return NULL;
	copier->restart = MANY_PAGES;
	sem_init(&copier->wake, 0, 0);
	sem_init(&copier->done, 0, 0);
	if (prof_sql_open(&copier->db, path, "mode=rw", SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
			  NULL) == SQLITE_OK &&
	    sqlite3_exec(copier->db, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL) == SQLITE_OK &&
	    thread_start(&copier->thread, copier_main, copier) == 0)
		return copier;
	sqlite3_close(copier->db);
	sem_destroy(&copier->wake);
	sem_destroy(&copier->done);
	mem_free(copier);
	return NULL;
}

void prof_copier_free(struct prof_copier *copier)
{
	if (!copier)
		return;
	__atomic_store_n(&copier->stop, 1, __ATOMIC_RELEASE);
	sem_post(&copier->wake);
	pthread_join(copier->thread, NULL);
	sqlite3_close(copier->db);
	sem_destroy(&copier->wake);
	sem_destroy(&copier->done);
	mem_free(copier);
}

void prof_copier_run(struct prof_copier *copier, sqlite3 *db, int pages)
{
	if (!copier) {
		if (pages >= START_PAGES)
			copy(db);
		return;
	}
	if (pages < copier->pages)
		copier->restart = MANY_PAGES;
	copier->pages = pages;
	if (pages >= copier->restart) {
		/* All that is left is copied, and no reader may use the log any more: the next
		 * transaction restarts it. Readers that begin meanwhile find everything in the
		 * database and do not use the log. */
		if (copier->busy)
			wait_for(&copier->done);
		copier->busy = false;
		sqlite3_busy_timeout(db, READER_MS);
		sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
		sqlite3_busy_timeout(db, PROF_BUSY_MS);

		copier->restart = pages + MORE_PAGES;
		return;
	}
	if (copier->busy && sem_trywait(&copier->done) == 0)
		copier->busy = false;
	if (!copier->busy && pages >= START_PAGES) {
		copier->busy = true;
		sem_post(&copier->wake);
	}
}
