/*
 * A network's step: compiled as ipu-plan model does it. One thread.
 */
#include "fidelity_network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fs.h"
#include "trainer/train_job.h"

#define WORDS_MOST 64

static void die(const char *run, const char *text)
{
	fprintf(stderr, "fidelity: %s: %s\n", run, text);
	exit(1);
}

struct plan_figures fidelity_network(const char *run, const char *words)
{
	char path[FS_PATH_SIZE], copy[1024], *argv[WORDS_MOST], *rest = NULL;
	struct plan_figures figures;
	struct err err = {ST_OK, ""};
	struct plan_run plan = {0};
	struct run_data data;
	int argc = 0;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word = strtok_r(copy, " ", &rest); word && argc < WORDS_MOST;
	     word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	if (!fs_path(path, "%s/%s", IPUSCOPE_SOURCE_DIR, run))
		die(run, "the path is too long");
	if (run_file_load(&plan.run, path, argc, argv, train_plan.checks, &err) != ST_OK ||
	    train_plan.describe(&data, plan.run, &err) != ST_OK ||
	    plan_run_build(&plan, &data, false, &err) != ST_OK ||
	    plan_run_compile(&plan, &data, &err) != ST_OK)
		die(run, err.text);
	plan_figures_get(&figures, &plan);
	plan_run_fini(&plan);
	return figures;
}
