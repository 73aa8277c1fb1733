/*
 * Parses POPLAR_ENGINE_OPTIONS: a table of options, and one pass over the given values.
 *
 * Threading: no state. Ownership: the caller's struct owns the texts (train_options_free).
 */
#include "trainer/auto/train_auto.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"

#define VARIABLE "POPLAR_ENGINE_OPTIONS"
#define EXAMPLE  "{\"autoReport.all\":\"true\"}"

#define FIELD(field) .offset = offsetof(struct train_options, field)
#define NO_FIELD     .offset = TRAIN_OPTION_NO_FIELD

/* Name, what it does here, kind, Poplar's words for the type, default, help; then the field. */
#define OPTION(name_, effect_, kind_, type_, fallback_, help_, ...)                                \
	{                                                                                          \
		.name = (name_), .type = (type_), .fallback = (fallback_), .help = (help_),        \
		.effect = TRAIN_OPTION_##effect_, .kind = TRAIN_OPTION_##kind_, __VA_ARGS__        \
	}
#define ACCEPTED(name, kind, type, fallback, help)                                                 \
	OPTION(name, ACCEPTED, kind, type, fallback, help, NO_FIELD)
#define ACCEPTED_BOOL(name, fallback, help)       ACCEPTED(name, BOOL, "bool", fallback, help)
#define ACCEPTED_INT(name, fallback, help)        ACCEPTED(name, INT, "int", fallback, help)
#define ACCEPTED_TEXT(name, type, fallback, help) ACCEPTED(name, TEXT, type, fallback, help)

/* Grouped as in Poplar's documentation; the first entry must be autoReport.all (OPTION_ALL). */
static const struct train_option_entry option_table[] = {
	OPTION("autoReport.all", WORKS, BOOL, "bool", "false",
	       "Every report but the serialized graph, less what is turned off by name.", NO_FIELD),
	OPTION("autoReport.directory", WORKS, TEXT, "path", ".",
	       "Where the report directory is made; created if missing.", FIELD(directory)),
	OPTION("autoReport.outputGraphProfile", WORKS, BOOL, "bool", "false",
	       "graph.json: what is known at compile time. profile.db has it with any report.",
	       FIELD(graph_profile), .in_all = true, .file_name = "profile.pop"),
	OPTION("autoReport.outputExecutionProfile", WORKS, BOOL, "bool", "false",
	       "execution.json, and device steps in profile.db: what the device did.",
	       FIELD(execution_profile), .in_all = true, .file_name = "profile.pop"),
	OPTION("autoReport.executionProfileProgramRunCount", WORKS, INT, "int", "2",
	       "How many executions (Engine::run) have their device steps traced.",
	       FIELD(execution_profile_program_run_count)),
	OPTION("autoReport.outputLoweredVars", STOOD_IN, BOOL, "bool", "false",
	       "Where variables lie in tile memory.", FIELD(lowered_vars), .in_all = true,
	       .file_name = "profile.pop"),
	OPTION("autoReport.outputArchive", STOOD_IN, BOOL, "bool", "false", "The tiles' binaries.",
	       FIELD(archive), .in_all = true, .file_name = "archive.a"),
	OPTION("autoReport.outputSerializedGraph", STOOD_IN, BOOL, "bool", "false",
	       "The computation graph; not part of autoReport.all.", FIELD(serialized_graph),
	       .file_name = "serialized_graph.capnp"),
	OPTION("autoReport.outputDebugInfo", WORKS, BOOL, "bool", "false",
	       "debug.cbor: which layer each operation and program came from.", FIELD(debug_info),
	       .in_all = true),
	OPTION("autoReport.streamAtEachRun", ACCEPTED, BOOL, "bool", "true",
	       "Write while the run goes on. profile.db is always written so.",
	       FIELD(stream_at_each_run)),

	OPTION("debug.allowOutOfMemory", WORKS, BOOL, "bool", "true",
	       "Write the memory report of a model that does not fit, without running it.",
	       FIELD(allow_out_of_memory)),
	ACCEPTED_BOOL("debug.instrument", "false",
		      "All instrumentation; here every cycle is known without."),
	ACCEPTED_BOOL("debug.instrumentCompute", "false", "Cycles of compute sets."),
	ACCEPTED_BOOL("debug.instrumentControlFlow", "false", "Cycles of control flow."),
	ACCEPTED_BOOL("debug.instrumentExternalExchange", "false", "Cycles of stream copies."),
	ACCEPTED("debug.computeInstrumentationLevel", CHOICE, "off|vertex|tile|ipu|device", "tile",
		 "How finely compute sets are measured."),
	ACCEPTED_BOOL("debug.retainDebugInformation", "false", "Keep names in the executable."),
	ACCEPTED_BOOL("debug.outputAllSymbols", "false", "Keep all symbols in the executable."),
	ACCEPTED_BOOL("debug.floatPointOpException", "false",
		      "Stop at an invalid floating point operation."),

	ACCEPTED("profiler.format", CHOICE, "v1|v2|v3|experimental|unstable", "v3",
		 "The format of profile.pop."),
	OPTION("profiler.replicaToProfile", WORKS, INT, "int", "all replicas",
	       "execution.json has this replica only; profile.db has all, the column replica tells "
	       "them apart.",
	       FIELD(replica_to_profile)),
	OPTION("profiler.includeFlopEstimates", ACCEPTED, BOOL, "bool", "false",
	       "FLOP estimates; the view operations has them always.", FIELD(flop_estimates)),
	OPTION("profiler.includeCycleEstimates", ACCEPTED, BOOL, "bool", "false",
	       "Cycle estimates; the view operations has them always.", FIELD(cycle_estimates)),
	ACCEPTED_TEXT("profiler.programs.filter", "regex", "none", "Programs measured as blocks."),
	ACCEPTED_TEXT("profiler.blocks.filter", "regex", "none", "Blocks measured."),
	ACCEPTED_INT("profiler.blocks.tile", "0", "The tile that is measured."),
	ACCEPTED_INT("profiler.blocks.bufferSize", "1000", "Bytes of a tile's event buffer."),
	ACCEPTED_BOOL("profiler.blocks.implicitFlush", "true",
		      "Empty the event buffer at safe points."),

	ACCEPTED_BOOL("target.deterministicWorkers", "true", "The same bits in every run."),
	ACCEPTED_TEXT("target.saveArchive", "path", "none", "Where the tiles' binaries go."),
	ACCEPTED_BOOL("target.saveOutputVertexGraph", "false", "Keep the vertex graph."),
	ACCEPTED("target.hostSyncTimeout", REAL, "seconds", "300",
		 "How long the host is waited for; 0: for ever."),
	ACCEPTED_INT("target.syncPollPeriodUs", "0", "Pause between polls of a sync."),
	ACCEPTED("target.syncMethod", CHOICE, "polling|hybrid|default", "default",
		 "How the host waits for a sync."),
	ACCEPTED_INT("opt.maxCompilationThreads", "0", "Threads of the compiler; 0: all."),
	ACCEPTED_BOOL("opt.enableInlining", "true", "Let the compiler inline functions."),
	ACCEPTED("exchange.streamBufferOverlap", CHOICE, "any|hostRearrangeOnly|none", "any",
		 "Which stream buffers may share memory."),
	ACCEPTED_BOOL("exchange.enablePrefetch", "true", "Fetch input ahead of its use."),
	ACCEPTED("streamCallbacks.maxLookahead", TEXT, "int|unlimited", "unlimited",
		 "How far ahead input is fetched."),
	ACCEPTED("streamCallbacks.multiThreadMode", CHOICE, "singleThread|collaborative|dedicated",
		 "singleThread", "Who runs the callbacks."),
	ACCEPTED_TEXT("streamCallbacks.numWorkerThreads", "int|auto", "0",
		      "Threads that run the callbacks."),
	ACCEPTED_BOOL("streamCallbacks.numaAware", "false", "Threads stay near their memory."),
};

enum {
	OPTION_COUNT = ARRAY_LEN(option_table),
	OPTION_ALL = 0
};

const struct train_option_entry *train_option_entries(int *count)
{
	*count = OPTION_COUNT;
	return option_table;
}

/* One given value, in its option's type. */
struct option_value {
	bool given;
	bool boolean;
	int64_t integer;
	double real;
	const char *text; /* borrowed from the JSON tree */
};

/* ---- values ---------------------------------------------------------------------------------- */

static enum status option_reject(const struct train_option_entry *entry, const cJSON *node,
				 const char *wanted, struct err *err)
{
	char shown[256];

	if (cJSON_IsString(node))
		snprintf(shown, sizeof(shown), "\"%s\"", node->valuestring);
	else if (cJSON_IsNumber(node))
		snprintf(shown, sizeof(shown), "%.17g", node->valuedouble);
	else
		snprintf(shown, sizeof(shown), "%s",
			 cJSON_IsTrue(node)    ? "true"
			 : cJSON_IsBool(node)  ? "false"
			 : cJSON_IsNull(node)  ? "null"
			 : cJSON_IsArray(node) ? "an array"
					       : "an object");
	return err_set(err, ST_INVALID, VARIABLE ": %s: must be %s, not %s", entry->name, wanted,
		       shown);
}

static enum status option_bool(const struct train_option_entry *entry, const cJSON *node,
			       struct option_value *out, struct err *err)
{
	static const struct {
		const char *text;
		bool value;
	} words[] = {{"true", true}, {"false", false}, {"1", true}, {"0", false}};

	if (cJSON_IsBool(node)) {
		out->boolean = cJSON_IsTrue(node);
		return ST_OK;
	}
	if (cJSON_IsNumber(node) && (node->valuedouble == 0 || node->valuedouble == 1)) {
		out->boolean = node->valuedouble != 0;
		return ST_OK;
	}
	for (size_t i = 0; cJSON_IsString(node) && i < ARRAY_LEN(words); i++) {
		if (!strcmp(node->valuestring, words[i].text)) {
			out->boolean = words[i].value;
			return ST_OK;
		}
	}
	return option_reject(entry, node, "true or false", err);
}

static enum status option_int(const struct train_option_entry *entry, const cJSON *node,
			      struct option_value *out, struct err *err)
{
	long long value = 0;
	bool good = false;
	char wanted[64];

	if (cJSON_IsString(node)) {
		good = str_to_int(node->valuestring, &value);
	} else if (cJSON_IsNumber(node) && fabs(node->valuedouble) < 9007199254740992.0 &&
		   node->valuedouble == floor(node->valuedouble)) {
		value = (long long)node->valuedouble;
		good = true;
	}
	if (!good)
		return option_reject(entry, node, "a whole number", err);

	if (value < entry->least) {
		snprintf(wanted, sizeof(wanted), "at least %" PRId64, entry->least);
		return option_reject(entry, node, wanted, err);
	}
	out->integer = value;
	return ST_OK;
}

static enum status option_real(const struct train_option_entry *entry, const cJSON *node,
			       struct option_value *out, struct err *err)
{
	bool good = cJSON_IsNumber(node) && isfinite(node->valuedouble);

	out->real = good ? node->valuedouble : 0;
	if (cJSON_IsString(node))
		good = str_to_double(node->valuestring, &out->real);
	return good ? ST_OK : option_reject(entry, node, "a number", err);
}

static enum status option_text(const struct train_option_entry *entry, const cJSON *node,
			       struct option_value *out, struct err *err)
{
	if (cJSON_IsNumber(node)) {
		/* "int|auto": a number is accepted in place of its text. */
		out->real = node->valuedouble;
		out->text = NULL;
		return ST_OK;
	}
	if (!cJSON_IsString(node))
		return option_reject(entry, node, "a text", err);
	out->text = node->valuestring;
	return ST_OK;
}

static enum status option_choice(const struct train_option_entry *entry, const cJSON *node,
				 struct option_value *out, struct err *err)
{
	const char *words = entry->type;
	char wanted[128];

	for (size_t length; cJSON_IsString(node) && *words;
	     words += length + (words[length] == '|')) {
		length = strcspn(words, "|");
		if (strlen(node->valuestring) == length &&
		    !memcmp(node->valuestring, words, length)) {
			out->text = node->valuestring;
			return ST_OK;
		}
	}
	snprintf(wanted, sizeof(wanted), "one of %s", entry->type);
	return option_reject(entry, node, wanted, err);
}

typedef enum status (*option_read_fn)(const struct train_option_entry *entry, const cJSON *node,
				      struct option_value *out, struct err *err);

static const option_read_fn option_read[] = {
	[TRAIN_OPTION_BOOL] = option_bool,     [TRAIN_OPTION_INT] = option_int,
	[TRAIN_OPTION_REAL] = option_real,     [TRAIN_OPTION_TEXT] = option_text,
	[TRAIN_OPTION_CHOICE] = option_choice,
};

/* ---- parsing the object ---------------------------------------------------------------------- */

static enum status option_unknown(const char *name, struct err *err)
{
	const char *names[OPTION_COUNT], *near;

	for (int i = 0; i < OPTION_COUNT; i++)
		names[i] = option_table[i].name;
	near = str_nearest(name, names, OPTION_COUNT);
	if (near)
		return err_set(err, ST_INVALID,
			       VARIABLE ": unknown option \"%s\" (did you mean \"%s\"?)", name,
			       near);
	return err_set(err, ST_INVALID, VARIABLE ": unknown option \"%s\"", name);
}

static enum status options_read(const cJSON *root, struct option_value values[OPTION_COUNT],
				struct err *err)
{
	if (!cJSON_IsObject(root))
		return err_set(err, ST_INVALID, VARIABLE ": must be a JSON object, like '%s'",
			       EXAMPLE);

	for (const cJSON *node = root->child; node; node = node->next) {
		const struct train_option_entry *entry;
		enum status status;
		int at = 0;

		while (at < OPTION_COUNT && strcmp(option_table[at].name, node->string) != 0)
			at++;
		if (at == OPTION_COUNT)
			return option_unknown(node->string, err);
		entry = &option_table[at];
		status = option_read[entry->kind](entry, node, &values[at], err);
		if (status != ST_OK)
			return status;
		values[at].given = true;
	}
	return ST_OK;
}

/* ---- storing the values ---------------------------------------------------------------------- */

static enum status options_store(struct train_options *out,
				 const struct option_value values[OPTION_COUNT], struct err *err)
{
	bool all = values[OPTION_ALL].given && values[OPTION_ALL].boolean;

	for (int i = 0; i < OPTION_COUNT; i++) {
		const struct train_option_entry *entry = &option_table[i];
		struct option_value value = values[i];
		char *field;

		if (entry->offset == TRAIN_OPTION_NO_FIELD)
			continue;
		if (!value.given && entry->in_all && all) {
			value.given = true;
			value.boolean = true;
		}
		if (!value.given)
			continue;
		field = (char *)out + entry->offset;
		if (entry->kind == TRAIN_OPTION_BOOL)
			memcpy(field, &value.boolean, sizeof(value.boolean));
		else if (entry->kind == TRAIN_OPTION_INT)
			memcpy(field, &value.integer, sizeof(value.integer));
		else if (!value.text)
			return err_set(err, ST_INVALID,
				       VARIABLE ": %s: must be a text, not a number", entry->name);
		else if (*value.text && !fs_path(out->directory, "%s", value.text))
			return err_set(err, ST_INVALID, VARIABLE ": %s: the path is too long",
				       entry->name);
	}
	out->any = out->graph_profile || out->execution_profile || out->lowered_vars ||
		   out->archive || out->serialized_graph || out->debug_info;
	return ST_OK;
}

/* ---- normalised text and notes --------------------------------------------------------------- */

static enum status options_write(struct train_options *out,
				 const struct option_value values[OPTION_COUNT], struct err *err)
{
	struct str text = {0};
	struct jsonw w;

	jsonw_init_str(&w, &text, 0);
	jsonw_begin_object(&w);
	for (int i = 0; i < OPTION_COUNT; i++) {
		const struct train_option_entry *entry = &option_table[i];
		const struct option_value *value = &values[i];

		if (!value->given)
			continue;
		if (entry->kind == TRAIN_OPTION_BOOL)
			jsonw_key_bool(&w, entry->name, value->boolean);
		else if (entry->kind == TRAIN_OPTION_INT)
			jsonw_key_int(&w, entry->name, value->integer);
		else if (value->text)
			jsonw_key_text(&w, entry->name, value->text);
		else
			jsonw_key_real(&w, entry->name, value->real);
	}
	jsonw_end_object(&w);
	if (text.failed) {
		str_free(&text);
		return err_nomem(err);
	}
	out->text = text.text;
	return ST_OK;
}

/* Is the report of @entry requested? */
static bool option_is_on(const struct train_options *options,
			 const struct train_option_entry *entry)
{
	bool on;

	if (!entry->file_name)
		return false;
	memcpy(&on, (const char *)options + entry->offset, sizeof(on));
	return on;
}

static void notes_list(struct str *list, const char *name)
{
	str_addf(list, "%s%s", list->length ? ", " : "", name);
}

/* Several options can request the same file: has one before row @end named it? */
static bool option_file_named(const struct train_options *options, int end)
{
	for (int i = 0; i < end; i++)
		if (option_is_on(options, &option_table[i]) &&
		    !strcmp(option_table[i].file_name, option_table[end].file_name))
			return true;
	return false;
}

/* Was the option given without any effect? profile.db contains the lowered variables with any
 * report, so disabling them omits nothing. */
static bool option_is_idle(const struct train_options *options,
			   const struct train_option_entry *entry, const struct option_value *value)
{
	if (!value->given)
		return false;
	if (entry->effect == TRAIN_OPTION_ACCEPTED)
		return true;
	return options->any && entry->effect == TRAIN_OPTION_STOOD_IN && !value->boolean &&
	       !strcmp(entry->file_name, "profile.pop");
}

static enum status options_note(struct train_options *out,
				const struct option_value values[OPTION_COUNT], struct err *err)
{
	struct str files = {0}, idle = {0}, notes = {0};
	bool failed;

	for (int i = 0; i < OPTION_COUNT; i++) {
		const struct train_option_entry *entry = &option_table[i];

		if (option_is_on(out, entry) && !option_file_named(out, i))
			notes_list(&files, entry->file_name);
		if (option_is_idle(out, entry, &values[i]))
			notes_list(&idle, entry->name);
	}
	if (files.length)
		str_addf(&notes,
			 VARIABLE ": profile.db stands in for %s, formats this program does not "
				  "write.\n",
			 str_peek(&files));
	if (idle.length)
		str_addf(&notes, VARIABLE ": accepted without effect here: %s.\n", str_peek(&idle));

	failed = files.failed || idle.failed || notes.failed;
	str_free(&files);
	str_free(&idle);
	if (failed) {
		str_free(&notes);
		return err_nomem(err);
	}
	out->notes = notes.text;
	return ST_OK;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

static void options_defaults(struct train_options *out)
{
	*out = (struct train_options){
		.execution_profile_program_run_count = PLAN_TRACED_EXECUTIONS,
		.stream_at_each_run = true,
		.allow_out_of_memory = true,
		.replica_to_profile = -1,
		.directory = ".",
	};
}

enum status train_options_parse(struct train_options *out, const char *text, struct err *err)
{
	struct option_value values[OPTION_COUNT] = {{0}};
	struct err own;
	cJSON *root;

	err = err_start(err, &own);
	options_defaults(out);
	if (!text || !text[strspn(text, " \t\r\n")])
		return ST_OK;

	if (json_parse(&root, text, strlen(text), VARIABLE, err) != ST_OK)
		return err->status;
	if (options_read(root, values, err) != ST_OK || options_store(out, values, err) != ST_OK ||
	    options_write(out, values, err) != ST_OK || options_note(out, values, err) != ST_OK) {
		train_options_free(out);
		options_defaults(out);
	}
	cJSON_Delete(root);
	return err->status;
}

void train_options_free(struct train_options *options)
{
	mem_free(options->text);
	mem_free(options->notes);
	options->text = NULL;
	options->notes = NULL;
}
