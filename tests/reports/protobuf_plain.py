"""Straightforward readers of protobuf traces, of whole files in memory, for comparison with `ipu-report import`."""


def fields(data, at=0, end=None):
    """(number, wire type, value) of a message; ends at the first malformed one."""
    end = len(data) if end is None else end
    while at < end:
        key, at = varint(data, at, end)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise ValueError(f"byte {at}: no field")
        if kind == 0:
            value, at = varint(data, at, end)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            if at + size > end:
                raise ValueError(f"byte {at}: it ends")
            value, at = int.from_bytes(data[at:at + size], "little"), at + size
        elif kind == 2:
            size, at = varint(data, at, end)
            if at + size > end:
                raise ValueError(f"byte {at}: it ends")
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f"byte {at}: wire type {kind}")
        yield number, kind, value


def varint(data, at, end):
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value & (1 << 64) - 1, at
    raise ValueError(f"byte {at}: no varint")


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def all_of(message, number):
    return [value for n, _, value in fields(message) if n == number]


def last_of(message, number, default):
    return ([default] + all_of(message, number))[-1]


def text(data):
    return data.decode("utf-8", "replace")


def xplane(data):
    """[(line, event, start_ns, dur_ns; None: an instant)], and the number of events."""
    rows, count = [], 0
    for plane in all_of(data, 1):
        names = {}
        for entry in all_of(plane, 4):
            message = last_of(entry, 2, b"")
            names[signed(last_of(entry, 1, 0))] = text(last_of(message, 4, b"") or last_of(message, 2, b""))
        for line in all_of(plane, 3):
            stamp = signed(last_of(line, 3, 0))
            name = text(last_of(line, 11, b"") or last_of(line, 2, b""))
            for event in all_of(line, 4):
                count += 1
                if all_of(event, 5):  # the sum of several, without a time
                    continue
                start = stamp * 1000 + signed(last_of(event, 2, 0))
                dur = signed(last_of(event, 3, 0))
                rows.append((name, names[signed(last_of(event, 1, 0))], start // 1000,
                             (start + dur) // 1000 - start // 1000 if dur else None))
    return rows, count


class Sequence:
    def __init__(self):
        self.names, self.whole, self.clock, self.track, self.extra, self.clocks = {}, False, 6, None, [], {}
        self.thread, self.reference = None, 0


def numbers(kind, value, fixed):
    if kind != 2:
        return [value]
    if fixed:
        return [int.from_bytes(value[i:i + 8], "little") for i in range(0, len(value), 8)]
    out, at = [], 0
    while at < len(value):
        number, at = varint(value, at, len(value))
        out.append(number)
    return out


class Perfetto:
    """rows: spans (name, start, dur), of those without an end (name, start, "open"), instants (name, ns, None); samples:
    (name, ns, value); flows: sides; left: events without a place, by reason."""

    def __init__(self, data):
        import collections
        self.rows, self.samples, self.left = collections.Counter(), collections.Counter(), collections.Counter()
        self.flows, self.sequences, self.clocks, self.counters, self.halves, self.sums = 0, {}, {}, {}, {}, {}
        self.stages, self.gpu_counters = set(), {}
        self.order = 0
        self.packets(data)
        for halves in self.halves.values():
            stack = []
            for ns, _, name in sorted(halves, key=lambda half: half[:2]):
                if name is not None:
                    stack.append((name, ns))
                elif stack:
                    begun = stack.pop()
                    self.rows[begun[0], begun[1], ns - begun[1]] += 1
                else:
                    self.left["end"] += 1
            for name, ns in stack:
                self.rows[name, ns, "open"] += 1

    def packets(self, data, depth=0):
        import subprocess
        import zlib
        for number, kind, packet in fields(data):
            if number != 1 or kind != 2:
                continue
            parts = {}
            try:
                for n, k, value in fields(packet):
                    parts[n] = value
            except ValueError:
                self.left["malformed"] += 1
                continue
            if 50 in parts and depth == 0:
                self.packets(zlib.decompress(parts[50]), 1)
                continue
            if 133 in parts and depth == 0:
                self.packets(subprocess.run(["zstd", "-dc"], input=parts[133], capture_output=True).stdout, 1)
                continue
            self.packet(parts)

    def ns(self, sequence, clock, ticks):
        known = (self.clocks if clock < 64 else sequence.clocks).get(clock)
        if not known:
            return ticks
        ticks *= known["multiplier"]
        if known["incremental"]:
            ticks = known["last"] = known["last"] + ticks
        return ticks + known["offset"]

    def packet(self, parts):
        sequence = self.sequences.setdefault(parts.get(10, 0), Sequence())
        flags = parts.get(13, 0) | (1 if parts.get(41) else 0)
        if parts.get(42):
            sequence.whole = False
        if flags & 1:
            sequence.names, sequence.whole, sequence.clock, sequence.track, sequence.extra = {}, True, 6, None, []
        for n, k, value in fields(parts.get(59, b"")):
            if n == 58:
                sequence.clock = value
            if n == 11:
                for m, kind, inner in fields(value):
                    if m == 11:
                        sequence.track = inner
                    if m == 31:
                        sequence.extra += numbers(kind, inner, False)
        for n, k, value in fields(parts.get(12, b"")):
            if k == 2:
                entry = dict((m, v) for m, _, v in fields(value)) if n in (1, 2, 3, 24, 29, 47, 1000) else {}
                if n == 47:
                    sequence.names[n, entry.get(1, 0)] = self.names_of_counters(entry.get(2, b""))
                else:
                    name = (entry.get(3) if n == 1000 else None) or entry.get(2, b"")
                    sequence.names.setdefault((n, entry.get(1, 0)), text(name or b""))
        if 6 in parts:
            self.snapshot(sequence, parts[6])
        if 44 in parts:
            thread = dict((n, v) for n, _, v in fields(parts[44]))
            sequence.thread = signed(thread.get(1, 0)), signed(thread.get(2, 0))
            sequence.reference = thread.get(6, 0) * 1000
        if 60 in parts:
            track = dict((n, v) for n, _, v in fields(parts[60]))
            counter = dict((n, v) for n, _, v in fields(track[8])) if 8 in track else {}
            name = track.get(2) or track.get(10) or track.get(13)
            self.counters[track.get(1, 0)] = (text(name) if name else None, counter.get(4, 1) or 1, counter.get(5, 0))
        for number in (1, 37, 38, 39, 46, 48, 66, 75, 77):
            if number in parts:
                self.left["other"] += 1
                break
        if 11 in parts:
            ns = self.ns(sequence, parts.get(58, sequence.clock or 6), signed(parts.get(8, 0)))
            if flags & 2 and not sequence.whole:
                self.left["lost"] += 1
            else:
                self.event(sequence, parts[11], ns if 8 in parts else None)
        if 53 in parts or 52 in parts:
            ns = self.ns(sequence, parts.get(58, sequence.clock or 6), signed(parts.get(8, 0)))
            if flags & 2 and not sequence.whole:
                self.left["lost"] += 1
            elif 53 in parts:
                self.stage(sequence, parts[53], ns)
            else:
                self.gpu_samples(sequence, parts[52], ns)

    @staticmethod
    def names_of_counters(descriptor):
        specs = [dict((n, v) for n, _, v in fields(spec)) for spec in all_of(descriptor, 1)]
        return {spec.get(1, 0): text(spec.get(2, b"")) for spec in specs}

    def waits(self, ids):
        """Arrows from stages that were read; their two sides count."""
        for stage in ids:
            if stage in self.stages:
                self.flows += 2
            else:
                self.left["wait"] += 1

    def stage(self, sequence, data, ns):
        event = dict((n, v) for n, _, v in fields(data))
        if 13 not in event and 3 not in event:
            return
        name = (text(event[17]) if 17 in event else None) or sequence.names.get((2, event.get(20))) or sequence.names.get(
            (1000, event.get(19))) or sequence.names.get((24, event.get(14))) or f"stage {event.get(14)}"
        self.rows[name, ns, event.get(2, 0)] += 1
        self.order += 1
        self.stages.add(event.get(1, 0))
        self.waits([w for n, kind, v in fields(data) if n == 18 for w in numbers(kind, v, False)])

    def gpu_samples(self, sequence, data, ns):
        import struct
        names = sequence.names.get((47, last_of(data, 4, 0))) if all_of(data, 4) else self.gpu_counters
        for descriptor in all_of(data, 1):
            for number, name in self.names_of_counters(descriptor).items():
                self.gpu_counters.setdefault(number, name)
        for counter in all_of(data, 2):
            values = dict((n, v) for n, _, v in fields(counter))
            value = struct.unpack("<d", values[3].to_bytes(8, "little"))[0] if 3 in values else signed(values.get(2, 0))
            if values.get(1, 0) in (names or {}):
                self.samples[names[values.get(1, 0)], ns, value] += 1
            else:
                self.left["counter"] += 1

    def snapshot(self, sequence, data):
        seen, now, first = [], None, None
        for n, _, value in fields(data):
            if n != 1:
                continue
            clock = dict((m, v) for m, _, v in fields(value))
            multiplier = clock.get(4, 1) or 1
            ns = clock.get(2, 0) * multiplier
            table = self.clocks if clock.get(1, 0) < 64 else sequence.clocks
            if clock.get(1) == 6:
                now = ns
            elif now is None and clock.get(1, 0) in table:
                now = ns + table[clock.get(1, 0)]["offset"]
            first = ns if first is None else first
            seen.append((table, clock.get(1, 0), dict(multiplier=multiplier, incremental=clock.get(3, 0), last=ns)))
        now = first if now is None else now
        for table, clock, known in seen:
            table[clock] = dict(known, offset=now - known["last"])

    def sample(self, track, ns, value):
        name, multiplier, incremental = self.counters.get(track, (None, 1, 0))
        value *= multiplier
        if incremental:
            value = self.sums[track] = self.sums.get(track, 0) + value
        self.samples[name or "counter", ns, value] += 1

    def event(self, sequence, data, ns):
        import struct
        kind = name = None
        track, value, extra, extra_tracks, flows, legacy = None, None, [], [], 0, {}
        for n, wire, v in fields(data):
            if n == 9:
                kind = v
            elif n == 10:
                name = sequence.names.get((2, v))
            elif n == 23:
                name = text(v)
            elif n == 11:
                track = v
            elif n == 12:
                extra += numbers(wire, v, False)
            elif n == 31:
                extra_tracks += numbers(wire, v, False)
            elif n == 30:
                value = signed(v)
            elif n == 44:
                value = struct.unpack("<d", v.to_bytes(8, "little"))[0]
            elif n in (47, 48, 36, 42):
                flows += len(numbers(wire, v, n > 42))
            elif n == 1:
                sequence.reference += 1000 * signed(v)
                ns = self.ns(sequence, 3, sequence.reference)
            elif n == 16:
                ns = self.ns(sequence, 3, 1000 * signed(v))
            elif n == 6:
                legacy = dict((m, x) for m, _, x in fields(v))
                if 1 in legacy:
                    name = sequence.names.get((2, legacy[1]))
        track = sequence.track if track is None else track
        for number, where in zip(extra, extra_tracks or sequence.extra):
            if ns is not None:
                self.sample(where, ns, signed(number))
        if kind == 4 and value is not None and ns is not None:
            self.sample(track or 0, ns, value)
            return
        phase = chr(legacy.get(2, 0))
        kind = kind or {"B": 1, "b": 1, "S": 1, "E": 2, "e": 2, "F": 2, "X": 100, "I": 3, "i": 3, "R": 3, "n": 3,
                        "T": 3}.get(phase, 0)
        if ns is not None and not kind and phase in "stf":
            self.flows += 1
            return
        if ns is None or kind not in (1, 2, 3, 100):
            self.left["event"] += 1
            return
        self.order += 1
        where = ("id", legacy.get(6, legacy.get(10, legacy.get(11)))) if phase in "beSF" and phase != "\0" else (
            track, sequence.thread if track is None else None, legacy.get(18), legacy.get(19))
        if kind == 100:
            self.rows[name or "", ns, legacy.get(3, 0) * 1000] += 1
        elif kind == 3:
            self.rows[name or "", ns, None] += 1
        else:
            self.halves.setdefault(where, []).append((ns, self.order, (name or "") if kind == 1 else None))
        self.flows += flows + (kind != 2 and legacy.get(13, 0) in (1, 2, 3))
        for correlation in all_of(data, 3000):
            self.waits([w for n, wire, v in fields(correlation) if n == 2 for w in numbers(wire, v, False)])
