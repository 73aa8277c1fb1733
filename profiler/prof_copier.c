/*
 * The log copier. See prof_copier.h. `busy` passes the connection between the threads: 0 = the
 * writer may read `copied`, 1 = the thread is copying.
 */
#include "profiler/prof_copier.h"

#include <pthread.h>
#include <semaphore.h>

#include "common/mem.h"

#define START_PAGES 1024 /* 16 MiB: start copying */
#define MANY_PAGES  8192 /* 128 MiB: the copier does not keep up */
#define FEW_PAGES   256  /* 4 MiB: few enough for the writer to copy on its own thread */

struct prof_copier {
	sqlite3 *db;
	pthread_t thread;
	sem_t wake;
	int busy, stop; /* atomic */
	int copied;     /* pages of the log in the database, as of the last copy */
};

static void *copier_main(void *user)
{
	struct prof_copier *copier = user;

	for (;;) {
		int pages = 0, copied = 0;

		while (sem_wait(&copier->wake) != 0)
			continue;
		if (__atomic_load_n(&copier->stop, __ATOMIC_ACQUIRE) != 0)
			return NULL;
		/*
		 * Frames that a reader holds back are copied next time; on a failure the writer
		 * gets the same error.
		 */
		if (sqlite3_wal_checkpoint_v2(copier->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages,
					      &copied) == SQLITE_OK)
			copier->copied = copied;
		__atomic_store_n(&copier->busy, 0, __ATOMIC_RELEASE);
	}
}

struct prof_copier *prof_copier_new(const char *path)
{
	struct prof_copier *copier = mem_calloc(1, sizeof(*copier));

	if (!copier)
		return NULL;
	sem_init(&copier->wake, 0, 0);
	if (sqlite3_open_v2(path, &copier->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) ==
		    SQLITE_OK &&
	    sqlite3_exec(copier->db, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL) == SQLITE_OK &&
	    pthread_create(&copier->thread, NULL, copier_main, copier) == 0)
		return copier;
	sqlite3_close(copier->db);
	sem_destroy(&copier->wake);
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
	mem_free(copier);
}

static void copy_here(sqlite3 *db)
{
	int pages, copied;

	sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &copied);
}

void prof_copier_run(struct prof_copier *copier, sqlite3 *db, int pages)
{
	if (pages < START_PAGES)
		return;
	if (!copier) {
		copy_here(db);
		return;
	}
	if (__atomic_load_n(&copier->busy, __ATOMIC_ACQUIRE) != 0)
		return;
	if (pages > MANY_PAGES && pages >= copier->copied && pages - copier->copied <= FEW_PAGES) {
		copy_here(db);
		return;
	}
	__atomic_store_n(&copier->busy, 1, __ATOMIC_RELEASE);
	sem_post(&copier->wake);
}
