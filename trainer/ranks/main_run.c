/*
 * The entry point of ipu-run: checks PopRun's options, converts them to the command line of an MPI
 * launcher, and executes that in place of this process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"

#define INSTANCES_MOST 4096
#define OWN_WORDS      16 /* of the command line at most, besides the user's */

struct line {
	int instances;
	int replicas; /* 0: as in the run file */
	const char *hosts, *launcher_options;
	int mpi; /* index in launchers[] */
	bool dry;
};

/* In the order of --mpi's choices. */
static const struct launcher {
	const char *programs[3]; /* the first one found in PATH is used; the last one is generic */
	const char *hosts, *package;
} launchers[] = {
	{{"mpirun.openmpi", "mpiexec.openmpi", "mpirun"}, "--host", "openmpi-bin"},
	{{"mpiexec.mpich", "mpiexec.hydra", "mpiexec"}, "-hosts", "mpich"},
};

static const struct cli_option OPTIONS[] = {
	{.name = "--num-instances",
	 .letter = 'n',
	 .argument = "N",
	 .help = "Processes to start (default 1).",
	 .field = CLI_RANGE(SIZE, struct line, instances, 1, INSTANCES_MOST)},
	{.name = "--num-replicas",
	 .argument = "N",
	 .help = "Replicas of all instances together, a multiple of them: distribution.replicas. "
		 "Default: as many as the run file has.",
	 .field = CLI_RANGE(SIZE, struct line, replicas, 1, INSTANCES_MOST)},
	{.name = "--host",
	 .argument = "A,B",
	 .help = "The machines, which get the same number of instances each; ipu-train lies in the "
		 "same place on all. Default: this machine.",
	 .field = CLI_FIELD(TEXT, struct line, hosts)},
	{.name = "--mpi",
	 .argument = "WHICH",
	 .choices = "openmpi mpich",
	 .help = "The implementation whose launcher is run (default openmpi).",
	 .field = CLI_FIELD(CHOICE, struct line, mpi)},
	{.name = "--mpi-global-args",
	 .argument = "WORDS",
	 .help = "More options for the launcher, split at blanks: --mpi-global-args='--bind-to "
		 "none'.",
	 .field = CLI_FIELD(TEXT, struct line, launcher_options)},
	{.name = "--dry-run",
	 .help = "Print the launcher's line and stop.",
	 .field = CLI_FIELD(SWITCH, struct line, dry)},
};

static const struct cli_command COMMAND = {
	.name = "ipu-run",
	.synopsis = "[OPTION ...] RUN [FLAG ...] [--key value ...]",
	.summary = "train one run with several processes that MPI starts",
	.about = "Starts ipu-train RUN as several instances with mpirun (Open MPI) or mpiexec "
		 "(MPICH), "
		 "and prints the line it runs. Options before RUN are ipu-run's, all behind it "
		 "ipu-train's.\n\n"
		 "The instances share the replicas out; the weights, losses and predictions are "
		 "those "
		 "of one process, byte by byte. Where Slurm starts the processes, take srun with "
		 "ipu-train itself.",
	.options = OPTIONS,
	.option_count = ARRAY_LEN(OPTIONS),
	.examples =
		"ipu-run --num-instances 4 --num-replicas 8 keras-mnist --use-ipu\tfour processes "
		"with two "
		"replicas each, on this machine\n"
		"ipu-run -n 4 --num-replicas 8 --host a,b run.json --host.threads 1\ttwo processes "
		"on each of two machines\n",
	.words = "FILE",
	.names = "ipu-train --list",
};

static int count_hosts(const char *hosts)
{
	int count = 1;

	for (const char *c = hosts; *c; c++)
		count += *c == ',';
	return count;
}

static enum status check(const struct line *line, struct err *err)
{
	const int hosts = line->hosts ? count_hosts(line->hosts) : 1;

	if (line->replicas % line->instances)
		return err_set(err, ST_INVALID,
			       "--num-replicas: %d do not divide among %d instances: give a "
			       "multiple of %d",
			       line->replicas, line->instances, line->instances);
	if (line->hosts && (line->hosts[0] == '\0' || strstr(line->hosts, ",,") ||
			    line->hosts[0] == ',' || line->hosts[strlen(line->hosts) - 1] == ','))
		return err_set(err, ST_INVALID, "--host: \"%s\" has a host without a name",
			       line->hosts);
	if (line->hosts && strchr(line->hosts, ':'))
		return err_set(err, ST_INVALID,
			       "--host: \"%s\": each host gets the same number of instances: leave "
			       "its own out",
			       line->hosts);
	if (line->instances % hosts)
		return err_set(
			err, ST_INVALID,
			"--num-instances: %d do not divide among %d hosts: give a multiple of %d",
			line->instances, hosts, hosts);
	return ST_OK;
}

static bool in_path(const char *program)
{
	const char *path = getenv("PATH");
	char file[FS_PATH_SIZE];

	for (size_t length; path && *path; path += length + (path[length] == ':')) {
		length = strcspn(path, ":");
		if (fs_path(file, "%.*s/%s", (int)length, path, program) && access(file, X_OK) == 0)
			return true;
	}
	return false;
}

/* Find ipu-train and the launcher. With --dry-run the line may be for another machine, so no
 * launcher needs to be in PATH. */
static enum status find_programs(char trainer[FS_PATH_SIZE], const char **program,
				 const struct line *line, struct err *err)
{
	const struct launcher *launcher = &launchers[line->mpi];

	if (!fs_beside_program(trainer, "ipu-train"))
		return err_set(err, ST_FAILED,
			       "ipu-train is not in ipu-run's folder: install it again");
	for (size_t i = 0; i < ARRAY_LEN(launcher->programs); i++) {
		*program = launcher->programs[i];
		if (in_path(*program))
			return ST_OK;
	}
	return line->dry ? ST_OK
			 : err_set(err, ST_UNSUPPORTED,
				   "%s is not in PATH: install %s, or choose another --mpi",
				   launcher->programs[0], launcher->package);
}

/* Format "a:2,b:2": the number of instances of each host. */
static void name_hosts(struct str *out, const struct line *line)
{
	const int each = line->instances / count_hosts(line->hosts);

	for (const char *at = line->hosts; *at;) {
		const size_t length = strcspn(at, ",");

		str_addf(out, "%s%.*s:%d", at == line->hosts ? "" : ",", (int)length, at, each);
		at += length + (at[length] == ',');
	}
}

/* Print the words, quoted for a shell. */
static void print_line(const char *const *words)
{
	struct str line = {0};

	for (; *words; words++) {
		const bool plain = **words && !(*words)[strspn(*words, "abcdefghijklmnopqrstuvwxyz"
								       "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
								       "0123456789_-+=:,./@%")];

		str_add(&line, plain ? " " : " '");
		for (const char *c = *words; *c; c++)
			str_add(&line, *c == '\'' ? "'\\''" : (char[]){*c, '\0'});
		str_add(&line, plain ? "" : "'");
	}
	if (!line.failed)
		cli_print(stderr, "ipu-run:%s\n", str_peek(&line));
	str_free(&line);
}

/* Execute the launcher with RUN and the words after it, which are @rest; returns only on failure or
 * with --dry-run. */
static enum status run(const struct line *line, const char *program, const char *trainer,
		       char **rest, int count, struct err *err)
{
	char *options = mem_strdup(line->launcher_options ? line->launcher_options : "");
	const char **words = mem_calloc((options ? strlen(options) : 0) + (size_t)count + OWN_WORDS,
					sizeof(*words));
	const char **word = words;
	char instances[16], replicas[16], *left = NULL;
	struct str hosts = {0};
	enum status status = ST_OK;

	if (line->hosts)
		name_hosts(&hosts, line);
	if (!options || !words || hosts.failed) {
		status = err_nomem(err);
		goto end;
	}
	*word++ = program;
	for (char *option = strtok_r(options, " \t", &left); option;
	     option = strtok_r(NULL, " \t", &left))
		*word++ = option;
	snprintf(instances, sizeof(instances), "%d", line->instances);
	*word++ = "-n";
	*word++ = instances;
	if (line->hosts) {
		*word++ = launchers[line->mpi].hosts;
		*word++ = str_peek(&hosts);
	}
	*word++ = trainer;
	for (int i = 0; i < count; i++)
		*word++ = rest[i];
	if (line->replicas) {
		snprintf(replicas, sizeof(replicas), "%d", line->replicas);
		*word++ = "--distribution.replicas";
		*word++ = replicas;
	}
	*word++ = "--distribution.instances";
	*word++ = "mpi";
	print_line(words);
	if (!line->dry) {
		execvp(program, (char *const *)words);
		status = err_set(err, ST_FAILED, "%s: %s", program, strerror(errno));
	}
end:
	mem_free(options);
	mem_free(words);
	str_free(&hosts);
	return status;
}

static enum status read_line(struct line *line, int argc, char **argv, char ***rest, int *count,
			     struct err *err)
{
	struct cli_argument argument;
	struct cli_walk walk;
	enum status status;
	bool more;

	cli_begin(&walk, &COMMAND, argc, argv, false);
	while ((status = cli_next(&walk, &argument, &more, err)) == ST_OK && more) {
		if (!argument.option) {
			*rest = argv + walk.at - 1;
			*count = argc - walk.at + 1;
			return ST_OK;
		}
		status = cli_set(&argument, line, err);
		if (status != ST_OK)
			return status;
	}
	return status != ST_OK ? status
			       : err_set(err, ST_INVALID,
					 "a run file is missing: `ipu-run --num-instances 2 RUN` "
					 "(`ipu-train --list` lists examples)");
}

static int run_command(int argc, char **argv)
{
	struct line line = {.instances = 1};
	char trainer[FS_PATH_SIZE], **rest = NULL;
	const char *program = NULL;
	struct err err = {ST_OK, ""};
	int count = 0;

	if (argc > 1 && argv[1][0] == '-' && cli_standard(&COMMAND, argc, argv, stdout))
		return 0;
	if (read_line(&line, argc, argv, &rest, &count, &err) != ST_OK ||
	    check(&line, &err) != ST_OK || find_programs(trainer, &program, &line, &err) != ST_OK ||
	    run(&line, program, trainer, rest, count, &err) != ST_OK)
		return cli_fail(&COMMAND, &err);
	return 0;
}

int main(int argc, char **argv)
{
	return cli_main("ipu-run", run_command, argc, argv);
}
