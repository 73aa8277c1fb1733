"""Compare graph.json, execution.json and debug.cbor of a folder with the database that they were made of.

	report_popvision.py VALIDATED DATABASE FOLDER SCHEMAS [REPLICA]

Every number is compared with what SQL says. Files that are not there are left out; what was compared is printed.
With python3-jsonschema those of the files that VALIDATED names, without their endings, are validated against SCHEMAS too.
"""
import json
import os
import re
import sqlite3
import sys

validated, database, folder, schemas = sys.argv[1:5]
replica = int(sys.argv[5]) if len(sys.argv) > 5 else None
sql = sqlite3.connect("file:" + database + "?mode=ro", uri=True)
compared = 0


def rows(question, *values):
    return [tuple(row) for row in sql.execute(question, values)]


def one(question, *values):
    return rows(question, *values)[0][0]


def same(what, got, wanted):
    global compared
    if got != wanted:
        if isinstance(got, list) and isinstance(wanted, list):
            for i, (a, b) in enumerate(zip(got, wanted)):
                if a != b:
                    sys.exit(f"FAILED: {folder}: {what}[{i}]: {a}, SQL has {b}")
            sys.exit(f"FAILED: {folder}: {what}: {len(got)} items, SQL has {len(wanted)}")
        sys.exit(f"FAILED: {folder}: {what}: {got}, SQL has {wanted}")
    compared += len(got) if isinstance(got, list) else 1


def expand(runs):
    return [value for count, value in runs["runs"] for _ in range(count)]


def load(name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_constant=lambda word: sys.exit(f"FAILED: {path}: {word} is no JSON"))


def validate(name, document):
    if name not in validated.split():
        return
    try:
        import jsonschema
    except ImportError:
        return
    with open(os.path.join(schemas, name + ".schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    errors = list(jsonschema.Draft202012Validator(schema).iter_errors(document))
    if errors:
        sys.exit(f"FAILED: {folder}: {name}: {errors[0].json_path}: {errors[0].message}")


def objects(what, got, keys, question, *values):
    """A list of objects with these keys in this order, a.b being b in a; and SQL's rows."""

    def take(item, key):
        for part in key.split("."):
            item = item[part]
        return item

    same(what, [tuple(take(item, key) for key in keys.split()) for item in got], rows(question, *values))


# ---- graph.json ----------------------------------------------------------------------------------


def check_target(target):
    meta = dict(rows("SELECT key, value FROM meta"))
    ipus, replicas = int(meta["ipus"]), int(meta["replicas"])
    tiles, capacity = rows("SELECT max(tile) + 1, max(capacity) FROM tile_memory")[0]
    same("target", {key: target[key] for key in target if not key.startswith(("relative", "minSync"))}, {
        "type": "IPU_MODEL", "name": meta["target"], "architecture": "Mk2", "clockFrequency": int(meta["clock_hz"]), "numIPUs": ipus,
        "tilesPerIPU": tiles, "numTiles": ipus * tiles, "bytesPerTile": capacity, "bytesPerIPU": capacity * tiles,
        "totalMemory": capacity * tiles * ipus, "numReplicas": replicas, "ipusPerReplica": ipus // replicas,
        "tilesPerReplica": ipus // replicas * tiles, "memoryPerReplica": ipus // replicas * tiles * capacity})
    same("target.relativeSyncDelayByTile", expand(target["relativeSyncDelayByTile"]), [0] * (ipus // replicas * tiles))
    return tiles, ipus // replicas


def check_compute_sets(graph):
    sets = graph["computeSets"]
    wanted = rows("SELECT compute_set, program_id, operation, vertices, tiles, max_cycles, mean_cycles,"
                  " (SELECT kind FROM operations o WHERE o.operation = c.operation)"
                  " FROM compute_sets c ORDER BY program_id, compute_set")
    same("computeSets", [tuple(item) for item in zip(sets["names"], sets["programs"], sets["operations"])],
         [row[:3] for row in wanted])
    same("computeSets.vertexCounts", sets["vertexCounts"], [[row[3]] for row in wanted])
    objects("computeSets.estimatedCyclesByTile", sets["estimatedCyclesByTile"], "tiles max mean",
            "SELECT tiles, max_cycles, mean_cycles FROM compute_sets ORDER BY program_id, compute_set")
    types = [(row[7] or "copy") + "::" + re.sub("[0-9-]*$", "", row[0].split("/")[-1]) for row in wanted]
    same("vertexTypes.names", graph["vertexTypes"]["names"], sorted(set(types)))
    same("computeSets.vertexTypes", [graph["vertexTypes"]["names"][item[0]] for item in sets["vertexTypes"]], types)


def check_programs(graph):
    objects("programs", graph["programs"], "id type name operation count target",
            "SELECT program_id, type, name, operation, repeat_count, call_target FROM programs ORDER BY program_id")
    children = {}
    for parent, child in rows("SELECT parent_id, program_id FROM programs WHERE parent_id IS NOT NULL"
                              " ORDER BY parent_id, position"):
        children.setdefault(parent, []).append(child)
    same("programs.children", [item["children"] for item in graph["programs"]],
         [children.get(item["id"], []) for item in graph["programs"]])
    same("program ids", [item["id"] for item in graph["programs"]], list(range(len(graph["programs"]))))
    called = {row[0] for row in rows("SELECT call_target FROM programs")}
    roots = [row[0] for row in rows("SELECT program_id FROM programs WHERE parent_id IS NULL ORDER BY 1")]
    same("functionPrograms", graph["functionPrograms"], [root for root in roots if root in called])
    same("controlPrograms", graph["controlPrograms"], [root for root in roots if root not in called])
    kinds = {"DoExchange": "internal", "GlobalExchange": "external", "StreamCopyBegin": "host", "StreamCopyMid": "host",
             "StreamCopyEnd": "host"}
    exchanges = graph["exchanges"]
    same("exchanges", [tuple(item) for item in zip(*(exchanges[key] for key in ("names", "types", "programs", "operations")))],
         [(item["name"], kinds[item["type"]], item["id"], item["operation"]) for item in graph["programs"] if item["type"] in kinds])


def check_memory(memory, tiles, ipus):
    def by_tile(where, *values):
        found = dict(rows(f"SELECT ipu * {tiles} + tile, sum(bytes) FROM tile_memory WHERE {where} GROUP BY 1", *values))
        return [found.get(i, 0) for i in range(tiles * ipus)]

    same("memory.byTile.total", expand(memory["byTile"]["total"]), by_tile("1"))
    same("memory.byTile.totalIncludingGaps", memory["byTile"]["totalIncludingGaps"], memory["byTile"]["total"])
    same("memory.byTile.overflowed", expand(memory["byTile"]["overflowed"]), by_tile("region = 'overflowed'"))
    same("memory.byCategory", sorted((category, region) for category in memory["byCategory"] for region in memory["byCategory"][category]),
         rows("SELECT DISTINCT category, region FROM tile_memory WHERE bytes > 0 ORDER BY 1, 2"))
    for category, regions in memory["byCategory"].items():
        for region in regions:
            same(f"memory.byCategory.{category}.{region}", expand(regions[region]["nonOverlapped"]),
                 by_tile("category = ? AND region = ?", category, region))
    liveness = memory["liveness"]
    same("alwaysLive.bytesByTile", expand(liveness["alwaysLive"]["bytesByTile"]), by_tile("category <> 'notAlwaysLiveVariables'"))
    same("notAlwaysLive.maxBytesByTile", expand(liveness["notAlwaysLive"]["maxBytesByTile"]),
         by_tile("category = 'notAlwaysLiveVariables'"))
    columns = "SELECT variable_id, variable, layer, kind, shape, dtype, bytes, ipu"
    keys = "id name layer kind shape dtype bytes ipu"
    objects("alwaysLive.variables", liveness["alwaysLive"]["variables"], keys,
            columns + " FROM variables WHERE always_live = 1 ORDER BY 1")
    objects("notAlwaysLive.variables", liveness["notAlwaysLive"]["variables"], keys + " firstProgramStep lastProgramStep",
            columns + ", first_program_step, last_program_step FROM variables WHERE always_live = 0 ORDER BY 1")
    objects("liveness.programSteps", liveness["programSteps"],
            "ipu programStep program alwaysLiveMemory.bytes notAlwaysLiveMemory.bytes",
            "SELECT ipu, program_step, program_id, always_live_bytes, not_always_live_bytes FROM liveness ORDER BY 1, 2")


def check_graph(graph):
    tiles, ipus = check_target(graph["target"])
    same("graph", graph["graph"], {
        "numComputeSets": one("SELECT count(*) FROM compute_sets"), "numVertices": one("SELECT sum(vertices) FROM compute_sets"),
        "numVars": one("SELECT count(*) FROM variables"), "numEdges": None, "numPrograms": one("SELECT count(*) FROM programs"),
        "numOperations": one("SELECT count(*) FROM operations"), "numLayers": one("SELECT count(*) FROM layers")})
    check_compute_sets(graph)
    check_programs(graph)
    objects("optimizationInfo.plans", graph["optimizationInfo"]["plans"],
            "operation method splitBatch splitField splitIn splitOut splitKernel serialSplits temporaryBytes cycles",
            "SELECT * FROM plans")
    objects("layers", graph["layers"], "name class stage outputShape params trainableParams flops",
            "SELECT layer, class, stage, output_shape, params, trainable_params, flops FROM layers ORDER BY position")
    objects("operations", graph["operations"], "name layer kind phase stage flops cycles computeCycles exchangeCycles syncCycles"
            " bytesExchanged tilesUsed tileBalance codeBytes", "SELECT * FROM operations")
    check_memory(graph["memory"], tiles, ipus)


# ---- execution.json ------------------------------------------------------------------------------


def unfold(simulation):
    """Every step of every execution, as docs/json.md says."""
    for at in simulation["passes"]:
        trace = simulation["traces"][at["trace"]]
        for step in simulation["steps"][trace["firstStep"]:trace["firstStep"] + trace["numSteps"]]:
            beside = step["microbatch"]
            yield (at["execution"], at["weightUpdate"], None if beside is None else at["firstStep"] + beside,
                   None if beside is None or at["weightUpdate"] is None else at["firstMicrobatch"] + beside,
                   at["replica"], at["firstIpu"] + step["ipu"], step["stage"], step["phase"], step["program"], step["type"],
                   step["name"], step["operation"], at["cyclesFrom"] + step["cyclesFrom"], at["cyclesFrom"] + step["cyclesTo"],
                   step["cycles"], step["cyclesOverlapped"], step["activeTiles"], step["tileBalance"],
                   step["activeTileBalance"], step["dataIn"], step["dataOut"])


def check_execution(execution):
    simulation = execution["simulation"]
    where = "" if replica is None else f" WHERE replica = {replica}"
    same("replicaToProfile", execution["replicaToProfile"], replica)
    same("profilerMode", execution["profilerMode"], "IPU_MODEL")
    objects("computeSetCyclesByTile", execution["computeSetCyclesByTile"], "tiles max mean",
            "SELECT tiles, max_cycles, mean_cycles FROM compute_sets ORDER BY program_id, compute_set")
    objects("simulation.runs", simulation["runs"], "rank execution mode epoch firstStep numSteps weightUpdates cyclesFrom cyclesTo"
            " cycles microseconds.start microseconds.end",
            "SELECT rank, execution, mode, epoch, first_step, steps, updates, start_cycle, start_cycle + cycles, cycles,"
            " start_ns / 1000.0, (start_ns + dur_ns) / 1000.0 FROM executions WHERE traced ORDER BY 1, 2")
    same("simulation.cycles", simulation["cycles"], one("SELECT sum(cycles) FROM executions WHERE traced"))

    def order(step):
        return tuple((value is not None, value) for value in step)

    same("simulation.steps", sorted(unfold(simulation), key=order), sorted(rows(
        "SELECT execution, weight_update, step, microbatch, replica, ipu, stage, phase, program_id, type, name, operation,"
        " start_cycle, start_cycle + cycles, cycles, cycles_overlapped, active_tiles, tile_balance, active_tile_balance,"
        " bytes_in, bytes_out FROM device_steps" + where), key=order))
    for key, types in {"compute": ["OnTileExecute"], "doExchange": ["DoExchange"], "globalExchange": ["GlobalExchange"],
                       "streamCopy": ["StreamCopyBegin", "StreamCopyMid", "StreamCopyEnd"], "sync": ["Sync", "SyncAns", "Sans"]}.items():
        marks = ",".join("?" * len(types))
        same("simulation.tileCycles." + key, simulation["tileCycles"][key],
             one(f"SELECT sum(cycles) FROM (SELECT * FROM device_steps{where}) WHERE type IN ({marks})", *types))
    same("simulation.traces", sum(trace["numPasses"] for trace in simulation["traces"]), len(simulation["passes"]))


# ---- debug.cbor ----------------------------------------------------------------------------------


def decode(data, at=0):
    """One item of CBOR (what of it debug.cbor uses), and where the next begins."""
    if data[at] == 0x9F:
        items, at = [], at + 1
        while data[at] != 0xFF:
            item, at = decode(data, at)
            items.append(item)
        return items, at + 1
    major, number = data[at] >> 5, data[at] & 31
    at += 1
    if number >= 24:
        size = 1 << (number - 24)
        number, at = int.from_bytes(data[at:at + size], "big"), at + size
    if major == 0:
        return number, at
    if major == 1:
        return -1 - number, at
    if major == 3:
        return data[at:at + number].decode(), at + number
    assert major == 5, major
    items = {}
    for _ in range(number):
        key, at = decode(data, at)
        items[key], at = decode(data, at)
    return items, at


def check_debug(debug):
    contexts = debug["contexts"]
    same("context ids", [item["id"] for item in contexts], list(range(len(contexts))))
    for level, name, keys, question in (
            ("keras", None, "name class stage", "SELECT layer, class, stage FROM layers ORDER BY position"),
            ("poplibs", "layer", "name kind phase stage", "SELECT operation, kind, phase, stage, layer FROM operations"),
            ("poplar", "operation", "name type programId",
             "SELECT name, type, program_id, operation FROM programs ORDER BY program_id")):
        at = [item for item in contexts if item["layer"] == level]
        wanted = rows(question)
        same("contexts of " + level, [tuple(item.get(key) for key in keys.split()) for item in at],
             [row[:len(keys.split())] for row in wanted])
        if name:
            same("parents of " + level, [contexts[item["parentId"]]["name"] if "parentId" in item else None for item in at],
                 [row[-1] for row in wanted])


# ---- all -----------------------------------------------------------------------------------------

done = []
for stem, check in (("graph", check_graph), ("execution", check_execution)):
    found = load(stem + ".json")
    if found is not None:
        validate(stem, found)
        check(found)
        done.append(stem)
if os.path.exists(os.path.join(folder, "debug.cbor")):
    with open(os.path.join(folder, "debug.cbor"), "rb") as file:
        found, end = decode(bytes_read := file.read())
    same("bytes of debug.cbor", end, len(bytes_read))
    validate("debug", found)
    check_debug(found)
    done.append("debug")
print(" ".join(done), compared)
