/*
 * Program tree of the public report: parents and children from ids, even in a damaged file;
 * operations with their programs; traversal.
 *
 * The links are made a forest once: a program that would be its own ancestor is detached from its
 * parent, so all traversals end without a stack.
 *
 * Threading and ownership: as ipuscope/report.h says.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/minmax.h"
#include "common/sorted.h"
#include "popvision/public/report_public_internal.h"

static struct ips_report_program *programs_of(struct ips_report *report)
{
	return (void *)report->lists[PUBLIC_PROGRAMS].items;
}

/* ---- tree ------------------------------------------------------------------------------------ */

/* @seen: zeroed; for each program, the number of the walk towards the root that reached it. */
static void cut_cycles(struct ips_report_program *programs, size_t count, int64_t *seen)
{
	for (int64_t i = 0; i < (int64_t)count; i++) {
		int64_t at = i;

		while (at != IPS_REPORT_NONE && seen[at] == 0) {
			seen[at] = i + 1;
			at = programs[at].parent;
		}
		if (at != IPS_REPORT_NONE && seen[at] == i + 1) {
			int64_t least = at;

			/* A cycle is cut at its least index. */
			for (int64_t next = programs[at].parent; next != at;
			     next = programs[next].parent)
				least = min(next, least);
			programs[least].parent = IPS_REPORT_NONE;
		}
	}
}

static int by_parent(const void *a, const void *b)
{
	const struct ips_report_program *p = *(const struct ips_report_program *const *)a;
	const struct ips_report_program *q = *(const struct ips_report_program *const *)b;

	return SORTED_BY(p, q, parent, position, index);
}

/* @order has room for all programs. */
static void link_children(struct ips_report *report, struct ips_report_program **order)
{
	struct ips_report_program *programs = programs_of(report);
	const size_t count = report->lists[PUBLIC_PROGRAMS].count;

	for (size_t i = 0; i < count; i++)
		order[i] = &programs[i];
	qsort(order, count, sizeof(*order), by_parent);
	report->first_root = count > 0 ? order[0]->index : IPS_REPORT_NONE;
	for (size_t i = 0; i < count; i++) {
		struct ips_report_program *program = order[i];

		if (i + 1 < count && order[i + 1]->parent == program->parent)
			program->next_sibling = order[i + 1]->index;
		if (program->parent == IPS_REPORT_NONE)
			continue;
		if (programs[program->parent].num_children++ == 0)
			programs[program->parent].first_child = program->index;
	}
}

/* The program visited after @at and its descendants; IPS_REPORT_NONE: the end. */
static int64_t next_after_subtree(const struct ips_report_program *programs, int64_t at)
{
	for (; at != IPS_REPORT_NONE; at = programs[at].parent)
		if (programs[at].next_sibling != IPS_REPORT_NONE)
			return programs[at].next_sibling;
	return IPS_REPORT_NONE;
}

/* Set depths in an order in which parents precede their children. */
static void set_depths(struct ips_report *report)
{
	struct ips_report_program *programs = programs_of(report);
	int64_t at = report->first_root;

	while (at != IPS_REPORT_NONE) {
		const int64_t parent = programs[at].parent, child = programs[at].first_child;

		programs[at].depth = parent == IPS_REPORT_NONE ? 0 : programs[parent].depth + 1;
		at = child != IPS_REPORT_NONE ? child : next_after_subtree(programs, at);
	}
}

enum status report_public__link_tree(struct ips_report *report, struct err *err)
{
	struct ips_report_program *programs = programs_of(report);
	const size_t count = report->lists[PUBLIC_PROGRAMS].count;
	int64_t *seen = mem_calloc(count + 1, sizeof(*seen));
	struct ips_report_program **order =
		mem_calloc(count + 1, sizeof(struct ips_report_program *));

	for (size_t i = 0; i < count && seen && order; i++) {
		struct ips_report_program *program = &programs[i];

		program->parent = report_public__program_index(report, program->parent_id);
		program->called = report_public__program_index(report, program->call_target);
		program->first_child = program->next_sibling = IPS_REPORT_NONE;
		program->operation_index = program->next_of_operation = IPS_REPORT_NONE;
		program->compute_set = IPS_REPORT_NONE;
	}
	report->first_root = IPS_REPORT_NONE;
	if (seen && order) {
		cut_cycles(programs, count, seen);
		link_children(report, order);
		set_depths(report);
		for (size_t i = 0; i < count; i++)
			if (programs[i].called != IPS_REPORT_NONE)
				programs[programs[i].called].is_function = 1;
	}
	mem_free(order);
	mem_free(seen);
	return seen && order ? ST_OK : err_nomem(err);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Index of names; equal texts are equal pointers (report_public__text()). */
struct name {
	const char *text;
	int64_t index;
};

static int by_name(const void *a, const void *b)
{
	const struct name *p = a, *q = b;
	const int order = SORTED_ORDER((uintptr_t)p->text, (uintptr_t)q->text);

	return order != 0 ? order : SORTED_BY(p, q, index);
}

/* The least index of an item named @text. */
static int64_t find_name(const struct name *names, size_t count, const char *text)
{
	size_t at;

	SORTED_FIRST(at, 0, count, (uintptr_t)names[at].text < (uintptr_t)text);
	return text && at < count && names[at].text == text ? names[at].index : IPS_REPORT_NONE;
}

/* Linear search: there are few layers. */
static int64_t find_layer(struct ips_report *report, const char *layer)
{
	const struct ips_report_layer *layers = (void *)report->lists[PUBLIC_LAYERS].items;

	for (size_t i = 0; i < report->lists[PUBLIC_LAYERS].count; i++)
		if (layer && layers[i].name == layer)
			return (int64_t)i;
	return IPS_REPORT_NONE;
}

enum status report_public__link_operations(struct ips_report *report, struct err *err)
{
	struct ips_report_operation *operations = (void *)report->lists[PUBLIC_OPERATIONS].items;
	const size_t count = report->lists[PUBLIC_OPERATIONS].count;
	struct name *names = mem_calloc(count + 1, sizeof(*names));
	struct ips_report_program *programs;
	struct ips_report_compute_set *sets;

	if (!names)
		return err_nomem(err);
	for (size_t i = 0; i < count; i++) {
		operations[i].first_program = IPS_REPORT_NONE;
		operations[i].layer_index = find_layer(report, operations[i].layer);
		names[i] = (struct name){operations[i].name, (int64_t)i};
	}
	qsort(names, count, sizeof(*names), by_name);
	/* Link from last to first, so that each chain is sorted by index. */
	programs = programs_of(report);
	for (size_t i = report->lists[PUBLIC_PROGRAMS].count; i-- > 0;) {
		const int64_t index = find_name(names, count, programs[i].operation);

		programs[i].operation_index = index;
		if (index == IPS_REPORT_NONE)
			continue;
		programs[i].next_of_operation = operations[index].first_program;
		operations[index].first_program = (int64_t)i;
		operations[index].num_programs++;
	}
	sets = (void *)report->lists[PUBLIC_COMPUTE_SETS].items;
	for (size_t i = report->lists[PUBLIC_COMPUTE_SETS].count; i-- > 0;) {
		sets[i].operation_index = find_name(names, count, sets[i].operation);
		sets[i].program = report_public__program_index(report, sets[i].program_id);
		if (sets[i].program != IPS_REPORT_NONE)
			programs[sets[i].program].compute_set = (int64_t)i;
	}
	mem_free(names);
	return ST_OK;
}

int ips_report_operation_has_variable(const struct ips_report_operation *operation,
				      const struct ips_report_variable *variable)
{
	size_t length;

	if (!operation || !variable || !operation->name || !variable->name)
		return 0;
	length = strlen(operation->name);
	return strncmp(variable->name, operation->name, length) == 0 &&
	       (variable->name[length] == '\0' || variable->name[length] == '/');
}

/* ---- traversal ------------------------------------------------------------------------------- */

int64_t ips_report_program_first_root(struct ips_report *report)
{
	return report_public__count(report, PUBLIC_PROGRAMS) > 0 ? report->first_root
								 : IPS_REPORT_NONE;
}

/* Call leave() for @at and for every ancestor whose last child it completes, up to and including
 * @top. Return the next program to visit; IPS_REPORT_NONE: the traversal is complete. */
static int64_t leave_completed(const struct ips_report_program *programs,
			       const struct ips_report_visitor *visitor, int64_t at, int64_t top)
{
	for (;;) {
		if (visitor->leave)
			visitor->leave(visitor->user, &programs[at]);
		if (at == top)
			return IPS_REPORT_NONE;
		if (programs[at].next_sibling != IPS_REPORT_NONE)
			return programs[at].next_sibling;
		at = programs[at].parent;
		if (at == IPS_REPORT_NONE)
			return IPS_REPORT_NONE;
	}
}

int ips_report_program_accept(struct ips_report *report, int64_t index,
			      const struct ips_report_visitor *visitor)
{
	const struct ips_report_program *programs;
	struct err err = {ST_OK, ""};
	int64_t at = index;

	if (!report)
		return report_public__null_argument("report", NULL, 0);
	if (!visitor)
		return report_public__null_argument("visitor", NULL, 0);
	if (report_public__count(report, PUBLIC_PROGRAMS) < 0)
		return (int)report->lists[PUBLIC_PROGRAMS].status;
	if (index == IPS_REPORT_NONE)
		at = report->first_root;
	else if (!report_public__item(report, PUBLIC_PROGRAMS, index))
		return report_public__status(
			report,
			err_set(&err, ST_INVALID, "program %lld, where there are %lld",
				(long long)index, (long long)report->lists[PUBLIC_PROGRAMS].count),
			&err, NULL, 0);
	programs = programs_of(report);
	while (at != IPS_REPORT_NONE) {
		enum ips_report_visit next;
		const struct ips_report_program *program = &programs[at];

		if (visitor->visit[program->kind])
			next = visitor->visit[program->kind](visitor->user, program);
		else
			next = visitor->other ? visitor->other(visitor->user, program)
					      : IPS_REPORT_VISIT_ON;
		if (next == IPS_REPORT_VISIT_STOP)
			break;
		if (next == IPS_REPORT_VISIT_ON && programs[at].first_child != IPS_REPORT_NONE)
			at = programs[at].first_child;
		else
			at = leave_completed(programs, visitor, at, index);
	}
	return 0;
}
